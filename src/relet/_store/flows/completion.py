"""Writes of a handler while its attempt holds the lease: completion in its own transaction, fences, steps.

Each write concerns one job and is guarded by its lease, like every write of an owner. If the lease is lost, LeaseLost
is raised in the handler's transaction, which must then be rolled back with everything written in it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..._core.job import Lease, State, Succeeded
from ...errors import InvalidInput, InvalidTransition, LeaseLost
from ..query import BEGIN, Flow, as_json, read, read_only, write
from . import enqueue_constrained, settle


def check_successor(lease: Lease, chain: str, done: Succeeded) -> Flow[None]:
    """Raise an error if the successor cannot be enqueued. The job is not completed yet: the handler may drop it."""
    yield BEGIN  # the checks belong to the same transaction as the completion
    if done.continue_with is not None:
        refused = yield from enqueue_constrained.refuse_successors({lease.id: (done.continue_with, chain)})
        if refused:
            raise refused[lease.id]


def check_isolation() -> Flow[None]:
    """Refuse a caller's transaction whose isolation level keeps a snapshot: after a renewal, completing would fail."""
    yield BEGIN
    ((level,),) = yield read("completion/isolation")
    if level not in ("read committed", "read uncommitted"):
        raise InvalidInput(
            f"attempt.succeed(connection=...) needs a transaction at READ COMMITTED, and this one is {level.upper()}: "
            "there every renewal of the lease makes it fail. Nothing was written; begin it at READ COMMITTED"
        )


def succeed(lease: Lease, done: Succeeded) -> Flow[None]:
    """Complete the job, and enqueue its successor, in a transaction that the handler commits."""
    yield BEGIN
    gone = yield from settle.succeed_and_go_on({lease: done})
    if not gone:
        yield from _refuse(lease, "succeed")


def fence(lease: Lease, *, completes: bool) -> Flow[None]:
    """Lock the job until the transaction ends, so that the lease stays valid; or check that this lease completed it."""
    if completes and (yield from _has_succeeded(lease)):
        return  # if a savepoint rolled that back, the lease must still be valid
    if not (yield write("settle/lock_owned", batch=as_json([{"id": lease.id, "token": lease.token}]))):
        yield from _refuse(lease, "write for")


class Kept(NamedTuple):
    """A step that is stored: its result, or how many seconds of a wait were left when it was read."""

    result: str | None
    left: float


@read_only
def steps(job_id: str) -> Flow[dict[tuple[str, str], Kept]]:
    """The steps that earlier attempts of a job have stored, by kind and name."""
    rows = yield read("completion/steps", job=job_id)
    return {(kind, name): Kept(text, left or 0.0) for kind, name, text, left in rows}


class Called(NamedTuple):
    """How the function of a step was called: its result and its arguments as JSON, and how many seconds it took."""

    result: str | None = None
    input: str | None = None
    took: float | None = None


def keep(lease: Lease, kind: str, name: str, called: Called, seconds: float | None) -> Flow[Kept | None]:
    """Store a step, guarded by the lease; None if the lease is lost. If the step exists, the stored one is returned."""
    share = {"id": lease.id, "token": lease.token, "kind": kind, "name": name}
    found = yield write("completion/save_step", seconds=seconds, **called._asdict(), **share)
    return Kept(found[0][0], found[0][1] or 0.0) if found else None


@read_only
def signal_of(job_id: str, name: str) -> Flow[str | None]:
    """The value of a signal as JSON text; None if it has not been sent."""
    found = yield read("completion/find_signal", job=job_id, name=name)
    return found[0][0] or "null" if found else None


def _refuse(lease: Lease, verb: str) -> Flow[None]:
    if (yield from _has_succeeded(lease)):
        raise InvalidTransition(lease.id, verb, "over: this attempt has completed it already")
    raise LeaseLost(lease.id, verb)


def _has_succeeded(lease: Lease) -> Flow[bool]:
    """Whether this lease completed the job. A job that was settled otherwise, at its timeout, does not count."""
    return (yield from settle.find_settled([lease])).get(lease) is State.SUCCEEDED
