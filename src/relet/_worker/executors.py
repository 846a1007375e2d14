"""Where attempts run: `async def` on the event loop, `def` in threads. (In processes: `processes.py`.)"""

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

Begin = Callable[[Execution, object], bool]  # starts a run, unless it belongs to the one who asks: then True


AT_A_TIME = 0.0005  # seconds that handlers that never wait may keep the event loop from all others


class OnLoop:
    """Coroutines on the worker's event loop. A task runs the jobs of a slot one after another.

    A job gets a new task if the one before was aborted or cancelled, or left the context changed: the next handler
    sees nothing of what this one did to its task.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, begin: Begin, middlewares: Sequence[Middleware]) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._context = contextvars.copy_context()
        self._begin = begin
        self._middlewares = middlewares
        self._tasks: dict[Execution, asyncio.Task[None]] = {}
        self._arriving: deque[Execution] = deque()
        self._told = False  # the loop has been told of those that arrive

    def start(self, run: Execution) -> None:
        """From any thread. Telling the loop gives up Python's lock, so one call does for all that arrive until then."""
        if threading.get_ident() == self._thread:
            self._start(run)
            return
        self._arriving.append(run)
        if not self._told:
            self._told = True
            try:
                self._loop.call_soon_threadsafe(self._start_arrived)
            except RuntimeError:  # the loop is closed
                self._told = False
                self._arriving.remove(run)
                raise

    def _start_arrived(self) -> None:
        self._told = False  # before they are taken: one that arrives later tells again
        while self._arriving:
            self._start(self._arriving.popleft())

    def _start(self, run: Execution) -> None:
        self._tasks[run] = self._loop.create_task(self._work(run), context=self._context.copy())

    async def _work(self, run: Execution) -> None:
        task, clean, tasks = self._tasks[run], self._context, self._tasks
        cancel, middlewares = self._cancel, self._middlewares
        since = SYSTEM.monotonic()
        while True:
            # Not before: a task that is cancelled before its first step would never get here.
            run.interrupt = cancel
            if run.attempt.aborted is not None:
                cancel(run)
            outcome = await call_async(run.task, run.attempt, middlewares)
            # (A task group of the handler's may have left a mark of its own on the task: that alone says nothing.)
            if run.attempt.aborted is None and run.attempt._cancelled and task.cancelling():
                run.attempt.aborted = "shutdown"  # not by us: the event loop is being taken down
            del tasks[run]
            following = run.slots.ended(run, outcome)
            if following is None or not self._begin(following, self):
                return
            if run.attempt.aborted is not None or task.cancelling() or not _is_same(clean):
                self._start(following)
                return
            run = following
            tasks[run] = task
            if run.started_at - since > AT_A_TIME:
                await asyncio.sleep(0)
                since = SYSTEM.monotonic()

    def _cancel(self, run: Execution) -> None:
        """Have CancelledError raised in the handler."""

        def cancel() -> None:
            task = self._tasks.get(run)
            if task is not None:
                task.cancel(f"relet: {run.attempt.aborted}")

        self._loop.call_soon_threadsafe(cancel)


def _is_same(context: contextvars.Context) -> bool:
    """Whether the current context is as this one."""
    try:
        return contextvars.copy_context() == context
    except Exception:  # values are compared, and may refuse that
        return False


class Threaded(ABC):
    """One daemon thread for each run, which goes on with the next: the standard executors would hold up exit."""

    def __init__(self, name: str, begin: Begin) -> None:
        self._threads = DaemonThreadPool(name)
        self._begin = begin

    def start(self, run: Execution) -> None:
        """From any thread."""
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
        """Have the handler run, and return what it came to; never raises."""


class InThreads(Threaded):
    """Plain functions. Aborts reach them by `check()`."""

    def __init__(self, begin: Begin, middlewares: Sequence[Middleware]) -> None:
        super().__init__("relet-slot", begin)
        self._middlewares = middlewares

    def _call(self, run: Execution) -> Outcome:
        return call_plain(run.task, run.attempt, self._middlewares)
