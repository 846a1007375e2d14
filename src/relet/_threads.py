"""Daemon threads for blocking calls. Unlike the executors of the standard library, they do not delay exit."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:  # asyncio takes a third of the time of `import relet`, and many programs never need it
    import asyncio

P = ParamSpec("P")
R = TypeVar("R")

IDLE_FOR = 10.0  # seconds that a thread waits for its next call


class DaemonThreadPool:
    """A thread for each running call, up to `limit`; further calls wait. Idle threads are reused, or end."""

    def __init__(self, name: str, limit: int | None = None) -> None:
        self._name = name
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0  # idle threads; below 0: the number of waiting calls
        self._number = 0  # of threads
        self._pid = os.getpid()

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a thread and await its result. If the task is cancelled, a call that has begun goes on."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        context = contextvars.copy_context()

        def call() -> None:
            if future.cancelled():
                return
            try:
                done = partial(_resolve, future, context.run(function, *args, **kwargs), None)
            except BaseException as error:
                done = partial(_resolve, future, None, error)
            with suppress(RuntimeError):  # the loop is closed: the result is not needed
                loop.call_soon_threadsafe(done)

        self.submit(call)
        return await future

    def submit(self, call: Callable[[], None]) -> None:
        """Make a call in a thread. The call must handle its exceptions.

        Raises RuntimeError if no thread can be started; then the call is not made.
        """
        if self._pid != os.getpid():  # threads do not survive a fork
            self._start()
        with self._lock:
            if self._idle > 0 or (self._limit is not None and self._number >= self._limit):
                self._queue(call)
                return
            self._number += 1
        try:
            # Passed to the thread, not queued: if the thread does not start, no other thread may make the call.
            threading.Thread(target=self._work, args=(self._calls, call), name=self._name, daemon=True).start()
        except BaseException as error:
            with self._lock:
                self._number -= 1
                if not isinstance(error, RuntimeError) or self._limit is None or self._number <= 0:
                    raise
                self._queue(call)  # one of the running threads makes it

    def _queue(self, call: Callable[[], None]) -> None:
        self._idle -= 1
        self._calls.put(call)

    def _work(self, calls: queue.SimpleQueue[Callable[[], None]], call: Callable[[], None]) -> None:
        while True:
            call()
            del call  # frees its arguments and its result
            with self._lock:
                self._idle += 1
            while True:
                try:
                    call = calls.get(timeout=IDLE_FOR)
                    break
                except queue.Empty:
                    with self._lock:
                        if self._idle > 0:
                            self._idle -= 1
                            self._number -= 1
                            return
                # `_idle` is not positive: a call for this thread is being queued, so wait again


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


#: The threads of the async client. Reads have their own threads, because all writes may be waiting for a lock, and the
#: program that has the lock must still be able to read.
read_in_thread = DaemonThreadPool("relet-client", limit=32).call
write_in_thread = DaemonThreadPool("relet-client", limit=32).call
