"""Makes a draft from a job that exists, to run it again as a new job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import json

from .._core import payload
from .._core.job import Draft, Job, Policy
from .._tasks.codec import plain_value
from .._tasks.task import Task, TaskRegistry, new_id
from ..errors import InvalidInput

STRIPPED = "null"  # in place of a payload that was removed


def rerun_draft(tasks: TaskRegistry, job: Job[Any], arguments: Mapping[str, Any] | None) -> Draft[Any]:
    """A draft with the arguments of a job, of which `arguments` replaces some.

    It has the queue, priority, target, group and tags of the job, and the policy that the task has now.
    """
    check_stored(job)
    task = tasks._tasks_by_any_name.get(job.task)
    text = job.payload_json if arguments is None else _edited(task, job, arguments)
    policy = Policy(job.max_attempts) if task is None else task.policy
    return Draft(
        new_id(), job.task, text, job.queue, job.priority, target=job.target, group=job.group, policy=policy,
        tags=job.tags, rerun_of=job.id,
    )  # fmt: skip


def is_stripped(job: Job[Any]) -> bool:
    """Whether the arguments of a job were removed, so that it cannot be rerun."""
    return job.payload_json == STRIPPED


def check_stored(job: Job[Any]) -> None:
    if is_stripped(job):
        raise InvalidInput(
            f"the arguments of job {job.id} are no longer stored: it ended longer ago than keep_payloads"
        )


def _edited(task: Task[..., Any] | None, job: Job[Any], arguments: Mapping[str, Any]) -> str:
    if task is None:
        raise InvalidInput(f"job {job.id} is of task {job.task}, which this app does not define: rerun it unchanged")
    before = json.decode(task.decode(job.payload_json, f"the payload of job {job.id} ({job.task})"))
    merged = before | dict(arguments)
    text = payload.encode(merged, path="the arguments", limit=task.app.payload_limit, hook=plain_value)
    args, kwargs = task.signature.decode(text)
    return task._untraced_draft(args, kwargs).payload_json
