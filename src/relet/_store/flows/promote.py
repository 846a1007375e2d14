"""promote: queue pending jobs once they wait for nothing: no time, no other jobs, no target.

Each transaction that may free a waiting job inserts a nudge. The promoter deletes the nudges, and decides about the
jobs that they name in later statements, which see everything that was committed with the nudges. The last of several
nudges to commit is decided with all sides visible, so no job waits for ever.

The promoter waits for no lock but the promoter's lock. If another transaction has locked a row, the nudge is inserted
again. And a promotion stays short: thousands of jobs may wait for one chain, and one job for thousands of chains, so a
promotion reads a limited number of dependencies and inserts a nudge that says where to continue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from msgspec import Struct, field

from ..._core import machine
from ..._core.job import Job, OnDependencyFailure, State, Wait, utc
from ..._core.machine import Change
from ...errors import StoreBusy
from ..query import BEGIN, Flow, Notify, Row, as_json, pairs, read, write
from . import enqueue_constrained, mapping
from .inspect import ended
from .settle import apply

MAX_PROMOTED = 400  # nudges, due jobs and dependencies of each kind that one promotion reads


class Promotion(Struct):
    """The jobs that a promotion changed, and when to run the next: at once if `more`, else in `next_due` seconds."""

    promoted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    more: bool = False
    next_due: float | None = None


DependencyKey = tuple[str, str]  # a job, and the chain that it waits for
Due = tuple[float, int, str, str | None, bool]  # run_at, seq, job, target, and whether the job holds the target
Nudges = dict[tuple[str, str], str | None]  # by kind and key: where to continue; None: from the start


class _Plan(Struct):
    """The findings of one promotion so far."""

    promotes: bool = True  # False: jobs that become free are left to the next promotion
    due: list[Due] = field(default_factory=list)  # jobs that waited for others, and now for nothing
    ready: list[str] = field(default_factory=list)  # jobs to queue, in this order
    line: list[str] = field(default_factory=list)  # jobs to put in line at their targets
    targets: set[str] = field(default_factory=set)  # whose first job in line may be queued
    again: Nudges = field(default_factory=dict)  # to insert again: another transaction has locked the rows
    rest: Nudges = field(default_factory=dict)  # left for the next promotion
    put_off: int = 0  # nudges that led to nothing but themselves

    def free(self, id: str, target: str | None, holds: bool) -> None:
        """Queue a job that waits for neither time nor other jobs, or put it in line at its target."""
        if target is None or holds:
            self.ready.append(id)
        else:
            self.line.append(id)
            self.targets.add(target)


class _Scan(Struct):
    """The undecided dependencies that nudges lead to.

    `dependencies`: by nudge. `unreached`: nudges that the limit left out. `cut`: nudges of which the limit left out
    a part, and where to continue.
    """

    dependencies: dict[tuple[str, str], list[DependencyKey]] = field(default_factory=dict)
    unreached: Nudges = field(default_factory=dict)
    cut: Nudges = field(default_factory=dict)

    def all_dependencies(self) -> list[DependencyKey]:
        """Each dependency once, in the order of the nudges."""
        return list(dict.fromkeys(dependency for some in self.dependencies.values() for dependency in some))


class _View(Struct, frozen=True):
    """The jobs and chains that a decision is about.

    `busy`: chains whose row another transaction has locked. `ends`: the state of each chain that exists. `waiting`: the
    rows of the dependents that exist; the second column says whether the row could be locked.
    """

    busy: set[str]
    ends: dict[str, str]
    waiting: dict[str, Row]

    def is_locked_by_another(self, job: str) -> bool:
        """Whether the job exists, but another transaction has locked its row."""
        return job in self.waiting and not self.waiting[job][1]


class _Decisions(Struct):
    """`decided`: (job, chain, state of the chain) of dependencies that hold the job up no longer. `cancelled`: jobs to
    cancel, and why. `put_off`: dependencies that cannot be decided yet."""

    decided: list[tuple[str, str, str]] = field(default_factory=list)
    cancelled: dict[str, str] = field(default_factory=dict)
    put_off: set[DependencyKey] = field(default_factory=set)


def promote(*, limit: int = MAX_PROMOTED) -> Flow[Promotion]:
    """Take up to `limit` nudges and due jobs, and queue the jobs that wait for nothing."""
    done, plan = Promotion(), _Plan()
    yield BEGIN
    yield write("promote/lock")
    expired = yield from _expire(limit)  # first: its nudges are among those that are taken next
    nudges = sorted((yield write("promote/take_nudges", limit=limit)))
    plan.targets |= {key for _, kind, key, _ in nudges if kind == "target"}
    done.cancelled = expired + (yield from _decide_dependencies(_scans(nudges), plan, limit))
    yield from _wake_up({key for _, kind, key, _ in nudges if kind == "signal"}, plan)
    due = yield write("promote/lock_due", limit=limit)
    for _, _, id, target, holds in sorted([*plan.due, *due], key=itemgetter(0, 1)):
        plan.free(id, target, bool(holds))
    if plan.line:
        yield write("promote/wait_for_target", ids=as_json(plan.line))
    yield from _call_next_in_line(plan)
    done.promoted = yield from _queue(plan.ready)
    yield from _nudge(plan.rest | plan.again)
    done.more = limit in (len(due), len(expired)) or bool(plan.rest) or (len(nudges) == limit and plan.put_off < limit)
    ((done.next_due,),) = yield read("promote/next_due")
    return done


def promote_one(job: Job[Any]) -> Flow[bool]:
    """Queue a pending job that waits for neither time nor other jobs, and that this transaction has locked.

    Returns False if it must wait in line at its target.
    """
    yield write("promote/lock")
    if job.target is not None and not job.holds:
        yield write("promote/wait_for_target", ids=as_json([job.id]))
        heads = pairs((yield read("promote/target_heads", targets=as_json([job.target]))))
        if heads.get(job.target) != job.id:
            return False
    return bool((yield from _queue([job.id])))


def _expire(limit: int) -> Flow[list[str]]:
    """Cancel jobs that have not started by their `start_by`. Returns their ids."""
    late: dict[str, float] = dict((yield write("promote/lock_expired", limit=limit)))
    changes = [
        Change(id, "expire", State.CANCELLED, 0, 0, error=f"it has not started by {utc(moment):%Y-%m-%d %H:%M:%S} UTC")
        for id, moment in late.items()
    ]
    yield from apply(changes)
    return list(late)


def _queue(ids: list[str]) -> Flow[list[str]]:
    """Pending -> queued, in this order. Returns the jobs that are queued."""
    if not ids:
        return []
    promoted = [row[0] for row in (yield write("promote/promote", ids=as_json(ids)))]
    yield Notify("queued")
    return promoted


def _nudge(nudges: Nudges) -> Flow[None]:
    """Insert nudges for the next promotion."""
    batch = [{"kind": kind, "key": key, "beyond": beyond} for (kind, key), beyond in nudges.items()]
    if batch:
        yield write("promote/insert_nudges", batch=as_json(batch))


def announce(chain: str) -> Flow[None]:
    """Decide the dependencies on a chain that is over, before it is deleted and its result with it."""
    yield write("promote/lock")
    left: Nudges = {("chain", chain): None}
    while left:
        plan = _Plan(promotes=False)
        yield from _decide_dependencies(left, plan, MAX_PROMOTED)
        if plan.again:
            raise StoreBusy(f"a job that waits for {chain} is being changed just now; try again")
        left = plan.rest


def _call_next_in_line(plan: _Plan) -> Flow[None]:
    """At each target that is free, the first job in line becomes its holder."""
    if not plan.targets:
        return
    heads = pairs((yield read("promote/target_heads", targets=_list(plan.targets))))
    locked = (yield write("promote/lock_pending", ids=_list(heads.values()))) if heads else []
    free = {row[0] for row in locked}
    for target, id in heads.items():
        if id in free:
            plan.ready.append(id)
        else:
            plan.again["target", target] = None  # the transaction that has it locked may take it out of the line
            plan.put_off += 1


def _wake_up(jobs: set[str], plan: _Plan) -> Flow[None]:
    """Make jobs due that sleep until a signal comes, and whose signal has come."""
    if jobs:
        for (locked,) in (yield write("promote/wake_signalled", ids=_list(jobs))):
            plan.again["signal", locked] = None
            plan.put_off += 1


def _scans(nudges: list[Row]) -> Nudges:
    """The nudges about dependencies. Of two with the same key, the one that starts earlier counts."""
    scans: Nudges = {}
    for _, kind, key, beyond in nudges:
        if kind in ("job", "chain"):
            scans[kind, key] = min(beyond or "", scans.get((kind, key), beyond) or "") or None
    return scans


def _decide_dependencies(nudges: Nudges, plan: _Plan, limit: int) -> Flow[list[str]]:
    """Decide about the jobs that wait for chains which have ended: free, hold or cancel, by the job's policy.

    In: nudges of the kinds "job" (key: a job that waits) and "chain" (key: a chain that others wait for). Adds to
    `plan` the jobs that became due, and the nudges to insert again. Returns the jobs that were cancelled.
    """
    if not nudges:
        return []
    scan = yield from _open_dependencies(nudges, limit)
    dependencies = scan.all_dependencies()
    view = yield from _read_and_lock(dependencies)
    circling = yield from _break_circles(scan.dependencies, view.waiting, plan)
    decisions = _decide(dependencies, view, plan)
    yield from _write_decided(decisions.decided, view.waiting, plan)
    cancelled = circling | decisions.cancelled
    yield from apply([Change(id, "cancel", State.CANCELLED, 0, 0, error=error) for id, error in cancelled.items()])
    plan.put_off += sum(decisions.put_off.issuperset(some) for some in scan.dependencies.values())
    plan.rest |= _left_over(scan, view.ends, plan.again)
    return list(cancelled)


def _read_and_lock(dependencies: list[DependencyKey]) -> Flow[_View]:
    """Mark the chains as watched, then read their states, then lock the jobs that wait for them.

    The order matters: a chain that is not over when it is read was marked before, so its end will be announced.
    """
    chains = {chain for _, chain in dependencies}
    busy = {row[0] for row in (yield write("promote/watch_chains", chains=_list(chains)))}
    ends = pairs((yield read("promote/chain_states", chains=_list(chains))))
    jobs = {job for job, _ in dependencies}
    waiting = {row[0]: row for row in (yield write("promote/lock_dependents", ids=_list(jobs)))}
    return _View(busy, ends, waiting)


def _decide(dependencies: list[DependencyKey], view: _View, plan: _Plan) -> _Decisions:
    """The decision about each dependency. One that a lock keeps from being decided is nudged again."""
    decisions = _Decisions()
    for job, chain in dependencies:
        end = view.ends.get(chain, "deleted")
        state = None if end == "deleted" else State(end)
        decision = machine.decide_dependency(state, _failure_policy(view.waiting.get(job)))
        locked = decision != "hold" and view.is_locked_by_another(job)
        if chain in view.busy or locked:
            plan.again["job" if locked else "chain", job if locked else chain] = None
            decisions.put_off.add((job, chain))
        elif decision == "free":
            decisions.decided.append((job, chain, end))
        elif decision == "cancel":
            reason = f"has {end}" if end == State.FAILED else f"was {end}"
            decisions.cancelled[job] = f"it depends on {chain}, which {reason}"
    return decisions


def _write_decided(decided: list[tuple[str, str, str]], waiting: dict[str, Row], plan: _Plan) -> Flow[None]:
    """Record how the chains ended, and take these dependencies off the jobs that had them."""
    if decided:
        batch = [{"job": job, "depends_on": chain, "state": end} for job, chain, end in decided]
        yield write("promote/decide_dependencies", batch=as_json(batch))
        yield from _unblock(Counter(job for job, _, _ in decided), waiting, plan)


def _left_over(scan: _Scan, ends: Mapping[str, str], again: Nudges) -> Nudges:
    """The nudges for the next promotion: those not reached, then those that were cut, which must not delay others.

    A nudge about a chain that is not over is dropped: when the chain ends, it leaves a new one.
    """
    cut = {nudge: beyond for nudge, beyond in scan.cut.items() if nudge[0] == "job" or _ended(ends.get(nudge[1]))}
    return {nudge: beyond for nudge, beyond in (scan.unreached | cut).items() if nudge not in again}


def _break_circles(
    found: dict[tuple[str, str], list[DependencyKey]], waiting: dict[str, Row], plan: _Plan
) -> Flow[dict[str, str]]:
    """Find chains that wait for each other because they were continued at the same moment.

    Neither transaction saw the other's dependencies when it checked. Here all of them are visible. Returns at most one
    job to cancel, and why; the others are nudged again, as without that job there may be no circle.
    """
    jobs = {waiting[job][4]: job for kind, job in found if kind == "job" and job in waiting and waiting[job][4]}
    if not jobs:
        return {}
    awaited = {row[0] for row in (yield read("promote/awaited_chains", chains=_list(jobs)))}
    links = {chain: _chains_in(found["job", jobs[chain]]) for chain in sorted(awaited)}
    chains = yield from enqueue_constrained.circles(links)
    circling = sorted(jobs[chain] for chain in chains)
    last = [job for job in circling if waiting[job][1]][-1:]
    plan.again |= {("job", job): None for job in circling if job not in last}
    return dict.fromkeys(last, "it waited for its own chain, or for one that waits for it: they would wait for ever")


def _chains_in(dependencies: list[DependencyKey]) -> set[str]:
    return {chain for _, chain in dependencies}


def _open_dependencies(nudges: Nudges, limit: int) -> Flow[_Scan]:
    """Read up to `limit` undecided dependencies of each kind of nudge."""
    scan = _Scan()
    for kind, own in (("job", 0), ("chain", 1)):
        keys = {key: beyond for (which, key), beyond in nudges.items() if which == kind}
        if not keys:
            continue
        batch = as_json([{"key": key, "beyond": beyond} for key, beyond in keys.items()])
        if kind == "job":
            dependencies = yield read("promote/dependencies_of_jobs", batch=batch, limit=limit + 1)
        else:
            dependencies = yield read("promote/dependencies_on_chains", batch=batch, limit=limit + 1)
        for job, chain in dependencies[:limit]:
            scan.dependencies.setdefault((kind, (job, chain)[own]), []).append((job, chain))
        if len(dependencies) > limit:
            last = dependencies[limit - 1]
            unreached = list(keys)[list(keys).index(last[own]) + 1 :]
            scan.unreached |= {(kind, key): keys[key] for key in unreached}
            scan.cut[kind, last[own]] = last[1 - own]
    return scan


def _ended(state: str | None) -> bool:
    return state is None or ended(state)


def _unblock(decided: Counter[str], waiting: dict[str, Row], plan: _Plan) -> Flow[None]:
    """Subtract the decided dependencies (a number for each job) from those that the job waits for.

    A job with none left waits for its time. If that has come already, it is added to the due jobs of this promotion.
    """
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


def _failure_policy(row: Row | None) -> OnDependencyFailure:
    """The dependent's policy. A deleted dependent has none; its dependency rows are decided as "run"."""
    return "run" if row is None else mapping.policy(1, None, row[3]).on_dependency_failure


def _list(values: Iterable[str]) -> str:
    return as_json(sorted(values))
