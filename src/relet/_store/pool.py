"""Connection pools that stay intact when the process forks or exits, or when a thread is interrupted.

One thread closes the connections of all pools of the process that have been idle for a while. It runs only while some
connection is idle, and holds no lock while it waits. A forked process starts another one when it needs it.
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
from .interrupts import mover, start, take_into

if TYPE_CHECKING:
    import asyncio


class Closeable(Protocol):
    """Anything that a pool can close."""

    def close(self) -> Any: ...


C = TypeVar("C", bound=Closeable)

MAX_IDLE = 60.0
MAX_LIFETIME = 3600.0
LONGEST_SLEEP = 1.0  # seconds between two sweeps
WAIT_STEP = 0.001  # seconds between two looks for a connection that is returned

#: Connections inherited across fork(), which the parent process still uses. Closing or garbage-collecting one of them
#: would end the parent's session on the server.
abandoned: list[Any] = []


class IdleConnection(Generic[C]):
    """A connection, when it was made, and since when it has been idle, on the monotonic clock."""

    __slots__ = ("connection", "made", "since")

    def __init__(self, connection: C) -> None:
        self.connection = connection
        self.made = self.since = SYSTEM.monotonic()


class Sweepable(Protocol):
    """A pool with idle connections."""

    max_idle: float  # seconds
    swept: bool  # registered with the sweeper; the pool's own sweep() resets it when no connection is idle

    def sweep(self) -> float | None:
        """Close connections that have been idle for too long.

        Returns in how many seconds the next sweep is due; None if no connection is idle.
        """


class Sweeper:
    """Closes idle connections of all pools in this process."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._pools: WeakSet[Any] = WeakSet()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def register(self, pool: Sweepable) -> None:
        """Sweep this pool until none of its connections is idle."""
        if self._pid != os.getpid():
            self._start()
        with self._lock:
            self._pools.add(pool)
            pool.swept = True
            if self._thread is None:
                thread = SYSTEM.thread("idle", partial(self._sweep, pool.max_idle / 4))
                try:
                    start(thread)
                except RuntimeError:  # no more threads, or the interpreter exits: the next registration tries again
                    pool.swept = False
                else:
                    self._thread = thread

    def _sweep(self, first: float) -> None:
        """Sweep until no pool has idle connections.

        Not at once: a connection that was just returned is usually in use again by the time of a first sweep. That
        sweep would find nothing idle, and this thread would end.
        """
        wait: float | None = first
        while wait is not None:
            SYSTEM.sleep(min(wait, LONGEST_SLEEP))  # no Event: an interrupt in the thread that sets it could break it
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
    """In how many seconds the next sweep is due. `oldest`: since when the longest idle connection has been idle.

    At least a quarter of `max_idle`, so that sweeps are rare; a connection may be closed late by as much.
    """
    return max(oldest + max_idle - SYSTEM.monotonic(), max_idle / 4)


class Pool(Generic[C]):
    """At most `limit` connections at a time, made when needed. A caller waits for one up to `timeout` seconds."""

    def __init__(
        self,
        connect: Callable[[], C],
        usable: Callable[[C], bool],
        *,
        limit: int,
        timeout: float = 10.0,
        max_idle: float = MAX_IDLE,
        max_lifetime: float = MAX_LIFETIME,
    ) -> None:
        self._connect = connect
        self._usable = usable
        self._limit = limit
        self._timeout = timeout
        self.max_idle, self.max_lifetime = max_idle, max_lifetime
        self._start()

    def _start(self) -> None:
        self._slots: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._limit):
            self._slots.put(None)
        self._idle: deque[IdleConnection[C]] = deque()  # the one returned last is used first
        self.swept = False
        self._pid = os.getpid()  # last: a thread that sees the new pid may use the attributes above

    @contextmanager
    def connection(self, patience: float = 0.0) -> Iterator[C]:
        """Lend a connection for the length of the block, and keep it afterwards if it is still usable.

        `patience`: seconds to wait for one that is in use before another one is opened.
        """
        self._notice_fork()
        slot, lent, idle, pid = list[None](), list[IdleConnection[C]](), self._idle, self._pid
        slots = self._slots
        release_slot, keep = mover(slot, slots.put), mover(lent, idle.append)
        try:
            try:
                take_into(slot, partial(slots.get, True, self._timeout))
            except Empty:
                self._reclaim_slot(slot, slots)
            try:
                take_into(lent, idle.pop)
            except IndexError:
                take_into(lent, partial(self._returned_or_made, idle, patience) if patience else self._make)
            yield lent[0].connection
        finally:
            try:
                try:
                    if lent and idle is self._idle and self._usable(lent[0].connection):
                        lent[0].since = SYSTEM.monotonic()
                        if lent[0].since - lent[0].made < self.max_lifetime:
                            next(keep)
                finally:
                    if lent or idle is not self._idle:
                        self._discard(lent, idle, pid)
            finally:
                if slot:
                    next(release_slot)
            if not self.swept:
                _sweeper.register(self)

    def close(self) -> None:
        """Close idle connections now, and lent ones when they are returned."""
        self._notice_fork()
        idle, self._idle = self._idle, deque()
        _close_all(idle)

    def sweep(self) -> float | None:
        """Close connections that have been idle for too long.

        Returns in how many seconds the next sweep is due; None if no connection is idle.
        """
        idle, unused = self._idle, list[IdleConnection[C]]()
        with suppress(IndexError):  # another thread took it meanwhile
            while idle and SYSTEM.monotonic() - idle[0].since >= self.max_idle:
                unused.append(idle.popleft())
        for entry in unused:
            with suppress(Exception):
                entry.connection.close()
        self.swept = False  # before reading idle[0]: a connection returned after that registers the pool again
        with suppress(IndexError):
            oldest = idle[0].since
            self.swept = True
            return _until_next(oldest, self.max_idle)
        return None

    def _returned_or_made(self, idle: deque[IdleConnection[C]], patience: float) -> IdleConnection[C]:
        give_up = SYSTEM.monotonic() + patience
        while self._slots.qsize() < self._limit - 1 and SYSTEM.monotonic() < give_up:  # others are in use
            with suppress(IndexError):
                return idle.pop()
            SYSTEM.sleep(WAIT_STEP)
        return self._make()

    def _make(self) -> IdleConnection[C]:
        return IdleConnection(self._connect())

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            abandoned.append(self._idle)
            self._start()

    def _reclaim_slot(self, slot: list[None], slots: SimpleQueue[None]) -> None:
        """Collect garbage: a block that an interrupt kept from reaching its end frees its slot when it is collected."""
        gc.collect()
        try:
            take_into(slot, slots.get_nowait)
        except Empty:
            raise StoreBusy(f"all {self._limit} connections have been in use for {self._timeout:g} s") from None

    def _discard(self, lent: list[IdleConnection[C]], idle: deque[IdleConnection[C]], pid: int) -> None:
        """Close a connection that is unusable, or whose pool was closed meanwhile, with all others of that pool.

        After a fork the connection is the parent's: it is kept, but never used or closed.
        """
        if pid != os.getpid():
            abandoned.extend(lent)
            return
        for entry in lent:
            entry.connection.close()
        _close_all(idle if idle is not self._idle else deque())


