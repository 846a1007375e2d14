"""What a handler writes while it holds its job: the completion in its own transaction, and the fence around others.

Each is one job's, guarded by its lease like every write of an owner. Where the lease is lost, LeaseLost is raised in
the handler's transaction, which is then to be rolled back with all that was written in it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..._core.job import Lease, State, Succeeded
from ...errors import InvalidInput, InvalidTransition, LeaseLost
from ..query import BEGIN, Flow, as_json, read, read_only, write
from . import enqueue, lease


def check_successor(held: Lease, chain: str, done: Succeeded) -> Flow[None]:
    """Raise what stands against going on with the chain. Nothing is completed by then: the handler may do without."""
    yield BEGIN  # what is looked at first belongs to it
    if done.continue_with is not None:
        refused = yield from enqueue.refuse_successors({held.id: (done.continue_with, chain)})
        if refused:
            raise refused[held.id]


def check_isolation() -> Flow[None]:
    """Refuse a transaction of the caller's in which completing would fail: its snapshot is older than a renewal."""
    yield BEGIN
    ((level,),) = yield read("completion/isolation")
    if level not in ("read committed", "read uncommitted"):
        raise InvalidInput(
            f"attempt.succeed(connection=...) needs a transaction at READ COMMITTED, and this one is {level.upper()}: "
            "there every renewal of the lease makes it fail. Nothing was written; begin it at READ COMMITTED"
        )


def succeed(held: Lease, done: Succeeded) -> Flow[None]:
    """Complete the job, and go on with its chain, in a transaction that is the handler's to commit."""
    yield BEGIN
    gone = yield from lease.succeed_and_go_on({held: done})
    if not gone:
        yield from _refuse(held, "succeed")


def fence(held: Lease, *, completes: bool) -> Flow[None]:
    """Make sure that the job is still ours, and stays so until the transaction is over, or is completed by it."""
    if completes and (yield from _has_succeeded(held)):
        return  # unless a savepoint has taken that back: then it must still be ours
    if not (yield write("settle/lock_owned", batch=as_json([{"id": held.id, "token": held.token}]))):
        yield from _refuse(held, "write for")


class Kept(NamedTuple):
    """What was done once and for all: the result of a step, or how many seconds of a wait were left when we looked."""

    result: str | None
    left: float


@read_only
def steps(job_id: str) -> Flow[dict[tuple[str, str], Kept]]:
    """All that earlier attempts of a job have kept, by kind and name."""
    return {
        (kind, name): Kept(text, left or 0.0) for kind, name, text, left in (yield read("completion/steps", job=job_id))
    }


def keep(held: Lease, kind: str, name: str, result: str | None, seconds: float | None) -> Flow[Kept | None]:
    """Keep a step, guarded by the lease; None if that is lost. Repeated, it finds what it has kept."""
    share = {"id": held.id, "token": held.token, "kind": kind, "name": name}
    found = yield write("completion/save_step", result=result, seconds=seconds, **share)
    return Kept(found[0][0], found[0][1] or 0.0) if found else None


@read_only
def signal_of(job_id: str, name: str) -> Flow[str | None]:
    """The value of a signal that has come, as JSON text."""
    found = yield read("completion/find_signal", job=job_id, name=name)
    return found[0][0] or "null" if found else None


def _refuse(held: Lease, verb: str) -> Flow[None]:
    if (yield from _has_succeeded(held)):
        raise InvalidTransition(held.id, verb, "over: this attempt has completed it already")
    raise LeaseLost(held.id, verb)


def _has_succeeded(held: Lease) -> Flow[bool]:
    """Whether it was this lease that completed the job. One that was settled otherwise, at its timeout, is not ours."""
    return (yield from lease.find_settled([held])).get(held) is State.SUCCEEDED
