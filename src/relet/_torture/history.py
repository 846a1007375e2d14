"""The history of a run: each process appends its events to one file, and a crash loses none that was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import time  # bound early: a worker whose clock is moved replaces it
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


class History:
    """Appends events to the file of this process. One write for each, so that a killed process leaves whole lines."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / f"{name}-{os.getpid()}.jsonl", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        self._name = name

    def write(self, event: str, **fields: Any) -> None:
        line = _encoder.encode({"at": time(), "by": self._name, "pid": os.getpid(), "event": event, **fields})
        os.write(self._file, line + b"\n")


def read_events(folder: Path) -> Iterator[dict[str, Any]]:
    """The events of all processes, each file in its order."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            yield from (_decoder.decode(line) for line in file if line.endswith(b"\n"))
