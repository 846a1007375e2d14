"""The life of a lease: claim, renew, settle, reap.

Every write of an owner is guarded by id + token + state = 'running', spelled that way in each statement. Otherwise it
changes nothing, and the owner learns that its lease is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core import machine
from ...core.errors import KeyTaken
from ...core.job import Claimed, Lease, Outcome, Raised, Request, State, Succeeded
from ...core.machine import Change, Running
from ..query import BEGIN, Flow, Row, Wake, as_json, pairs, read, write
from . import enqueue, rows

#: From the smallest (rank, seq) to beyond the largest: all of a queue.
EVERYTHING = ((-101, 0, 101, 0),)

PULSE_GAP = 3.0
MOST_REAPED = 100


@dataclass(frozen=True, slots=True)
class Scope:
    """How many jobs of a queue are wanted, and which ranges of (rank, seq) to look through for them."""

    queue: str
    want: int
    ranges: tuple[tuple[int, int, int, int], ...] = EVERYTHING

    def row(self, want: int) -> dict[str, Any]:
        """What `claim` sends of it."""
        names = ("low_rank", "low_seq", "high_rank", "high_seq")
        return {"queue": self.queue, "want": want, "ranges": [dict(zip(names, r, strict=True)) for r in self.ranges]}


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim brought. `suspects` tells that jobs wait which have lost a worker before."""

    jobs: list[Claimed]
    suspects: bool = False


@dataclass(frozen=True, slots=True)
class Renewal:
    """What became of leases: renewed, held up by a lock (still ours), or lost; and jobs that we did not know of."""

    renewed: dict[str, Request | None] = field(default_factory=dict)
    locked: dict[str, Request | None] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    strangers: list[Lease] = field(default_factory=list)


class Settled(NamedTuple):
    """What became of one settle: the state that the job is in now, or None if the lease was lost."""

    id: str
    state: State | None


def claim(
    worker: str,
    token: str,
    scopes: Sequence[Scope],
    tasks: Iterable[str],
    *,
    want: int,
    lease: float,
    random: Callable[[], float],
    suspects: int | None = None,
    alone: bool = False,
    now: float | None = None,
) -> Flow[Claim]:
    """Take up to `want` queued jobs, sound ones first, then up to `suspects` that have lost a worker before.

    `alone` promises that the worker runs nothing beside it: one suspect is taken, and nothing else.
    """
    share = {"worker": worker, "token": token, "tasks": as_json(sorted(tasks)), "lease": lease}
    share |= {"alone": alone, "now": now}
    if alone:
        return (yield from _claim_limited(scopes, {**share, "suspect": True}, 1, random))
    found = yield from _claim_one_kind(scopes, {**share, "suspect": False}, want, random)
    room = min(want - len(found.jobs), want if suspects is None else suspects)
    if not found.suspects or room <= 0:
        return found
    # Suspects came back to their old places, which the cursor has passed: they are few, and looked for everywhere.
    left = [Scope(s.queue, s.want - sum(job.queue == s.queue for job in found.jobs)) for s in scopes]
    return (yield from _and_more(found, _claim_one_kind(left, {**share, "suspect": True}, room, random)))


def renew(worker: str, leases: Sequence[Lease], *, lease: float, now: float | None = None) -> Flow[Renewal]:
    """Renew all leases of a worker in one statement."""
    batch = as_json([{"id": id, "token": token} for id, token in leases])
    answer = Renewal()
    for id, token, known, renewed, request in (yield write("renew", worker=worker, batch=batch, lease=lease, now=now)):
        if not known:
            answer.strangers.append(Lease(id, token))
        else:
            (answer.renewed if renewed else answer.locked)[id] = request
    answer.lost.extend(one.id for one in leases if one.id not in answer.renewed and one.id not in answer.locked)
    return answer


def settle(
    outcomes: Sequence[tuple[Lease, Outcome]], random: Callable[[], float], *, now: float | None = None
) -> Flow[list[Settled]]:
    """Settle attempts that have ended. Successes are one statement; the others are locked, decided, then written."""
    done = [(lease, o) for lease, o in outcomes if isinstance(o, Succeeded)]
    others = [(lease, o) for lease, o in outcomes if not isinstance(o, Succeeded)]
    if others or any(o.continue_with for _, o in done):
        yield BEGIN
    done, refused = yield from _take_successors_keys(done, now)
    states: dict[str, State] = yield from _succeed(done, now)
    states |= yield from _settle_others([*others, *refused], random, now)
    missing = [lease for lease, _ in outcomes if lease.id not in states]
    if missing:
        batch = as_json([{"id": id, "token": token} for id, token in missing])
        states |= {id: State(state) for id, state in (yield read("settled", batch=batch))}
    return [Settled(lease.id, states.get(lease.id)) for lease, _ in outcomes]


def reap(
    random: Callable[[], float], *, most: int = MOST_REAPED, gap: float = PULSE_GAP, now: float | None = None
) -> Flow[list[Change]]:
    """Take expired leases away from their owners. Safe when many do it at once."""
    yield BEGIN
    return (yield from reap_here(random, most=most, gap=gap, now=now))


def reap_here(
    random: Callable[[], float], *, most: int = MOST_REAPED, gap: float = PULSE_GAP, now: float | None = None
) -> Flow[list[Change]]:
    """Reap within a transaction that has begun."""
    expired = [rows.running(row) for row in (yield write("expired", gap=gap, most=most, now=now))]
    changes = [machine.reap(job, random()) for job in expired]
    yield from apply(changes, now)
    return changes


