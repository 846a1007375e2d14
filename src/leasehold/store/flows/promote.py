"""promote: whatever waits is let go once nothing holds it up.

Whatever might free something left a nudge in its own transaction. Here they are taken away, and what they point at is
decided in later statements, which see all that was committed with them: the last nudge to commit is judged with both
sides visible, so nothing waits for ever. Nothing in here waits for a lock but the promoter's own: what somebody else
holds just now is nudged again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...core import machine
from ...core.errors import StoreBusy
from ...core.job import OnBlockerFailure, State, Wait
from ...core.machine import Change
from ..query import BEGIN, Flow, Row, Wake, as_json, pairs, read, write
from . import rows
from .lease import apply

MOST = 1000


@dataclass(slots=True)
class Promotion:
    """What a promote did, and when to come again: at once if `more`, else after `next_due` seconds."""

    promoted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    more: bool = False
    next_due: float | None = None


@dataclass(slots=True)
class _Plan:
    """What one promote has found out so far."""

    ready: list[str] = field(default_factory=list)  # to be queued, in this order
    line: list[str] = field(default_factory=list)  # to stand in line at their targets
    targets: set[str] = field(default_factory=set)  # whose next in line may go
    again: set[tuple[str, str]] = field(default_factory=set)  # nudges that could not be followed yet

    def free(self, id: str, target: str | None, holds: bool) -> None:
        """Neither time nor other jobs hold this one up any longer."""
        if target is None or holds:
            self.ready.append(id)
        else:
            self.line.append(id)
            self.targets.add(target)


def promote(*, most: int = MOST, now: float | None = None) -> Flow[Promotion]:
    """Take nudges and due jobs, let go what is free."""
    done, plan = Promotion(), _Plan()
    yield BEGIN
    yield write("promoter")
    nudges = yield write("take_nudges", most=most)
    plan.targets |= {key for kind, key in nudges if kind == "target"}
    done.cancelled = yield from _decide_dependencies(nudges, plan, now)
    due = yield write("due", most=most, now=now)
    for id, target, holds in due:
        plan.free(id, target, bool(holds))
    if plan.line:
        yield write("line_up", ids=as_json(plan.line))
    yield from _call_next_in_line(plan)
    if plan.ready:
        done.promoted = [row[0] for row in (yield write("promote", ids=as_json(plan.ready)))]
        yield Wake("jobs")
    if plan.again:
        yield write("nudge", batch=as_json([{"kind": kind, "key": key} for kind, key in sorted(plan.again)]))
    done.more = len(due) == most or (len(nudges) == most and len(plan.again) < most)
    ((done.next_due,),) = yield read("next_due", now=now)
    return done


def announce(chain: str, now: float | None) -> Flow[None]:
    """Decide what waits for a chain that is over and about to vanish, its result with it."""
    yield write("promoter")
    plan = _Plan()
    yield from _decide_dependencies([("chain", chain)], plan, now)
    if plan.again:
        raise StoreBusy(f"a job that waits for {chain} is being changed just now; try again")


def _call_next_in_line(plan: _Plan) -> Flow[None]:
    """At each target that nobody holds, the first in line becomes its holder."""
    if not plan.targets:
        return
    heads = pairs((yield read("heads", targets=as_json(sorted(plan.targets)))))
    free = {row[0] for row in (yield write("free", ids=as_json(sorted(heads.values()))))} if heads else set()
    for target, id in heads.items():
        if id in free:
            plan.ready.append(id)
        else:
            plan.again.add(("target", target))  # whoever has it locked may be about to take it out of the line


def _decide_dependencies(nudges: list[Row], plan: _Plan, now: float | None) -> Flow[list[str]]:
    """Jobs that waited for chains which have ended: free, held or cancelled, as they wished. Returns the cancelled."""
    jobs = {key for kind, key in nudges if kind == "after"}
    chains = {key for kind, key in nudges if kind == "chain"}
    if not jobs and not chains:
        return []
    edges = yield read("open_edges", jobs=_list(jobs), chains=_list(chains))
    blockers = {blocker for _, blocker in edges}
    # Marked first, looked at in a later statement: a chain that is not over then will be announced when it ends.
    busy = {row[0] for row in (yield write("watch", chains=_list(blockers)))}
    ends = pairs((yield read("chain_ends", chains=_list(blockers))))
    waiting = {row[0]: row for row in (yield write("dependents", ids=_list({job for job, _ in edges})))}
    decided: list[tuple[str, str, str]] = []
    doomed: dict[str, str] = {}
    for job, blocker in edges:
        end = ends.get(blocker, "deleted")
        verdict = machine.blocked(None if end == "deleted" else State(end), _wish(waiting.get(job)))
        if blocker in busy or (verdict != "hold" and job in waiting and not waiting[job][1]):
            plan.again.add(("after", job))  # somebody has one of the two locked
        elif verdict == "free":
            decided.append((job, blocker, end))
        elif verdict == "cancel":
            doomed[job] = f"what it waited for, {blocker}, " + (f"has {end}" if end == State.FAILED else f"was {end}")
    if decided:
        yield write("decide_edges", batch=as_json([{"job": j, "blocker": b, "state": end} for j, b, end in decided]))
        yield from _unblock(Counter(job for job, _, _ in decided), waiting)
    yield from apply([Change(id, "cancel", State.CANCELLED, 0, 0, error=error) for id, error in doomed.items()], now)
    return list(doomed)


def _unblock(decided: Counter[str], waiting: dict[str, Row]) -> Flow[None]:
    """So many fewer to wait for. With none left a job waits for its time; if that has come, it is among the due."""
    left = {job: waiting[job][2] - number for job, number in decided.items() if job in waiting}
    batch = [{"id": job, "waits": waits, "wait": Wait.JOBS if waits else Wait.TIME} for job, waits in left.items()]
    yield write("unblock", batch=as_json(batch))


def _wish(row: Row | None) -> OnBlockerFailure:
    """What the dependent said; one that is gone has no wishes, and its edges are closed like any other's."""
    return "run" if row is None else rows.policy(1, None, row[3]).on_blocker_failure


def _list(values: Iterable[str]) -> str:
    return as_json(sorted(values))
