"""The life of a lease: claim, renew, settle, reap.

Every write of an owner is guarded by id + token + state = 'running', spelled that way in each statement. Otherwise it
changes nothing, and the owner learns that its lease is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeGuard

from msgspec import Struct, field, structs

from ..._core import machine
from ..._core.job import Claimed, Lease, Outcome, Progress, Raised, Request, State, Succeeded
from ..._core.machine import Change, Running
from ..query import BEGIN, Flow, Notify, Row, as_json, read, read_only, repeated_by, write
from . import enqueue, limits, mapping
from .claim_scope import EVERYTHING as EVERYTHING
from .claim_scope import HEALTHY, QUARANTINED, SUSPECT
from .claim_scope import Claim as Claim
from .claim_scope import QueueFlags as QueueFlags
from .claim_scope import Scope as Scope
from .claim_scope import flags as find_flags

PULSE_GAP = 3.0  # without the pulse for so long, the store was away
PULSE_FRESH = 1.5  # the pulse is touched about once a second while jobs can be renewed
LOCKED = 0.5  # seconds of waiting for the lock that renewals need: they may have waited as well
GRACE_AFTER_LOCK = 1.5
MAX_REAPED = 100
ATTEMPTS = 100  # of one job: those before that were snoozed or released are forgotten
KEY_PATIENCE = 0.05  # for somebody who takes a successor's unique key just now; then it is to be settled another time


class Renewal(Struct, frozen=True):
    """What became of leases: renewed, held up by a lock (still ours), or lost; and those that we did not know of."""

    renewed: dict[Lease, Request | None] = field(default_factory=dict)
    locked: dict[Lease, Request | None] = field(default_factory=dict)
    lost: list[Lease] = field(default_factory=list)
    unknown: list[Lease] = field(default_factory=list)


class Settled(Struct, frozen=True):
    """What became of one settle: the state that the job is in now, or None if the lease was lost.

    `open`: a transaction of the handler's own, in which it has completed the job, is not over yet: ask again.
    """

    id: str
    state: State | None
    open: bool = False


def claim_again(worker: str, token: str, *args: Any, **kwargs: Any) -> Flow[Claim]:
    """Claim once an earlier try with this token may have been committed: what it took is ours."""
    return (yield from _found_or(token, claim(worker, token, *args, **kwargs)))


def claim_plain_again(worker: str, token: str, *args: Any, **kwargs: Any) -> Flow[Claim]:
    """The same for a claim of healthy jobs from queues without limits."""
    return (yield from _found_or(token, claim_plain(worker, token, *args, **kwargs)))


def _found_or(token: str, claiming: Flow[Claim]) -> Flow[Claim]:
    """What an earlier try claimed with this token; if it claimed nothing, what the flow claims."""
    mine = mapping.claimed((yield read("claim/claimed", token=token)), token)
    return Claim(_in_order(mine)) if mine else (yield from claiming)


@repeated_by(claim_plain_again)
def claim_plain(
    worker: str, token: str, scopes: Sequence[Scope], tasks: Iterable[str], *, want: int, lease: float
) -> Flow[Claim]:
    """Take up to `want` healthy jobs from the queues before the first that has a limit, by one statement."""
    share = {"worker": worker, "token": token, "tasks": list(tasks), "lease": lease, "alone": False}
    found = yield from limits.claim_in_order(scopes, {**share, "suspect": HEALTHY}, want, limited=False)
    return Claim(_in_order(found))


@repeated_by(claim_again)
def claim(
    worker: str,
    token: str,
    scopes: Sequence[Scope],
    tasks: Iterable[str],
    *,
    want: int,
    lease: float,
    random: Callable[[], float],
    slots: int | None = None,
    ahead: int = 0,
    limited: frozenset[str] = frozenset(),
    rescue: bool = False,
    alone: bool = False,
    check_flags: bool = True,
    may_reap: Callable[[], bool] = lambda: True,
) -> Flow[Claim]:
    """Take up to `want` queued jobs, healthy ones first, then suspects: those that have lost a worker before.

    `slots` of them can start at once (None: all): suspects, and jobs of queues with a rate, are taken for those only.
    Of queues that have no rate but other limits, `ahead` more are taken. `limited`: queues that have limits, as far as
    is known; if the first is among them, none is claimed from without locking the limits.
    `rescue` takes suspects first: else a backlog of healthy ones would keep them waiting. `alone` promises that the
    worker runs nothing beside it: one job that has lost two is taken, and nothing else. Without `check_flags`, suspects
    and limits are looked for only if healthy jobs of queues without limits are not enough. `may_reap` is asked before
    expired leases are reaped, so that they do not count towards a limit.
    """
    known = sorted(tasks)
    reap = partial(_reap_here, random, may_reap)
    share = {"worker": worker, "token": token, "tasks": known, "lease": lease, "alone": alone}
    if alone:
        return (yield from limits.claim_limited(scopes, {**share, "suspect": QUARANTINED}, 1, reap))
    flags = (yield from find_flags([scope.queue for scope in scopes], known)) if rescue else None
    claimed = Claim([], flags)
    for kind in (SUSPECT, HEALTHY) if rescue else (HEALTHY, SUSPECT):
        room = want - len(claimed.jobs)
        at_once = room if slots is None else max(slots - len(claimed.jobs), 0)
        if kind == SUSPECT:
            room = min(room, at_once) if flags is not None and flags.suspects else 0
        if room <= 0:
            continue
        # Suspects came back to their old places, which the cursor has passed: they are looked for everywhere.
        left = _less(scopes, claimed.jobs) if claimed.jobs else scopes
        where = left if kind == HEALTHY else [structs.replace(scope, ranges=EVERYTHING) for scope in left]
        found: list[Claimed] = []
        if not limited & {"*", scopes[0].queue}:
            found = yield from limits.claim_in_order(where, {**share, "suspect": kind}, room, limited=False)
            check_flags = check_flags or len(found) < room
        if flags is None and check_flags:
            flags = yield from find_flags([scope.queue for scope in scopes], known)
        if flags is not None:
            limited = flags.limited
        claimed += Claim(found, flags)
        if limited:
            most = min(room, at_once) - len(found)
            more = 0 if kind == SUSPECT else min(ahead, room - len(found) - max(most, 0))
            claimed += yield from _claim_limited(where, {**share, "suspect": kind}, most, more, limited, reap)
    _in_order(claimed.jobs)
    return claimed


def _in_order(jobs: list[Claimed]) -> list[Claimed]:
    jobs.sort(key=lambda job: (job.losses > 0, job.rank_and_seq))
    return jobs


def renew(worker: str, leases: Sequence[Lease], *, lease: float) -> Flow[Renewal]:
    """Renew all leases of a worker in one statement."""
    answer = Renewal()
    found = yield write("lease/renew", worker=worker, batch=_shown(leases), lease=lease)
    for id, token, known, renewed, request in found:
        if not known:
            answer.unknown.append(Lease(id, token))
        else:
            (answer.renewed if renewed else answer.locked)[Lease(id, token)] = request
    answer.lost.extend(one for one in leases if one not in answer.renewed and one not in answer.locked)
    return answer


@read_only
def pending_requests(leases: Sequence[Lease]) -> Flow[Renewal]:
    """What has been asked of leases, and which are lost; nothing is renewed."""
    found = yield read("lease/requests", batch=_shown(leases))
    answer = Renewal(locked={Lease(id, token): request for id, token, request in found})
    answer.lost.extend(one for one in leases if one not in answer.locked)
    return answer


def progress(said: dict[Lease, Progress]) -> Flow[set[Lease]]:
    """Note how far handlers have come; returns for which leases. Not for lost ones, nor where the row is locked."""
    batch = [{"id": id, "token": token, "progress": as_json(one)} for (id, token), one in said.items()]
    return {Lease(id, token) for id, token in (yield write("lease/progress", batch=as_json(batch)))}


def settle_succeeded(leases: Sequence[Lease], results: Sequence[str | None]) -> Flow[dict[Lease, State] | None]:
    """Settle successes that nothing follows, in one statement. None: every lease was still ours.

    They come sorted, and no two of one job.
    """
    ids, tokens = (list(column) for column in zip(*leases, strict=True))
    some = None if results.count("null") == len(results) else list(results)
    ((number, watched, held),) = yield write("settle/succeed_plain", ids=ids, tokens=tokens, results=some)
    if watched:
        yield Notify("done")
    if watched or held:
        yield Notify("jobs")
    return None if number == len(leases) else (yield from find_settled(leases))


def settle(outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]) -> Flow[list[Settled]]:
    """Settle attempts that have ended. Plain successes are one statement; others are locked, decided, then written."""
    plain = {lease: outcome.result for lease, outcome in sorted(outcomes, key=itemgetter(0)) if is_plain(outcome)}
    if outcomes and len(plain) == len(outcomes) and len({lease.id for lease in plain}) == len(plain):
        found = yield from settle_succeeded(list(plain), list(plain.values()))
        states = dict.fromkeys(plain, State.SUCCEEDED) if found is None else found
    else:
        states = yield from _settle_mixed(outcomes, random)
        states |= yield from find_settled([lease for lease, _ in outcomes if lease not in states])
    return [Settled(lease.id, states.get(lease)) for lease, _ in outcomes]


def is_plain(outcome: Outcome) -> TypeGuard[Succeeded]:
    """Whether it is a success that nothing follows."""
    return type(outcome) is Succeeded and outcome.continue_with is None and outcome.result is not None


def settle_unless_open(outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]) -> Flow[list[Settled]]:
    """Settle attempts whose handlers may have completed them in transactions of their own; wait for none of those.

    In this order: what is free is settled; what then still runs is held by a transaction; what does not was completed.
    """
    yield BEGIN
    yield from _be_quick(outcomes)
    mine = _mine((yield write("settle/lock_owned_skip_locked", batch=_shown([lease for lease, _ in outcomes]))))
    states = yield from _settle_locked(mine, outcomes, random)
    rest = [lease for lease, _ in outcomes if lease not in states]
    found = (yield read("lease/requests", batch=_shown(rest))) if rest else []
    still = {Lease(id, token) for id, token, _ in found}
    states |= yield from find_settled([lease for lease in rest if lease not in still])
    return [Settled(lease.id, states.get(lease), lease in still) for lease, _ in outcomes]


@read_only
def find_settled(leases: Sequence[Lease]) -> Flow[dict[Lease, State]]:
    """Those that were settled by this very lease, and where they are now: an answer was lost, or a handler did it."""
    found = (yield read("settle/find_settled", batch=_shown(leases))) if leases else []
    return {Lease(id, token): State(state) for id, token, state in found}


def reap(random: Callable[[], float], *, most: int = MAX_REAPED, gap: float = PULSE_FRESH) -> Flow[list[Change]]:
    """Take expired leases away from their owners: only if renewing was possible until now.

    What stops renewals (a lock on the table, a long transaction on SQLite) stops this as well. If this had to wait, so
    may have the renewals: then they come first. Safe when many do it at once.
    """
    if (yield from await_renewals()) > LOCKED:
        yield from touch_pulse(PULSE_GAP, GRACE_AFTER_LOCK, 0.0, locked=True)
        return []
    return (yield from _reap(random, most, gap))


def _reap_here(random: Callable[[], float], may_reap: Callable[[], bool]) -> Flow[list[Change]]:
    """Reap in a transaction that is open. If that has waited for anything, another one reaps."""
    if not may_reap() or (yield from await_renewals()) > LOCKED:
        return []
    return (yield from _reap(random, MAX_REAPED, PULSE_FRESH))


def _reap(random: Callable[[], float], most: int, gap: float) -> Flow[list[Change]]:
    expired = [
        mapping.running(tuple(row), queue) for *row, queue in (yield write("lease/lock_expired", gap=gap, most=most))
    ]
    changes = [machine.reap(job, random()) for job in expired]
    yield from apply(changes)
    return changes


def await_renewals() -> Flow[float]:
    """Take the lock that renewals need. Returns how many seconds that took, by the clock of the store."""
    began = yield BEGIN
    ((waited,),) = yield write("lease/await_renewals", waited=began[0][0] if began else 0.0)
    return float(waited)


def touch_pulse(gap: float, grace: float, every: float, *, locked: bool) -> Flow[list[Row]]:
    """Note that jobs can be renewed; give grace if that was not so for a while."""
    share = {"gap": gap, "grace": grace, "every": every, "short": GRACE_AFTER_LOCK}
    return (yield write("lease/touch_pulse", **share, locked=locked))


def apply(changes: Sequence[Change]) -> Flow[None]:
    """Write decisions about rows that are locked: what is over leaves the hot table, the rest stays."""
    over = [change for change in changes if change.state.over]
    stay = [change for change in changes if not change.state.over]
    if stay:
        changed = yield write("settle/change", batch=as_json([mapping.change_row(change) for change in stay]))
        old = [{"job": id, "version": version - ATTEMPTS} for id, version in changed if version > ATTEMPTS]
        if old:
            yield write("settle/delete_old_attempts", batch=as_json(old))
    if over:
        yield write("settle/finish", batch=as_json([mapping.finish_row(change) for change in over]))
        yield Notify("done")
    if changes:
        yield Notify("jobs")


def _less(scopes: Sequence[Scope], jobs: Sequence[Claimed]) -> list[Scope]:
    """What is still wanted of each queue."""
    got = Counter(job.queue for job in jobs)
    return [structs.replace(scope, want=max(scope.want - got[scope.queue], 0)) for scope in scopes]


def _claim_limited(
    scopes: Sequence[Scope],
    share: dict[str, Any],
    want: int,
    ahead: int,
    limited: frozenset[str],
    reap: Callable[[], Flow[Any]],
) -> Flow[Claim]:
    """Claim from the first queue that has a limit, and from those after it, which the claim without limits left out.

    That takes a transaction which locks the limits.
    """
    first = next((place for place, scope in enumerate(scopes) if limited & {"*", scope.queue}), len(scopes))
    if first == len(scopes) or want <= 0:
        return Claim([])
    return (yield from limits.claim_limited(scopes[first:], share, want, reap, ahead))


def _settle_mixed(outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]) -> Flow[dict[Lease, State]]:
    """All rows are locked first, in one order, whatever is to become of them."""
    yield BEGIN
    yield from _be_quick(outcomes)
    mine = _mine((yield write("settle/lock_owned", batch=_shown([lease for lease, _ in outcomes]))))
    return (yield from _settle_locked(mine, outcomes, random))


def takes_key(outcome: Outcome) -> bool:
    """Whether settling it may have to wait for a transaction of a caller's: StoreBusy is raised then."""
    return isinstance(outcome, Succeeded) and outcome.continue_with is not None and bool(outcome.continue_with.unique)


