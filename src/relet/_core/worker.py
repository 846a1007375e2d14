"""The reports of workers about themselves."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class WorkerFacts(Struct, frozen=True):
    """The part of a worker's report that seldom changes while it runs. `every`: seconds between two reports."""

    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None  # None: all
    slots: int
    tasks: tuple[str, ...]
    lease: float
    version: str
    every: float = 5.0


class WorkerInfo(Struct, frozen=True):
    """The last report of a worker. `lost`: its reports stopped, and it had not announced that it would end."""

    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None  # None: all
    slots: int
    tasks: tuple[str, ...]
    lease: float
    version: str
    running: int
    stopping: bool
    started_at: datetime
    seen_at: datetime
    lost: bool

    def serves(self, queue: str, task: str) -> bool:
        """Whether it claims jobs of this queue and knows this task."""
        return task in self.tasks and (self.queues is None or queue in self.queues)
