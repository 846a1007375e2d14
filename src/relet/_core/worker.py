"""A worker as others see it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class WorkerFacts(Struct, frozen=True):
    """What a worker says of itself, and what does not change while it lives."""

    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None  # None: all
    slots: int
    tasks: tuple[str, ...]
    lease: float
    version: str


class WorkerInfo(Struct, frozen=True):
    """A worker, as it last spoke of itself. `lost`: it has not for a while, and did not say that it would stop."""

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
        """Whether it takes jobs of this queue and knows this task."""
        return task in self.tasks and (self.queues is None or queue in self.queues)
