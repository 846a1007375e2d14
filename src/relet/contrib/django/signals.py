"""Django's signals about tasks, sent after the commit of what they report.

`task_started` is sent in the handler's thread. `task_finished` follows the event by which the worker reports that the
outcome is stored. A worker sends it from a separate thread, in order, so that slow receivers delay no other job.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import close_old_connections
from django.utils import timezone

from ... import events
from ..._attempts.attempt import Attempt
from ..._core.job import State
from ..._core.text import type_name
from . import framework
from .results import cancelled, error_of

if TYPE_CHECKING:
    from .backend import ReletBackend
    from .databases import DjangoApp

STOP_WITHIN = 30.0  # seconds that receivers have to end when a worker stops


class _Run:
    """An attempt of this process whose outcome is not stored yet."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.error: BaseException | None = None


class TaskSignals:
    """Sends the signals of one app."""

    def __init__(self, app: DjangoApp, backend: type[ReletBackend]) -> None:
        self._app = app
        self._sender = backend
        self._runs: dict[tuple[str, int], _Run] = {}  # by job and version
        self._outbox = Outbox()
        app.on(events.WorkerStarted)(lambda event: self._outbox.start())
        app.on(events.WorkerStopped)(lambda event: self._outbox.stop())
        app.on(events.Ended)(self._attempt_ended)
        app.on(events.LeaseLost)(self._attempt_ended)
        for kind in (events.Cancelled, events.Paused, events.Completed, events.Reaped):
            app.on(kind)(self._job_changed)

    def enqueued(self, result: Any) -> None:
        framework.task_enqueued.send_robust(self._sender, task_result=result)

    def running(self, attempt: Attempt, result: Any) -> None:
        """Keep the result of an attempt until its outcome is stored."""
        self._runs[attempt.job.id, attempt.version] = _Run(result)

    def started(self, result: Any) -> None:
        framework.task_started.send_robust(self._sender, task_result=result)

    def returned(self, attempt: Attempt, value: Any) -> None:
        """Keep the return value of an attempt that completes its job itself."""
        run = self._runs.get((attempt.job.id, attempt.version))
        if run is not None:
            object.__setattr__(run.result, "_return_value", value)

    def ended_by(self, attempt: Attempt, error: BaseException) -> None:
        """Keep the exception of an attempt, for receivers that log it."""
        run = self._runs.get((attempt.job.id, attempt.version))
        if run is not None:
            run.error = error

    def _attempt_ended(self, event: events.AttemptEvent) -> None:
        run = self._runs.pop((event.job_id, event.version), None)
        if isinstance(event, events.Succeeded | events.Failed) and self._is_ours(event):
            self._outbox.put(partial(self._finish, event, run))

    def _job_changed(self, event: events.JobEvent) -> None:
        """A job ended without its handler, or its handler was stopped."""
        if event.state is State.RUNNING:
            return  # a request
        key = next((key for key in list(self._runs) if key[0] == event.job_id), None)
        run = self._runs.pop(key, None) if key is not None else None
        if (event.state is State.FAILED or (event.state is not None and event.state.over)) and self._is_ours(event):
            self._outbox.put(partial(self._finish, event, run))

    def _is_ours(self, event: events.JobEvent) -> bool:
        return event.task is None or event.task in self._app._tasks_by_any_name

    def _finish(self, event: events.JobEvent, run: _Run | None) -> None:
        if run is None or isinstance(event, events.Reaped | events.Completed):
            result = self._read(event.job_id)
        else:
            result = _finished(event, run)
        if result is not None:
            self._send_finished(result, run.error if run is not None and event.state is State.FAILED else None)

    def _read(self, job_id: str) -> Any:
        """The result of a job that this process did not run. None if its task is not one of Django's."""
        try:
            return framework.task_backends[self._app.alias].get_result(job_id)
        except framework.TaskResultDoesNotExist:
            return None

    def _send_finished(self, result: Any, error: BaseException | None) -> None:
        """While an exception is handled, as receivers take it from `sys.exc_info`, like Django's own, which logs it."""
        try:
            if error is not None:
                raise error
        except BaseException:
            framework.task_finished.send_robust(self._sender, task_result=result)
        else:
            framework.task_finished.send_robust(self._sender, task_result=result)


def _finished(event: events.JobEvent, run: _Run) -> Any:
    result = run.result
    statuses = framework.TaskResultStatus
    succeeded = event.state is State.SUCCEEDED
    object.__setattr__(result, "status", statuses.SUCCESSFUL if succeeded else statuses.FAILED)
    object.__setattr__(result, "finished_at", timezone.now())
    if isinstance(event, events.Failed):
        result.errors.append(error_of(event.error or "", event.error_type))
        if run.error is not None and type_name(type(run.error)) != event.error_type:
            run.error = None  # it failed for another reason, such as a timeout
    elif event.state is State.CANCELLED:
        result.errors.append(cancelled())
    return result


class Outbox:
    """Runs calls in order: in a thread while a worker runs, otherwise at once."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._workers = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        with self._lock:
            self._workers += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="relet-django-signals", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Wait until all calls are made."""
        with self._lock:
            self._workers -= 1
            if self._workers or self._thread is None:
                return
            thread, self._thread = self._thread, None
            self._calls.put(None)
        thread.join(STOP_WITHIN)

    def put(self, call: Callable[[], None]) -> None:
        with self._lock:
            if self._thread is not None:
                self._calls.put(call)
                return
        call()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            close_old_connections()
            try:
                call()
            except Exception:
                events.log.exception("A signal of Django could not be sent")
            finally:
                close_old_connections()
