"""One job in the calling thread, under a lease that other threads renew: for a handler that stops in a debugger.

The claim, the heartbeat and the settler are those of a worker, and so are middlewares, telemetry and events. Timeouts
do not apply: a debugger may stop the handler for as long as its user wants. A task with `process=True` runs here, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from bdb import BdbQuit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from msgspec import Struct

from .._attempts.attempt import Attempt
from .._attempts.runtime import AttemptRuntime
from .._core import validate
from .._core.job import Claimed, Job, Outcome, Released, State, Succeeded
from .._store.flows import audit, claim_one
from .._store.query import Flow
from .._system import SYSTEM
from .._tasks.task import Middleware
from ..app import App
from .context import Settings, WorkerContext
from .execution import Execution
from .heartbeat import BEATS_PER_LEASE
from .invoke import call_async, call_plain
from .lease_table import LeaseTable
from .loop import Loop
from .meter import Meter
from .quarantine import Quarantine
from .reconnect import ReapGuard
from .resources import ResourceValues
from .session import StoreSession
from .timers import Timers

DAY = 86400.0
CONNECTIONS = 2
CHECK_EVERY = 0.01  # seconds between two checks whether the outcome is stored
CLOSE_WITHIN = 2.0  # seconds

Handler = Callable[[int, FrameType | None], Any]


class Ran(Struct, frozen=True):
    """An attempt that has ended. `was_interrupted`: by a signal, or by the end of the debugger."""

    version: int
    max_attempts: int
    seconds: float
    was_interrupted: bool


class Foreground:
    """A worker for one job. Create it in the main thread: it handles SIGINT and SIGTERM."""

    def __init__(self, app: App, tenant: str | None, lease: float) -> None:
        lease = validate.seconds("lease", lease, minimum=0.1, maximum=DAY)
        handler_store = app._store(tenant)
        settings = Settings(
            lease=lease,
            poll_interval=1.0,
            rest=0.0,
            keep_finished=7 * DAY,
            keep_payloads=None,
            keep_failed=30 * DAY,
            queues=None,
        )
        worker = f"{socket.gethostname()}:{os.getpid()}:{SYSTEM.new_token()[:8]}"
        self._app, self._runner = app, asyncio.Runner()
        self._resources = ResourceValues(self._runner.run)
        self._context = WorkerContext(
            worker=worker, tenant=tenant, settings=settings, tasks=app._tasks_by_any_name, schedules={}, limits={},
            codecs=app.codecs, resources=self._resources.by_kind, events=app.events,
            store=handler_store.with_own_connections(CONNECTIONS),
            heartbeat_store=handler_store.with_own_connections(1, timeout=lease / BEATS_PER_LEASE),
            handler_store=handler_store, leases=LeaseTable(worker, app.events), meter=Meter(SYSTEM),
            guard=ReapGuard(SYSTEM), timers=Timers(SYSTEM), system=SYSTEM,
        )  # fmt: skip
        self._session = StoreSession(self._context, Quarantine(SYSTEM), 1, lambda execution: None)
        self._progress = Loop(SYSTEM, "progress", self._session.maintenance.progress)
        self._middlewares = [*app.middlewares, Middleware(self._notice_interrupt)]
        self._was_interrupted = False

    def run(self, job: Job[Any], who: str) -> Ran:
        """Claim this job, run its handler in this thread, and store the outcome. `who`: for the audit trail."""
        with _signals(self._interrupt_later):
            self._session.settler.loop.start()
            self._session.heartbeat.loop.start()
            try:
                self._make_resources(job.task)
                execution = self._claim(job.id, who)
                self._progress.start()
                outcome = self._call(execution)
                was_interrupted = self._was_interrupted and not isinstance(outcome, Succeeded)
                if was_interrupted:  # a job that waited for an operator waits for one again
                    waited = job.state in (State.PAUSED, State.FAILED)
                    outcome = Released("interrupted in the foreground", pause=waited)
                self._settle(execution, outcome)
                self._session.reporter.sign_off(SYSTEM.monotonic())  # stores the statistics of the attempt
            finally:
                self._close()
        seconds = execution.stopped_at - execution.started_at
        return Ran(execution.job.version, execution.job.policy.max_attempts, seconds, was_interrupted)

    def _make_resources(self, name: str) -> None:
        task = self._context.tasks.get(name)
        if task is not None and self._app._resources:
            self._resources.make(self._app._resources.for_child(task.signature))

    def _claim(self, job_id: str, who: str) -> Execution:
        context, token = self._context, SYSTEM.new_token()
        producer, sent = self._session.producers[0], SYSTEM.monotonic()
        note = audit.Note(SYSTEM.new_id(), who, "run", job_id, {})
        noted: Callable[..., Flow[Claimed]] = audit.noted
        with context.leases.claiming(token):
            claimed = context.store.run(
                noted, note, claim_one.claim_one, context.worker, token, job_id, context.tasks,
                lease=context.settings.lease, random=SYSTEM.random,
            )  # fmt: skip
            execution = producer.execution(claimed, sent)
            context.leases.add([execution])
        producer.take([execution])
        if execution.prepare is not None:
            execution.prepare(execution)
        if execution.task.takes_attempt and execution.task.process:
            AttemptRuntime(context.handler_store, execution.task, execution.attempt)
        if execution.task.on_doubt == "abort":
            timer = context.timers.at(execution.attempt.deadline, partial(_end_in_doubt, execution))
            execution.timers = (timer,)
        return execution

    def _call(self, execution: Execution) -> Outcome:
        try:
            if self._was_interrupted:  # during the claim
                return Released()
            if execution.task.is_async:
                return self._runner.run(self._call_async(execution))
            with _signals(_raise_interrupt):
                return call_plain(execution.task, execution.attempt, self._middlewares)
        except KeyboardInterrupt:  # just before or after the handler
            self._was_interrupted = True
            return Released()

    async def _call_async(self, execution: Execution) -> Outcome:
        """Await the handler. A signal cancels it, as an abort does."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel(_: Execution) -> None:
            loop.call_soon_threadsafe(task.cancel)

        def interrupt(number: int, frame: FrameType | None) -> None:
            self._was_interrupted = True
            cancel(execution)

        execution.interrupt = cancel
        with _signals(interrupt):
            return await call_async(execution.task, execution.attempt, self._middlewares)

    def _notice_interrupt(self, attempt: Attempt) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, BdbQuit):
            self._was_interrupted = True
            raise

    def _interrupt_later(self, number: int, frame: FrameType | None) -> None:
        """A signal outside the handler: finish the claim or the settle. The second signal ends the process."""
        if self._was_interrupted:
            raise KeyboardInterrupt
        self._was_interrupted = True

    def _settle(self, execution: Execution, outcome: Outcome) -> None:
        execution.slots.ended(execution, outcome)
        while not self._session.is_empty:
            SYSTEM.sleep(CHECK_EVERY)

    def _close(self) -> None:
        session, give_up = self._session, SYSTEM.monotonic() + CLOSE_WITHIN
        self._resources.close()
        self._runner.close()
        self._progress.stop()
        session.stop()
        self._context.timers.stop()
        session.close(give_up)


def _end_in_doubt(execution: Execution) -> float | None:
    """Abort an execution whose lease may have expired, for tasks with `on_doubt="abort"`."""
    if SYSTEM.monotonic() < execution.attempt.deadline:
        return execution.attempt.deadline  # it was renewed
    execution.abort("in_doubt")
    return None


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _signals(handler: Handler) -> Iterator[None]:
    """Handle SIGINT and SIGTERM by this function."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