def _close_all(idle: deque[IdleConnection[Any]]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop().connection.close()


class LoopSemaphore:
    """A semaphore for each event loop: at most `limit` tasks at a time, first come, first served."""

    def __init__(self, limit: int, timeout: float) -> None:
        self._limit = limit
        self._timeout = timeout
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @asynccontextmanager
    async def acquired(self) -> AsyncIterator[None]:
        """Wait for a slot, and occupy it for the length of the block."""
        import asyncio

        semaphore = self._loops.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._limit))
        try:
            async with asyncio.timeout(self._timeout):
                await semaphore.acquire()
        except TimeoutError:
            raise StoreBusy(f"all {self._limit} connections have been in use for {self._timeout:g} s") from None
        try:
            yield
        finally:
            semaphore.release()


class IdleAsyncConnections(Generic[C]):
    """Async connections that are not in use, each kept for the event loop that it was made on."""

    def __init__(
        self,
        close: Callable[[C], None],
        *,
        limit: int,
        max_idle: float = MAX_IDLE,
        max_lifetime: float = MAX_LIFETIME,
    ) -> None:
        self._close = close
        self._limit = limit
        self.max_idle, self.max_lifetime = max_idle, max_lifetime
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[tuple[object, IdleConnection[C]]] = []
        self._made: WeakKeyDictionary[C, float] = WeakKeyDictionary()  # when each was first returned
        self.swept = False
        self._pid = os.getpid()

    def take(self, loop: object) -> C | None:
        """A connection that was kept for this loop, or None."""
        self._notice_fork()
        with self._lock:
            for index in range(len(self._entries) - 1, -1, -1):
                if self._entries[index][0] is loop:
                    return self._entries.pop(index)[1].connection
        return None

    def keep(self, loop: object, connection: C) -> None:
        """Keep a connection for the next caller on this loop, unless it is older than `max_lifetime`.

        If there are too many, close the one that has been idle for longest.
        """
        self._notice_fork()
        with self._lock:
            entry = IdleConnection(connection)
            extra: C | None = connection
            if entry.since - self._made.setdefault(connection, entry.since) < self.max_lifetime:
                self._entries.append((loop, entry))
                extra = self._entries.pop(0)[1].connection if len(self._entries) > self._limit else None
        if extra is not None:
            self._close(extra)
        if not self.swept:
            _sweeper.register(self)

    def sweep(self) -> float | None:
        """Close connections that have been idle for too long.

        Returns in how many seconds the next sweep is due; None if no connection is idle.
        """
        latest = SYSTEM.monotonic() - self.max_idle
        with self._lock:
            unused = [entry for _, entry in self._entries if entry.since <= latest]
            self._entries = [(loop, entry) for loop, entry in self._entries if entry.since > latest]
            wait = _until_next(min(entry.since for _, entry in self._entries), self.max_idle) if self._entries else None
            self.swept = wait is not None
        for entry in unused:
            with suppress(Exception):
                self._close(entry.connection)
        return wait

    def close(self, loop: object = None) -> None:
        """Close the idle connections of one loop, or of all loops."""
        self._notice_fork()
        with self._lock:
            gone = [entry for of, entry in self._entries if loop is None or of is loop]
            self._entries = [(of, entry) for of, entry in self._entries if loop is not None and of is not loop]
        for entry in gone:
            self._close(entry.connection)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            abandoned.append(self._entries)
            self._start()
