"""Results of tasks, as Django describes them, from jobs and their attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from ..._core.job import AttemptRecord, Job, State
from ..._core.text import type_name
from ...errors import Aborted, JobCancelled, JobFailed, LeaseLost
from .framework import TaskError, TaskResult, TaskResultStatus

#: The beginnings of a traceback, of an exception or of a group.
_TRACEBACKS = ("Traceback (most recent call last):", "  + Exception Group Traceback (most recent call last):")

STATUS = {
    State.PENDING: TaskResultStatus.READY,
    State.QUEUED: TaskResultStatus.READY,
    State.PAUSED: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.FAILED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
    State.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
}
#: The class of an error that no exception caused, by the outcome of the attempt.
_CLASSES = {"lost": LeaseLost, "released": Aborted}


def result_of(task: Any, backend: str, job: Job[Any], attempts: Sequence[AttemptRecord]) -> Any:
    """The result of a job of this task."""
    arguments = job.payload or {}  # a job whose payload was deleted has none
    result = TaskResult(
        task=task,
        id=job.id,
        status=STATUS[job.state],
        enqueued_at=moment(job.created_at),
        started_at=moment(attempts[0].started_at) if attempts else None,
        last_attempted_at=moment(attempts[-1].started_at) if attempts else None,
        finished_at=_finished_at(job, attempts),
        args=arguments.get("args", []),
        kwargs=arguments.get("kwargs", {}),
        backend=backend,
        errors=_errors(job, attempts),
        worker_ids=[one.worker for one in attempts],
    )
    if job.state is State.SUCCEEDED:
        object.__setattr__(result, "_return_value", job.result)
    return result


def moment(value: datetime | None) -> datetime | None:
    """A time as the settings want it: without a time zone if USE_TZ is False."""
    return value if value is None or settings.USE_TZ else timezone.make_naive(value)


def error_of(text: str, error_type: str | None, outcome: str = "") -> Any:
    """The error of an attempt. A traceback follows the summary in the stored text; Django shows the traceback alone."""
    known = error_type or type_name(_CLASSES.get(outcome, JobFailed))
    found = [text.find(start) for start in _TRACEBACKS if start in text]
    return TaskError(exception_class_path=known, traceback=text[min(found, default=0) :])


def errors_of(attempts: Sequence[AttemptRecord]) -> list[Any]:
    """The errors of attempts that have one."""
    return [error_of(one.error, one.error_type, one.outcome) for one in attempts if one.error is not None]


def cancelled() -> Any:
    """The error of a job that was cancelled: Django has no status for it."""
    return TaskError(exception_class_path=type_name(JobCancelled), traceback="The job was cancelled.")


def _errors(job: Job[Any], attempts: Sequence[AttemptRecord]) -> list[Any]:
    errors = errors_of(attempts)
    if job.state is State.FAILED and job.error is not None and not errors:
        errors.append(error_of(job.error, job.error_type))
    return [*errors, cancelled()] if job.state is State.CANCELLED else errors


def _finished_at(job: Job[Any], attempts: Sequence[AttemptRecord]) -> datetime | None:
    if job.state is State.FAILED and job.finished_at is None:
        return moment(attempts[-1].ended_at) if attempts else None
    return moment(job.finished_at) if job.state.over or job.state is State.FAILED else None
