"""Long polls: workers wait for jobs, and the gateway claims for one of them at a time.

Workers with the same tasks and queues wait in one line. A notification, or the next poll, makes one claim for the
worker that has waited longest. Only if that claim was filled, there may be more jobs, and the next worker has its turn.
So a notification costs one statement, however many workers wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial

from .._remote.wire import MAX_WAIT, ClaimIn
from .._store.flows.claim_scope import Claim
from .._store.query import Notify
from .._web.problems import Refusal
from .._worker.notifications import Notifications, Run
from ..errors import ReletError
from .context import GatewayContext, log
from .line import Line, answer

POLL_EVERY = 15.0  # seconds between two claims of a line; maintenance has them made earlier when jobs are queued
NOTIFY_EVERY = 0.02  # seconds between two notifications that a limit has room
MAX_LINES = 1000

NOTHING = Claim([])
Key = tuple[tuple[str, ...], tuple[str, ...] | None]


class Waiter:
    """A claim that has not been answered yet."""

    def __init__(self, asked: ClaimIn, worker: str, arrived: float) -> None:
        self.asked, self.worker, self.arrived = asked, worker, arrived
        self.until = arrived + min(asked.wait, MAX_WAIT)
        self.future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.was_tried = False  # a claim that began after its arrival has found nothing
        self.is_gone = False  # the client has closed the connection


class WaitingLine:
    """The workers that wait with the same tasks and queues."""

    def __init__(self, claims: Claims, key: Key) -> None:
        tasks, queues = key
        self._claims, self.line = claims, Line(claims.context, tasks, queues)
        self._now = claims.context.system.monotonic
        self._waiters: list[Waiter] = []
        self._claimed_for: list[Waiter] = []  # the one for which a claim is under way
        self._may_have_jobs = False
        self._wakeup = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None
        self._not_before = 0.0  # when a rate has room again
        self._subscriptions = ExitStack()
        context = claims.context
        self._notifications = Notifications(context.system, context.store.notifier, queues, tasks)
        self._subscriptions.enter_context(self._notifications.subscribe(self._notified))
        self._subscriptions.enter_context(claims.listening(self._notifications.key))

    @property
    def is_empty(self) -> bool:
        return not self._waiters and self._runner is None

    async def wait(self, waiter: Waiter) -> bytes:
        self._waiters.append(waiter)
        self._wakeup.set()
        if self._runner is None:
            self._runner = asyncio.get_running_loop().create_task(self._run())
        return await waiter.future

    def wake(self) -> None:
        """There may be jobs."""
        self._may_have_jobs = True
        self._wakeup.set()

    def _notified(self) -> None:
        """There may be jobs. Called from any thread."""
        self._claims.call_soon(self._use_notification)

    def _use_notification(self) -> None:
        if self.is_empty:
            self._in_background(self._notifications.has_no_room)
        else:
            self.wake()

    def close(self) -> None:
        """Take no part any more."""
        self._subscriptions.close()
        if self._notifications.has_asked:
            self._in_background(self._notifications.end)

    def _in_background(self, call: Callable[[Run], None]) -> None:
        context = self._claims.context
        context.working.submit(_quietly(partial(call, context.run)))

    def leave(self, waiter: Waiter) -> None:
        """The client has gone: claim nothing for it."""
        if waiter.future.done():
            return  # it was answered
        waiter.is_gone = True
        waiter.future.cancel()
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def interrupt(self, worker: str | None) -> None:
        """Answer the claims of this worker, or of all, as soon as they have been tried."""
        for waiter in [*self._waiters, *self._claimed_for]:
            if worker is None or waiter.worker == worker:
                waiter.until = 0.0
        self._wakeup.set()

    async def _run(self) -> None:
        try:
            while self._waiters:
                self._answer_late()
                waiter = self._next()
                if waiter is not None:
                    await self._claim_for(waiter)
                elif self._waiters:
                    await self._sleep()
        finally:
            self._runner = None
            if self._may_have_jobs:
                self._in_background(self._notifications.leaves_jobs)

    def _next(self) -> Waiter | None:
        """The worker whose turn it is: one that has just come, or the first, if there may be jobs."""
        for waiter in self._waiters:
            if not waiter.was_tried:
                return waiter
        return self._waiters[0] if self._may_have_jobs and self._waiters else None

    async def _claim_for(self, waiter: Waiter) -> None:
        began, self._may_have_jobs = self._now(), False
        self._notifications.begin_claim()
        self._waiters.remove(waiter)
        self._claimed_for = [waiter]
        try:
            call = self._claims.context.claiming.call
            found, body = await call(self._claim, waiter, max(began - waiter.arrived, 0.0))
        except Exception as error:
            self._fail(waiter, error)
            return
        finally:
            self._claimed_for = []
        waiter.was_tried = True
        if found.again_in is not None:
            self._not_before = self._now() + found.again_in
        if found.jobs or self._now() >= waiter.until:
            self._may_have_jobs = self._may_have_jobs or len(found.jobs) >= waiter.asked.want
            self._deliver(waiter, found, body)
            return
        if not waiter.is_gone:
            self._waiters.insert(0, waiter)
        if not waiter.asked.alone:
            for other in self._waiters:
                other.was_tried = other.was_tried or (other.arrived <= began and not other.asked.alone)

    def _claim(self, waiter: Waiter, waited: float) -> tuple[Claim, bytes]:
        """In a thread: claim, and write the answer."""
        found = self.line.claim(waiter.asked, waiter.worker)
        return found, answer(found, waiter.asked, waited)

    def _deliver(self, waiter: Waiter, found: Claim, body: bytes) -> None:
        if not waiter.future.done():
            waiter.future.set_result(body)
        elif found.jobs:
            # Not given back: if the client still lives, it repeats the claim, perhaps at another gateway, or finds the
            # jobs with its next renewal. A release that comes after that would take a job that runs.
            log.info("%d jobs were claimed for a worker that has closed its connection", len(found.jobs))

    def _fail(self, waiter: Waiter, error: Exception) -> None:
        """The store does not answer, so it would not answer the others either."""
        failed = [waiter, *self._waiters] if isinstance(error, ReletError) else [waiter]
        self._waiters = [one for one in self._waiters if one not in failed]
        for one in failed:
            if not one.future.done():
                one.future.set_exception(error)

    def _answer_late(self) -> None:
        """Answer those that have waited long enough."""
        now = self._now()
        for waiter in [one for one in self._waiters if one.was_tried and now >= one.until]:
            self._waiters.remove(waiter)
            self._deliver(waiter, NOTHING, answer(NOTHING, waiter.asked, now - waiter.arrived))

    async def _sleep(self) -> None:
        self._wakeup.clear()
        if await self._ask_for_notifications() or self._may_have_jobs:
            self._may_have_jobs = True
            return
        now = self._now()
        poll = POLL_EVERY * self._claims.context.system.uniform(0.8, 1.0)
        if self._not_before > now:
            poll = min(poll, self._not_before - now)
        until = min([now + poll, *(one.until for one in self._waiters)])
        try:
            await asyncio.wait_for(self._wakeup.wait(), max(until - now, 0.001))
        except TimeoutError:
            self._may_have_jobs = self._may_have_jobs or self._now() >= now + poll

    async def _ask_for_notifications(self) -> bool:
        """Ask enqueuing processes to notify. True if they did not notify before, so that a last claim is needed."""
        context = self._claims.context
        try:
            if self._notifications.is_due:
                return bool(await context.claiming.call(self._notifications.request, context.run, 0.0))
        except ReletError as error:  # claims report it
            log.debug("Cannot ask for notifications: %s", error)
        return False


class Claims:
    """All lines of a gateway. `start` is called on its event loop.

    `listening`: within its block, maintenance is woken as well as the subscriber with a key.
    """

    def __init__(self, context: GatewayContext, listening: Callable[[int], AbstractContextManager[object]]) -> None:
        self.context, self.listening = context, listening
        self._now = context.system.monotonic
        self._lines: dict[Key, WaitingLine] = {}
        self._loop: asyncio.AbstractEventLoop
        self._is_notifying = False
        self._is_stopping = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def poll(self) -> None:
        """There may be jobs. Called from any thread."""
        self.call_soon(self._wake)

    def call_soon(self, call: Callable[[], object]) -> None:
        """Call a function on the event loop, from any thread."""
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(call)

    def stop(self) -> None:
        """Answer all that wait."""
        self._is_stopping = True
        for line in self._lines.values():
            line.interrupt(None)
            line.close()

    async def claim(
        self, asked: ClaimIn, worker: str, queues: tuple[str, ...] | None, gone: asyncio.Future[None]
    ) -> bytes:
        """Claim jobs, and wait for some if there are none. `gone`: done when the client has closed the connection."""
        if self._is_stopping:
            raise Refusal("store-unavailable", "This gateway is stopping. Use another one, or try again later.")
        line = self._line((tuple(sorted(set(asked.tasks))), queues))
        waiter = Waiter(asked, worker, self._now())
        gone.add_done_callback(lambda _: line.leave(waiter))
        return await line.wait(waiter)

    def _line(self, key: Key) -> WaitingLine:
        line = self._lines.pop(key, None)
        if line is None:
            line = WaitingLine(self, key)
            for old in [one for one, other in self._lines.items() if other.is_empty][: len(self._lines) - MAX_LINES]:
                self._lines.pop(old).close()
        self._lines[key] = line  # the last one that was used comes last
        return line

    def _wake(self) -> None:
        for line in self._lines.values():
            line.wake()

    def interrupt(self, worker: str) -> None:
        """Answer the claims of this worker that wait: it has other things to do."""
        for line in self._lines.values():
            line.interrupt(worker)

    def settled(self, *, requeued: bool) -> None:
        """Jobs were settled: queues at their limits may have room, also for the workers of other processes."""
        limited = [line for line in self._lines.values() if line.line.has_limits]
        for line in limited:
            line.wake()
        if requeued:
            for line in self._lines.values():
                line.line.requeued()
        if limited and not self._is_notifying:
            self._is_notifying = True
            asyncio.get_running_loop().call_later(NOTIFY_EVERY, self._notify)

    def _notify(self) -> None:
        """Each notification wakes the idle workers of other processes: one is enough for many settles."""
        self._is_notifying = False
        self.context.working.submit(_quietly(lambda: self.context.store.notify([Notify("queued")])))


def _quietly(work: Callable[[], object]) -> Callable[[], None]:
    """Work whose failure does no harm: leases expire, and other processes poll."""

    def call() -> None:
        try:
            work()
        except ReletError as error:
            log.warning("%s", error)

    return call
