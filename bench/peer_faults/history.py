"""The records of the handlers in the file of events."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


@dataclass
class Run:
    """One call of a handler."""

    id: str
    job: int
    pid: int
    start: float
    end: float | None = None
    is_aborted: bool = False

    @property
    def has_completed(self) -> bool:
        return self.end is not None and not self.is_aborted


class History:
    def __init__(self, lines: Iterable[str]) -> None:
        self.runs: dict[str, Run] = {}
        self.pools: dict[int, str] = {}  # of graphile-worker, by process
        for line in lines:
            self._add(json.loads(line))
        self.by_job: dict[int, list[Run]] = defaultdict(list)
        for run in sorted(self.runs.values(), key=lambda run: run.start):
            self.by_job[run.job].append(run)

    @classmethod
    def read(cls, file: Path) -> History:
        """Without a line that is being written."""
        text = file.read_text() if file.exists() else ""
        return cls(text[: text.rfind("\n") + 1].splitlines())

    def _add(self, event: dict[str, object]) -> None:
        if event["event"] == "pool":
            self.pools[int(str(event["pid"]))] = str(event["id"])
        elif event["event"] == "start":
            run = Run(str(event["run"]), int(str(event["job"])), int(str(event["pid"])), float(str(event["at"])))
            self.runs[run.id] = run
        else:
            run = self.runs[str(event["run"])]
            run.end, run.is_aborted = float(str(event["at"])), event["event"] == "abort"

    def has_completed(self, job: int) -> bool:
        return any(run.has_completed for run in self.by_job[job])

    def reruns(self) -> list[tuple[Run, Run]]:
        """Each run of a job with the next one of that job."""
        return [pair for runs in self.by_job.values() for pair in pairwise(runs)]
