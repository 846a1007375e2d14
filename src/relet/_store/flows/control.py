"""Operator actions on jobs, a function for each of `VERBS`, and on queues (pause, resume, limit).

Each locks the job first and decides in a later statement. A job that is over or deleted has no row to lock. With
`chain`, the action applies to the job of the chain that is not over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..._core import machine
from ..._core.job import Draft, Job, Request, State, Wait
from ..._core.machine import Change
from ...errors import InvalidTransition, JobNotFound, KeyTaken
from ..query import BEGIN, Flow, Notify, Row, as_json, read, write
from . import chains, enqueue_constrained, inspect, mapping, promote, unique_keys

LOCK_TIMEOUT = chains.LOCK_TIMEOUT


class _Locked(Struct, frozen=True):
    """The columns that an action needs of the job that it has locked."""

    id: str
    state: State
    wait: Wait | None
    attempt: int
    losses: int
    target: str | None
    holds: bool
    waits: int
    ahead: bool  # its run_at lies in the future
    unique: str | None
    windowed: bool
    chain: str
    task: str

    @property
    def lines_up(self) -> bool:
        """Whether the job has a target that it does not hold, and so must wait in line."""
        return self.target is not None and not self.holds

    @classmethod
    def of(cls, row: Row) -> _Locked:
        """From a row of `lock_job` or `lock_chains`."""
        id, state, wait, attempt, losses, target, holds, waits, ahead, unique, windowed, chain, task = row
        wait = None if wait is None else Wait(wait)
        return cls(
            id,
            State(state),
            wait,
            attempt,
            losses,
            target,
            bool(holds),
            waits,
            bool(ahead),
            unique,
            bool(windowed),
            chain,
            task,
        )


def cancel(job_id: str, *, chain: bool = False) -> Flow[Job[Any]]:
    """Cancel a job. If it runs, ask the worker that owns it to stop it."""
    job = yield from _lock(job_id, "cancel", chain)
    if job.state is State.RUNNING:
        yield from _request(job, "cancel")
    else:
        yield from _finish(job, State.CANCELLED, None, False)
    return (yield from _reload(job.id))


def pause(job_id: str) -> Flow[Job[Any]]:
    """Pause a job until it is resumed. If it runs, ask the worker that owns it to release it."""
    job = yield from _lock(job_id, "pause")
    if job.state is State.RUNNING:
        yield from _request(job, "pause")
    else:
        wait = machine.pause(job.wait, job.ahead, job.lines_up)
        change = Change(job.id, "pause", State.PAUSED, job.attempt, job.losses, wait=wait, holds=job.holds)
        yield from _change(change)
    return (yield from _reload(job_id))


def resume(job_id: str) -> Flow[Job[Any]]:
    """Resume a paused or failed job with all its attempts. Raises KeyTaken if another job has its unique key by now."""
    job = yield from _lock(job_id, "resume")
    if job.state is State.FAILED:
        yield from _retake_key(job)
    ahead = job.ahead and job.state is State.PAUSED and job.wait is None
    wait = machine.resume(job.waits > 0, ahead, job.lines_up)
    change = Change(job.id, "resume", State.PENDING, 0, 0, wait=wait, holds=job.holds)
    yield from _change(change, keep_run_at=ahead)
    return (yield from _reload(job_id))


def run_now(job_id: str) -> Flow[Job[Any]]:
    """Make a job that waits for its time due at once."""
    job = yield from _lock(job_id, "run_now")
    if job.wait is not Wait.TIME:
        raise InvalidTransition(job_id, "run_now", f"pending, and waits for {job.wait}", "only time can be skipped")
    change = Change(job.id, "run_now", State.PENDING, job.attempt, job.losses, wait=Wait.TIME, holds=job.holds)
    yield from _change(change)
    return (yield from _reload(job_id))


def complete(
    job_id: str,
    result: str | None,
    continue_with: Draft[Any] | None = None,
    *,
    chain: bool = False,
    encode: Callable[[str], str] | None = None,
    theirs: bool = False,
) -> Flow[Job[Any]]:
    """Complete a job from outside. A worker that runs it loses its lease.

    `encode` is called with the job's task, and returns the result to store, or raises if it does not fit that task.
    `theirs`: this runs in the caller's transaction, which may stay open: it sets no lock timeout, and refuses running
    jobs, so that no worker has to wait for it.
    """
    job = yield from _lock(job_id, "complete", chain, patient=theirs)
    if theirs and job.state is State.RUNNING:
        raise InvalidTransition(job.id, "complete", job.state, "in a transaction of yours it must not be")
    if encode is not None:
        result = encode(job.task)
    if continue_with is not None:
        refused = yield from enqueue_constrained.refuse_successors({job.id: (continue_with, job.chain)})
        if refused:
            raise refused[job.id]
    root, position, watched = yield from _finish(job, State.SUCCEEDED, result, continue_with is not None)
    if continue_with is not None:
        successor = enqueue_constrained.Successor(continue_with, root, position + 1, watched)
        yield from enqueue_constrained.add_successors([successor])
    if job.state is State.RUNNING:
        yield Notify("request")
    return (yield from _reload(job.id))


def delete(job_id: str) -> Flow[bool]:
    """Delete a job and its history, whatever its state. Returns False if it does not exist."""
    yield BEGIN
    yield write("control/set_lock_timeout", seconds=LOCK_TIMEOUT)
    running = any(row[1] == State.RUNNING for row in (yield write("control/lock_job", ids=as_json([job_id]))))
    found = [mapping.job(row) for row in (yield read("inspect/get", ids=as_json([job_id])))]
    if found and found[0].state.over:
        yield from promote.announce(found[0].chain)  # the jobs that waited for it get its result
    yield from chains.remove([job_id])
    if running:
        yield Notify("request")
    if found:
        yield Notify("jobs")
        yield Notify("done")
    return bool(found)


def bulk(
    verb: Callable[..., Flow[Any]], job_ids: Sequence[str], following: str | None = None
) -> Flow[tuple[int, int, str | None]]:
    """Apply an action to these jobs in one transaction. Returns how many it changed, how many it refused, and
    `following`.

    `following` is where the next step starts. It is stored with the answer, so that a repeated step returns the same.
    """
    done = refused = 0
    for job_id in sorted(job_ids):
        try:
            changed = yield from verb(job_id)
        except (JobNotFound, InvalidTransition, KeyTaken):
            changed = False
        done, refused = (done + 1, refused) if changed else (done, refused + 1)
    return done, refused, following


def signal(job_id: str, name: str, value: str | None, encode: Callable[[str], str] | None = None) -> Flow[bool]:
    """Send a signal to a job. Inserts a row and locks nothing. Returns False if the signal was sent before.

    `encode` is called with the job's task, and returns the value to store.
    """
    yield BEGIN
    job = yield from _reload(job_id)
    if job.state.over:
        raise InvalidTransition(job_id, "signal", job.state)
    if encode is not None:
        value = encode(job.task)
    inserted = yield write("control/insert_signal", job=job_id, name=name, value=value)
    yield Notify("jobs")
    return bool(inserted)


def watch(job_ids: Sequence[str]) -> Flow[dict[str, str]]:
    """Mark the chains of these jobs as watched, so that their end is notified. Returns the chain of each job."""
    chains = yield from inspect.chains_of(job_ids)
    unknown = [id for id in job_ids if id not in chains]
    if unknown:
        raise JobNotFound(*unknown)
    yield write("promote/watch_chains", chains=as_json(sorted(set(chains.values()))))
    yield Notify("queued")  # a claim may have skipped the rows while they were locked
    return chains


def set_queue(
    queue: str,
    *,
    paused: bool | None = None,
    max_running: int | UnsetType | None = UNSET,
    fair: bool | None = None,
    rate: tuple[str, int | None, float] | None = None,
    group_limit: tuple[str, int | None] | None = None,
) -> Flow[None]:
    """Pause, resume or limit a queue. UNSET leaves `max_running` as it is, None leaves any other setting.

    `rate`: group, number (None: no rate), seconds. `group_limit`: group, and how many of its jobs may run at once.
    """
    yield BEGIN
    yield from _set_queue(queue, paused, max_running, fair, rate, group_limit)
    yield Notify("queued")
    if paused:
        yield Notify("request")  # workers release jobs of the queue that they claimed in advance


def declare_limits(declared: Mapping[str, Mapping[str, Any]]) -> Flow[None]:
    """Store the limits that the code declares, by queue. Limits whose declaration has not changed keep what operators
    have set; those that the code no longer declares are removed."""
    for queue, limits in sorted(declared.items()):
        yield BEGIN
        ((text,),) = yield write("limits/lock_declared", queue=queue)
        before: dict[str, Any] = msgspec.json.decode(text) if text else {}
        changed = {name: limits.get(name) for name in before.keys() | limits.keys()}
        for name, value in changed.items():
            if value != before.get(name):
                yield from _set_declared(queue, name, value)
        if changed != before:
            yield write("limits/set_declared", queue=queue, declared=as_json(limits))
            yield Notify("queued")


def _set_declared(queue: str, name: str, value: Any) -> Flow[None]:
    """Set a limit as `limits.declared` names it, or remove it (None)."""
    kind, _, group = name.partition(" ")
    if kind == "fair":
        yield from _set_queue(queue, fair=bool(value))
    elif kind == "max_running":
        yield from _set_queue(queue, max_running=value)
    elif kind == "group_limit":
        yield from _set_queue(queue, group_limit=(group, value))
    else:
        number, per = value or (None, 1.0)
        yield from _set_queue(queue, rate=(group, number, per))


def _set_queue(
    queue: str,
    paused: bool | None = None,
    max_running: int | UnsetType | None = UNSET,
    fair: bool | None = None,
    rate: tuple[str, int | None, float] | None = None,
    group_limit: tuple[str, int | None] | None = None,
) -> Flow[None]:
    keep, limit = (True, None) if max_running is UNSET else (False, max_running)
    yield write("limits/set_queue", queue=queue, paused=paused, max_running=limit, keep=keep, fair=fair)
    if rate is not None:
        group, number, per = rate
        if number is None:
            yield write("limits/delete_rate", queue=queue, group=group)
        else:
            yield write("limits/set_rate", queue=queue, group=group, rate=number, per=per)
    if group_limit is not None:
        group, number = group_limit
        if number is None:
            yield write("limits/delete_group_limit", queue=queue, group=group)
        else:
            yield write("limits/set_group_limit", queue=queue, group=group, number=number)
    if fair is not None or rate is not None or group_limit is not None:
        yield write("limits/refresh_queue_flags", queue=queue)
        yield write("limits/find_ready_groups", queue=queue)


def pause_queues(names: Iterable[str]) -> Flow[list[str]]:
    """Pause these queues, and all that have settings or jobs. Returns those that were not paused before."""
    yield BEGIN
    settings = yield read("limits/queue_settings")
    known = {*names, *(row[0] for row in settings)}
    known |= {row[0] for row in (yield read("control/live_queues"))}
    paused = {row[0] for row in settings if row[1]}
    new = sorted(known - paused - {"*"})  # "*" has the limits of all queues together
    for queue in new:
        yield from set_queue(queue, paused=True)
    return new


def backfill_group(queue: str, *, limit: int = 1000) -> Flow[bool]:
    """Give the group '' to jobs without a group, in a queue where groups matter. Returns whether there may be more."""
    return len((yield write("limits/backfill_group", queue=queue, limit=limit))) == limit


def _lock(job_id: str, verb: str, chain: bool = False, *, patient: bool = False) -> Flow[_Locked]:
    """Lock the job, and check that its state allows the action. `patient`: set no lock timeout."""
    yield BEGIN
    if not patient:
        yield write("control/set_lock_timeout", seconds=LOCK_TIMEOUT)
    while True:
        found = yield from _lock_live_of_chain(job_id) if chain else _lock_one(job_id)
        if found:
            job = _Locked.of(found[0])
            machine.check(job.id, verb, job.state)
            return job
        seen = (yield from inspect.chain(job_id)).last if chain else (yield from _reload(job_id))
        if seen.state.over:
            machine.check(seen.id, verb, seen.state)
        # Else the row was committed between the two reads, or the chain was continued: there is a row to lock now.


def _lock_one(job_id: str) -> Flow[list[Row]]:
    return (yield write("control/lock_job", ids=as_json([job_id])))


def _lock_live_of_chain(job_id: str) -> Flow[list[Row]]:
    """Lock the job of the chain that is not over. No row: the chain is over, or was continued during the wait."""
    chains = yield from inspect.chains_of([job_id])
    return (yield write("control/lock_chains", chains=as_json(list(chains.values()))))


def _reload(job_id: str) -> Flow[Job[Any]]:
    found = yield read("inspect/get", ids=as_json([job_id]))
    if not found:
        raise JobNotFound(job_id)
    return mapping.job(found[0])


def _request(job: _Locked, request: Request) -> Flow[None]:
    yield write("control/set_request", id=job.id, request=request)
    yield Notify("request")


def _change(change: Change, keep_run_at: bool = False) -> Flow[None]:
    yield write("settle/change", batch=as_json([mapping.change_row(change, keep_run_at=keep_run_at)]))
    yield Notify("jobs")


def _finish(job: _Locked, state: State, result: str | None, continued: bool) -> Flow[tuple[str, int, bool]]:
    if job.unique is not None and job.waits:
        yield write("control/return_keys", ids=as_json([job.id]))
    # The worker that ran the job must not find its token there, and take this completion for its own.
    change = Change(job.id, "complete", state, job.attempt, job.losses, keeps_token=job.state is not State.RUNNING)
    batch = as_json([mapping.finish_row(change, result, continued)])
    ((_, chain, position, watched, _),) = yield write("settle/finish", batch=batch)
    yield Notify("done")
    yield Notify("jobs")
    return chain, position, bool(watched)


def _retake_key(job: _Locked) -> Flow[None]:
    """Take the unique key again that a failed job gave up. A window that has ended is not opened again."""
    if job.unique is None:
        return
    if job.windowed:
        for key, holder, over in (yield read("control/key_holders", keys=as_json([job.unique]))):
            if holder != job.id and not over:
                raise KeyTaken(key, holder)
        return
    wanted: Draft[Any] = Draft(job.id, "", "", unique=job.unique)
    for key, holder in (yield from unique_keys.take([wanted])).values():
        raise KeyTaken(key, holder)
