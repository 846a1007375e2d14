"""Connections kept for reuse: a list and a lock. A fork or an exit finds nothing to break.

What nobody has used for a while is closed by one thread for all pools of the process. It lives only while there is
something idle, holds no lock while it waits, and a process that was forked starts one when it needs it.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from ..core.errors import StoreBusy


class Closeable(Protocol):
    """Anything that a pool can let go of."""

    def close(self) -> Any:
        """Let go."""


C = TypeVar("C", bound=Closeable)

MAX_IDLE = 60.0
MAX_LIFETIME = 3600.0

#: Connections that a parent process still uses. Closing, or even forgetting, one of them would say goodbye in its name.
abandoned: list[Any] = []


class Ages:
    """Since when connections are there, and since when they are idle. Their keeper has a lock around this."""

    def __init__(self, max_idle: float, max_lifetime: float, *, weak: bool = False) -> None:
        self._max_idle, self._max_lifetime = max_idle, max_lifetime
        # Weak: others close them too, and do not tell. (Those of SQLite cannot be referred to so.)
        self._there: MutableMapping[Any, float] = WeakKeyDictionary() if weak else {}
        self._idle: MutableMapping[Any, float] = WeakKeyDictionary() if weak else {}

    def rest(self, connection: object) -> None:
        """It is idle from now on."""
        now = time.monotonic()
        self._there.setdefault(connection, now)
        self._idle[connection] = now

    def is_old(self, connection: object) -> bool:
        """It has been there for too long, counted from when it was first given back."""
        return time.monotonic() - self._there.get(connection, math.inf) > self._max_lifetime

    def forget(self, connection: object) -> None:
        """It is closed."""
        self._there.pop(connection, None)
        self._idle.pop(connection, None)

    def unused(self, idle: list[C]) -> list[C]:
        """Those that have been idle for too long."""
        now = time.monotonic()
        return [one for one in idle if now - self._idle.get(one, now) >= self._max_idle]

    def until_next(self, idle: list[Any]) -> float | None:
        """In how many seconds to look again; not at all if none is idle. Late by a quarter, so as not to look often."""
        if not idle:
            return None
        since = min(self._idle.get(one, math.inf) for one in idle)
        return max(since + self._max_idle - time.monotonic(), self._max_idle / 4)


class Swept(Protocol):
    """What has idle connections."""

    swept: bool  # it is looked after; set back, with its lock held, by itself when nothing is idle

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
        self._news = threading.Event()
        self._pid = os.getpid()

    def look_after(self, pool: Swept) -> None:
        """From now on, until nothing of it is idle."""
        if self._pid != os.getpid():
            self._start()
        with self._lock:
            self._pools.add(pool)
            pool.swept = True
            self._news.set()
            if self._thread is None:
                thread = threading.Thread(target=self._sweep, name="leasehold-idle", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads, or the interpreter ends: they are closed another time
                    pool.swept = False
                else:
                    self._thread = thread

    def _sweep(self) -> None:
        wait: float | None = 0.0
        while wait is not None:
            self._news.wait(wait)
            self._news.clear()
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
        self._limits = (max_idle, max_lifetime)
        self._start()

    def _start(self) -> None:
        self._free = threading.Condition()
        self._idle: list[C] = []
        self._ages = Ages(*self._limits)
        self.swept = False
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
            self._ages = Ages(*self._limits)
        for connection in idle:
            connection.close()

    def sweep(self) -> float | None:
        """Close what has been idle for too long; returns in how many seconds to come again, None: not at all."""
        with self._free:
            unused = self._ages.unused(self._idle)
            for connection in unused:
                self._idle.remove(connection)
                self._ages.forget(connection)
            wait = self._ages.until_next(self._idle)
            self.swept = wait is not None
        for connection in unused:
            with suppress(Exception):
                connection.close()
        return wait

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
        if keep and self._usable(connection) and not self._ages.is_old(connection):
            with self._free:
                self._idle.append(connection)
                self._ages.rest(connection)
            if not self.swept:
                _sweeper.look_after(self)
        else:
            self._ages.forget(connection)
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
        self._limits = (max_idle, max_lifetime)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[object, C]] = []
        self._ages = Ages(*self._limits, weak=True)
        self.swept = False
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
        """For the next on this loop; the oldest goes if there are too many, and one that has been there for long."""
        self._notice_fork()
        with self._lock:
            extra: C | None = connection
            if not self._ages.is_old(connection):
                self._kept.append((loop, connection))
                self._ages.rest(connection)
                extra = self._kept.pop(0)[1] if len(self._kept) > self._most else None
        if extra is not None:
            self._close(extra)
        if not self.swept:
            _sweeper.look_after(self)

    def sweep(self) -> float | None:
        """Close what has been idle for too long; returns in how many seconds to come again, None: not at all."""
        with self._lock:
            unused = self._ages.unused([one for _, one in self._kept])
            self._kept = [(of, one) for of, one in self._kept if one not in unused]
            wait = self._ages.until_next([one for _, one in self._kept])
            self.swept = wait is not None
        for connection in unused:
            with suppress(Exception):
                self._close(connection)
        return wait

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
