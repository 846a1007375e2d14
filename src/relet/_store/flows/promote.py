"""promote: whatever waits is let go once nothing holds it up.

Whatever might free something left a nudge in its own transaction. Here they are taken away, and what they point at is
decided in later statements, which see all that was committed with them: the last nudge to commit is judged with both
sides visible, so nothing waits for ever. Nothing in here waits for a lock but the promoter's own: what somebody else
holds just now is nudged again. And nothing in here takes long: of the thousands that may wait for one chain, or that
one job may wait for, so many are looked at, and a nudge says where to go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter

from msgspec import Struct, field

from ..._core import machine
from ..._core.job import OnBlockerFailure, State, Wait
from ..._core.machine import Change
from ...errors import StoreBusy
from ..query import BEGIN, Flow, Notify, Row, as_json, pairs, read, write
from . import enqueue, mapping
from .inspect import ended
from .lease import apply

MOST = 1000


class Promotion(Struct):
    """What a promote did, and when to come again: at once if `more`, else after `next_due` seconds."""

    promoted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    more: bool = False
    next_due: float | None = None


Edge = tuple[str, str]  # a job, and the chain that it waits for
Due = tuple[float, int, str, str | None, bool]  # when, in which place, which job, its target, and whether it holds that
Nudges = dict[tuple[str, str], str | None]  # kind and key, and beyond what to look; None: at everything


class _Plan(Struct):
    """What one promote has found out so far."""

    promotes: bool = True  # what waits for nothing else is let go by this very promote
    due: list[Due] = field(default_factory=list)  # what waited for others, and waits for nothing else
    ready: list[str] = field(default_factory=list)  # to be queued, in this order
    line: list[str] = field(default_factory=list)  # to stand in line at their targets
    targets: set[str] = field(default_factory=set)  # whose next in line may go
    again: Nudges = field(default_factory=dict)  # what could not be followed yet, as somebody has it locked
    rest: Nudges = field(default_factory=dict)  # what is left for the next promote
    put_off: int = 0  # nudges that led to nothing else than themselves

    def free(self, id: str, target: str | None, holds: bool) -> None:
        """Neither time nor other jobs hold this one up any longer."""
        if target is None or holds:
            self.ready.append(id)
        else:
            self.line.append(id)
            self.targets.add(target)


def promote(*, most: int = MOST) -> Flow[Promotion]:
    """Take nudges and due jobs, let go what is free."""
    done, plan = Promotion(), _Plan()
    yield BEGIN
    yield write("promote/lock")
    nudges = sorted((yield write("promote/take_nudges", most=most)))
    plan.targets |= {key for _, kind, key, _ in nudges if kind == "target"}
    done.cancelled = yield from _decide_dependencies(_scans(nudges), plan, most)
    yield from _wake_up({key for _, kind, key, _ in nudges if kind == "signal"}, plan)
    due = yield write("promote/lock_due", most=most)
    for _, _, id, target, holds in sorted([*plan.due, *due], key=itemgetter(0, 1)):
        plan.free(id, target, bool(holds))
    if plan.line:
        yield write("promote/wait_for_target", ids=as_json(plan.line))
    yield from _call_next_in_line(plan)
    if plan.ready:
        done.promoted = [row[0] for row in (yield write("promote/promote", ids=as_json(plan.ready)))]
        yield Notify("queued")
    left = [{"kind": kind, "key": key, "beyond": beyond} for (kind, key), beyond in (plan.rest | plan.again).items()]
    if left:
        yield write("promote/insert_nudges", batch=as_json(left))
    done.more = len(due) == most or bool(plan.rest) or (len(nudges) == most and plan.put_off < most)
    ((done.next_due,),) = yield read("promote/next_due")
    return done


def announce(chain: str) -> Flow[None]:
    """Decide what waits for a chain that is over and about to vanish, its result with it."""
    yield write("promote/lock")
    left: Nudges = {("chain", chain): None}
    while left:
        plan = _Plan(promotes=False)
        yield from _decide_dependencies(left, plan, MOST)
        if plan.again:
            raise StoreBusy(f"a job that waits for {chain} is being changed just now; try again")
        left = plan.rest


def _call_next_in_line(plan: _Plan) -> Flow[None]:
    """At each target that nobody holds, the first in line becomes its holder."""
    if not plan.targets:
        return
    heads = pairs((yield read("promote/target_heads", targets=as_json(sorted(plan.targets)))))
    free = (
        {row[0] for row in (yield write("promote/lock_pending", ids=as_json(sorted(heads.values()))))}
        if heads
        else set()
    )
    for target, id in heads.items():
        if id in free:
            plan.ready.append(id)
        else:
            plan.again["target", target] = None  # whoever has it locked may be about to take it out of the line
            plan.put_off += 1


def _wake_up(jobs: set[str], plan: _Plan) -> Flow[None]:
    """Jobs that sleep for a signal which has come are among the due."""
    if jobs:
        for (locked,) in (yield write("promote/wake_signalled", ids=_list(jobs))):
            plan.again["signal", locked] = None
            plan.put_off += 1


def _scans(nudges: list[Row]) -> Nudges:
    """What nudges say about dependencies. Of two about the same, the one that looks at more counts."""
    scans: Nudges = {}
    for _, kind, key, beyond in nudges:
        if kind in ("after", "chain"):
            scans[kind, key] = min(beyond or "", scans.get((kind, key), beyond) or "") or None
    return scans


def _decide_dependencies(scans: Nudges, plan: _Plan, most: int) -> Flow[list[str]]:
    """Jobs that waited for chains which have ended: free, held or cancelled, as they wished. Returns the cancelled."""
    if not scans:
        return []
    found, unreached, cut = yield from _open_edges(scans, most)
    edges = dict.fromkeys(edge for some in found.values() for edge in some)
    blockers = {blocker for _, blocker in edges}
    # Marked first, looked at in a later statement: a chain that is not over then will be announced when it ends.
    busy = {row[0] for row in (yield write("promote/watch_chains", chains=_list(blockers)))}
    ends = pairs((yield read("promote/chain_states", chains=_list(blockers))))
    waiting = {row[0]: row for row in (yield write("promote/lock_dependents", ids=_list({job for job, _ in edges})))}
    decided: list[tuple[str, str, str]] = []
    doomed = yield from _break_circles(found, waiting, plan)
    put_off: set[Edge] = set()
    for job, blocker in edges:
        end = ends.get(blocker, "deleted")
        verdict = machine.blocked(None if end == "deleted" else State(end), _wish(waiting.get(job)))
        locked = verdict != "hold" and job in waiting and not waiting[job][1]
        if blocker in busy or locked:
            plan.again["after" if locked else "chain", job if locked else blocker] = None
            put_off.add((job, blocker))
        elif verdict == "free":
            decided.append((job, blocker, end))
        elif verdict == "cancel":
            doomed[job] = f"what it waited for, {blocker}, " + (f"has {end}" if end == State.FAILED else f"was {end}")
    if decided:
        yield write(
            "promote/decide_dependencies",
            batch=as_json([{"job": j, "blocker": b, "state": end} for j, b, end in decided]),
        )
        yield from _unblock(Counter(job for job, _, _ in decided), waiting, plan)
    yield from apply([Change(id, "cancel", State.CANCELLED, 0, 0, error=error) for id, error in doomed.items()])
    plan.put_off += sum(put_off.issuperset(some) for some in found.values())
    # What was cut comes last, so that it does not keep others waiting. A chain that goes on will be announced anew.
    cut = {nudge: beyond for nudge, beyond in cut.items() if nudge[0] == "after" or _ended(ends.get(nudge[1]))}
    plan.rest |= {nudge: beyond for nudge, beyond in (unreached | cut).items() if nudge not in plan.again}
    return list(doomed)


def _break_circles(
    found: dict[tuple[str, str], list[Edge]], waiting: dict[str, Row], plan: _Plan
) -> Flow[dict[str, str]]:
    """Chains that went on at the same moment may wait for each other: none of them saw that when it asked. The one
    whose edges come last is judged here with all of them in sight. Returns one job to be cancelled, and why."""
    jobs = {waiting[job][4]: job for kind, job in found if kind == "after" and job in waiting and waiting[job][4]}
    if not jobs:
        return {}
    awaited = {row[0] for row in (yield read("promote/awaited_chains", chains=_list(jobs)))}
    links = {chain: {blocker for _, blocker in found["after", jobs[chain]]} for chain in sorted(awaited)}
    circling = sorted(jobs[chain] for chain in (yield from enqueue.circles(links)))
    last = [job for job in circling if waiting[job][1]][-1:]
    plan.again |= {("after", job): None for job in circling if job not in last}  # without that one it may be no circle
    return dict.fromkeys(last, "it waited for its own chain, or for one that waits for it: they would wait for ever")


def _open_edges(scans: Nudges, most: int) -> Flow[tuple[dict[tuple[str, str], list[Edge]], Nudges, Nudges]]:
    """So many undecided edges of each kind, by nudge; the nudges not reached; and where to go on with what was cut."""
    found: dict[tuple[str, str], list[Edge]] = {}
    unreached: Nudges = {}
    cut: Nudges = {}
    for kind, own in (("after", 0), ("chain", 1)):
        keys = {key: beyond for (which, key), beyond in scans.items() if which == kind}
        if not keys:
            continue
        batch = as_json([{"key": key, "beyond": beyond} for key, beyond in keys.items()])
        if kind == "after":
            edges = yield read("promote/dependencies_of_jobs", batch=batch, most=most + 1)
        else:
            edges = yield read("promote/dependencies_on_chains", batch=batch, most=most + 1)
        for job, blocker in edges[:most]:
            found.setdefault((kind, (job, blocker)[own]), []).append((job, blocker))
        if len(edges) > most:
            last = edges[most - 1]
            unreached |= {(kind, key): keys[key] for key in list(keys)[list(keys).index(last[own]) + 1 :]}
            cut[kind, last[own]] = last[1 - own]
    return found, unreached, cut


def _ended(state: str | None) -> bool:
    return state is None or ended(state)


def _unblock(decided: Counter[str], waiting: dict[str, Row], plan: _Plan) -> Flow[None]:
    """So many fewer to wait for. With none left a job waits for its time; if that has come, it is among the due."""
    batch = []
    for job, number in decided.items():
        if job not in waiting:
            continue
        _, _, waits, _, _, is_due, run_at, seq, target, holds = waiting[job]
        if waits == number and is_due and plan.promotes:
            plan.due.append((run_at, seq, job, target, bool(holds)))
        else:
            left = waits - number
            batch.append({"id": job, "waits": left, "wait": Wait.JOBS if left else Wait.TIME})
    if batch:
        yield write("promote/unblock", batch=as_json(batch))


def _wish(row: Row | None) -> OnBlockerFailure:
    """What the dependent said; one that is gone has no wishes, and its edges are closed like any other's."""
    return "run" if row is None else mapping.policy(1, None, row[3]).on_blocker_failure


def _list(values: Iterable[str]) -> str:
    return as_json(sorted(values))
