"""The measurements, kept as JSON lines while a run goes on and as one JSON document afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.environments import ROOT
from bench.statistic import median


class Results:
    """Records: figures of one row and system in one turn, an error, or a reason why a system was skipped."""

    def __init__(
        self, head: Mapping[str, Any], records: Iterable[Mapping[str, Any]] = (), file: Path | None = None
    ) -> None:
        self.head = dict(head)
        self.records = [dict(record) for record in records]
        self._file = file

    @classmethod
    def begin(cls, command: str, options: Mapping[str, Any], file: Path | None = None) -> Results:
        head = {
            "command": command,
            "date": time.strftime("%Y-%m-%d"),
            "revision": _revision(),
            "options": dict(options),
        }
        results = cls(head, file=file)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(head) + "\n")
        return results

    @classmethod
    def resume(cls, file: Path) -> Results:
        """A run that was interrupted. Errors are tried again."""
        head, *lines = file.read_text().splitlines()
        records = [json.loads(line) for line in lines]
        return cls(json.loads(head), [record for record in records if "error" not in record], file)

    @classmethod
    def load(cls, file: Path) -> Results:
        document = json.loads(file.read_text())
        return cls(document["head"], document["records"])

    @classmethod
    def merge(cls, parts: Sequence[Results]) -> Results:
        """The records of several runs under the head of the first, and the revisions of the others."""
        first = parts[0]
        others = [f"{part.head['command']} at {part.head['revision']}" for part in parts[1:]]
        head = first.head | ({"added": others} if others else {})
        return cls(head, [record for part in parts for record in part.records])

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"head": self.head, "records": self.records}, indent=1) + "\n")

    def add(self, **record: Any) -> None:
        record = {name: _rounded(value) for name, value in record.items()}
        self.records.append(record)
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps(record) + "\n")

    def discard_progress(self) -> None:
        """The run is complete: the next one starts anew."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def matches(self, options: Mapping[str, Any]) -> bool:
        """Whether these results are of the same code and settings."""
        current = json.loads(json.dumps({"options": dict(options), "revision": _revision()}))
        return all(self.head[name] == value for name, value in current.items())

    def has(self, turn: int, cell: str, system: str) -> bool:
        key = (turn, cell, system)
        return any((r.get("turn"), r.get("cell"), r.get("of")) == key for r in self.records)

    def skipped(self) -> dict[str, str]:
        return {r["system"]: r["skipped"] for r in self.records if "skipped" in r}

    def errors(self) -> list[str]:
        return [f"{r['cell']} {r['system']}: {r['error']}" for r in self.records if "error" in r]

    def systems(self, row: str) -> list[str]:
        return list(dict.fromkeys(r["system"] for r in self.records if r.get("row") == row))

    def values(self, row: str, system: str, figure: str = "rate") -> list[Any]:
        """One value per turn."""
        some = [r for r in self.records if r.get("row") == row and r["system"] == system]
        return [r[figure] for r in some if figure in r]

    def median(self, row: str, system: str, figure: str = "rate") -> float | None:
        values = self.values(row, system, figure)
        return median(values) if values else None

    def medians(self, row: str, system: str, figure: str) -> list[float]:
        """Of a figure that is a list: the median of each place."""
        lists: Sequence[Sequence[float]] = self.values(row, system, figure)
        return [median(column) for column in zip(*lists, strict=False)]

    def ratio(
        self, row: str, system: str, other: str, figure: str = "rate", other_row: str | None = None
    ) -> float | None:
        """The median over turns of one system's figure divided by the other's in the same turn."""
        mine, others = self._by_turn(row, system, figure), self._by_turn(other_row or row, other, figure)
        shared = [mine[turn] / others[turn] for turn in mine if others.get(turn)]
        if shared:
            return median(shared)
        return median(list(mine.values())) / median(list(others.values())) if mine and any(others.values()) else None

    def _by_turn(self, row: str, system: str, figure: str) -> dict[int, float]:
        some = [r for r in self.records if r.get("row") == row and r["system"] == system]
        return {r["turn"]: r[figure] for r in some if isinstance(r.get(figure), int | float)}


def _rounded(value: Any) -> Any:
    """Four significant digits and a few more: the files are read by people too."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
