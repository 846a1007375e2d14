"""Where attempts run: `async def` on the event loop, `def` in threads. (In processes: `processes.py`.)"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ..core.job import Outcome
from ..tasks import Middleware
from ..threads import Threads
from .calls import call_async, call_plain
from .run import Run

Begin = Callable[[Run, object], bool]  # starts a run, unless it belongs to the one who asks: then True


class OnLoop:
    """Coroutines, each in a task of its own on the worker's event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, begin: Begin, middlewares: Sequence[Middleware]) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._context = contextvars.copy_context()
        self._begin = begin
        self._middlewares = middlewares
        self._tasks: dict[Run, asyncio.Task[None]] = {}

    def start(self, run: Run) -> None:
        """From any thread."""
        if threading.get_ident() == self._thread:
            self._start(run)
        else:
            self._loop.call_soon_threadsafe(self._start, run)

    def _start(self, run: Run) -> None:
        # In a context of its own: what the handler before has set in its own is none of this one's business.
        self._tasks[run] = self._loop.create_task(self._attempt(run), context=self._context.copy())

    async def _attempt(self, run: Run) -> None:
        # Not before: a task that is cancelled before its first step would never get here.
        run.interrupt = lambda: self._cancel(run)
        if run.attempt.aborted is not None:
            self._cancel(run)
        outcome = await call_async(run.task, run.attempt, self._middlewares)
        task = self._tasks[run]
        # (A task group of the handler's may have left a mark of its own on the task: that alone says nothing.)
        if run.attempt.aborted is None and run.attempt._cancelled and task.cancelling():
            run.attempt.aborted = "shutdown"  # not by us: the event loop is being taken down
        del self._tasks[run]
        following = run.lane.ended(run, outcome)
        if following is not None and self._begin(following, self):
            self._start(following)

    def _cancel(self, run: Run) -> None:
        """Have CancelledError raised in the handler."""

        def cancel() -> None:
            task = self._tasks.get(run)
            if task is not None:
                task.cancel(f"leasehold: {run.attempt.aborted}")

        self._loop.call_soon_threadsafe(cancel)


class Threaded(ABC):
    """One daemon thread for each run, which goes on with the next: the standard executors would hold up exit."""

    def __init__(self, name: str, begin: Begin) -> None:
        self._threads = Threads(name)
        self._begin = begin

    def start(self, run: Run) -> None:
        """From any thread."""
        self._threads.submit(lambda: self._work(run))

    def _work(self, run: Run) -> None:
        following: Run | None = run
        while following is not None:
            run = following
            following = run.lane.ended(run, self._call(run))
            if following is not None and not self._begin(following, self):
                return

    @abstractmethod
    def _call(self, run: Run) -> Outcome:
        """Have the handler run, and return what it came to; never raises."""


class InThreads(Threaded):
    """Plain functions. Aborts reach them by `check()`."""

    def __init__(self, begin: Begin, middlewares: Sequence[Middleware]) -> None:
        super().__init__("leasehold-slot", begin)
        self._middlewares = middlewares

    def _call(self, run: Run) -> Outcome:
        return call_plain(run.task, run.attempt, self._middlewares)
