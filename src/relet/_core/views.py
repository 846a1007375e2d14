"""Results of queries: pages of jobs, queues, targets, failures, and the audit trail."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct, structs

from .job import AttemptRecord, Chain, Dependency, Job, State, StepRecord


class Page(Struct, frozen=True):
    """Some jobs, newest first. Pass `cursor` to the next call; None: this is the last page."""

    jobs: list[Job[Any]]
    cursor: str | None


class JobDetails(Struct, frozen=True):
    """Everything about one job at one moment.

    `dependencies` are the chains that it waits or waited for, `dependents` the first 100 jobs that wait for its chain.
    `explanation` says in sentences why it is not running.
    """

    job: Job[Any]
    attempts: list[AttemptRecord]
    steps: list[StepRecord]
    chain: Chain
    dependencies: list[Dependency]
    dependents: list[Job[Any]]
    explanation: list[str]


class RateInfo(Struct, frozen=True):
    """At most `rate` jobs start in any `per` seconds: of one group, of each group ("*"), or of the queue (None)."""

    group: str | None
    rate: int
    per: float


class GroupLimit(Struct, frozen=True):
    """At most `max_running` jobs of one group, or of each group ("*"), run at once."""

    group: str
    max_running: int


class QueueInfo(Struct, frozen=True):
    """A queue that has jobs or settings.

    If there are too many live jobs to count them for each call, a worker's last count is returned (`counted_at`). If no
    worker has counted recently, only the newest jobs are counted (`at_least`).
    """

    queue: str
    paused: bool
    max_running: int | None
    pending: int
    queued: int
    running: int
    paused_jobs: int
    failed: int
    fair: bool = False  # workers claim from its groups in turn
    rates: tuple[RateInfo, ...] = ()
    group_limits: tuple[GroupLimit, ...] = ()
    oldest: float | None = None  # for how many seconds the longest queued job has been due
    counted_at: datetime | None = None  # when the numbers were counted; None: now
    at_least: bool = False  # the real numbers may be higher


def by_state(queue: QueueInfo) -> dict[State, int]:
    """The number of live jobs of a queue in each state."""
    return {
        State.PENDING: queue.pending,
        State.QUEUED: queue.queued,
        State.RUNNING: queue.running,
        State.PAUSED: queue.paused_jobs,
        State.FAILED: queue.failed,
    }


def counted_at(queues: Iterable[QueueInfo]) -> datetime | None:
    """When the oldest of these counts was made; None: all of them are from now."""
    return min((one.counted_at for one in queues if one.counted_at is not None), default=None)


class TargetInfo(Struct, frozen=True):
    """A target, the job that holds it, and how many jobs wait for it: `waiting` or, with `at_least`, more."""

    target: str
    holder: Job[Any] | None
    waiting: int
    at_least: bool = False


class TargetPage(Struct, frozen=True):
    """Some targets, by name. Pass `cursor` to the next call; None: this is the last page."""

    targets: list[TargetInfo]
    cursor: str | None


class TargetView(Struct, frozen=True):
    """A target, the job that holds it, and the first waiting jobs in order. `waiting` is the number of all of them or,
    with `at_least`, the number at which counting stopped."""

    target: str
    holder: Job[Any] | None
    line: list[Job[Any]]
    waiting: int
    at_least: bool = False


class FailureGroup(Struct, frozen=True):
    """Jobs with a similar error. The `error` filter finds them with `search`; `example` is the id of one."""

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
    """Who (`who`) applied which verb (`what`) to which job or other object (`subject`)."""

    id: str
    at: datetime
    who: str
    what: str
    subject: str
    detail: dict[str, Any]


class AuditPage(Struct, frozen=True):
    """Some entries, newest first. Pass `cursor` to the next call; None: this is the last page."""

    entries: list[AuditEntry]
    cursor: str | None


class ReplicaStatus(Struct, frozen=True):
    """Whether the standby serves reads. `lag`: seconds that it is behind, None if that is not known. `problem`: why the
    primary serves them in its place; None: the standby does."""

    lag: float | None = None
    problem: str | None = None
