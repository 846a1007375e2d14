"""Executors: `async def` handlers run on the event loop, `def` handlers in threads. `processes.py` has a third."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence

from .._core.job import Outcome
from .._system import SYSTEM
from .._tasks.task import Middleware
from .._threads import DaemonThreadPool
from .execution import Execution
from .invoke import call_async, call_plain

#: `Starter.start`: starts an execution. Returns True if it is for the executor that calls, which then runs it itself.
Begin = Callable[[Execution, object], bool]

YIELD_AFTER = 0.0005  # seconds after which a task that runs one job after another yields to the event loop


class OnLoop:
    """Runs coroutines on the worker's event loop. An asyncio task runs the jobs of a slot one after another.

    A job gets a new task if the job before it was aborted or cancelled, or has changed context variables. So no handler
    sees what an earlier one did to its task.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, begin: Begin, middlewares: Sequence[Middleware]) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._context = contextvars.copy_context()
        self._begin = begin
        self._middlewares = middlewares
        self._tasks: dict[Execution, asyncio.Task[None]] = {}
        self._arriving: deque[Execution] = deque()
        self._is_scheduled = False  # the event loop will call `_start_arrived`

    def start(self, run: Execution) -> None:
        """Start an execution, from any thread.

        `call_soon_threadsafe` releases the GIL, so one call serves all executions that arrive before the loop makes it.
        """
        if threading.get_ident() == self._thread:
            self._start(run)
            return
        self._arriving.append(run)
        if not self._is_scheduled:
            self._is_scheduled = True
            try:
                self._loop.call_soon_threadsafe(self._start_arrived)
            except RuntimeError:  # the loop is closed
                self._is_scheduled = False
                self._arriving.remove(run)
                raise

    def _start_arrived(self) -> None:
        self._is_scheduled = False  # first: an execution that arrives from here on schedules another call
        while self._arriving:
            self._start(self._arriving.popleft())

    def _start(self, run: Execution) -> None:
        self._tasks[run] = self._loop.create_task(self._work(run), context=self._context.copy())

    async def _work(self, run: Execution) -> None:
        task, clean, tasks = self._tasks[run], self._context, self._tasks
        cancel, middlewares = self._cancel, self._middlewares
        since = SYSTEM.monotonic()
        while True:
            # Set here, not in `_start`: asyncio never runs a task that was cancelled before its first step.
            run.interrupt = cancel
            if run.attempt.aborted is not None:
                cancel(run)
            outcome = await call_async(run.task, run.attempt, middlewares)
            # `cancelling()` alone is no proof: a task group of the handler may have increased it.
            if run.attempt.aborted is None and run.attempt._cancelled and task.cancelling():
                run.attempt.aborted = "shutdown"  # the worker did not cancel it: the event loop is closing
            del tasks[run]
            following = run.slots.ended(run, outcome)
            if following is None or not self._begin(following, self):
                return
            if run.attempt.aborted is not None or task.cancelling() or not _is_same(clean):
                self._start(following)
                return
            run = following
            tasks[run] = task
            if run.started_at - since > YIELD_AFTER:
                await asyncio.sleep(0)
                since = SYSTEM.monotonic()

    def _cancel(self, run: Execution) -> None:
        """Raise CancelledError in the handler, from any thread."""

        def cancel() -> None:
            task = self._tasks.get(run)
            if task is not None:
                task.cancel(f"relet: {run.attempt.aborted}")

        self._loop.call_soon_threadsafe(cancel)


def _is_same(context: contextvars.Context) -> bool:
    """Whether the current context has the same values as this one."""
    try:
        return contextvars.copy_context() == context
    except Exception:  # the comparison of two values may raise anything
        return False


class Threaded(ABC):
    """Runs each execution in a daemon thread, which then runs the next one of the slot.

    Not in the executors of the standard library, because a program cannot exit while their threads run.
    """

    def __init__(self, name: str, begin: Begin) -> None:
        self._threads = DaemonThreadPool(name)
        self._begin = begin

    def start(self, run: Execution) -> None:
        """Start an execution, from any thread."""
        self._threads.submit(lambda: self._work(run))

    def _work(self, run: Execution) -> None:
        following: Execution | None = run
        while following is not None:
            run = following
            following = run.slots.ended(run, self._call(run))
            if following is not None and not self._begin(following, self):
                return

    @abstractmethod
    def _call(self, run: Execution) -> Outcome:
        """Run the handler, and return the outcome. Must not raise."""


class InThreads(Threaded):
    """Runs plain functions. They notice an abort when they call `attempt.check()`."""

    def __init__(self, begin: Begin, middlewares: Sequence[Middleware]) -> None:
        super().__init__("relet-slot", begin)
        self._middlewares = middlewares

    def _call(self, run: Execution) -> Outcome:
        return call_plain(run.task, run.attempt, self._middlewares)
