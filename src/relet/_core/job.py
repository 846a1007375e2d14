"""The nouns: what a job is before it is stored, while it lives, and what an attempt can come to.

Those that are made by the thousand are msgspec's structs, which cost a tenth of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from msgspec import Struct, field, json

from .backoff import Backoff

R_co = TypeVar("R_co", covariant=True)

Request = Literal["cancel", "pause"]
OnExpired = Literal["retry", "fail"]
OnFailure = Literal["hold", "continue"]
OnDependencyFailure = Literal["hold", "cancel", "run"]
Replace = bool | Literal["payload"]


class State(StrEnum):
    """Where a job is in its life. The verbs between states are in `machine.py`."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        """Nothing more can happen to the job."""
        return self in (State.SUCCEEDED, State.CANCELLED)


class AttemptOutcome(StrEnum):
    """How an attempt ended, as history and statistics call it."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRIED = "retried"
    LOST = "lost"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    PAUSED = "paused"

    @property
    def is_common(self) -> bool:
        """Whether tables and charts have a column for it even if there was none."""
        return self in (self.SUCCEEDED, self.FAILED, self.RETRIED, self.LOST)


class Wait(StrEnum):
    """What a pending job waits for. It waits for one thing at a time, in this order."""

    JOBS = "jobs"  # other chains must succeed first
    TIME = "time"  # its run_at is ahead
    TARGET = "target"  # others stand before it in its target's line


class Policy(Struct, frozen=True):
    """What a task decided and others must apply: stored with the job, so that any worker can."""

    max_attempts: int = 4
    backoff: Backoff = field(default_factory=Backoff)
    lease: float | None = None  # None: the worker's
    timeout: float | None = None
    on_expired: OnExpired = "retry"
    on_failure: OnFailure = "hold"
    on_dependency_failure: OnDependencyFailure = "hold"


DEFAULT_POLICY = Policy()


class Draft(Struct, Generic[R_co], frozen=True, rename={"payload_json": "payload"}):
    """A job not yet enqueued, checked and ready to be stored. Tasks make them: `task.draft(...)`."""

    id: str
    task: str
    payload_json: str
    queue: str = "default"
    priority: int = 0
    run_at: float | None = None  # seconds since 1970; None: now
    delay: float | None = None  # seconds from now, by the store's clock
    target: str | None = None
    group: str | None = None
    unique: str | None = None
    unique_for: float | None = None
    replace: Replace = False
    depends_on: tuple[str, ...] = ()
    policy: Policy = DEFAULT_POLICY
    context: str | None = None  # what it carries along for those who observe it, as JSON text
    fresh: bool = True  # the id was made for this draft, so no job can have it yet

    @property
    def payload(self) -> Any:
        """The arguments, as plain JSON values."""
        return json.decode(self.payload_json)


class Job(Struct, Generic[R_co], frozen=True, rename={"payload_json": "payload", "result_json": "result"}):
    """A job as the store knew it at one moment."""

    id: str
    task: str
    queue: str
    state: State
    priority: int
    payload_json: str
    attempt: int
    max_attempts: int
    losses: int
    version: int
    chain: str
    position: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    wait: Wait | None = None
    target: str | None = None
    holds: bool = False
    unique: str | None = None
    worker: str | None = None
    expires_at: datetime | None = None
    request: Request | None = None
    result_json: str | None = None
    error: str | None = None
    continued: bool = False  # succeeded, and another job went on with the chain
    progress: Progress | None = None  # of the attempt that runs, as its handler said it last
    group: str | None = None
    awaits: str | None = None  # the signal that it sleeps for
    context: str | None = None  # what its producer gave it to carry along, as JSON text
    renewed_at: datetime | None = None  # when its lease was last renewed; None: not since the claim
    existing: bool = False  # enqueue found it instead of making it

    @property
    def payload(self) -> Any:
        """The arguments, as plain JSON values."""
        return json.decode(self.payload_json)

    @property
    def result(self) -> Any:
        """What the handler returned, as plain JSON values; None if the job has not succeeded. `client.result` waits
        for it, and converts it by the annotation of the task."""
        return None if self.result_json is None else json.decode(self.result_json)

    def __repr__(self) -> str:
        waits = f" (waits for {self.wait})" if self.wait else ""
        return f"<job {self.id} {self.task} {self.state}{waits}>"


