"""A worker without threads: the parts of a real worker, called step by step from the calling thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from .._attempts.attempt import Attempt
from .._core.job import Outcome
from .._store.flows import maintenance
from .._system import SYSTEM
from .._tasks.task import Middleware, Task
from .._worker.context import Settings, WorkerContext
from .._worker.execution import Execution
from .._worker.invoke import call_async, call_plain
from .._worker.lease_table import LeaseTable
from .._worker.meter import Meter
from .._worker.quarantine import Quarantine
from .._worker.reconnect import ReapGuard
from .._worker.resources import ResourceValues, RunAsync
from .._worker.session import StoreSession, declare_limits
from .._worker.timers import Timers
from ..app import App
from ..errors import Suspended

FOR_EVER = 3e8  # seconds: nothing is pruned
LEASE = 30.0  # seconds
GRACE = 0.0  # seconds: after the clock was moved, no other worker has to renew its leases first

Work = Generator[Execution, Outcome, None]

T = TypeVar("T")


class InlineWorker:
    """Claims one job at a time, and has its caller run it. Claims, limits, retries and events are the real ones."""

    def __init__(
        self, app: App, tenant: str | None, queues: Sequence[str] | None, overrides: Mapping[Any, Any]
    ) -> None:
        self._app = app
        self._loop: _LoopThread | None = None  # the event loop of async resources
        self._run_async: RunAsync = self._run_on_lasting_loop
        self._overridden = overrides.keys()
        self._resources = ResourceValues(lambda call: self._run_async(call), overrides)
        store = app._store(tenant)
        settings = Settings(
            lease=LEASE,
            poll_interval=1.0,
            rest=0.0,
            keep_finished=FOR_EVER,
            keep_payloads=None,
            keep_failed=FOR_EVER,
            queues=queues,
        )
        self._context = WorkerContext(
            worker="test", tenant=tenant, settings=settings, tasks=app._tasks_by_any_name, schedules=app.schedules,
            limits=app.limits, codecs=app.codecs, events=app.events, store=store, heartbeat_store=store,
            handler_store=store, leases=LeaseTable("test", app.events), meter=Meter(SYSTEM), guard=ReapGuard(SYSTEM),
            timers=Timers(SYSTEM), system=SYSTEM, resources=self._resources.by_kind,
        )  # fmt: skip
        quarantine = Quarantine(SYSTEM)
        self._started: list[Execution] = []
        self._session = StoreSession(self._context, quarantine, 1, self._started.append)
        quarantine.producers = list(self._session.producers)
        for producer in self._session.producers:
            producer.slots.may_claim_ahead = False
        self.raised: list[BaseException] = []  # by handlers, in order
        self._middlewares = [*app.middlewares, Middleware(self._remember)]

    def _remember(self, attempt: Attempt) -> Iterator[None]:
        try:
            yield
        except Suspended:  # no error: the handler sleeps, or waits for a signal
            raise
        except BaseException as error:
            self.raised.append(error)
            raise

    def work(self) -> Work:
        """Yields each execution that can run now, and expects its outcome. Ends when no job is due."""
        declares = bool(self._context.schedules or self._context.limits)
        while True:
            self._maintain(declares)
            declares = False
            if not (yield from self._run_claimed()):
                return

    def _maintain(self, declares: bool) -> None:
        """Do what is due: reap expired leases, promote jobs, enqueue the jobs of schedules."""
        session, store = self._session, self._context.store
        if declares:
            declare_limits(self._context)
            session.maintenance.declare()
        store.run(maintenance.record_pulse, grace=GRACE, every=0.0)
        while True:
            ahead = self.ahead()
            if ahead.expired:
                session.maintenance.reap()
            if ahead.nudged or (ahead.next_due is not None and ahead.next_due <= 0):
                session.maintenance.promote()
            elif ahead.next_tick is not None and ahead.next_tick <= 0:
                session.maintenance.tick()
            else:
                return

    def ahead(self) -> maintenance.WorkAhead:
        """When the next jobs and schedules are due."""
        return self._context.store.run(maintenance.work_ahead, list(self._context.tasks))

    @property
    def again_in(self) -> float | None:
        """In how many seconds a rate has room again; None: no rate is used up."""
        return min([one.again_in for one in self._session.producers if one.again_in is not None], default=None)

    def _run_claimed(self) -> Generator[Execution, Outcome, bool]:
        """Claim until claims find nothing more. True if any job ran."""
        has_run = False
        for producer in self._session.producers:
            producer.wake()
            while True:
                wait = producer.step()
                has_run = has_run or bool(self._started)
                if not self._started and (wait is None or wait > 0):
                    break
                yield from self._run_started()
        return has_run

    def _run_started(self) -> Work:
        while self._started:
            execution = self._started.pop(0)
            if execution.prepare is not None:
                execution.prepare(execution)
            outcome = yield execution
            following = execution.slots.ended(execution, outcome)
            if following is not None:
                self._started.append(following)
            self._session.settler.step()
            self._session.maintenance.progress()

    def call(self, execution: Execution) -> Outcome:
        """Call the handler. An async one gets an event loop in a thread, as the caller may have a running loop."""
        task, attempt = execution.task, execution.attempt
        self._make_resources(task)
        if not task.is_async:
            return call_plain(task, attempt, self._middlewares)
        if self._loop is not None:
            return self._loop.run(call_async(task, attempt, self._middlewares))
        return _in_thread(lambda: asyncio.run(call_async(task, attempt, self._middlewares)))

    async def acall(self, execution: Execution) -> Outcome:
        """Call the handler: an async one on the running event loop, a plain one in a thread."""
        task, attempt = execution.task, execution.attempt
        if task.takes_resources:
            loop = asyncio.get_running_loop()
            self._run_async = lambda call: asyncio.run_coroutine_threadsafe(call, loop).result()
            await asyncio.to_thread(self._make_resources, task)
        if task.is_async:
            return await asyncio.create_task(call_async(task, attempt, self._middlewares))
        return await asyncio.to_thread(call_plain, task, attempt, self._middlewares)

    def _make_resources(self, task: Task[..., Any]) -> None:
        if task.takes_resources:
            self._resources.make(self._app._resources.for_test(task.signature, self._overridden))

    def _run_on_lasting_loop(self, call: Coroutine[Any, Any, Any]) -> Any:
        self._loop = self._loop or _LoopThread()
        return self._loop.run(call)

    async def aclose(self) -> None:
        """Close the resources, those that are async on the running event loop."""
        await asyncio.to_thread(self._resources.close)

    def close(self) -> None:
        self._resources.close()
        if self._loop is not None:
            self._loop.close()
        self._session.stop()
        self._context.timers.stop()


class _LoopThread:
    """An event loop that runs in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relet-test", daemon=True)
        self._thread.start()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def inline_worker(
    app: App, tenant: str | None, queues: Sequence[str] | None, overrides: Mapping[Any, Any]
) -> Iterator[InlineWorker]:
    worker = InlineWorker(app, tenant, queues, overrides)
    try:
        yield worker
    finally:
        worker.close()


def _in_thread(call: Callable[[], T]) -> T:
    answer: list[T] = []
    thread = threading.Thread(target=lambda: answer.append(call()), name="relet-test", daemon=True)
    thread.start()
    thread.join()
    return answer[0]
