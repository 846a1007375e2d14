"""What people see: pages of jobs, queues, targets, failures, and who did what."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct, structs

from .job import AttemptRecord, Chain, Dependency, Job, State


class Page(Struct, frozen=True):
    """Some jobs, newest first. Pass `cursor` to the next call; None: these were the last."""

    jobs: list[Job[Any]]
    cursor: str | None


class JobDetails(Struct, frozen=True):
    """Everything about one job at one moment.

    `dependencies` are the chains that it waits or waited for, `dependents` the first 100 jobs that wait for its chain.
    `explanation` says in sentences why it is not running.
    """

    job: Job[Any]
    attempts: list[AttemptRecord]
    chain: Chain
    dependencies: list[Dependency]
    dependents: list[Job[Any]]
    explanation: list[str]


class RateInfo(Struct, frozen=True):
    """At most `rate` jobs start within any `per` seconds: of a group, of each group ("*"), or of the queue (None)."""

    group: str | None
    rate: int
    per: float


class QueueInfo(Struct, frozen=True):
    """A queue that has jobs or settings.

    Where there are too many live jobs to count each time, the numbers are those of a moment ago (`counted_at`), or, if
    no worker has counted lately, only those of the newest jobs (`at_least`).
    """

    queue: str
    paused: bool
    max_running: int | None
    pending: int
    queued: int
    running: int
    paused_jobs: int
    failed: int
    fair: bool = False  # groups are served in turn
    rates: tuple[RateInfo, ...] = ()
    oldest: float | None = None  # for how many seconds the longest queued job has been due
    counted_at: datetime | None = None  # when the numbers were counted; None: now
    at_least: bool = False  # there may be more than these numbers say


def by_state(queue: QueueInfo) -> dict[State, int]:
    """How many jobs of a queue are in each of the states that are not over."""
    return {
        State.PENDING: queue.pending,
        State.QUEUED: queue.queued,
        State.RUNNING: queue.running,
        State.PAUSED: queue.paused_jobs,
        State.FAILED: queue.failed,
    }


def counted_at(queues: Iterable[QueueInfo]) -> datetime | None:
    """When the numbers of these queues were counted, the longest ago; None: all of them now."""
    return min((one.counted_at for one in queues if one.counted_at is not None), default=None)


class TargetInfo(Struct, frozen=True):
    """A target that is held or waited for."""

    target: str
    holder: Job[Any] | None
    waiting: int


class TargetPage(Struct, frozen=True):
    """Some targets, by name. Pass `cursor` to the next call; None: these were the last."""

    targets: list[TargetInfo]
    cursor: str | None


class TargetView(Struct, frozen=True):
    """One target: who holds it, and the first of those in line, in order; `waiting` counts all of them."""

    target: str
    holder: Job[Any] | None
    line: list[Job[Any]]
    waiting: int


class FailureGroup(Struct, frozen=True):
    """Jobs that failed alike. `search` finds them by the `error` filter; `example` is one of them."""

    task: str
    error: str
    number: int
    first_at: datetime
    last_at: datetime
    example: str
    search: str

    def __add__(self, other: FailureGroup) -> FailureGroup:
        latest = max(self, other, key=lambda group: group.last_at)
        first = min(self.first_at, other.first_at)
        return structs.replace(latest, number=self.number + other.number, first_at=first)


class AuditEntry(Struct, frozen=True):
    """Who did what, to whom, and what else there is to say."""

    id: str
    at: datetime
    who: str
    what: str
    subject: str
    detail: dict[str, Any]


class AuditPage(Struct, frozen=True):
    """Some entries, the latest first. Pass `cursor` to the next call; None: these were the last."""

    entries: list[AuditEntry]
    cursor: str | None
