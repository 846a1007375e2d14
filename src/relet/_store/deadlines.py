"""Deadlines for answers: the watchdog shuts down a connection that does not answer in time, and the call on it fails.

The server limits its own work (`statement_timeout`). This module is for servers, poolers and networks that do not
answer at all while the connection stays open. No statement is cancelled: the server would report a cancelled COMMIT as
done although a synchronous standby does not have it. The socket is shut down instead. An operation id or a token then
shows whether the statement took effect.
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

STATEMENT_SECONDS = 3.0  # how long the server may work on a small statement at the first try
ANSWER_MARGIN = 1.0  # how much longer its answer may take to arrive
LONGEST_STATEMENT = 120.0
BYTES_PER_SECOND = 100_000  # parameters: a large batch may take longer
TICK = 0.25
IDLE_FOR = 5.0  # seconds that the thread waits for a statement before it ends


def allowed(seconds: float, tries: int, size: int = 0) -> float:
    """How long the server may work on a statement with parameters of this size, after so many failed tries."""
    return min((seconds + size / BYTES_PER_SECOND) * 2.0 ** min(tries, 10), max(LONGEST_STATEMENT, seconds))


class Watchdog:
    """One thread that shuts down connections whose answer is overdue.

    It checks a few times a second while statements are under way, and ends when there have been none for a while.
    Callers may be interrupted anywhere: the only thing they hold is a lock implemented in C, and only for a moment.
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
        """Within the block the connection has this many seconds to answer."""
        try:
            self.arm(raw, seconds)
            yield
        finally:
            self.disarm(raw)

    def arm(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], seconds: float) -> None:
        """Shut the connection down unless `disarm` is called within this many seconds."""
        if self._pid != os.getpid():
            self._start()
        self._deadlines[raw] = SYSTEM.monotonic() + seconds
        if not has_begun(self._thread):
            with self._lock:
                if not has_begun(self._thread):
                    self._thread = SYSTEM.thread("deadlines", self._work)
                    with suppress(RuntimeError):  # the program ends, and starts no threads: the server has its limit
                        start(self._thread)

    def disarm(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """Remove the deadline of a connection that has answered.

        Waits until a shutdown under way is over: the file descriptor must not be reused meanwhile.
        """
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
                if not self._deadlines:  # checked again: a caller that armed meanwhile may have relied on this thread
                    return
                self._thread = threading.current_thread()


def _shut_down(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Shut the socket down. The call that waits for an answer fails as if the server had closed the connection."""
    import socket

    log.warning("No answer from the database in time; closing the connection.")
    with suppress(Exception), socket.socket(fileno=os.dup(raw.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


watchdog = Watchdog()