def _be_quick(outcomes: Sequence[tuple[Lease, Outcome]]) -> Flow[None]:
    if any(takes_key(outcome) for _, outcome in outcomes):
        yield write("control/set_lock_timeout", seconds=KEY_PATIENCE)


Mine = dict[Lease, tuple[Running, str]]  # what a decision needs, and the chain


def _mine(locked: list[Row]) -> Mine:
    return {Lease(row[0], token): (mapping.running(tuple(row)), chain) for *row, token, chain in locked}


def _settle_locked(
    mine: Mine, outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float]
) -> Flow[dict[Lease, State]]:
    owned = {lease: outcome for lease, outcome in outcomes if lease in mine}
    done = {lease: outcome for lease, outcome in owned.items() if isinstance(outcome, Succeeded)}
    successors = {lease.id: (o.continue_with, mine[lease][1]) for lease, o in done.items() if o.continue_with}
    refused = yield from enqueue.refuse_successors(successors)
    owned |= {lease: Raised(f"continue_with: {refused[lease.id]}") for lease in done if lease.id in refused}
    states = yield from succeed_and_go_on({lease: o for lease, o in done.items() if lease.id not in refused})
    others = {lease: outcome for lease, outcome in owned.items() if lease not in states}
    changes = {lease: machine.settle(mine[lease][0], outcome, random()) for lease, outcome in others.items()}
    yield from apply(list(changes.values()))
    return states | {lease: change.state for lease, change in changes.items()}


