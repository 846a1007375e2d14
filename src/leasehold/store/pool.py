"""Connections kept for reuse: a list and a lock. No threads of its own: a fork or an exit finds nothing to break."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from ..core.errors import StoreBusy


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
        self._free = threading.Condition()
        self._idle: list[C] = []
        self._lent = 0
        self._closings = 0
        self._pid = os.getpid()  # last: who sees it may use the others

    @contextmanager
    def connection(self) -> Iterator[C]:
        """A connection, taken back afterwards if it is still good."""
        self._notice_fork()
        closings = self._closings
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection, keep=closings == self._closings)

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        self._notice_fork()
        with self._free:
            self._closings += 1
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            abandoned.append(self._idle)
            self._start()

    def _take(self) -> C:
        give_up = time.monotonic() + self._patience
        with self._free:
            while not self._idle and self._lent >= self._most:
                if not self._free.wait(give_up - time.monotonic()):
                    raise StoreBusy(f"all {self._most} connections have been in use for {self._patience:g} s")
            self._lent += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect()
        except BaseException:
            self._return_place()
            raise

    def _give_back(self, connection: C, *, keep: bool) -> None:
        if keep and self._usable(connection):
            with self._free:
                self._idle.append(connection)
        else:
            connection.close()
        self._return_place()

    def _return_place(self) -> None:
        with self._free:
            self._lent -= 1
            self._free.notify()


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
