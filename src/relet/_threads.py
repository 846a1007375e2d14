"""Daemon threads for calls that block. The standard executors hold up the exit of a program; these do not."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:  # it takes a third of the time of `import relet`, and many producers never need it
    import asyncio

P = ParamSpec("P")
R = TypeVar("R")

IDLE_FOR = 10.0  # seconds that a thread waits for its next call


class DaemonThreadPool:
    """A thread for each call under way, up to `limit`: further calls queue. Idle threads are reused, and end after a
    while."""

    def __init__(self, name: str, limit: int | None = None) -> None:
        self._name = name
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0  # below 0: so many calls wait in line
        self._number = 0
        self._pid = os.getpid()

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call in a thread, await the result. Cancelling stops the waiting, not a call that has begun."""
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
        """Call in a thread. The call must handle its exceptions. RuntimeError: no thread can be started, and the call
        is not made."""
        if self._pid != os.getpid():  # threads do not survive a fork
            self._start()
        with self._lock:
            if self._idle > 0 or (self._limit is not None and self._number >= self._limit):
                self._queue(call)
                return
            self._number += 1
        try:
            # The call goes to the thread itself: in the queue another would make it, should this one not start.
            threading.Thread(target=self._work, args=(self._calls, call), name=self._name, daemon=True).start()
        except BaseException as error:
            with self._lock:
                self._number -= 1
                if not isinstance(error, RuntimeError) or self._limit is None or self._number <= 0:
                    raise
                self._queue(call)  # a running thread makes it

    def _queue(self, call: Callable[[], None]) -> None:
        self._idle -= 1
        self._calls.put(call)

    def _work(self, calls: queue.SimpleQueue[Callable[[], None]], call: Callable[[], None]) -> None:
        while True:
            call()
            del call  # and with it what it has taken and returned
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
                # a call is on its way to this thread


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


#: The threads of the async client, however many calls it makes. Calls that only read do not queue behind calls that
#: write, which may wait for a lock: the program that holds the lock can still read.
read_in_thread = DaemonThreadPool("relet-client", limit=32).call
write_in_thread = DaemonThreadPool("relet-client", limit=32).call
