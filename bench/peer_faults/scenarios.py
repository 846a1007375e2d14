"""The faults, and the figures. Each scenario is planned by its seed alone, so that all peers meet the same."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from bench.peer_faults.history import History, Run
from bench.peer_faults.testbed import WORKERS, Testbed, Worker
from bench.statistic import percentile

LONG = 12.0  # seconds: four rescue times of those peers that rescue within 3 s
QUIET = LONG + 20.0  # nothing recorded for so long: nothing will be
OUTAGES = {"short": 2.0, "long": 15.0}  # seconds
OUTLASTING = 10.0  # seconds that a job runs on after an outage
Figures = dict[str, object]


@dataclass
class Plan:
    """When which worker is struck, and how long the jobs last."""

    strikes: list[tuple[float, int]]
    durations: list[float] = field(default_factory=list)


def make_plan(seed: int, strikes: int, seconds: float, short: int, long: int = 0) -> Plan:
    """Strikes at random moments of as many equal parts of the time; long jobs among short ones."""
    chance = random.Random(seed)
    part = seconds / strikes
    moments = [(1.0 + part * (index + chance.random()), chance.randrange(WORKERS)) for index in range(strikes)]
    durations = [chance.uniform(0.2, 0.9) for _ in range(short)] + [LONG] * long
    chance.shuffle(durations)
    return Plan(moments, durations)


def strike(bed: Testbed, plan: Plan, action: Callable[[Worker], object]) -> None:
    began = time.monotonic()
    for at, number in plan.strikes:
        time.sleep(max(began + at - time.monotonic(), 0.0))
        action(bed.workers[number])


def ends(bed: Testbed, history: History, jobs: Collection[int]) -> Figures:
    """How the jobs ended. `stuck`: claimed or queued, and nothing happens. `lost`: over, and no handler completed."""
    states = bed.states(jobs)
    stuck = [job for job, state in states.items() if state in ("queued", "running")]
    lost = [job for job, state in states.items() if state == "done" and not history.has_completed(job)]
    failed = [job for job, state in states.items() if state == "failed"]
    return {"stuck": len(stuck), "lost": len(lost), "failed": len(failed)}


def _seconds(values: list[float]) -> Figures:
    if not values:
        return {"p50": None, "max": None}
    return {"p50": round(percentile(values, 0.5), 1), "max": round(max(values), 1)}


# Kill


def kill(bed: Testbed, seed: int) -> Figures:
    """SIGKILL to workers under a backlog."""
    plan = make_plan(seed, strikes=6, seconds=16.0, short=300, long=20)
    jobs = bed.enqueue(plan.durations)
    strike(bed, plan, bed.kill)
    bed.drain(jobs, QUIET)
    history = bed.history()
    reruns = [(run, after) for run, after in history.reruns() if run.job in set(jobs)]
    struck = [(run, after) for run, after in reruns if run.pid in bed.kills and bed.kills[run.pid] < after.start]
    waits = [after.start - bed.kills[run.pid] for run, after in struck]
    return {
        "jobs": len(jobs), "kills": len(bed.kills), "run again": len({run.job for run, _ in struck}),
        **_seconds(waits), "unstruck": len(reruns) - len(struck), "exits": len(bed.exits),
        **ends(bed, history, jobs),
    }  # fmt: skip


# Zombie


@dataclass
class Zombie:
    """A job whose worker was stopped, the run in that worker, and the first one elsewhere."""

    job: int
    first: Run
    second: Run | None
    later: int
    stopped_at: float


def zombie(bed: Testbed, seed: int) -> Figures:
    """SIGSTOP to a worker until its jobs run elsewhere, then SIGCONT while they do."""
    chance, found, jobs = random.Random(seed), [], []
    done_at: dict[int, float] = {}
    for _ in range(3):
        some = bed.enqueue([LONG] * 8)
        bed.wait(lambda some=some: running(bed.history(), some), QUIET)  # type: ignore[misc]
        short = bed.enqueue([chance.uniform(0.2, 0.9) for _ in range(40)])
        stopped_at, first = _stop(bed, some)
        _watch(bed, some, done_at)
        bed.drain(some + short, QUIET)
        jobs += some + short
        found += _zombies(bed.history(), first, stopped_at)
    return _judge(bed, found, done_at) | {"jobs": len(jobs)} | ends(bed, bed.history(), jobs)


def running(history: History, jobs: Collection[int]) -> bool:
    return all(history.by_job[job] for job in jobs)


def _stop(bed: Testbed, jobs: list[int]) -> tuple[float, list[Run]]:
    """Stop the worker that runs the largest number of these jobs; returns when, and its runs."""
    runs = [bed.history().by_job[job][0] for job in jobs]
    pids = [run.pid for run in runs]
    victim = max(bed.workers, key=lambda worker: pids.count(worker.pid))
    first = [run for run in runs if run.pid == victim.pid]
    os.kill(victim.pid, signal.SIGSTOP)
    stopped_at = time.time()
    if bed.peer.age:
        bed.execute(bed.peer.age, bed.history().pools[victim.pid])
    bed.wait(lambda: all(len(bed.history().by_job[run.job]) > 1 for run in first), QUIET)
    time.sleep(1.0)
    os.kill(victim.pid, signal.SIGCONT)
    return stopped_at, first


def _watch(bed: Testbed, jobs: Collection[int], done_at: dict[int, float]) -> None:
    """Note when the peer's tables have each job as over, until no handler runs."""
    give_up = time.monotonic() + 2 * QUIET
    while time.monotonic() < give_up:
        for job, state in bed.states(jobs).items():
            if state == "done":
                done_at.setdefault(job, time.time())
        history = bed.history()
        if all(run.end is not None for job in jobs for run in history.by_job[job]):
            return
        time.sleep(0.2)