@dataclass(frozen=True, slots=True)
class Chain(Sequence[Job[Any]]):
    """A job and those that went on with it, in order: a sequence of what the store knew at one moment."""

    jobs: tuple[Job[Any], ...]

    @property
    def id(self) -> str:
        """The id of its first job, which may have been deleted or pruned since."""
        return self.jobs[0].chain

    @property
    def last(self) -> Job[Any]:
        """The job that it has come to."""
        return self.jobs[-1]

    @property
    def state(self) -> State:
        """The state of its last job."""
        return self.last.state

    @property
    def result_json(self) -> str | None:
        """The result of its last job; None unless that one has succeeded."""
        ended = self.state is State.SUCCEEDED and not self.last.continued  # else the last one is gone
        return self.last.result_json if ended else None

    @property
    def result(self) -> Any:
        """The same as plain JSON values."""
        return None if self.result_json is None else json.decode(self.result_json)

    @overload
    def __getitem__(self, index: int) -> Job[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Job[Any]]: ...
    def __getitem__(self, index: int | slice) -> Job[Any] | Sequence[Job[Any]]:
        return self.jobs[index]

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        return f"<chain {self.id} {self.state}: {' -> '.join(job.task for job in self.jobs)}>"


class Progress(Struct, frozen=True, omit_defaults=True):
    """How far a handler says that it has come."""

    done: float
    total: float | None = None
    note: str | None = None


class Lease(NamedTuple):
    """What an owner shows with every write."""

    id: str
    token: str


class Claimed(Struct, frozen=True, gc=False):
    """A job as its new owner receives it, lease included.

    It refers to nothing that could refer back, so the garbage collector need not look at the thousands there may be.
    """

    id: str
    token: str
    version: int
    task: str
    queue: str
    payload_json: str
    priority: int
    target: str | None
    attempt: int
    losses: int
    policy: Policy
    chain: str
    position: int
    rank_and_seq: tuple[int, int]  # where it stood in its queue; moves the claim cursor
    created_at: float
    run_at: float
    expires_at: float
    group: str | None = None
    dependency_count: int = 0  # how many jobs it waited for
    context: str | None = None

    @property
    def payload(self) -> Any:
        """The arguments, as plain JSON values."""
        return json.decode(self.payload_json)

    @property
    def lease(self) -> Lease:
        """What to show when renewing and settling."""
        return Lease(self.id, self.token)


class AttemptRecord(Struct, frozen=True):
    """One attempt of a job that has ended, or the one that runs now (`outcome` is "running")."""

    job_id: str
    attempt: int
    version: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str
    error: str | None
    renewed_at: datetime | None = None  # when its lease was last renewed; None: not since the claim
    expires_at: datetime | None = None  # until when its lease was good; None of a success


class Dependency(Struct, frozen=True, rename={"result_json": "result"}):
    """What a job waits for, or waited for: a chain, how it ended (None: not yet) and its result.

    `task` is that of the chain's first job; None until it has ended, and where that job was gone by then.
    """

    chain: str
    state: str | None
    result_json: str | None
    task: str | None

    @property
    def result(self) -> Any:
        """The result as plain JSON values."""
        return None if self.result_json is None else json.decode(self.result_json)


# What came of an attempt. Closed: `machine.settle` says what each of them means for the job.


class Succeeded(Struct, frozen=True):
    """The handler returned; `result` is JSON text. `continue_with` goes on with the chain."""

    result: str | None = None
    continue_with: Draft[Any] | None = None


class Raised(Struct, frozen=True):
    """The handler raised, or timed out. `delay` overrides the backoff, `fatal` the attempts that remain."""

    error: str
    delay: float | None = None
    fatal: bool = False


class Snoozed(Struct, frozen=True):
    """The handler asked to be run again later; or, if that comes first, when there is a signal for it."""

    delay: float
    awaits: str | None = None


class Released(Struct, frozen=True):
    """The worker gives the job back unrun, or unfinished at shutdown."""

    reason: str | None = None
    pause: bool = False  # the task wants to be paused by a shutdown, not requeued


Outcome = Succeeded | Raised | Snoozed | Released


@lru_cache(maxsize=256)  # the rows of a batch share theirs
def utc(stamp: float) -> datetime:
    """A moment that a store returned, as a datetime in UTC."""
    return datetime.fromtimestamp(stamp, UTC)


def maybe_utc(stamp: float | None) -> datetime | None:
    """The same of a moment that may not have come."""
    return None if stamp is None else utc(stamp)
