"""A time limit for reads. Writes are not limited.

The store ends a query that takes longer, so that no query goes on for which no caller waits any more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .._system import SYSTEM
from ..errors import QueryTimeout

AGAIN_AFTER = 1.0  # seconds by which the limit that is set on a server may be too long before it is set again
INSTRUCTIONS = 10_000  # of SQLite's virtual machine, between two checks of the clock

_until: ContextVar[float | None] = ContextVar("relet_reading_until", default=None)


@contextmanager
def reading_until(moment: float) -> Iterator[None]:
    """Reads within the block end at this moment of the monotonic clock, with QueryTimeout."""
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def limit() -> float | None:
    """The moment at which reads of this thread, or task, end; None: no limit."""
    return _until.get()


def left(until: float) -> float:
    """Seconds until that moment. Raises QueryTimeout if it has passed."""
    seconds = until - SYSTEM.monotonic()
    if seconds <= 0:
        raise timed_out()
    return seconds


def timed_out() -> QueryTimeout:
    return QueryTimeout("the query took longer than allowed and was ended: ask for less at once")


@contextmanager
def ended_at(connection: sqlite3.Connection, until: float | None) -> Iterator[None]:
    """Make SQLite interrupt the statement that runs on this connection at that moment."""
    if until is None:
        yield
        return
    left(until)
    connection.set_progress_handler(lambda: SYSTEM.monotonic() > until, INSTRUCTIONS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            raise timed_out() from error
        raise
    finally:
        connection.set_progress_handler(None, 0)