def _zombies(history: History, first: list[Run], stopped_at: float) -> list[Zombie]:
    found = []
    for run in first:
        others = [other for other in history.by_job[run.job] if other.id != run.id]
        found.append(Zombie(run.job, history.runs[run.id], others[0] if others else None, len(others[1:]), stopped_at))
    return found


def _judge(bed: Testbed, found: list[Zombie], done_at: Mapping[int, float]) -> Figures:
    taken = [(one, one.second) for one in found if one.second]
    results = dict(bed.execute(bed.peer.results)) if bed.peer.results else {}
    return {
        "zombie jobs": len(found), "taken over": len(taken),
        **_seconds([second.start - one.stopped_at for one, second in taken]),
        "aborted": sum(one.first.is_aborted for one, _ in taken),
        "accepted": sum(_was_accepted(one.first, second, done_at.get(one.job)) for one, second in taken),
        "zombie's result": _stored(results, [one.first for one, _ in taken]),
        "second result": _stored(results, [second for _, second in taken]),
        "third run": sum(one.later > 0 for one, _ in taken), "exits": len(bed.exits),
    }  # fmt: skip


def _stored(results: Mapping[int, str], runs: list[Run]) -> int | None:
    """How many of these runs have their result in the store; None if the peer stores no results."""
    return sum(results.get(run.job) == run.id for run in runs) if results else None


def _was_accepted(first: Run, second: Run, done_at: float | None) -> bool:
    """Whether the job was over for the peer once its first run had completed, while its second was still running."""
    if done_at is None or first.end is None or not first.has_completed:
        return False
    return done_at > first.end - 0.3 and (second.end is None or done_at < second.end - 0.1)


# Cut after commit


def cut(bed: Testbed, seed: int) -> Figures:
    """The connections of a worker end when the server has executed the next request: its answer is lost."""
    plan = make_plan(seed, strikes=20, seconds=16.0, short=300)
    jobs = bed.enqueue(plan.durations)
    strike(bed, plan, bed.lose_answers)
    bed.drain(jobs, 20.0)
    history = bed.history()
    return {
        "jobs": len(jobs), "cuts": len(plan.strikes), **_reruns(bed, history, jobs), "exits": len(bed.exits),
        "idle": len(bed.idle_workers()), **ends(bed, history, jobs),
    }  # fmt: skip


def _reruns(bed: Testbed, history: History, jobs: Collection[int]) -> Figures:
    """Jobs that ran again although no fault struck their worker's process, by the end of the run before."""
    found: dict[str, set[int]] = {"after completion": set(), "while running": set(), "after abort": set()}
    for run, after in history.reruns():
        if run.job in jobs:
            found[_outcome(bed, run, after.start)].add(run.job)
    return {outcome: len(some) for outcome, some in found.items()}


def _outcome(bed: Testbed, run: Run, at: float) -> str:
    if run.has_completed and run.end is not None and run.end < at:
        return "after completion"
    is_over = run.is_aborted and run.end is not None and run.end < at
    return "after abort" if is_over or bed.exits.get(run.pid, at) < at else "while running"


# Restart


def restart(bed: Testbed, seed: int, outage: str) -> Figures:
    """The server stops at once, and starts again after a while. Jobs that run outlast it; others wait."""
    chance, down = random.Random(seed), OUTAGES[outage]
    long = bed.enqueue([down + OUTLASTING + chance.uniform(0.0, 2.0) for _ in range(6)])
    bed.wait(lambda: running(bed.history(), long), QUIET)
    short = bed.enqueue([chance.uniform(0.2, 0.9) for _ in range(150)])
    time.sleep(2.0)
    bed.server.stop("SIGQUIT")
    time.sleep(down)
    bed.server.start()
    up_at = time.time()
    bed.drain(long + short, down + OUTLASTING + 20.0)
    history = bed.history()
    return {
        "jobs": len(long + short), "outage": down, **_reruns(bed, history, long + short),
        "first claim": _first_start(history, up_at), "exits": len(bed.exits), "idle": len(bed.idle_workers()),
        **ends(bed, history, long + short),
    }  # fmt: skip


def _first_start(history: History, up_at: float) -> float | None:
    starts = [run.start - up_at for run in history.runs.values() if run.start > up_at]
    return round(min(starts), 1) if starts else None


SCENARIOS: dict[str, Callable[[Testbed, int], Figures]] = {
    "kill": kill,
    "zombie": zombie,
    "cut": cut,
    "restart": lambda bed, seed: restart(bed, seed, "short"),
    "outage": lambda bed, seed: restart(bed, seed, "long"),
}
