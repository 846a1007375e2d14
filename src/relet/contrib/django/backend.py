"""The backend of Django's task framework: `TASKS = {"default": {"BACKEND": "relet.contrib.django.ReletBackend"}}`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules, import_string

from ..._core.job import AttemptRecord, Job
from ..._tasks.task import Task as AppTask
from ...errors import InvalidInput
from . import framework
from .databases import DjangoApp, app_of
from .handlers import Handler, with_options
from .results import result_of
from .signals import TaskSignals
from .tasks import TASK_OPTIONS, ReletTask, check_options, job_options, options_of
from .transactions import begun

_lock = threading.RLock()
_signals: dict[DjangoApp, TaskSignals] = {}


class ReletBackend(framework.BaseTaskBackend):  # type: ignore[misc]
    """Stores tasks as jobs of Relet, on Django's own connection: a job exists once its transaction is committed.

    `OPTIONS`: `database` (an alias of DATABASES), `schema`, `connections`, `payload_limit`, `redact`, `codecs`, and
    defaults of tasks: `max_attempts`, `backoff`, `lease`, `timeout`, `codec`.
    """

    task_class = ReletTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @property
    def app(self) -> DjangoApp:
        """The app that stores the jobs. It registers a task when the task is first used."""
        app = app_of(self.alias, self.options)
        if app not in _signals:
            with _lock:
                _signals.setdefault(app, TaskSignals(app, type(self)))
        return app

    def validate_task(self, task: Any) -> None:
        """Raise InvalidTask if the task cannot run, or an option is invalid."""
        super().validate_task(task)
        check_options(task)
        if getattr(task, "atomic", False) and iscoroutinefunction(task.func):
            raise framework.InvalidTask("An async Task cannot be atomic: Django's transactions are synchronous.")

    def enqueue(self, task: Any, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
        """Store a job. In a transaction of Django's, the job is part of it."""
        self.validate_task(task)
        arguments = {"args": framework.normalize_json(list(args)), "kwargs": framework.normalize_json(dict(kwargs))}
        app = self.app
        draft = self._registered(app, task).using(**_options(task)).draft(**arguments)
        connection = connections[app.database]
        with self._transaction(connection):
            job = app.client.enqueue(draft, connection=connection)
            result = result_of(task, self.alias, job, self._attempts(job) if job.existing else ())
            if not job.existing:
                transaction.on_commit(partial(_signals[app].enqueued, result), using=app.database, robust=True)
        return result

    def get_result(self, result_id: str) -> Any:
        """The result of a job as it is now, in the open transaction if there is one."""
        app = self.app
        job = app.client.get(str(result_id), connection=connections[app.database])
        if job is None:
            raise framework.TaskResultDoesNotExist(result_id)
        return result_of(self._task_of(job), self.alias, job, self._attempts(job))

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """Check the settings."""
        try:
            self.app  # noqa: B018 - raises if the settings are wrong
        except ImproperlyConfigured as error:
            return [checks.Error(str(error), id="relet.E001")]
        return []

    def discover(self) -> DjangoApp:
        """Register every task that this backend can run: those of the module `tasks` of each app in INSTALLED_APPS, and
        those of every other module that is imported."""
        autodiscover_modules("tasks")
        app = self.app
        for module in list(sys.modules.values()):
            for value in list(getattr(module, "__dict__", {}).values()):
                if issubclass(type(value), framework.Task):  # isinstance would evaluate lazy objects
                    self._register_declared(app, value)
        return app

    def _register_declared(self, app: DjangoApp, task: Any) -> None:
        """Register a task of any backend: `using(backend=...)` may send its jobs here."""
        try:
            self._registered(app, task)
        except InvalidInput:
            if task.backend == self.alias:
                raise

    def _transaction(self, connection: Any) -> AbstractContextManager[Any]:
        """The open transaction, or a new one."""
        return begun(connection.alias) if connection.get_autocommit() else nullcontext()

    def _attempts(self, job: Job[Any]) -> list[AttemptRecord]:
        app = self.app
        return app.client.attempts(job, connection=connections[app.database])

    def _registered(self, app: DjangoApp, task: Any) -> AppTask[..., Any]:
        """The task of the app that runs this task of Django's."""
        found = app.tasks.get(task.module_path)
        if found is not None:
            return found
        with _lock:
            found = app.tasks.get(task.module_path)
            if found is None:
                handler = Handler(_declared(task), app, _signals[app])
                options = options_of(task, TASK_OPTIONS) | options_of(task, ("max_attempts", "backoff", "timeout"))
                register = app.task(
                    name=task.module_path, queue=task.queue_name, priority=int(task.priority), **options
                )
                found = register(handler.function())
        return found

    def _task_of(self, job: Job[Any]) -> Any:
        """The task of a job, with the options of the job."""
        try:
            task = import_string(job.task)
        except ImportError as error:
            raise framework.TaskResultDoesNotExist(f"{job.id} is a job of {job.task}: {error}") from None
        if not isinstance(task, framework.Task):
            raise framework.TaskResultDoesNotExist(f"{job.id} is a job of {job.task}, which is no task of Django's")
        return with_options(task, self.alias, job.queue, job.priority)


def _declared(task: Any) -> Any:
    """The task as its module declares it, without the options of one job."""
    try:
        found = import_string(task.module_path)
    except ImportError:
        return task
    return found if isinstance(found, framework.Task) and found.func is task.func else task


def _options(task: Any) -> dict[str, Any]:
    """The options of one job."""
    options = job_options(task) | {"queue": task.queue_name, "priority": int(task.priority)}
    if task.run_after is not None:
        options["run_at"] = task.run_after if timezone.is_aware(task.run_after) else timezone.make_aware(task.run_after)
    return options
