"""The state machine. Every decision about states is in this file.

`TRANSITIONS` has, for each verb, the states it leads from and to. The functions below make the decisions that depend on
more than the state: the effect of an outcome or of an expired lease, and what a paused or resumed job waits for. The
statements in `_store/sql` apply a decision if the row is still as it was read. They decide nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct, structs

from ..errors import InvalidTransition
from .job import (
    AttemptOutcome,
    FollowUp,
    OnDependencyFailure,
    Outcome,
    Policy,
    Raised,
    Released,
    Request,
    Snoozed,
    State,
    Succeeded,
    Wait,
)

PENDING, QUEUED, RUNNING, PAUSED = State.PENDING, State.QUEUED, State.RUNNING, State.PAUSED
FAILED, SUCCEEDED, CANCELLED = State.FAILED, State.SUCCEEDED, State.CANCELLED


Who = Literal["anyone", "maintenance", "worker", "owner"]


class Transition(NamedTuple):
    """The states that a verb leads from and to, who may use it, and a remark for the table in the documentation."""

    sources: frozenset[State]
    targets: frozenset[State]
    who: Who
    remark: str


def _verb(sources: set[State], targets: set[State], who: Who, remark: str) -> Transition:
    return Transition(frozenset(sources), frozenset(targets), who, remark)


#: After a request, every exit from running except succeed leads here: cancel to cancelled, pause to paused.
_REQUESTED = {CANCELLED, PAUSED}

TRANSITIONS: dict[str, Transition] = {
    # verb: from, to, who may use it, a remark
    "enqueue": _verb(set(), {QUEUED, PENDING}, "anyone", "queued if it need not wait"),
    "promote": _verb({PENDING}, {QUEUED}, "maintenance", "from a nudge or by the clock"),
    "claim": _verb({QUEUED}, {RUNNING}, "worker", "attempt and version increase by one; new token, new expiry"),
    "renew": _verb({RUNNING}, {RUNNING}, "owner", "new expiry; the reply carries a request to cancel or pause"),
    "succeed": _verb({RUNNING}, {SUCCEEDED}, "owner", "the only exit that no request changes"),
    "retry": _verb({RUNNING}, {PENDING} | _REQUESTED, "owner", "attempts remain; run_at is now + backoff"),
    "snooze": _verb({RUNNING}, {PENDING} | _REQUESTED, "owner", "the attempt is given back"),
    "fail": _verb({RUNNING}, {FAILED} | _REQUESTED, "owner", "attempts spent, or a fatal error"),
    "release": _verb({RUNNING}, {QUEUED} | _REQUESTED, "owner", "the attempt is given back"),
    "reap": _verb(
        {RUNNING},
        {QUEUED, PENDING, FAILED} | _REQUESTED,
        "anyone",
        "the lease has expired; counts as a lost attempt",
    ),
    "cancel": _verb(
        {PENDING, QUEUED, PAUSED, FAILED, RUNNING},
        {CANCELLED, RUNNING},
        "anyone",
        "for a running job a request to its owner",
    ),
    "expire": _verb({PENDING, QUEUED, PAUSED}, {CANCELLED}, "maintenance", "it has not started by start_by"),
    "pause": _verb(
        {PENDING, QUEUED, RUNNING},
        {PAUSED, RUNNING},
        "anyone",
        "for a running job a request to its owner; a job in line at its target keeps its position",
    ),
    "resume": _verb({PAUSED, FAILED}, {PENDING}, "anyone", "attempts start again at zero"),
    "run_now": _verb({PENDING}, {PENDING}, "anyone", "only a job that waits for its time"),
    "replace": _verb(
        {PENDING, QUEUED, PAUSED},
        {PENDING, QUEUED, PAUSED},
        "anyone",
        "it takes the arguments that were enqueued last under its unique key",
    ),
    "complete": _verb(
        {PENDING, QUEUED, RUNNING, PAUSED, FAILED},
        {SUCCEEDED},
        "anyone",
        "from outside; a running owner loses its lease",
    ),
    "delete": _verb(set(State), set(), "anyone", "the row is deleted; a running owner loses its lease"),
}


#: The outcome in the history, by the verb that ended the attempt.
OUTCOMES = {
    "succeed": AttemptOutcome.SUCCEEDED,
    "fail": AttemptOutcome.FAILED,
    "retry": AttemptOutcome.RETRIED,
    "reap": AttemptOutcome.LOST,
    "snooze": AttemptOutcome.SNOOZED,
    "release": AttemptOutcome.RELEASED,
}


def check(job_id: str, verb: str, state: State, hint: str = "") -> None:
    """Raise InvalidTransition unless the table allows the verb in this state."""
    if state not in TRANSITIONS[verb].sources:
        raise InvalidTransition(job_id, verb, state, hint)


class Running(Struct, frozen=True):
    """The fields of a running job that a decision depends on."""

    id: str
    attempt: int
    losses: int
    alone: bool
    request: Request | None
    target: str | None
    policy: Policy
    queue: str = ""  # set by reap


class Change(Struct, frozen=True):
    """A decision about a job, which a statement applies to its row."""

    id: str
    verb: str
    state: State
    attempt: int
    losses: int
    wait: Wait | None = None
    delay: float = 0.0
    holds: bool = False
    error: str | None = None
    error_type: str | None = None
    awaits: str | None = None
    keeps_token: bool = True  # so that the store recognises a repeated settle of the owner; not after a reap
    queue: str = ""  # set by reap, for statistics
    follow_up: FollowUp | None = None  # to enqueue if the job fails


WORKER_LOST = "worker lost"


def settle(job: Running, outcome: Outcome, random: float) -> Change:
    """Decide what an outcome does to the job. `random` is from 0 to 1."""
    match outcome:
        case Succeeded():
            return Change(job.id, "succeed", SUCCEEDED, job.attempt, job.losses)
        case Snoozed(delay, awaits):
            change = structs.replace(_uncounted(job, "snooze", PENDING, delay=delay), awaits=awaits)
        case Released(reason, pause):
            change = structs.replace(_uncounted(job, "release", PAUSED if pause else QUEUED), error=reason)
        case Raised(error, delay, fatal, error_type):
            change = structs.replace(_after_failure(job, error, delay, fatal, random), error_type=error_type)
    return _apply_request(job, change)


def reap(job: Running, random: float) -> Change:
    """Decide what an expired lease does to the job. The lost attempt counts."""
    losses = job.losses + 1
    spent = job.attempt >= job.policy.max_attempts
    error = f"{WORKER_LOST} (attempt {job.attempt} of {job.policy.max_attempts}, {losses} lost)"
    if job.policy.on_expired == "fail" or (spent and job.alone):
        change = _failed(job, "reap", error)
    else:
        # Another job or the machine may have caused the first loss, so there is no delay. Lost attempts fail the job
        # only if it ran alone: a job that shared its worker gets one more attempt, which it must run alone.
        delay = job.policy.backoff.delay(losses - 1, random) if losses > 1 else 0.0
        change = _keeping_target(job, "reap", PENDING if losses > 1 else QUEUED, delay, error)
        if spent:
            change = structs.replace(change, attempt=job.policy.max_attempts - 1)
    return _apply_request(job, structs.replace(change, losses=losses, keeps_token=False, queue=job.queue))


def pause(wait: Wait | None, time_ahead: bool, lines_up: bool) -> Wait | None:
    """The wait of a paused job. If it waits for its target, it keeps its position, and later jobs wait behind it.

    A job whose time has come counts as waiting for its target, even if no promoter has noticed that yet.
    """
    return Wait.TARGET if wait is Wait.TARGET or (wait is Wait.TIME and lines_up and not time_ahead) else None


def resume(waits_for_jobs: bool, time_ahead: bool, in_line: bool) -> Wait:
    """The wait of a resumed job. `Wait.TIME` if nothing blocks it: its time is now, and the promoter queues it."""
    if waits_for_jobs:
        return Wait.JOBS
    return Wait.TARGET if in_line and not time_ahead else Wait.TIME


def _uncounted(job: Running, verb: str, state: State, *, delay: float = 0.0) -> Change:
    """Take the attempt back: the handler did not end it, or asked to run again, so it does not count."""
    return structs.replace(_keeping_target(job, verb, state, delay, None), attempt=max(job.attempt - 1, 0))


def _after_failure(job: Running, error: str, delay: float | None, fatal: bool, random: float) -> Change:
    if fatal or job.attempt >= job.policy.max_attempts:
        return _failed(job, "fail", error)
    if delay is None:
        delay = job.policy.backoff.delay(job.attempt, random)
    return _keeping_target(job, "retry", PENDING, delay, error)


def _keeping_target(job: Running, verb: str, state: State, delay: float, error: str | None) -> Change:
    wait = Wait.TIME if state is PENDING else None
    holds = job.target is not None
    return Change(job.id, verb, state, job.attempt, job.losses, wait, delay, holds, error)


def _failed(job: Running, verb: str, error: str) -> Change:
    """A failed job keeps its target, so that later jobs do not build on its failure. `on_failure` may say otherwise."""
    holds = job.target is not None and job.policy.on_failure == "hold"
    follow_up = job.policy.follow_up
    return Change(job.id, verb, FAILED, job.attempt, job.losses, holds=holds, error=error, follow_up=follow_up)


def _apply_request(job: Running, change: Change) -> Change:
    """Let a request to cancel or pause, made while the job ran, decide its state."""
    if job.request is None:
        return change
    state = CANCELLED if job.request == "cancel" else PAUSED
    holds = state is PAUSED and job.target is not None
    return structs.replace(change, state=state, wait=None, delay=0.0, holds=holds)


def decide_dependency(end: State | None, policy: OnDependencyFailure) -> Literal["free", "hold", "cancel"]:
    """The action of a dependent when a chain is in this state (None: deleted)."""
    if end is SUCCEEDED:
        return "free"
    if end in (FAILED, CANCELLED, None):
        return "free" if policy == "run" else policy
    return "hold"