def succeed_and_go_on(done: dict[Lease, Succeeded]) -> Flow[dict[Lease, State]]:
    """End those jobs that are ours, and go on with their chains."""
    gone = yield from _succeed(done)
    following = []
    for lease, (chain, position, watched) in gone.items():
        draft = done[lease].continue_with
        if draft:
            following.append(enqueue.Successor(draft, chain, position + 1, watched))
    if following:
        yield from enqueue.add_successors(following)
    return dict.fromkeys(gone, State.SUCCEEDED)


def _succeed(done: dict[Lease, Any]) -> Flow[dict[Lease, tuple[str, int, bool]]]:
    """Those that were ours, with chain, position and whether somebody waits for the chain."""
    if not done:
        return {}
    batch = [
        {"id": id, "token": token, "result": outcome.result, "continued": outcome.continue_with is not None}
        for (id, token), outcome in done.items()
    ]
    answer = yield write("settle/succeed", batch=as_json(batch))
    if any(watched for _, _, _, _, watched, _ in answer):
        yield Notify("done")
    if any(watched or held for _, _, _, _, watched, held in answer):
        yield Notify("jobs")
    return {Lease(id, token): (chain, position, bool(watched)) for id, token, chain, position, watched, _ in answer}


def _shown(leases: Sequence[Lease]) -> str:
    """Leases as statements want them."""
    return as_json([{"id": id, "token": token} for id, token in leases])
