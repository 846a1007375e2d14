"""Connections kept for reuse, and a queue of places. A fork, an exit or an interrupt finds nothing to break.

What has been idle for a while is closed by one thread for all pools of the process. It lives only while there is
something idle, holds no lock while it waits, and a process that was forked starts one when it needs it.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from .._system import SYSTEM
from ..errors import StoreBusy
from .interrupts import handing, start, take_into

if TYPE_CHECKING:
    import asyncio


class Closeable(Protocol):
    """Anything that a pool can let go of."""

    def close(self) -> Any:
        """Let go."""


C = TypeVar("C", bound=Closeable)

MAX_IDLE = 60.0
MAX_LIFETIME = 3600.0
LONGEST_SLEEP = 1.0  # seconds between two looks at what is idle

#: Connections that a parent process still uses. Closing, or even forgetting, one of them would say goodbye in its name.
abandoned: list[Any] = []


class Kept(Generic[C]):
    """A connection, when it was made, and since when it is idle."""

    __slots__ = ("connection", "made", "since")

    def __init__(self, connection: C) -> None:
        self.connection = connection
        self.made = self.since = SYSTEM.monotonic()


class Swept(Protocol):
    """What has idle connections."""

    max_idle: float  # seconds
    swept: bool  # the sweeper knows of it; it sets this back itself when nothing is idle

    def sweep(self) -> float | None:
        """Close what has been idle for too long; returns in how many seconds to come again, None: not at all."""


class Sweeper:
    """Closes idle connections of all pools in this process."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._pools: WeakSet[Any] = WeakSet()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def look_after(self, pool: Swept) -> None:
        """From now on, until nothing of it is idle."""
        if self._pid != os.getpid():
            self._start()
        with self._lock:
            self._pools.add(pool)
            pool.swept = True
            if self._thread is None:
                thread = SYSTEM.thread("idle", partial(self._sweep, pool.max_idle / 4))
                try:
                    start(thread)
                except RuntimeError:  # no more threads, or the interpreter ends: they are closed another time
                    pool.swept = False
                else:
                    self._thread = thread

    def _sweep(self, first: float) -> None:
        """Not at once: what was given back just now is in use again by then, mostly, and this thread would end."""
        wait: float | None = first
        while wait is not None:
            SYSTEM.sleep(min(wait, LONGEST_SLEEP))  # not an event: an interrupt of the one who sets it could break it
            wait = self._sweep_once()

    def _sweep_once(self) -> float | None:
        with self._lock:
            pools = list(self._pools)
        again = {pool: pool.sweep() for pool in pools}
        with self._lock:
            for pool, wait in again.items():
                if wait is None and not pool.swept:
                    self._pools.discard(pool)
            if not self._pools:
                self._thread = None
                return None
        return min((wait for wait in again.values() if wait is not None), default=0.0)


_sweeper = Sweeper()


def _until_next(oldest: float, max_idle: float) -> float:
    """In how many seconds to look again, by the oldest of what is idle. Late by a quarter, so as not to look often."""
    return max(oldest + max_idle - SYSTEM.monotonic(), max_idle / 4)


