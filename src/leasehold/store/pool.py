"""Connections kept for reuse, and a queue of places. No threads: a fork or an exit finds nothing to break."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from ..core.errors import StoreBusy
from .interrupts import handing, take_into


class Closeable(Protocol):
    """Anything that a pool can let go of."""

    def close(self) -> Any:
        """Let go."""


C = TypeVar("C", bound=Closeable)

#: Connections that a parent process still uses. Closing, or even forgetting, one of them would say goodbye in its name.
abandoned: list[Any] = []


class Pool(Generic[C]):
    """At most `most` connections at a time, made when needed."""

    def __init__(
        self, connect: Callable[[], C], usable: Callable[[C], bool], *, most: int, patience: float = 10.0
    ) -> None:
        self._connect = connect
        self._usable = usable
        self._most = most
        self._patience = patience
        self._start()

    def _start(self) -> None:
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._most):
            self._places.put(None)
        self._idle: deque[C] = deque()
        self._pid = os.getpid()  # last: who sees it may use the others

    @contextmanager
    def connection(self) -> Iterator[C]:
        """A connection, taken back afterwards if it is still good."""
        self._notice_fork()
        place, held, idle, pid = list[None](), list[C](), self._idle, self._pid
        places = self._places
        give_back, keep = handing(place, places.put), handing(held, idle.append)
        try:
            try:
                take_into(place, partial(places.get, True, self._patience))
            except Empty:
                self._look_for_place(place, places)
            try:
                take_into(held, idle.pop)
            except IndexError:
                take_into(held, self._connect)
            yield held[0]
        finally:
            try:
                try:
                    if held and idle is self._idle and self._usable(held[0]):
                        next(keep)
                finally:
                    if held or idle is not self._idle:
                        self._let_go(held, idle, pid)
            finally:
                if place:
                    next(give_back)

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        self._notice_fork()
        idle, self._idle = self._idle, deque()
        _close_all(idle)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            abandoned.append(self._idle)
            self._start()

    def _look_for_place(self, place: list[None], places: SimpleQueue[None]) -> None:
        """A block that an interrupt has kept from its end gives its place back when it is collected."""
        gc.collect()
        try:
            take_into(place, places.get_nowait)
        except Empty:
            raise StoreBusy(f"all {self._most} connections have been in use for {self._patience:g} s") from None

    def _let_go(self, held: list[C], idle: deque[C], pid: int) -> None:
        """What is not kept: it is broken, the pool was closed meanwhile, or this is another process by now."""
        if pid != os.getpid():
            abandoned.extend(held)
            return
        for connection in held:
            connection.close()
        _close_all(idle if idle is not self._idle else deque())


def _close_all(idle: deque[Any]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop().close()


class Places:
    """So many at a time on each event loop: first come, first served."""

    def __init__(self, most: int, patience: float) -> None:
        self._most = most
        self._patience = patience
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, and have it for the length of the block."""
        places = self._loops.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._most))
        try:
            async with asyncio.timeout(self._patience):
                await places.acquire()
        except TimeoutError:
            raise StoreBusy(f"all {self._most} connections have been in use for {self._patience:g} s") from None
        try:
            yield
        finally:
            places.release()


class Idle(Generic[C]):
    """Async connections that nobody uses just now, each kept for the event loop that it was made on."""

    def __init__(self, close: Callable[[C], None], *, most: int) -> None:
        self._close = close
        self._most = most
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[object, C]] = []
        self._pid = os.getpid()

    def take(self, loop: object) -> C | None:
        """One that was kept for this loop, if there is any."""
        self._notice_fork()
        with self._lock:
            for place in range(len(self._kept) - 1, -1, -1):
                if self._kept[place][0] is loop:
                    return self._kept.pop(place)[1]
        return None

    def keep(self, loop: object, connection: C) -> None:
        """For the next on this loop; the oldest goes if there are too many."""
        self._notice_fork()
        with self._lock:
            self._kept.append((loop, connection))
            extra = self._kept.pop(0)[1] if len(self._kept) > self._most else None
        if extra is not None:
            self._close(extra)

    def close(self, loop: object = None) -> None:
        """Close those of a loop, or all."""
        self._notice_fork()
        with self._lock:
            gone = [one for of, one in self._kept if loop is None or of is loop]
            self._kept = [(of, one) for of, one in self._kept if loop is not None and of is not loop]
        for connection in gone:
            self._close(connection)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            abandoned.append(self._kept)
            self._start()
