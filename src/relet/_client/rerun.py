"""Makes a draft from a job that exists, to run it again as a new job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import json

from .._core.job import Draft, Job, Policy
from .._tasks.task import Task, TaskRegistry, new_id
from ..errors import InvalidInput

STRIPPED = "null"  # in place of a payload that was removed


def rerun_draft(tasks: TaskRegistry, job: Job[Any], arguments: Mapping[str, Any] | None) -> Draft[Any]:
    """A draft with the arguments of a job, of which `arguments` replaces some.

    It has the queue, priority, target, group and tags of the job, and the policy that the task has now.
    """
    if job.payload_json == STRIPPED:
        raise InvalidInput(
            f"the arguments of job {job.id} are no longer stored: it ended longer ago than keep_payloads"
        )
    task = tasks._tasks_by_any_name.get(job.task)
    payload = job.payload_json if arguments is None else _edited(task, job, arguments)
    policy = Policy(job.max_attempts) if task is None else task.policy
    return Draft(
        new_id(), job.task, payload, job.queue, job.priority, target=job.target, group=job.group, policy=policy,
        tags=job.tags, rerun_of=job.id,
    )  # fmt: skip


def _edited(task: Task[..., Any] | None, job: Job[Any], arguments: Mapping[str, Any]) -> str:
    if task is None:
        raise InvalidInput(f"job {job.id} is of task {job.task}, which this app does not define: rerun it unchanged")
    before = json.decode(task.decode(job.payload_json, f"the payload of job {job.id} ({job.task})"))
    args, kwargs = task.signature.decode(json.encode(before | dict(arguments)).decode())
    return task._untraced_draft(args, kwargs).payload_json
