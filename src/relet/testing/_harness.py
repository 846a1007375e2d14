"""The harness: an app whose jobs live in a store of the test, and run when the test says so."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct

from .._client.client import Client
from .._core.job import Job, Outcome, State
from .._store.store import Store
from .._tasks.task import ConfiguredTask
from .._worker.execution import Execution
from ..app import App
from ..errors import InvalidInput, JobFailed
from ..events import AttemptEvent, Claimed, Failed, Renewed, Retried, Succeeded
from ._inline import InlineWorker, Work, inline_worker
from ._matching import Expected

P = ParamSpec("P")
R = TypeVar("R")

MEMORY = "sqlite:///:memory:"
LIVE = (State.PENDING, State.QUEUED, State.RUNNING, State.PAUSED)
MANY = 1000
PERFORM = "relet-perform"  # the queue of jobs that `perform` runs


class Drained(Struct, frozen=True):
    """How the attempts ended that `drain` or `advance` ran, in order, as events."""

    attempts: tuple[AttemptEvent, ...]

    @property
    def succeeded(self) -> list[Succeeded]:
        return [one for one in self.attempts if isinstance(one, Succeeded)]

    @property
    def retried(self) -> list[Retried]:
        return [one for one in self.attempts if isinstance(one, Retried)]

    @property
    def failed(self) -> list[Failed]:
        return [one for one in self.attempts if isinstance(one, Failed)]

    def __len__(self) -> int:
        return len(self.attempts)


class Clock:
    """The clock of the store. It stands still until a test moves it."""

    def __init__(self) -> None:
        self.moment = time.time()

    def __call__(self) -> float:
        return self.moment


class Harness:
    """An app under test. Its jobs live in a store of the test, and run only in the methods of this object."""

    def __init__(self, app: App, clock: Clock) -> None:
        self.app = app
        self._clock = clock
        self._overrides: dict[Any, Any] = {}  # values of resources, by type

    @property
    def client(self) -> Client:
        """The client of the app."""
        return self.app.client

    # Running jobs

    def drain(self, *, queue: str | None = None, tenant: str | None = None, raise_errors: bool = False) -> Drained:
        """Run the jobs that are due, and those that they enqueue, until none is due. Plain and async handlers alike.

        A job that failed and waits for its retry is due later: `advance` runs it. With `raise_errors`, the first
        exception of a handler is raised, after its attempt was recorded.
        """
        with self._recorded() as ended, self._worker(tenant, queue) as worker:
            _run_all(worker, raise_errors)
        return Drained(tuple(ended))

    async def adrain(
        self, *, queue: str | None = None, tenant: str | None = None, raise_errors: bool = False
    ) -> Drained:
        """As `drain`, for async tests: async handlers run on the running event loop."""
        with self._recorded() as ended, self._worker(tenant, queue) as worker:
            work = worker.work()
            execution = next(work, None)
            try:
                while execution is not None:
                    execution = _settle(worker, work, await worker.acall(execution), raise_errors)
            finally:
                await worker.aclose()
        return Drained(tuple(ended))

    def perform(self, task: ConfiguredTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one job of a task now, and return its result, or raise what its handler raised.

        The handler gets an attempt on which everything works: steps, transactions, progress and signals. A handler that
        suspends itself, by `attempt.sleep` or `attempt.wait_for`, raises JobFailed that says so.
        """
        job = task.using(queue=PERFORM).enqueue(*args, **kwargs)
        with self._worker(None, PERFORM) as worker:
            _run_all(worker, raise_errors=True)
        found = self.client.get(job)
        if found is None or not found.state.over:
            raise JobFailed(job.id, f"it did not end: it is {'gone' if found is None else found!r}")
        return self.client.result(job, timeout=0)

    @contextmanager
    def inline(self, *, raise_errors: bool = True) -> Iterator[None]:
        """Within the block, jobs run as soon as they are enqueued, before `enqueue` returns.

        An exception of a handler is raised by `enqueue`. Jobs that were enqueued on a caller's connection run with the
        next drain: their transaction is still open.
        """
        with ExitStack() as stack:
            for client in (self.app.client, self.app.aclient._plain):
                stack.enter_context(_running_inline(self, client, raise_errors))
            yield

    @contextmanager
    def override(self, kind: Any, value: object) -> Iterator[None]:
        """Within the block, handlers and resources receive this value in place of the resource of this type."""
        before = self._overrides
        self._overrides = {**before, kind: value}
        try:
            yield
        finally:
            self._overrides = before

    def _worker(self, tenant: str | None, queue: str | None) -> AbstractContextManager[InlineWorker]:
        return inline_worker(self.app, tenant, None if queue is None else [queue], self._overrides)

    # Time

    @property
    def now(self) -> datetime:
        """The time by the clock of the store."""
        return datetime.fromtimestamp(self._clock.moment, UTC)

    def advance(
        self,
        by: float | timedelta = 0.0,
        *,
        days: float = 0.0,
        hours: float = 0.0,
        minutes: float = 0.0,
        seconds: float = 0.0,
        raise_errors: bool = False,
    ) -> Drained:
        """Move the clock forward, and run everything that becomes due, each at its time.

        Retries, delayed jobs, schedules, sleeps, rates and expired leases all follow this clock. `time.time()` and
        `asyncio.sleep` in handlers do not.
        """
        by = by.total_seconds() if isinstance(by, timedelta) else by
        by += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
        if by < 0:
            raise InvalidInput("the clock moves forward only: leases and retries rely on it")
        until = self._clock.moment + by
        with self._recorded() as ended, self._worker(None, None) as worker:
            _run_all(worker, raise_errors)
            while (wait := _next_in(worker)) is not None and self._clock.moment + wait <= until:
                self._clock.moment += max(wait, 0.001)
                _run_all(worker, raise_errors)
            self._clock.moment = max(until, self._clock.moment)
            _run_all(worker, raise_errors)
        return Drained(tuple(ended))

    # Expectations

    def enqueued(self, task: ConfiguredTask[Any, Any] | None = None) -> list[Job[Any]]:
        """The jobs that have not ended, oldest first; with `task`, those of this task."""
        name = None if task is None else task._task.name
        which: dict[str, Any] = {} if name is None else {"task": name}
        jobs: list[Job[Any]] = []
        cursor: str | None = None
        while True:
            page = self.client.jobs(state=LIVE, limit=MANY, cursor=cursor, **which)
            jobs += page.jobs
            cursor = page.cursor
            if cursor is None:
                return jobs[::-1]

    def assert_enqueued(self, task: ConfiguredTask[Any, Any], /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Return the job of this task that has these arguments and has not ended. AssertionError if there is none.

        Only the arguments that are passed are compared. Options are compared, too, if they are passed:
        `assert_enqueued(send_mail.using(queue="bulk"), to="ada@example.org")`.
        """
        expected = Expected(task, args, kwargs)
        jobs = self.enqueued(task)
        for job in jobs:
            if not expected.differences(job):
                return job
        raise AssertionError(expected.describe_missing(jobs))

    def refute_enqueued(self, task: ConfiguredTask[Any, Any], /, *args: Any, **kwargs: Any) -> None:
        """AssertionError if a job of this task has these arguments and has not ended."""
        expected = Expected(task, args, kwargs)
        for job in self.enqueued(task):
            if not expected.differences(job):
                raise AssertionError(f"{expected} is enqueued: {job!r}")

    @contextmanager
    def _recorded(self) -> Iterator[list[AttemptEvent]]:
        """The ends of attempts within the block."""
        ended: list[AttemptEvent] = []

        def record(event: AttemptEvent) -> None:
            if not isinstance(event, Claimed | Renewed):
                ended.append(event)

        self.app.events.add(AttemptEvent, record)
        try:
            yield ended
        finally:
            self.app.events.remove(AttemptEvent, record)


def _run_all(worker: InlineWorker, raise_errors: bool) -> None:
    work = worker.work()
    execution = next(work, None)
    while execution is not None:
        execution = _settle(worker, work, worker.call(execution), raise_errors)


def _settle(worker: InlineWorker, work: Work, outcome: Outcome, raise_errors: bool) -> Execution | None:
    """Settle a job, and claim the next one; None: there is none."""
    try:
        following = work.send(outcome)
    except StopIteration:
        following = None
    if raise_errors and worker.raised:
        work.close()
        raise worker.raised[0]
    return following


def _next_in(worker: InlineWorker) -> float | None:
    """In how many seconds something is due; None: nothing is."""
    ahead = worker.ahead()
    moments = [one for one in (ahead.next_due, ahead.next_tick, worker.again_in) if one is not None]
    return min(moments, default=None)


@contextmanager
def _running_inline(harness: Harness, client: Client, raise_errors: bool) -> Iterator[None]:
    enqueue_many = client.enqueue_many
    is_running = False

    def enqueue_and_run(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_running
        jobs = enqueue_many(*args, **kwargs)
        if not is_running and kwargs.get("connection") is None:
            is_running = True  # jobs that a handler enqueues run in the same drain
            try:
                harness.drain(tenant=kwargs.get("tenant"), raise_errors=raise_errors)
            finally:
                is_running = False
        return jobs

    client.enqueue_many = enqueue_and_run  # type: ignore[method-assign]
    try:
        yield
    finally:
        del client.enqueue_many


@contextmanager
def harness(app: App, url: str = MEMORY) -> Iterator[Harness]:
    """Within the block, the jobs of the app live in a store of the test: in memory, or in a schema of a PostgreSQL URL.

    The schema is new, and dropped at the end. The clock of the store stands still: see `Harness.advance`.
    """
    clock = Clock()
    schema = app._schema if url == MEMORY else f"test_{uuid.uuid4().hex[:12]}"
    with app._replaced_store(url, schema, clock) as stores:
        app.client.migrate()
        try:
            yield Harness(app, clock)
        finally:
            for store in stores.values():
                _drop(store)


def _drop(store: Store) -> None:
    """Drop the schema of a test. A store in memory is gone with its last connection."""
    if store.dialect == "postgres":
        from .._store.postgres import PostgresStore

        assert isinstance(store, PostgresStore)
        with store._server.handler_pool.connection() as connection:
            connection.execute(f"drop schema if exists {store.quoted} cascade".encode())
