"""The data types: drafts, jobs, chains, leases, attempts and their outcomes.

Most are msgspec structs, which take a tenth of the time of a frozen dataclass to create.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from msgspec import Struct, field

from .backoff import Backoff
from .codecs import Decodable, value_of

R_co = TypeVar("R_co", covariant=True)

Request = Literal["cancel", "pause"]
OnExpired = Literal["retry", "fail"]
OnFailure = Literal["hold", "continue"]
OnDependencyFailure = Literal["hold", "cancel", "run"]
Replace = bool | Literal["payload"]


class State(StrEnum):
    """The state of a job. `machine.py` has the verbs that lead from one to another."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        """Whether the job is finished: it never leaves this state."""
        return self in (State.SUCCEEDED, State.CANCELLED)


class AttemptOutcome(StrEnum):
    """How an attempt ended, in the history and in statistics."""

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
        """Whether tables and charts have a column for it even if its count is 0."""
        return self in (self.SUCCEEDED, self.FAILED, self.RETRIED, self.LOST)


class Wait(StrEnum):
    """The condition that a pending job waits for: one at a time, in this order."""

    JOBS = "jobs"  # the chains that it depends on
    TIME = "time"  # its run_at
    TARGET = "target"  # earlier jobs of its target


class Policy(Struct, frozen=True):
    """The policy of a task. It is stored with each job, so that processes without the task's code can apply it."""

    max_attempts: int = 4
    backoff: Backoff = field(default_factory=Backoff)
    lease: float | None = None  # None: the worker's
    timeout: float | None = None
    on_expired: OnExpired = "retry"
    on_failure: OnFailure = "hold"
    on_dependency_failure: OnDependencyFailure = "hold"
    follow_up: FollowUp | None = None


class FollowUp(Struct, frozen=True):
    """The job to enqueue when a job has failed for good. `argument`: the parameter that receives the `FailedJob`."""

    task: str
    argument: str
    queue: str
    priority: int
    policy: Policy


class FailedJob(Struct, frozen=True):
    """The job that has failed, as its follow-up receives it. `attempt`: how many attempts it has had."""

    id: str
    task: str
    queue: str
    error: str
    attempt: int
    target: str | None = None
    group: str | None = None


DEFAULT_POLICY = Policy()


class Draft(Decodable, Generic[R_co], frozen=True, rename={"payload_json": "payload"}):
    """A job that is checked, but not yet stored. `task.draft(...)` creates it."""

    id: str
    task: str
    payload_json: str
    queue: str = "default"
    priority: int = 0
    run_at: float | None = None  # seconds since 1970; None: now
    delay: float | None = None  # seconds from the enqueue, by the store's clock
    target: str | None = None
    group: str | None = None
    unique: str | None = None
    unique_for: float | None = None
    replace: Replace = False
    depends_on: tuple[str, ...] = ()
    policy: Policy = DEFAULT_POLICY
    context: str | None = None  # trace context, as JSON text
    fresh: bool = True  # the id is new, so no stored job can have it
    start_by: float | None = None  # seconds since 1970
    tags: tuple[str, ...] = ()
    rerun_of: str | None = None

    @property
    def payload(self) -> Any:
        """The arguments, as plain JSON values."""
        return value_of(self.payload_json, self._codecs)


def is_immediate(draft: Draft[Any]) -> bool:
    """Whether the draft is a new job that waits for nothing but its target, without rare options.

    A unique key, if any, has no window.
    """
    is_due = draft.run_at is None and draft.delay is None
    is_usual = draft.start_by is None and not draft.tags and draft.rerun_of is None
    return draft.fresh and draft.unique_for is None and not draft.depends_on and is_due and is_usual


class Job(Decodable, Generic[R_co], frozen=True, rename={"payload_json": "payload", "result_json": "result"}):
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
    continued: bool = False  # succeeded, and another job continues the chain
    progress: Progress | None = None  # the last report of the running handler
    group: str | None = None
    awaits: str | None = None  # the signal that its handler waits for
    context: str | None = None  # trace context from the producer, as JSON text
    renewed_at: datetime | None = None  # when its lease was last renewed; None: not since the claim
    start_by: datetime | None = None  # it is cancelled if it has not started by then
    tags: tuple[str, ...] = ()
    rerun_of: str | None = None  # the job whose arguments it was made from
    error_type: str | None = None  # the class of the exception that `error` describes, as module and name
    existing: bool = False  # not stored: enqueue returned a job that was stored before

    @property
    def payload(self) -> Any:
        """The arguments, as plain JSON values."""
        return value_of(self.payload_json, self._codecs)

    @property
    def result(self) -> Any:
        """The value that the handler returned, as plain JSON values; None if the job has not succeeded.

        `client.result` waits for it, and converts it to the task's return annotation.
        """
        return None if self.result_json is None else value_of(self.result_json, self._codecs)

    def __repr__(self) -> str:
        waits = f" (waits for {self.wait})" if self.wait else ""
        return f"<job {self.id} {self.task} {self.state}{waits}>"


#: Fields that only a job has which has not ended.
LIVE_FIELDS = ("wait", "holds", "expires_at", "request", "progress", "awaits", "start_by")
#: Fields that are stored in other tables.
DETAIL_FIELDS = ("tags", "rerun_of", "error_type")
#: Fields that the end of a job sets or may change. A job keeps its other fields when it ends.
END_FIELDS = ("state", "finished_at", "result_json", "error", "continued", "losses")


