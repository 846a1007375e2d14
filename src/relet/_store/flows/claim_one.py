"""claim_one: one job that the caller names becomes running, whatever its position in the queue.

The job may also be paused, failed or delayed: the same transaction then resumes it or makes it due, and promotes it. So
no worker can take it in between, and if it cannot be claimed, it stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from ..._core import machine
from ..._core.job import Claimed, Job, State, Wait
from ..._core.text import duration
from ...errors import InvalidTransition, JobNotFound, UnknownTask
from ..query import BEGIN, Flow, as_json, read, repeated_by, write
from . import control, limits, mapping, promote
from .claim import find_claimed, next_token
from .lease import reap_in_transaction

HINTS = {
    State.RUNNING: "wait until its attempt ends, or pause it and try again once it is paused",
    State.SUCCEEDED: "a finished job does not run again; enqueue a new one",
    State.CANCELLED: "a finished job does not run again; enqueue a new one",
}
WAITS = {
    Wait.JOBS: "complete, cancel or delete the jobs that it depends on first",
    Wait.TARGET: "the jobs before it at its target come first",
}


def claim_one_again(worker: str, token: str, *args: Any, **kwargs: Any) -> Flow[Claimed]:
    """Claim when an earlier try of this claim may have been committed."""
    found = yield from find_claimed(token)
    return found[0] if found else (yield from claim_one(worker, next_token(token), *args, **kwargs))


@repeated_by(claim_one_again)
def claim_one(
    worker: str, token: str, job_id: str, tasks: Collection[str], *, lease: float, random: Callable[[], float]
) -> Flow[Claimed]:
    """Take this job, whether its queue is paused or not. Raises if its state, its wait or a limit does not allow it."""
    yield BEGIN
    yield write("control/set_lock_timeout", seconds=control.LOCK_TIMEOUT)
    yield write("control/lock_job", ids=as_json([job_id]))
    job = yield from _get(job_id)
    if job.task not in tasks:
        raise UnknownTask(f"job {job_id} is of task {job.task}, which this app does not define")
    yield from _queue(job)
    reap = partial(reap_in_transaction, random, lambda: True)
    # The caller runs nothing else: a job that has lost workers before, and must run alone, does so.
    share = {"worker": worker, "token": token, "lease": lease, "alone": True}
    claim = yield from limits.claim_one(job, share, reap)
    if not claim.jobs:
        again = "" if claim.again_in is None else f", again in {duration(claim.again_in)} at the earliest"
        raise InvalidTransition(job_id, "run", f"in queue {job.queue}, which is at its limit", f"try later{again}")
    return claim.jobs[0]


def _queue(job: Job[Any]) -> Flow[None]:
    """Queue the job if it is not queued yet, by the verbs of an operator and of the promoter."""
    if job.state is State.QUEUED:
        return
    if job.state in machine.TRANSITIONS["resume"].sources:
        job = yield from control.resume(job.id)
    elif job.wait is Wait.TIME:
        job = yield from control.run_now(job.id)
    if job.state is not State.PENDING:
        owner = f" on worker {job.worker}" if job.state is State.RUNNING else ""
        raise InvalidTransition(job.id, "run", f"{job.state}{owner}", HINTS[job.state])
    if job.wait is Wait.JOBS or not (yield from promote.promote_one(job)):
        wait = Wait.JOBS if job.wait is Wait.JOBS else Wait.TARGET
        raise InvalidTransition(job.id, "run", f"pending, and waits for its {wait}", WAITS[wait])


def _get(job_id: str) -> Flow[Job[Any]]:
    found = yield read("inspect/get", ids=as_json([job_id]))
    if not found:
        raise JobNotFound(job_id)
    return mapping.job(found[0])
