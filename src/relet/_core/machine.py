"""The state machine. Everything that decides about states is in this file.

`TRANSITIONS` is the whole of it: which verb leads from where to where. The functions below it make the few decisions
that depend on more than the state: what the end of an attempt means, what an expired lease means, where a resumed job
goes. They return a `Change`; the statements in `store/sql` compare and swap, and decide nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct, structs

from ..errors import InvalidTransition
from .job import (
    AttemptOutcome,
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


class Transition(NamedTuple):
    """One verb: from which states, to which, and who may say it."""

    sources: frozenset[State]
    targets: frozenset[State]
    who: Literal["anyone", "maintenance", "worker", "owner"]


def _verb(
    sources: set[State], targets: set[State], who: Literal["anyone", "maintenance", "worker", "owner"]
) -> Transition:
    return Transition(frozenset(sources), frozenset(targets), who)


#: Every exit from running other than succeed honours a request: cancel ends cancelled, pause ends paused.
_ASKED = {CANCELLED, PAUSED}

TRANSITIONS: dict[str, Transition] = {
    # verb: from, to, who may say it
    "enqueue": _verb(set(), {QUEUED, PENDING}, "anyone"),
    "promote": _verb({PENDING}, {QUEUED}, "maintenance"),
    "claim": _verb({QUEUED}, {RUNNING}, "worker"),
    "renew": _verb({RUNNING}, {RUNNING}, "owner"),
    "succeed": _verb({RUNNING}, {SUCCEEDED}, "owner"),
    "retry": _verb({RUNNING}, {PENDING} | _ASKED, "owner"),
    "snooze": _verb({RUNNING}, {PENDING} | _ASKED, "owner"),
    "fail": _verb({RUNNING}, {FAILED} | _ASKED, "owner"),
    "release": _verb({RUNNING}, {QUEUED} | _ASKED, "owner"),
    "reap": _verb({RUNNING}, {QUEUED, PENDING, FAILED} | _ASKED, "anyone"),
    "cancel": _verb({PENDING, QUEUED, PAUSED, FAILED, RUNNING}, {CANCELLED, RUNNING}, "anyone"),
    "pause": _verb({PENDING, QUEUED, RUNNING}, {PAUSED, RUNNING}, "anyone"),
    "resume": _verb({PAUSED, FAILED}, {PENDING}, "anyone"),
    "run_now": _verb({PENDING}, {PENDING}, "anyone"),  # only a job that waits for its time
    "replace": _verb({PENDING, QUEUED, PAUSED}, {PENDING, QUEUED, PAUSED}, "anyone"),  # what it will be called with
    "complete": _verb({PENDING, QUEUED, RUNNING, PAUSED, FAILED}, {SUCCEEDED}, "anyone"),
    "delete": _verb(set(State), set(), "anyone"),
}


#: What the history calls the end of an attempt, by the verb that ended it.
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
    """What a decision needs to know of a job that leaves `running`."""

    id: str
    attempt: int
    losses: int
    alone: bool
    request: Request | None
    target: str | None
    policy: Policy
    queue: str = ""  # of an expired lease


class Change(Struct, frozen=True):
    """What becomes of a job: the value that a decision returns and a statement applies."""

    id: str
    verb: str
    state: State
    attempt: int
    losses: int
    wait: Wait | None = None
    delay: float = 0.0
    holds: bool = False
    error: str | None = None
    awaits: str | None = None
    keeps_token: bool = True  # so that the owner's repeated settle is recognised; not after a reap
    queue: str = ""  # after a reap, for statistics


WORKER_LOST = "worker lost"


def settle(job: Running, outcome: Outcome, random: float) -> Change:
    """What the end of an attempt means for the job. `random` is from 0 to 1."""
    match outcome:
        case Succeeded():
            return Change(job.id, "succeed", SUCCEEDED, job.attempt, job.losses)
        case Snoozed(delay, awaits):
            change = structs.replace(_back(job, "snooze", PENDING, delay=delay), awaits=awaits)
        case Released(reason, pause):
            change = structs.replace(_back(job, "release", PAUSED if pause else QUEUED), error=reason)
        case Raised(error, delay, fatal):
            change = _after_failure(job, error, delay, fatal, random)
    return _honour(job, change)


def reap(job: Running, random: float) -> Change:
    """What an expired lease means. The attempt was lost with its worker, and it counts."""
    losses = job.losses + 1
    spent = job.attempt >= job.policy.max_attempts
    error = f"{WORKER_LOST} (attempt {job.attempt} of {job.policy.max_attempts}, {losses} lost)"
    if job.policy.on_expired == "fail" or (spent and job.alone):
        change = _failed(job, "reap", error)
    else:
        # The first loss may be a neighbour's fault or a machine's: no waiting. Attempts that were lost in company do
        # not fail the job: it gets one more, which it must run alone in its worker.
        delay = job.policy.backoff.delay(losses - 1, random) if losses > 1 else 0.0
        change = _holding(job, "reap", PENDING if losses > 1 else QUEUED, delay, error)
        if spent:
            change = structs.replace(change, attempt=job.policy.max_attempts - 1)
    return _honour(job, structs.replace(change, losses=losses, keeps_token=False, queue=job.queue))


def pause(wait: Wait | None, time_ahead: bool, lines_up: bool) -> Wait | None:
    """What a paused job goes on waiting for: its turn, if it stands in its target's line, where nothing passes it.

    One whose time has come stands there, whether or not upkeep has been there to see it.
    """
    return Wait.TARGET if wait is Wait.TARGET or (wait is Wait.TIME and lines_up and not time_ahead) else None


def resume(waits_for_jobs: bool, time_ahead: bool, in_line: bool) -> Wait:
    """What a resumed job waits for. One that nothing holds up is due at once: it waits for the time that is now."""
    if waits_for_jobs:
        return Wait.JOBS
    return Wait.TARGET if in_line and not time_ahead else Wait.TIME


def _back(job: Running, verb: str, state: State, *, delay: float = 0.0) -> Change:
    """The attempt is given back: it did not come to an end of its own."""
    return structs.replace(_holding(job, verb, state, delay, None), attempt=max(job.attempt - 1, 0))


def _after_failure(job: Running, error: str, delay: float | None, fatal: bool, random: float) -> Change:
    if fatal or job.attempt >= job.policy.max_attempts:
        return _failed(job, "fail", error)
    if delay is None:
        delay = job.policy.backoff.delay(job.attempt, random)
    return _holding(job, "retry", PENDING, delay, error)


def _holding(job: Running, verb: str, state: State, delay: float, error: str | None) -> Change:
    wait = Wait.TIME if state is PENDING else None
    holds = job.target is not None
    return Change(job.id, verb, state, job.attempt, job.losses, wait, delay, holds, error)


def _failed(job: Running, verb: str, error: str) -> Change:
    """A failed job goes on holding its target, so that the next does not run on its ruins; a task may say otherwise."""
    holds = job.target is not None and job.policy.on_failure == "hold"
    return Change(job.id, verb, FAILED, job.attempt, job.losses, holds=holds, error=error)


def _honour(job: Running, change: Change) -> Change:
    """A request that came while the job ran decides where it ends, however the attempt ended."""
    if job.request is None:
        return change
    state = CANCELLED if job.request == "cancel" else PAUSED
    holds = state is PAUSED and job.target is not None
    return structs.replace(change, state=state, wait=None, delay=0.0, holds=holds)


def decide_dependency(end: State | None, wish: OnDependencyFailure) -> Literal["free", "hold", "cancel"]:
    """What the state of a chain (None: deleted) means for a job that waits for it, given what that job wished."""
    if end is SUCCEEDED:
        return "free"
    if end in (FAILED, CANCELLED, None):
        return "free" if wish == "run" else wish
    return "hold"