@dataclass(frozen=True, slots=True)
class Chain(Sequence[Job[Any]]):
    """A job and its continuations, in order, as the store knew them at one moment."""

    jobs: tuple[Job[Any], ...]

    @property
    def id(self) -> str:
        """The id of its first job, which may no longer be stored."""
        return self.jobs[0].chain

    @property
    def last(self) -> Job[Any]:
        return self.jobs[-1]

    @property
    def state(self) -> State:
        """The state of its last job."""
        return self.last.state

    @property
    def result_json(self) -> str | None:
        """The result of its last job as JSON text; None unless that job has succeeded."""
        # If the last stored job was continued, the job with the result is no longer stored.
        ended = self.state is State.SUCCEEDED and not self.last.continued
        return self.last.result_json if ended else None

    @property
    def result(self) -> Any:
        """The result of its last job as plain JSON values; None unless that job has succeeded."""
        return None if self.result_json is None else self.last.result

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
    """The progress that a handler reports: `done` of `total`, and a note."""

    done: float
    total: float | None = None
    note: str | None = None


class Lease(NamedTuple):
    """The right to run a job. The store rejects a worker's write unless its id and token match the row."""

    id: str
    token: str


class Claimed(Struct, frozen=True, gc=False):
    """A job and its lease, as a claim returns them to the worker.

    `gc=False`: it cannot be part of a reference cycle, so the garbage collector need not track thousands of them.
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
    rank_and_seq: tuple[int, int]  # its position in the queue; advances the claim cursor
    created_at: float
    run_at: float
    expires_at: float
    group: str | None = None
    dependency_count: int = 0  # how many jobs it waited for
    context: str | None = None

    @property
    def payload(self) -> Any:
        """The arguments, as plain JSON values."""
        return value_of(self.payload_json)

    @property
    def lease(self) -> Lease:
        return Lease(self.id, self.token)


class AttemptRecord(Struct, frozen=True):
    """An attempt that has ended, or the running one (its `outcome` is "running")."""

    job_id: str
    attempt: int
    version: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str
    error: str | None
    renewed_at: datetime | None = None  # when its lease was last renewed; None: not since the claim
    expires_at: datetime | None = None  # when its lease expires or would have expired; None after a success
    error_type: str | None = None  # the class of the exception, as module and name; None: no exception ended it


class StepRecord(Decodable, frozen=True, rename={"result_json": "result", "input_json": "input"}):
    """A durable step of a job, a sleep, a wait for a signal, or a signal that was sent.

    `kind`: "step", "sleep", "wait" (with a timeout), "missed" (that timeout has passed) or "signal". `at`: when it was
    stored. `until`: when the sleep or the wait ends. `result_json`: what the step returned, or the value of the signal.
    `started_at`: when the function of a step was called. `input_json`: its arguments by name, if they are JSON.
    """

    name: str
    kind: str
    at: datetime
    until: datetime | None = None
    result_json: str | None = None
    started_at: datetime | None = None
    input_json: str | None = None

    @property
    def result(self) -> Any:
        """The result as plain JSON values."""
        return None if self.result_json is None else value_of(self.result_json, self._codecs)

    @property
    def input(self) -> Any:
        """The arguments as plain JSON values."""
        return None if self.input_json is None else value_of(self.input_json, self._codecs)


class Dependency(Decodable, frozen=True, rename={"result_json": "result"}):
    """A chain that a job waits for or waited for: how it ended (`state`; None: it has not) and its result.

    `task`: the task of the chain's first job. None until the chain has ended, or if that job was deleted before.
    """

    chain: str
    state: str | None
    result_json: str | None
    task: str | None

    @property
    def result(self) -> Any:
        """The result as plain JSON values."""
        return None if self.result_json is None else value_of(self.result_json, self._codecs)


# The outcomes of an attempt. `machine.settle` handles each of them; there are no others.


class Succeeded(Struct, frozen=True):
    """The handler returned; `result` is JSON text. `continue_with`: the next job of the chain."""

    result: str | None = None
    continue_with: Draft[Any] | None = None


class Raised(Struct, frozen=True):
    """The handler raised, or timed out. `delay` overrides the backoff. `fatal`: do not retry. `error_type`: the class
    of the exception, as module and name."""

    error: str
    delay: float | None = None
    fatal: bool = False
    error_type: str | None = None


class Snoozed(Struct, frozen=True):
    """The handler asked to run again after `delay` seconds, or as soon as the signal `awaits` arrives."""

    delay: float
    awaits: str | None = None


class Released(Struct, frozen=True):
    """The worker gave the job back: it did not start it, or shutdown came before its end."""

    reason: str | None = None
    pause: bool = False  # on_shutdown="pause": the job becomes paused, not queued


Outcome = Succeeded | Raised | Snoozed | Released


@lru_cache(maxsize=256)  # rows of a batch often have the same time
def utc(stamp: float) -> datetime:
    """Seconds since 1970, as stores return times, as a datetime in UTC."""
    return datetime.fromtimestamp(stamp, UTC)


def maybe_utc(stamp: float | None) -> datetime | None:
    return None if stamp is None else utc(stamp)