class Pool(Generic[C]):
    """At most `most` connections at a time, made when needed."""

    def __init__(
        self,
        connect: Callable[[], C],
        usable: Callable[[C], bool],
        *,
        most: int,
        patience: float = 10.0,
        max_idle: float = MAX_IDLE,
        max_lifetime: float = MAX_LIFETIME,
    ) -> None:
        self._connect = connect
        self._usable = usable
        self._most = most
        self._patience = patience
        self.max_idle, self.max_lifetime = max_idle, max_lifetime
        self._start()

    def _start(self) -> None:
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._most):
            self._places.put(None)
        self._idle: deque[Kept[C]] = deque()  # the last one to come back is used first
        self.swept = False
        self._pid = os.getpid()  # last: who sees it may use the others

    @contextmanager
    def connection(self) -> Iterator[C]:
        """A connection, taken back afterwards if it is still good."""
        self._notice_fork()
        place, held, idle, pid = list[None](), list[Kept[C]](), self._idle, self._pid
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
                take_into(held, self._make)
            yield held[0].connection
        finally:
            try:
                try:
                    if held and idle is self._idle and self._is_good(held[0]):
                        next(keep)
                finally:
                    if held or idle is not self._idle:
                        self._let_go(held, idle, pid)
            finally:
                if place:
                    next(give_back)
            if not self.swept:
                _sweeper.look_after(self)

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        self._notice_fork()
        idle, self._idle = self._idle, deque()
        _close_all(idle)

    def sweep(self) -> float | None:
        """Close what has been idle for too long; returns in how many seconds to come again, None: not at all."""
        idle, unused = self._idle, list[Kept[C]]()
        with suppress(IndexError):  # taken meanwhile
            while idle and SYSTEM.monotonic() - idle[0].since >= self.max_idle:
                unused.append(idle.popleft())
        for kept in unused:
            with suppress(Exception):
                kept.connection.close()
        self.swept = False  # before the look: one that is given back after it asks to be looked after
        with suppress(IndexError):
            oldest = idle[0].since
            self.swept = True
            return _until_next(oldest, self.max_idle)
        return None

    def _make(self) -> Kept[C]:
        return Kept(self._connect())

    def _is_good(self, kept: Kept[C]) -> bool:
        kept.since = SYSTEM.monotonic()
        return self._usable(kept.connection) and kept.since - kept.made < self.max_lifetime

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

    def _let_go(self, held: list[Kept[C]], idle: deque[Kept[C]], pid: int) -> None:
        """What is not kept: it is broken, the pool was closed meanwhile, or this is another process by now."""
        if pid != os.getpid():
            abandoned.extend(held)
            return
        for kept in held:
            kept.connection.close()
        _close_all(idle if idle is not self._idle else deque())


def _close_all(idle: deque[Kept[Any]]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop().connection.close()


class LoopSemaphore:
    """So many at a time on each event loop: first come, first served."""

    def __init__(self, most: int, patience: float) -> None:
        self._most = most
        self._patience = patience
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @asynccontextmanager
    async def acquired(self) -> AsyncIterator[None]:
        """Wait for a place, and have it for the length of the block."""
        import asyncio

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


class IdleAsyncConnections(Generic[C]):
    """Async connections that are not in use, each kept for the event loop that it was made on."""

    def __init__(
        self,
        close: Callable[[C], None],
        *,
        most: int,
        max_idle: float = MAX_IDLE,
        max_lifetime: float = MAX_LIFETIME,
    ) -> None:
        self._close = close
        self._most = most
        self.max_idle, self.max_lifetime = max_idle, max_lifetime
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[object, Kept[C]]] = []
        self._made: WeakKeyDictionary[C, float] = WeakKeyDictionary()  # when each was first given back
        self.swept = False
        self._pid = os.getpid()

    def take(self, loop: object) -> C | None:
        """One that was kept for this loop, if there is any."""
        self._notice_fork()
        with self._lock:
            for place in range(len(self._kept) - 1, -1, -1):
                if self._kept[place][0] is loop:
                    return self._kept.pop(place)[1].connection
        return None

    def keep(self, loop: object, connection: C) -> None:
        """For the next on this loop; the oldest goes if there are too many, and one that has been there for long."""
        self._notice_fork()
        with self._lock:
            kept = Kept(connection)
            extra: C | None = connection
            if kept.since - self._made.setdefault(connection, kept.since) < self.max_lifetime:
                self._kept.append((loop, kept))
                extra = self._kept.pop(0)[1].connection if len(self._kept) > self._most else None
        if extra is not None:
            self._close(extra)
        if not self.swept:
            _sweeper.look_after(self)

    def sweep(self) -> float | None:
        """Close what has been idle for too long; returns in how many seconds to come again, None: not at all."""
        latest = SYSTEM.monotonic() - self.max_idle
        with self._lock:
            unused = [kept for _, kept in self._kept if kept.since <= latest]
            self._kept = [(loop, kept) for loop, kept in self._kept if kept.since > latest]
            wait = _until_next(min(kept.since for _, kept in self._kept), self.max_idle) if self._kept else None
            self.swept = wait is not None
        for kept in unused:
            with suppress(Exception):
                self._close(kept.connection)
        return wait

    def close(self, loop: object = None) -> None:
        """Close those of a loop, or all."""
        self._notice_fork()
        with self._lock:
            gone = [kept for of, kept in self._kept if loop is None or of is loop]
            self._kept = [(of, kept) for of, kept in self._kept if loop is not None and of is not loop]
        for kept in gone:
            self._close(kept.connection)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            abandoned.append(self._kept)
            self._start()
