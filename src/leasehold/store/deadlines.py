"""Deadlines for answers: a connection that does not answer in time is shut down, and its call fails.

The server bounds its own work (`statement_timeout`). This is for servers, poolers and networks that do not answer at
all while the connection stays open. Nothing is cancelled: a cancelled COMMIT would be reported as done although a
synchronous standby does not have it. The socket is shut down, and an operation id or token tells what became of the
statement.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger("leasehold.store")

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
    """One thread that shuts down connections whose answer is overdue."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[Any, float] = {}
        self._thread: threading.Thread | None = None
        self._idle = False
        self._pid = os.getpid()  # threads do not survive a fork

    @contextmanager
    def limit(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], seconds: float) -> Iterator[None]:
        """Within the block the connection has so many seconds to answer."""
        self.arm(raw, seconds)
        try:
            yield
        finally:
            self.disarm(raw)

    def arm(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], seconds: float) -> None:
        """From now on the connection has so many seconds to answer."""
        if self._pid != os.getpid():
            self._start()
        with self._changed:
            self._deadlines[raw] = time.monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="leasehold-deadlines", daemon=True)
                self._thread.start()
            elif self._idle:
                self._changed.notify()

    def disarm(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """It has answered. Not before a shutdown under way is over: the descriptor must not be reused meanwhile."""
        with self._changed:
            self._deadlines.pop(raw, None)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                if not self._changed.wait_for(lambda: self._deadlines, IDLE_FOR):
                    self._thread = None
                    return
                self._idle = False
                now = time.monotonic()
                for raw in [raw for raw, deadline in self._deadlines.items() if deadline <= now]:
                    del self._deadlines[raw]
                    _shut_down(raw)
            time.sleep(TICK)


def _shut_down(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """End the connection under the call that waits for its answer, which fails as if the server had closed it."""
    log.warning("No answer from the database in time; closing the connection.")
    with suppress(OSError, Exception), socket.socket(fileno=os.dup(raw.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


watchdog = Watchdog()
