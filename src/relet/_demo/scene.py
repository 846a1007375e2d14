"""Who appears in the demo, and what has happened so far."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field

JOBS = 60
LEASE = 2.0
SLOTS = 4


@dataclass
class WorkerProcess:
    """One of the two, as it is seen from outside."""

    name: str
    process: subprocess.Popen[bytes]
    killed_at: float | None = None

    def holds(self, worker: str | None) -> bool:
        """Whether a job's worker is this one: the process is part of a worker's name."""
        return worker is not None and f":{self.process.pid}:" in worker


@dataclass
class Story:
    """What has happened so far."""

    begun: float = field(default_factory=time.monotonic)
    enqueued: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)  # by worker
    done: dict[str, int] = field(default_factory=dict)
    orphans: dict[str, str] = field(default_factory=dict)  # jobs that the dead one held: what has become of them
    taken_over: dict[str, float] = field(default_factory=dict)  # seconds after the kill
    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """A line of the story."""
        self.lines.append(f"{time.monotonic() - self.begun:5.1f} s  {line}")

    @property
    def succeeded(self) -> int:
        """Jobs that are over."""
        return self.counts.get("succeeded", 0)


class Show:
    """Shows the story as it goes: lines, each once."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._said = 0

    def __call__(self) -> None:
        for line in self._story.lines[self._said :]:
            print(line, flush=True)
        self._said = len(self._story.lines)
