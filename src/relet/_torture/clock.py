"""The clock of a worker process, which faults move."""

from __future__ import annotations

import time
from pathlib import Path

from .._system import SYSTEM

READ_EVERY = 0.1  # seconds


def move_clock(file: str) -> None:
    """From now on this process reads a time that is wrong by as many seconds as the file says."""
    path, real, monotonic = Path(file), time.time, time.monotonic
    read_at, seconds = 0.0, 0.0

    def moved() -> float:
        nonlocal read_at, seconds
        if monotonic() - read_at > READ_EVERY:
            read_at = monotonic()
            seconds = _read(path)
        return real() + seconds

    time.time = moved
    SYSTEM.time = moved


def _read(path: Path) -> float:
    try:
        return float(path.read_text())
    except (OSError, ValueError):  # it is being written, or was not yet
        return 0.0
