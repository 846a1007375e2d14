"""The documents of the worker protocol, version 1, as both ends read and write them. docs/gateway.md explains them.

Both ends ignore fields that they do not know. A field that is left out has the default that is written here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from .._core import validate
from .._core.backoff import Backoff
from .._core.job import DEFAULT_POLICY, Draft, FollowUp, OnDependencyFailure, OnExpired, OnFailure, Policy, Request
from .._store.flows.losses import Loss

VERSION = 1
PATH = f"/worker/v{VERSION}/"
MAX_JOBS = 1000  # in a claim, and outcomes, leases or reports in a request
MAX_WAIT = 30.0  # seconds that the gateway keeps a request waiting
MAX_BODY = 16 * 1024 * 1024  # bytes of a request
REPORT_EVERY = 5.0  # seconds between two hellos
NULL = b"null"
ABSENT = Raw()  # a JSON value that is left out
NULL_VALUE = Raw(NULL)
_X = "[0-9a-f]"
#: The id of a job, and the token of a claim.
UUID = Annotated[str, Meta(pattern=f"^{_X}{{8}}-{_X}{{4}}-{_X}{{4}}-{_X}{{4}}-{_X}{{12}}\\Z")]
WorkerName = Annotated[str, Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, Meta(ge=0, le=validate.MAX_SECONDS)]
LeaseSeconds = Annotated[float, Meta(ge=0.1, le=86400)]
Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]

Outcome = Literal["succeeded", "raised", "snoozed", "released"]


class LeaseDoc(Struct, omit_defaults=True):
    """A lease. `version`: that of the job, as the claim returned it."""

    id: UUID
    token: UUID
    version: int = 0


class CountDoc(Struct, omit_defaults=True):
    """An increment of the statistics. `bucket`: the class of a duration, if the count is of a histogram."""

    queue: str
    name: str
    number: float
    bucket: int = 0


class HelloIn(Struct, omit_defaults=True):
    """A worker describes itself. `report`: a UUID, by which a repeated hello is counted once."""

    worker: WorkerName
    host: str = ""
    pid: Whole = 0
    queues: list[str] | None = None
    slots: Whole = 0
    tasks: Annotated[list[str], Meta(max_length=10_000)] = []
    lease: LeaseSeconds = 30.0
    version: str = "unknown"
    running: Whole = 0
    stopping: bool = False
    report: UUID | None = None
    counts: Annotated[list[CountDoc], Meta(max_length=100_000)] = []


class HelloOut(Struct):
    """`worker`: its name in the store. `queues`: those that the token is limited to."""

    protocol: int
    version: str
    worker: str
    queues: list[str] | None
    max_jobs: int
    max_wait: float
    max_body: int
    report_every: float


class ClaimIn(Struct, omit_defaults=True):
    """Asks for up to `want` jobs. `slots`: how many of them could start at once. `ahead`: how many more to take from
    queues with limits. `again`: an earlier try of this claim may have been carried out."""

    worker: WorkerName
    token: UUID
    tasks: Annotated[list[str], Meta(min_length=1, max_length=10_000)]
    want: Annotated[int, Meta(ge=1, le=MAX_JOBS)] = 1
    queues: list[str] | None = None
    slots: Whole | None = None
    ahead: Whole = 0
    lease: LeaseSeconds = 30.0
    wait: Seconds = 0.0
    again: bool = False
    alone: bool = False


class JobDoc(Struct, omit_defaults=True, gc=False):
    """A claimed job. `token`: that of its lease."""

    id: str
    token: str
    version: int
    task: str
    queue: str
    payload: Raw
    attempt: int
    max_attempts: int
    lease: float
    created_at: float
    run_at: float
    expires_at: float
    priority: int = 0
    losses: int = 0
    timeout: float | None = None
    target: str | None = None
    group: str | None = None
    chain: str | None = None
    position: int = 0
    dependency_count: int = 0
    context: str | None = None


class ClaimOut(Struct, omit_defaults=True):
    """`waited`: seconds from the arrival of the request until the claim: the leases began no earlier. `suspects`,
    `quarantined`: such jobs are queued. `limited`: the queues that have
    limits; `is_limited`: some of the jobs are of such queues. `again_in`: seconds until a rate has
    room."""

    jobs: list[JobDoc]
    waited: float = 0.0
    suspects: bool | None = None
    quarantined: bool | None = None
    limited: list[str] = []
    is_limited: bool = False
    again_in: float | None = None


class RenewIn(Struct, omit_defaults=True):
    """Renews leases. `lease`: seconds, for jobs whose task sets none."""

    worker: WorkerName
    leases: list[LeaseDoc] = []
    lease: LeaseSeconds = 30.0


class RequestedDoc(Struct, omit_defaults=True):
    """A lease that is valid, and what an operator asks of its worker."""

    id: str
    token: str
    request: Request | None = None


class LossDoc(Struct):
    """A lease that is lost, and why."""

    id: str
    token: str
    reason: Loss


class RenewOut(Struct):
    """`locked`: still valid, but not renewed, because another program has locked the row. `unknown`: leases that the
    request did not name. `paused`: the queues that are paused."""

    renewed: list[RequestedDoc]
    locked: list[RequestedDoc]
    lost: list[LossDoc]
    unknown: list[LeaseDoc]
    paused: list[str]


class RequestsIn(Struct, omit_defaults=True):
    """Asks for requests to cancel or pause, and waits for one."""

    worker: WorkerName
    wait: Seconds = 0.0


class RequestsOut(Struct):
    """The leases of this worker for which there is a request."""

    requests: list[RequestedDoc]


class BackoffDoc(Struct, omit_defaults=True):
    """The delay before a retry."""

    base: float = 0.5
    max: float = 30.0
    factor: float = 2.0
    jitter: bool = True


class PolicyDoc(Struct, omit_defaults=True):
    """The policy of a job that continues a chain."""

    max_attempts: int = DEFAULT_POLICY.max_attempts
    backoff: BackoffDoc | None = None
    lease: float | None = None
    timeout: float | None = None
    on_expired: OnExpired = "retry"
    on_failure: OnFailure = "hold"
    on_dependency_failure: OnDependencyFailure = "hold"
    follow_up: FollowUpDoc | None = None


class FollowUpDoc(Struct, omit_defaults=True):
    """The job to enqueue when the job has failed for good. `argument` receives a description of the failed job."""

    task: str
    argument: str
    queue: str = "default"
    priority: int = 0
    policy: PolicyDoc | None = None


class DraftDoc(Struct, omit_defaults=True):
    """The next job of a chain. `run_at` and `start_by`: seconds since 1970."""

    task: str
    payload: Raw = Raw(b"{}")
    id: str | None = None
    queue: str = "default"
    priority: int = 0
    run_at: float | None = None
    delay: float | None = None
    target: str | None = None
    group: str | None = None
    unique: str | None = None
    unique_for: float | None = None
    replace: bool | Literal["payload"] = False
    depends_on: list[str] = []
    policy: PolicyDoc | None = None
    context: str | None = None
    start_by: float | None = None
    tags: list[str] = []


class OutcomeDoc(Struct, omit_defaults=True):
    """How an attempt ended. `result` and `continue_with` are of an attempt that succeeded; `error`, `error_type`,
    `fatal` of one that raised; `awaits` of one that snoozed; `reason` and `pause` of a job that is given back. `delay`:
    seconds until the next attempt."""

    id: UUID
    token: UUID
    outcome: Outcome
    result: Raw = NULL_VALUE
    continue_with: DraftDoc | None = None
    error: str = ""
    error_type: str | None = None
    fatal: bool = False
    delay: Seconds | None = None
    awaits: str | None = None
    reason: str | None = None
    pause: bool = False


class SettleIn(Struct, omit_defaults=True):
    worker: WorkerName
    outcomes: Annotated[list[OutcomeDoc], Meta(min_length=1, max_length=MAX_JOBS)]


class SettledDoc(Struct, omit_defaults=True):
    """The answer to one outcome. `state`: of the job; None without one of the others: the lease was lost. `delay`:
    seconds until the next attempt. `again`: a lock was not free; settle it again later. `refused`: why the store does
    not store this outcome; settle the attempt with another one."""

    id: str
    state: str | None = None
    delay: float | None = None
    again: bool = False
    refused: str | None = None


class SettleOut(Struct):
    """The answers, in the order of the outcomes."""

    settled: list[SettledDoc]


class ProgressDoc(Struct, omit_defaults=True):
    id: UUID
    token: UUID
    done: float
    total: float | None = None
    note: str | None = None


class ProgressIn(Struct):
    worker: WorkerName
    reports: Annotated[list[ProgressDoc], Meta(max_length=MAX_JOBS)]


class ProgressOut(Struct):
    """The leases whose progress was stored. Locked rows are left out: send the report again."""

    stored: list[LeaseDoc]


class DetailsIn(Struct, omit_defaults=True):
    """Asks for what the store keeps for the handler of a job. `signal`: the name of a signal."""

    worker: WorkerName
    id: UUID
    token: UUID
    signal: str | None = None


class StepDoc(Struct, omit_defaults=True):
    """A step that is stored. `left`: seconds of a sleep or wait that were left when it was read."""

    kind: str
    name: str
    result: Raw = ABSENT
    left: float = 0.0


class DependencyDoc(Struct, omit_defaults=True):
    """A chain that the job waited for."""

    chain: str
    state: str | None = None
    result: Raw = ABSENT
    task: str | None = None


class DetailsOut(Struct, omit_defaults=True):
    """`signal`: the value of the signal, if it was asked for and has been sent."""

    steps: list[StepDoc]
    dependencies: list[DependencyDoc]
    signal: Raw = ABSENT


class StepIn(Struct, omit_defaults=True):
    """Stores a step. `seconds`: of a sleep or a wait. `took`: seconds that the function took."""

    worker: WorkerName
    id: UUID
    token: UUID
    kind: Literal["step", "sleep", "wait", "missed"]
    name: str
    result: Raw = ABSENT
    input: Raw = ABSENT
    took: Seconds | None = None
    seconds: Seconds | None = None


class StepOut(Struct, omit_defaults=True):
    """The step that is stored, which may be an earlier one."""

    result: Raw = ABSENT
    left: float = 0.0


class QuarantineIn(Struct):
    """Asks for the right to finish all other jobs, in order to run one alone; or gives it back."""

    worker: WorkerName
    enter: bool


class QuarantineOut(Struct):
    granted: bool


class InterruptIn(Struct):
    """Has the claims and requests of this worker that wait answered at once."""

    worker: WorkerName


class Nothing(Struct):
    """An answer without fields."""


def text(value: Raw) -> str | None:
    """The text of a JSON value; None if it was left out."""
    return bytes(value).decode() or None


def raw(text: str | None) -> Raw:
    """A JSON text as a part of a document; None leaves it out."""
    return ABSENT if text is None else Raw(text.encode())


def draft_doc(draft: Draft[Any]) -> DraftDoc:
    """A draft as a document."""
    return DraftDoc(
        draft.task, Raw(draft.payload_json.encode()), draft.id, draft.queue, draft.priority, draft.run_at, draft.delay,
        draft.target, draft.group, draft.unique, draft.unique_for, draft.replace, list(draft.depends_on),
        _policy_doc(draft.policy), draft.context, draft.start_by, list(draft.tags),
    )  # fmt: skip


def policy_of(doc: PolicyDoc | None) -> Policy:
    """The policy of a document. Raises InvalidInput if its backoff is invalid."""
    if doc is None:
        return DEFAULT_POLICY
    backoff = DEFAULT_POLICY.backoff
    if doc.backoff is not None:
        backoff = Backoff(doc.backoff.base, doc.backoff.max, doc.backoff.factor, doc.backoff.jitter)
    return Policy(
        doc.max_attempts, backoff, doc.lease, doc.timeout, doc.on_expired, doc.on_failure, doc.on_dependency_failure,
        _follow_up(doc.follow_up),
    )  # fmt: skip


def _policy_doc(policy: Policy) -> PolicyDoc | None:
    if policy == DEFAULT_POLICY:
        return None
    backoff = policy.backoff
    return PolicyDoc(
        policy.max_attempts, BackoffDoc(backoff.base, backoff.max, backoff.factor, backoff.jitter), policy.lease,
        policy.timeout, policy.on_expired, policy.on_failure, policy.on_dependency_failure,
        _follow_up_doc(policy.follow_up),
    )  # fmt: skip


def _follow_up(doc: FollowUpDoc | None) -> FollowUp | None:
    return None if doc is None else FollowUp(doc.task, doc.argument, doc.queue, doc.priority, policy_of(doc.policy))


def _follow_up_doc(one: FollowUp | None) -> FollowUpDoc | None:
    return (
        None if one is None else FollowUpDoc(one.task, one.argument, one.queue, one.priority, _policy_doc(one.policy))
    )
