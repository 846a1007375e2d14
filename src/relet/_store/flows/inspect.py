"""Reads of jobs and queues for clients: get, attempts, chain, dependencies, queues, explain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct, structs

from ..._core import validate
from ..._core.job import AttemptRecord, Chain, Dependency, Job, State, StepRecord, Wait, maybe_utc, utc
from ..._core.text import one_line
from ..._core.views import GroupLimit, JobDetails, QueueInfo, RateInfo
from ...errors import JobNotFound
from ..query import LONG, Flow, Row, as_json, bounded, pairs, read, read_only, snapshot
from . import limits, workers
from . import mapping as rows

MAX_COUNTED = 5000  # live jobs counted in one read of the queues: a few milliseconds
MAX_POSITION = 10_000  # jobs in line before a job that are counted
DESCRIBED = 100  # dependents in the description of a job
SAMPLES_FOR = 900.0  # seconds after which a sample is too old to use


class Ends(Struct, frozen=True):
    """The state of chains: the last job of those that have ended, the state of the others, and the deleted ones."""

    ended: dict[str, Job[Any]]
    states: dict[str, str]
    gone: frozenset[str]


@read_only
def get(job_id: str) -> Flow[Job[Any] | None]:
    found = yield read("inspect/get", ids=as_json([job_id]))
    return rows.job(found[0]) if found else None


@read_only
def clock() -> Flow[float]:
    """The time of the store, in seconds since 1970."""
    ((moment,),) = yield read("inspect/clock")
    return float(moment)


@read_only
def get_many(job_ids: Sequence[str]) -> Flow[dict[str, Job[Any]]]:
    """The jobs that exist, by id."""
    return {row[0]: rows.job(row) for row in (yield read("inspect/get", ids=as_json(list(job_ids))))}


@read_only
def attempts(job_id: str) -> Flow[list[AttemptRecord]]:
    """All attempts of a job in order, including one that runs."""
    records = yield from _attempts_of(job_id)
    if not records:
        yield from _existing(job_id)
    return records


def _attempts_of(job_id: str) -> Flow[list[AttemptRecord]]:
    return [_attempt(job_id, row) for row in (yield read("inspect/attempts", id=job_id))]


@read_only
def steps(job_id: str) -> Flow[list[StepRecord]]:
    """The durable steps, sleeps, waits and signals of a job, in order."""
    records = yield from _steps_of(job_id)
    if not records:
        yield from _existing(job_id)
    return records


def _steps_of(job_id: str) -> Flow[list[StepRecord]]:
    rows = yield read("inspect/steps", id=job_id)
    return [_step(*row) for row in rows]


def _step(
    kind: str, name: str, result: str | None, until: float | None, at: float, started: float | None, input: str | None
) -> StepRecord:
    first, _, number = name.partition("\x1f")  # a handler that waits again for a signal numbers its waits
    label = f"{first} ({number})" if number else first
    return StepRecord(label, kind, utc(at), maybe_utc(until), result, maybe_utc(started), input)


@read_only
def chains_of(job_ids: Sequence[str]) -> Flow[dict[str, str]]:
    """The chain of each job that exists. The id of a chain is that of its first job, even after that job was pruned."""
    found: dict[str, str] = pairs((yield read("inspect/chains_of", ids=as_json(job_ids))))
    missing = [id for id in job_ids if id not in found]
    if missing:
        found |= pairs((yield read("inspect/chains_of_pruned", ids=as_json(missing))))
    return found


@read_only
def chain(job_id: str) -> Flow[Chain]:
    """The chain that a job belongs to."""
    found = yield read("inspect/chain", id=job_id)
    if not found:
        raise JobNotFound(job_id)
    return Chain(tuple(sorted((rows.job(row) for row in found), key=lambda job: job.position)))


@read_only
def ends(chains: Sequence[str]) -> Flow[Ends]:
    """Read the states of chains. For those that are over or have failed, read the last job as well."""
    found: dict[str, str] = pairs((yield read("promote/chain_states", chains=as_json(chains))))
    gone = frozenset(chain for chain in chains if chain not in found)
    ending = [chain for chain, state in found.items() if ended(state)]
    jobs = [rows.job(row) for row in (yield read("inspect/last_jobs", chains=as_json(ending)))] if ending else []
    over = {
        job.chain: job for job in jobs if ended(job.state)
    }  # a failed one may have been resumed between the two reads
    return Ends(over, {chain: state for chain, state in found.items() if chain not in over}, gone)


def ended(state: str) -> bool:
    """Whether a chain in this state has ended, so that waiting for it ends."""
    return state == State.FAILED or State(state).over


@read_only
def dependencies(job_id: str) -> Flow[list[Dependency]]:
    """The chains that a job waits or waited for, in the order of `depends_on`."""
    return [Dependency(*row) for row in (yield read("inspect/dependencies", id=job_id))]


@read_only
def dependents(job_id: str, *, limit: int) -> Flow[list[Job[Any]]]:
    """Jobs that wait for the chain of this one."""
    chains = yield from chains_of([job_id])
    if not chains:
        raise JobNotFound(job_id)
    return (yield from _dependents_of(chains[job_id], limit))


def _dependents_of(chain: str, limit: int) -> Flow[list[Job[Any]]]:
    found = yield read("promote/dependencies_on_chains", batch=as_json([{"key": chain, "beyond": None}]), limit=limit)
    return list((yield from get_many([job for job, _ in found])).values()) if found else []


@snapshot
def describe(job_id: str) -> Flow[JobDetails]:
    """A job with its attempts, steps, chain, dependencies, dependents and explanation, all of the same moment."""
    job = yield from _existing(job_id)
    is_alone = not job.position and not job.continued
    return JobDetails(
        job=job,
        attempts=(yield from _attempts_of(job_id)),
        steps=(yield from _steps_of(job_id)),
        chain=Chain((job,)) if is_alone else (yield from chain(job_id)),
        dependencies=(yield from dependencies(job_id)),
        dependents=(yield from _dependents_of(job.chain, DESCRIBED)),
        explanation=(yield from _reasons(job)),
    )


@bounded(LONG)
@read_only
def queues() -> Flow[list[QueueInfo]]:
    """Every queue that has live jobs or settings.

    Counts up to `MAX_COUNTED` live jobs. If there are more, the numbers are those of the last sample that a worker
    took, or, without a sample, those of the newest jobs. Names come from an index: no queue with queued jobs is
    missed.
    """
    recent = _by_queue((yield read("inspect/count_recent", limit=MAX_COUNTED + 1)))
    found: dict[str, QueueInfo] = {queue: _counted(queue, counts) for queue, counts in recent.items()}
    if sum(counts.number for states in recent.values() for counts in states.values()) > MAX_COUNTED:
        found = {queue: structs.replace(info, at_least=True) for queue, info in found.items()}
        for queue in (yield from queue_names()):
            found.setdefault(queue, structs.replace(_counted(queue, {}), at_least=True))
        found |= {row[0]: _sampled(row) for row in (yield read("inspect/queue_samples", within=SAMPLES_FOR))}
    for queue, paused, limit, fair in (yield read("limits/queue_settings")):
        info = found.get(queue) or _counted(queue, {})
        found[queue] = structs.replace(info, paused=bool(paused), max_running=limit, fair=bool(fair))
    for queue, key, rate, per in (yield read("limits/all_rates")):
        info = found.get(queue) or _counted(queue, {})
        found[queue] = structs.replace(info, rates=(*info.rates, RateInfo(key or None, rate, per)))
    for queue, group, number in (yield read("limits/all_group_limits")):
        info = found.get(queue) or _counted(queue, {})
        found[queue] = structs.replace(info, group_limits=(*info.group_limits, GroupLimit(group, number)))
    return [found[name] for name in sorted(found)]


@bounded(LONG)
@read_only
def counted_queues() -> Flow[list[QueueInfo]]:
    """Every queue that has live jobs or settings, with all jobs counted. For samples: it may take long."""
    found = _by_queue((yield read("inspect/count_queues")))
    configured = {row[0] for row in (yield read("limits/queue_settings"))} - {"*"}  # "*" has limits, but no jobs
    return [_counted(queue, found.get(queue, {})) for queue in sorted(found.keys() | configured)]


@read_only
def queued_tasks(queues: Sequence[str]) -> Flow[dict[str, set[str]]]:
    """By queue, the tasks that have queued jobs."""
    found: dict[str, set[str]] = {}
    for queue, task in (yield read("claim/queued_tasks", queues=list(queues))):
        found.setdefault(queue, set()).add(task)
    return found


@read_only
def queue_names() -> Flow[list[str]]:
    """Queues that have queued jobs."""
    return [row[0] for row in (yield read("claim/queue_names"))]


@read_only
def paused_queues() -> Flow[set[str]]:
    """The names of the paused queues."""
    return {queue for queue, paused, _, _ in (yield read("limits/queue_settings")) if paused}


@read_only
def explain(job_id: str) -> Flow[list[str]]:
    """Why a job is not running, in sentences; the most direct reason first."""
    return (yield from _reasons((yield from _existing(job_id))))


def _existing(job_id: str) -> Flow[Job[Any]]:
    job = yield from get(job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job


def _reasons(job: Job[Any]) -> Flow[list[str]]:
    match job.state, job.wait:
        case State.SUCCEEDED | State.CANCELLED, _:
            return [f"it is {job.state}"]
        case State.RUNNING, _:
            asked = f"; asked to {job.request}" if job.request else ""
            return [f"it runs: worker {job.worker} holds its lease until {_clock(job.expires_at)}{asked}"]
        case State.FAILED, _:
            after = f"after {job.attempt} of {job.max_attempts} attempts"
            return [f"it has failed {after}: {_reason(job)}; resume or cancel it"]
        case State.PAUSED, _:
            paused = f"it is paused since {_clock(job.finished_at)}; resume or cancel it"
            in_line = f"it keeps its place in line at target {job.target}: no job behind it runs meanwhile"
            return [paused, in_line] if job.wait is Wait.TARGET else [paused]
        case _, Wait.TIME if (yield read("inspect/clock"))[0][0] >= job.run_at.timestamp() - 0.001:
            return ["it is due: maintenance will queue it shortly"]
        case _, Wait.TIME if job.awaits is not None:
            is_endless = (job.run_at - job.created_at).total_seconds() >= validate.MAX_SECONDS
            or_until = "" if is_endless else f", or until {_clock(job.run_at)}"
            return [f"it sleeps until signal {job.awaits!r} comes{or_until}"]
        case _, Wait.TIME:
            why = f", after attempt {job.attempt} failed: {_reason(job)}" if job.attempt and job.error else ""
            return [f"its time is ahead: {_clock(job.run_at)}{why}"]
        case _, Wait.JOBS:
            return (yield from _waits_for(job))
        case _, Wait.TARGET:
            return (yield from _behind(job))
    return (yield from _queued(job))


def _waits_for(job: Job[Any]) -> Flow[list[str]]:
    chains = [one.chain for one in (yield from dependencies(job.id)) if one.state is None]
    ends = pairs((yield read("promote/chain_states", chains=as_json(chains))))
    return [f"it waits for {chain}, which is {ends.get(chain, 'deleted')}" for chain in chains]


def _behind(job: Job[Any]) -> Flow[list[str]]:
    found = yield read("inspect/target_holder", target=job.target)
    ((number,),) = yield read("inspect/target_position", target=job.target, id=job.id, count_limit=MAX_POSITION)
    ahead = f"{number}{' or more' if number == MAX_POSITION else ''} in line before it"
    if found:
        id, state = found[0]
        hint = "; resume or cancel that one" if state in (State.PAUSED, State.FAILED) else ""
        return [f"target {job.target} is held by job {id}, which is {state}{hint}", ahead]
    for id, _ in (yield read("inspect/target_queue", target=job.target, limit=1, count_limit=1)):
        if (yield from get_many([id]))[id].state is State.PAUSED:
            return [f"job {id}, the first in line at target {job.target}, is paused; resume or cancel that one", ahead]
    return [f"it is in line at target {job.target}, which is free; maintenance will queue the first in line"]


def _queued(job: Job[Any]) -> Flow[list[str]]:
    settings = {queue: (paused, limit) for queue, paused, limit, _ in (yield read("limits/queue_settings"))}
    running = pairs((yield read("inspect/running_by_queue")))
    reasons = []
    if settings.get(job.queue, (False, None))[0]:
        reasons.append(f"queue {job.queue} is paused; resume_queue({job.queue!r}) lets it go on")
    for name, number in ((job.queue, running.get(job.queue, 0)), ("*", sum(running.values()))):
        limit = settings.get(name, (False, None))[1]
        if limit is not None and number >= limit:
            reasons.append(f"{'all queues' if name == '*' else f'queue {name}'} may run {limit}, and {number} run")
    for one in (yield from limits.used_up(job.queue, job.group)):
        whose = {"": "", "*": f" of group {job.group}"}.get(one.group, f" of group {one.group}")
        name = "all queues" if one.queue == "*" else f"queue {one.queue}"
        room = f" in {one.per:g} s, and has; there is room in {one.again_in:.1f} s" if one.rate else ""
        reasons.append(f"{name} may start {one.rate or 'no'} jobs{whose}{room}")
    return reasons or [(yield from _unserved(job))]


def _unserved(job: Job[Any]) -> Flow[str]:
    """The reason when only a worker is missing: none runs, none serves the queue and task, or all are busy."""
    alive = [worker for worker in (yield from workers.workers()) if not worker.lost]
    able = [worker for worker in alive if worker.serves(job.queue, job.task)]
    free = [worker for worker in able if not worker.stopping and worker.running < worker.slots]
    wants = f"a worker that serves queue {job.queue} and knows task {job.task}"
    if not alive:
        return f"it is ready to run, but no worker is running: start {wants}"
    if not able:
        return f"it is ready to run, but none of the {len(alive)} running workers is {wants}: start one"
    if not free:
        return f"it is ready to run: it waits for a free slot at one of {len(able)} workers that can run it"
    return f"it is ready to run: worker {free[0].name} has a free slot and will claim it shortly"


def _attempt(job_id: str, row: Row) -> AttemptRecord:
    attempt, version, worker, started, ended, outcome, error, renewed, expires, error_type = row
    moments = (utc(started), maybe_utc(ended))
    return AttemptRecord(
        job_id, attempt, version, worker, *moments, outcome, error, maybe_utc(renewed), maybe_utc(expires), error_type
    )


class _Count(NamedTuple):
    number: int
    oldest: float


def _by_queue(rows: Sequence[Row]) -> dict[str, dict[str, _Count]]:
    counts: dict[str, dict[str, _Count]] = {}
    for queue, state, number, oldest in rows:
        counts.setdefault(queue, {})[state] = _Count(number, oldest)
    return counts


def _counted(queue: str, counts: dict[str, _Count]) -> QueueInfo:
    states = (State.PENDING, State.QUEUED, State.RUNNING, State.PAUSED, State.FAILED)
    pending, queued, running, paused, failed = (counts[state].number if state in counts else 0 for state in states)
    oldest = max(counts[State.QUEUED].oldest, 0.0) if State.QUEUED in counts else None
    return QueueInfo(queue, False, None, pending, queued, running, paused, failed, oldest=oldest)


def _sampled(row: Row) -> QueueInfo:
    queue, pending, queued, running, paused, failed, oldest, counted = row
    numbers = (pending, queued, running, paused, failed)
    return QueueInfo(queue, False, None, *numbers, oldest=oldest, counted_at=utc(counted))


def _clock(moment: datetime | None) -> str:
    return "unknown" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _reason(job: Job[Any]) -> str:
    return one_line(job.error, 200) or "no reason recorded"
