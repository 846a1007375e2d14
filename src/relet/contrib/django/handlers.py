"""The handlers of Django's tasks in a worker: each calls the function of a task as a backend of Django does."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils import timezone

from ..._attempts.attempt import Attempt
from ..._core.job import utc
from .framework import InvalidTask, TaskResult, TaskResultStatus, normalize_json
from .results import errors_of, moment
from .tasks import TaskContext
from .transactions import begun

if TYPE_CHECKING:
    from .databases import DjangoApp
    from .signals import TaskSignals


class Handler:
    """Runs the jobs of one task."""

    def __init__(self, task: Any, app: DjangoApp, signals: TaskSignals) -> None:
        self._task = task
        self._app = app
        self._signals = signals

    def function(self) -> Callable[..., Any]:
        """The function to register with the app."""

        def plain(attempt: Attempt, args: list[Any], kwargs: dict[str, Any]) -> Any:
            return self._run(attempt, args, kwargs)

        async def coroutine(attempt: Attempt, args: list[Any], kwargs: dict[str, Any]) -> Any:
            return await self._arun(attempt, args, kwargs)

        return coroutine if iscoroutinefunction(self._task.func) else plain

    def _run(self, attempt: Attempt, args: list[Any], kwargs: dict[str, Any]) -> Any:
        close_old_connections()
        try:
            result = self._start(attempt, args, kwargs)
            self._signals.started(result)
            before = self._context(attempt, result)
            try:
                if getattr(self._task, "atomic", False):
                    return self._run_atomic(attempt, before, args, kwargs)
                value = normalize_json(self._task.func(*before, *args, **kwargs))
            except BaseException as error:
                self._signals.ended_by(attempt, error)
                raise
            object.__setattr__(result, "_return_value", value)
            return value
        finally:
            close_old_connections()

    def _run_atomic(self, attempt: Attempt, before: list[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Commit what the function writes together with the completion of its job."""
        with begun(self._app.database) as connection:
            value = normalize_json(self._task.func(*before, *args, **kwargs))
            attempt.succeed(value, connection=connection)
            self._signals.returned(attempt, value)
        return value

    async def _arun(self, attempt: Attempt, args: list[Any], kwargs: dict[str, Any]) -> Any:
        result = await sync_to_async(self._start_async, thread_sensitive=False)(attempt, args, kwargs)
        try:
            value = normalize_json(await self._task.func(*self._context(attempt, result), *args, **kwargs))
        except BaseException as error:
            self._signals.ended_by(attempt, error)
            raise
        object.__setattr__(result, "_return_value", value)
        return value

    def _start_async(self, attempt: Attempt, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """In a thread, as receivers and queries are synchronous."""
        close_old_connections()
        try:
            result = self._start(attempt, args, kwargs)
            self._signals.started(result)
            return result
        finally:
            close_old_connections()

    def _context(self, attempt: Attempt, result: Any) -> list[Any]:
        make: Any = TaskContext
        return [make(task_result=result, relet=attempt)] if self._task.takes_context else []

    def _start(self, attempt: Attempt, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The result of a job whose handler begins. Earlier attempts are read only if there were some."""
        job = attempt.job
        is_first = job.attempt == 1 and job.version == 1
        earlier = [] if is_first else self._app.client.attempts(job.id)
        earlier = [one for one in earlier if one.version != job.version]
        now = timezone.now()
        result = TaskResult(
            task=with_options(self._task, self._app.alias, job.queue, job.priority),
            id=job.id,
            status=TaskResultStatus.RUNNING,
            enqueued_at=moment(utc(job.created_at)),
            started_at=moment(earlier[0].started_at) if earlier else now,
            last_attempted_at=now,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=self._app.alias,
            errors=errors_of(earlier),
            worker_ids=[*(one.worker for one in earlier), attempt.worker],
        )
        self._signals.running(attempt, result)
        return result


def with_options(task: Any, backend: str, queue: str, priority: int) -> Any:
    """The task with the options of a job. If the settings no longer allow them, the task as it is declared."""
    if (task.backend, task.queue_name, task.priority) == (backend, queue, priority):
        return task
    try:
        return task.using(backend=backend, queue_name=queue, priority=priority)
    except InvalidTask:
        return task