def apply(changes: Sequence[Change], now: float | None) -> Flow[None]:
    """Write decisions about rows that are locked: what is over leaves the hot table, the rest stays."""
    over = [change for change in changes if change.state.over]
    stay = [change for change in changes if not change.state.over]
    if stay:
        yield write("change", batch=as_json([rows.change_row(change) for change in stay]), now=now)
    if over:
        batch = [{"id": c.id, "state": c.state, "result": None, "error": c.error, "continued": False} for c in over]
        yield write("finish", batch=as_json(batch), now=now)
        yield Wake("done")
    if changes:
        yield Wake("jobs")


def _claim_one_kind(
    scopes: Sequence[Scope], share: dict[str, Any], want: int, random: Callable[[], float]
) -> Flow[Claim]:
    """Claim sound jobs, or suspects: first from queues without limits, then from those that have one."""
    queues = as_json([scope.row(scope.want) for scope in scopes])
    answer = yield write("claim", queues=queues, want=want, limited=False, **share)
    found, limited = _claim_of(answer, share["token"])
    held = [scope for scope in scopes if "*" in limited or scope.queue in limited]
    if held and len(found.jobs) < want:
        return (yield from _and_more(found, _claim_limited(held, share, want - len(found.jobs), random)))
    return found


def _and_more(found: Claim, flow: Flow[Claim]) -> Flow[Claim]:
    """What was found first is ours already: if looking for more fails, it is handed over all the same."""
    try:
        more = yield from flow
    except Exception:
        if not found.jobs:
            raise
        return found
    return Claim(found.jobs + more.jobs, found.suspects or more.suspects)


def _claim_limited(
    scopes: Sequence[Scope], share: dict[str, Any], want: int, random: Callable[[], float]
) -> Flow[Claim]:
    """Lock the limits, reap, count, then claim what there is room for: each in a statement that sees the one before."""
    yield BEGIN
    names = as_json(sorted(scope.queue for scope in scopes))
    limits = pairs((yield write("limits", queues=names)))
    if limits:
        yield from reap_here(random, now=share["now"])
    running = pairs((yield read("running"))) if limits else {}
    allowed = []
    for scope in scopes:
        left = limits[scope.queue] - running.get(scope.queue, 0) if scope.queue in limits else scope.want
        allowed.append(scope.row(max(min(scope.want, left), 0)))
    left = limits["*"] - sum(running.values()) if "*" in limits else want
    answer = yield write("claim", queues=as_json(allowed), want=max(min(want, left), 0), limited=True, **share)
    return _claim_of(answer, share["token"])[0]


def _claim_of(answer: list[Row], token: str) -> tuple[Claim, frozenset[str]]:
    """Claimed jobs in the order that they stood in, and the queues that have limits."""
    jobs = [rows.claimed(row, token) for row in answer if row[2] is not None]
    jobs.sort(key=lambda job: job.rank_and_seq)
    limited = rows.names(answer[0][1])
    return Claim(jobs, bool(answer[0][0])), limited


def _take_successors_keys(
    done: list[tuple[Lease, Succeeded]], now: float | None
) -> Flow[tuple[list[tuple[Lease, Succeeded]], list[tuple[Lease, Outcome]]]]:
    """A successor whose unique key is taken would end its chain in silence: the attempt fails instead, and says so."""
    drafts = {o.continue_with.id: lease for lease, o in done if o.continue_with}
    taken = yield from enqueue.take_keys([o.continue_with for _, o in done if o.continue_with], now)
    if not taken:
        return done, []
    lost = {drafts[draft_id]: str(KeyTaken(*holder)) for draft_id, holder in taken.items()}
    refused: list[tuple[Lease, Outcome]] = [(lease, Raised(f"continue_with: {error}")) for lease, error in lost.items()]
    return [(lease, o) for lease, o in done if lease not in lost], refused


def _succeed(done: Sequence[tuple[Lease, Succeeded]], now: float | None) -> Flow[dict[str, State]]:
    if not done:
        return {}
    batch = [
        {"id": lease.id, "token": lease.token, "result": o.result, "continued": o.continue_with is not None}
        for lease, o in done
    ]
    gone = {row[0]: row for row in (yield write("succeed", batch=as_json(batch), now=now))}
    following = []
    for lease, outcome in done:
        if outcome.continue_with and lease.id in gone:
            _, chain, position, watched, _ = gone[lease.id]
            following.append((outcome.continue_with, chain, position + 1, bool(watched)))
    if following:
        yield from enqueue.successors(following, now=now)
    if any(row[3] for row in gone.values()):
        yield Wake("done")
    if any(row[3] or row[4] for row in gone.values()):
        yield Wake("jobs")
    return dict.fromkeys(gone, State.SUCCEEDED)


def _settle_others(
    others: Sequence[tuple[Lease, Outcome]], random: Callable[[], float], now: float | None
) -> Flow[dict[str, State]]:
    if not others:
        return {}
    batch = as_json([{"id": lease.id, "token": lease.token} for lease, _ in others])
    mine: dict[str, Running] = {row[0]: rows.running(row) for row in (yield write("mine", batch=batch))}
    changes = [machine.settle(mine[lease.id], o, random()) for lease, o in others if lease.id in mine]
    yield from apply(changes, now)
    return {change.id: change.state for change in changes}
