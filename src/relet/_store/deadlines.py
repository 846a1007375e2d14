"""Deadlines for answers: a connection that does not answer in time is shut down, and its call fails.

The server bounds its own work (`statement_timeout`). This is for servers, poolers and networks that do not answer at
all while the connection stays open. Nothing is cancelled: a cancelled COMMIT would be reported as done although a
synchronous standby does not have it. The socket is shut down, and an operation id or token tells what became of the
statement.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .._system import SYSTEM
from .interrupts import has_begun, start

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger("relet.store")

STATEMENT_SECONDS = 3.0  # that the server may work on a small statement, the first time that it is tried
ANSWER_MARGIN = 1.0  # that its answer may take beyond that
LONGEST_STATEMENT = 120.0
BYTES_PER_SECOND = 100_000  # of parameters: a large batch may take longer
TICK = 0.25
IDLE_FOR = 5.0  # seconds that the thread waits for a statement before it ends


def allowed(seconds: float, tries: int, size: int = 0) -> float:
    """How long the server may work on a statement with parameters of this size, after so many failed tries."""
    return min((seconds + size / BYTES_PER_SECOND) * 2.0 ** min(tries, 10), max(LONGEST_STATEMENT, seconds))


class Watchdog:
    """One thread that shuts down connections whose answer is overdue.

    It looks a few times a second while there are statements under way, and ends when there have been none for a while.
    Callers may be interrupted anywhere: all that they hold is a lock of C, and only for a moment.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[Any, float] = {}
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()  # threads do not survive a fork

    @contextmanager
    def limit(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], seconds: float) -> Iterator[None]:
        """Within the block the connection has so many seconds to answer."""
        try:
            self.arm(raw, seconds)
            yield
        finally:
            self.disarm(raw)

    def arm(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], seconds: float) -> None:
        """From now on the connection has so many seconds to answer."""
        if self._pid != os.getpid():
            self._start()
        self._deadlines[raw] = SYSTEM.monotonic() + seconds
        if not has_begun(self._thread):
            with self._lock:
                if not has_begun(self._thread):
                    self._thread = SYSTEM.thread("deadlines", self._work)
                    start(self._thread)

    def disarm(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """It has answered. Not before a shutdown under way is over: the descriptor must not be reused meanwhile."""
        with self._lock:
            self._deadlines.pop(raw, None)

    def _work(self) -> None:
        used = SYSTEM.monotonic()
        while True:
            SYSTEM.sleep(TICK)
            now = SYSTEM.monotonic()
            if self._deadlines:
                used = now
                with self._lock:
                    for raw in [raw for raw, deadline in list(self._deadlines.items()) if deadline <= now]:
                        del self._deadlines[raw]
                        _shut_down(raw)
            elif now - used > IDLE_FOR:
                self._thread = None
                if not self._deadlines:  # looked at again: one that was armed meanwhile may have seen this thread
                    return
                self._thread = threading.current_thread()


def _shut_down(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """End the connection under the call that waits for its answer, which fails as if the server had closed it."""
    import socket

    log.warning("No answer from the database in time; closing the connection.")
    with suppress(Exception), socket.socket(fileno=os.dup(raw.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


watchdog = Watchdog()
