"""Daemon threads for calls that block. The standard executors hold up the exit of a program; these do not."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

IDLE_FOR = 10.0  # seconds that a thread waits for its next call


class Threads:
    """As many threads as there are calls under way; idle ones are used again, then end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start()

    def _start(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._pid = os.getpid()

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call in a thread, await the result. Cancelling stops the waiting, not the call."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        context = contextvars.copy_context()

        def call() -> None:
            try:
                done = partial(_resolve, future, context.run(function, *args, **kwargs), None)
            except BaseException as error:
                done = partial(_resolve, future, None, error)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(done)

        self.submit(call)
        return await future

    def submit(self, call: Callable[[], None]) -> None:
        """Call in a thread; whatever it raises must be dealt with inside."""
        if self._pid != os.getpid():  # threads do not survive a fork
            self._start()
        self._calls.put(call)
        with self._lock:
            if self._idle > 0:
                self._idle -= 1  # that one will take it
                return
        threading.Thread(target=self._work, args=(self._calls,), name=self._name, daemon=True).start()

    def _work(self, calls: queue.SimpleQueue[Callable[[], None]]) -> None:
        while True:
            try:
                call = calls.get(timeout=IDLE_FOR)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        return
                continue  # a call is on its way to this thread
            call()
            with self._lock:
                self._idle += 1


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
