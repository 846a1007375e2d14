"""Settling: the end of an attempt, recorded by the worker that holds the lease.

Every write of an owner is guarded by id + token + state = 'running', spelled that way in each statement. If the guard
does not match, the statement changes nothing and the owner learns that its lease is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeGuard

from msgspec import Struct

from ..._core import machine
from ..._core.job import Draft, Lease, Outcome, Raised, State, Succeeded
from ..._core.machine import Change, Running
from ..query import BEGIN, Flow, Notify, Row, as_json, read, read_only, write
from . import enqueue_constrained, follow_ups, mapping

MAX_ATTEMPTS_KEPT = 100  # of one job; older records of snoozed and released attempts are deleted
KEY_LOCK_TIMEOUT = 0.05  # seconds to wait for a successor's unique key; then the caller settles the job again later


class Settled(Struct, frozen=True):
    """The result of settling one attempt: the state that the job is in now, or None if the lease was lost.

    `open`: the handler has completed the job in its own transaction, which has not ended yet. Ask again later.
    `delay`: seconds until the next attempt, if this decision set it.
    """

    id: str
    state: State | None
    open: bool = False
    delay: float | None = None


def settle_succeeded(leases: Sequence[Lease], results: Sequence[str | None]) -> Flow[dict[Lease, State] | None]:
    """Settle successes without a successor, in one statement. Returns None if this worker still held every lease.

    The leases must be sorted, and each job may occur only once.
    """
    ids, tokens = (list(column) for column in zip(*leases, strict=True))
    sent = None if results.count("null") == len(results) else list(results)
    ((number, watched, freed_target),) = yield write("settle/succeed_plain", ids=ids, tokens=tokens, results=sent)
    if watched:
        yield Notify("done")
    if watched or freed_target:
        yield Notify("jobs")
    return None if number == len(leases) else (yield from find_settled(leases))


def settle(outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]) -> Flow[list[Settled]]:
    """Settle attempts that have ended. Plain successes take one statement; others are locked, decided, then written."""
    plain = {lease: outcome.result for lease, outcome in sorted(outcomes, key=itemgetter(0)) if is_plain(outcome)}
    plain_ids = {lease.id for lease in plain}
    if outcomes and len(plain) == len(outcomes) and len(plain_ids) == len(plain):
        found = yield from settle_succeeded(list(plain), list(plain.values()))
        states = dict.fromkeys(plain, State.SUCCEEDED) if found is None else found
        return [Settled(lease.id, states.get(lease)) for lease, _ in outcomes]
    settled = yield from _settle_mixed(outcomes, random)
    states = yield from find_settled([lease for lease, _ in outcomes if lease not in settled])
    return [settled.get(lease) or Settled(lease.id, states.get(lease)) for lease, _ in outcomes]


def is_plain(outcome: Outcome) -> TypeGuard[Succeeded]:
    """Whether the outcome is a success without a successor."""
    return type(outcome) is Succeeded and outcome.continue_with is None and outcome.result is not None


def settle_unless_open(outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]) -> Flow[list[Settled]]:
    """Settle attempts whose handlers may have completed them in their own transactions, without waiting for those.

    The order matters: first settle the rows that are not locked; of the others, those that still run are locked by an
    open transaction, and those that do not were completed.
    """
    yield BEGIN
    yield from _set_lock_timeout(outcomes)
    leases = [lease for lease, _ in outcomes]
    owned = _owned((yield write("settle/lock_owned_skip_locked", batch=as_json(mapping.lease_rows(leases)))))
    settled = yield from _settle_locked(owned, outcomes, random)
    rest = [lease for lease in leases if lease not in settled]
    found = (yield read("lease/requests", batch=as_json(mapping.lease_rows(rest)))) if rest else []
    running = {Lease(id, token) for id, token, _ in found}
    states = yield from find_settled([lease for lease in rest if lease not in running])
    return [settled.get(lease) or Settled(lease.id, states.get(lease), lease in running) for lease in leases]


@read_only
def find_settled(leases: Sequence[Lease]) -> Flow[dict[Lease, State]]:
    """The current state of the jobs that were settled under these leases, by a handler or by a lost try."""
    found = (yield read("settle/find_settled", batch=as_json(mapping.lease_rows(leases)))) if leases else []
    return {Lease(id, token): State(state) for id, token, state in found}


def takes_key(outcome: Outcome) -> bool:
    """Whether settling may have to wait for a caller's transaction that takes the successor's unique key.

    StoreBusy is raised if that transaction does not end in time.
    """
    return isinstance(outcome, Succeeded) and outcome.continue_with is not None and bool(outcome.continue_with.unique)


def apply(changes: Sequence[Change]) -> Flow[None]:
    """Write decisions about locked rows. Jobs that are over move to `finished`; the others stay in `jobs`."""
    over = [change for change in changes if change.state.over]
    live = [change for change in changes if not change.state.over]
    if live:
        yield from _change_live(live)
        yield from follow_ups.add(live)
    if over:
        yield write("settle/finish", batch=as_json([mapping.finish_row(change) for change in over]))
        yield Notify("done")
    if changes:
        yield Notify("jobs")


def _change_live(changes: Sequence[Change]) -> Flow[None]:
    """Write decisions about jobs that stay live, and delete the oldest attempt records of those that have too many."""
    changed = yield write("settle/change", batch=as_json([mapping.change_row(change) for change in changes]))
    old = [
        {"job": id, "version": version - MAX_ATTEMPTS_KEPT} for id, version in changed if version > MAX_ATTEMPTS_KEPT
    ]
    if old:
        yield write("settle/delete_old_attempts", batch=as_json(old))


def succeed_and_go_on(successes: dict[Lease, Succeeded]) -> Flow[dict[Lease, State]]:
    """Complete the jobs whose leases are still valid, and enqueue their successors. Returns the completed jobs."""
    completed = yield from _succeed(successes)
    following = []
    for lease, (chain, position, watched) in completed.items():
        draft = successes[lease].continue_with
        if draft:
            following.append(enqueue_constrained.Successor(draft, chain, position + 1, watched))
    if following:
        yield from enqueue_constrained.add_successors(following)
    return dict.fromkeys(completed, State.SUCCEEDED)


_Owned = dict[Lease, tuple[Running, str]]  # by lease: the facts that the decision needs, and the chain


def _owned(locked: list[Row]) -> _Owned:
    return {Lease(row[0], token): (mapping.running(tuple(row)), chain) for *row, token, chain in locked}


def _settle_mixed(outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]) -> Flow[dict[Lease, Settled]]:
    """Lock all rows first, in one order, whatever their outcomes: two settlers cannot deadlock."""
    yield BEGIN
    yield from _set_lock_timeout(outcomes)
    leases = [lease for lease, _ in outcomes]
    owned = _owned((yield write("settle/lock_owned", batch=as_json(mapping.lease_rows(leases)))))
    return (yield from _settle_locked(owned, outcomes, random))


def _set_lock_timeout(outcomes: Sequence[tuple[Lease, Outcome]]) -> Flow[None]:
    if any(takes_key(outcome) for _, outcome in outcomes):
        yield write("control/set_lock_timeout", seconds=KEY_LOCK_TIMEOUT)


def _settle_locked(
    owned: _Owned, outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]
) -> Flow[dict[Lease, Settled]]:
    """Settle the outcomes whose rows are locked (`owned`); returns the result of each.

    A success whose successor is refused counts as an attempt that raised.
    """
    pending = {lease: outcome for lease, outcome in outcomes if lease in owned}
    successes = {lease: outcome for lease, outcome in pending.items() if isinstance(outcome, Succeeded)}
    refused = yield from enqueue_constrained.refuse_successors(_successors(successes, owned))
    pending |= {lease: Raised(f"continue_with: {refused[lease.id]}") for lease in successes if lease.id in refused}
    accepted = {lease: outcome for lease, outcome in successes.items() if lease.id not in refused}
    states = yield from succeed_and_go_on(accepted)
    others = {lease: outcome for lease, outcome in pending.items() if lease not in states}
    changes = {lease: machine.settle(owned[lease][0], outcome, random()) for lease, outcome in others.items()}
    yield from apply(list(changes.values()))
    settled = {lease: Settled(lease.id, state) for lease, state in states.items()}
    for lease, change in changes.items():
        settled[lease] = Settled(lease.id, change.state, delay=change.delay)
    return settled


def _successors(successes: dict[Lease, Succeeded], owned: _Owned) -> dict[str, tuple[Draft[Any], str]]:
    """By the id of the job that succeeded: the draft that continues its chain, and the chain."""
    return {
        lease.id: (outcome.continue_with, owned[lease][1])
        for lease, outcome in successes.items()
        if outcome.continue_with
    }


def _succeed(successes: dict[Lease, Succeeded]) -> Flow[dict[Lease, tuple[str, int, bool]]]:
    """Complete jobs. Returns those whose lease was valid: chain, position, and whether a job or caller waits for it."""
    if not successes:
        return {}
    batch = [
        {"id": id, "token": token, "result": outcome.result, "continued": outcome.continue_with is not None}
        for (id, token), outcome in successes.items()
    ]
    answer = yield write("settle/succeed", batch=as_json(batch))
    if any(watched for _, _, _, _, watched, _ in answer):
        yield Notify("done")
    if any(watched or freed_target for _, _, _, _, watched, freed_target in answer):
        yield Notify("jobs")
    return {Lease(id, token): (chain, position, bool(watched)) for id, token, chain, position, watched, _ in answer}
