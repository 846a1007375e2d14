"""The workers of the demo, and its state."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field

JOBS = 60
LEASE = 2.0
SLOTS = 4


@dataclass
class WorkerProcess:
    """One of the two workers, as a child process."""

    name: str
    process: subprocess.Popen[bytes]
    killed_at: float | None = None

    def holds(self, worker: str | None) -> bool:
        """True if a job's worker is this one. The name of a worker contains its process ID."""
        return worker is not None and f":{self.process.pid}:" in worker


@dataclass
class Story:
    """The state of the demo, and the lines to print."""

    begun: float = field(default_factory=time.monotonic)
    enqueued: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)  # by worker
    done: dict[str, int] = field(default_factory=dict)
    orphans: dict[str, str] = field(default_factory=dict)  # by job of the killed worker: its state now
    taken_over: dict[str, float] = field(default_factory=dict)  # by job: seconds after the kill
    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Add a line with the time since the start."""
        self.lines.append(f"{time.monotonic() - self.begun:5.1f} s  {line}")

    @property
    def succeeded(self) -> int:
        return self.counts.get("succeeded", 0)


class Show:
    """Prints each line of the story once."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._printed = 0

    def __call__(self) -> None:
        for line in self._story.lines[self._printed :]:
            print(line, flush=True)
        self._printed = len(self._story.lines)
