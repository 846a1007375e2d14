"""Follow-ups: jobs that are enqueued in the transaction in which another job fails for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.job import Draft, FailedJob, FollowUp, Job, State
from ..._core.machine import Change
from ..._system import SYSTEM
from ..query import Flow, as_json, read
from . import enqueue_constrained, mapping


def add(changes: Sequence[Change]) -> Flow[None]:
    """Enqueue the follow-ups of the jobs that these changes, which are written, have failed."""
    failed = {one.id: one.follow_up for one in changes if one.follow_up is not None and one.state is State.FAILED}
    if not failed:
        return
    jobs = [mapping.job(row) for row in (yield read("inspect/get", ids=as_json(sorted(failed))))]
    jobs.sort(key=lambda job: job.id)
    drafts = [_draft(job, follow_up) for job in jobs if (follow_up := failed[job.id]) is not None]
    yield from enqueue_constrained.enqueue(drafts, frozenset())


def _draft(job: Job[Any], follow_up: FollowUp) -> Draft[Any]:
    failure = FailedJob(job.id, job.task, job.queue, job.error or "", job.attempt, job.target, job.group)
    payload = as_json({follow_up.argument: failure})
    return Draft(
        SYSTEM.new_id(), follow_up.task, payload, follow_up.queue, follow_up.priority,
        policy=follow_up.policy, context=job.context, tags=job.tags,
    )  # fmt: skip
