"""A time limit for looks: the store itself ends a query that takes longer, so that nothing goes on that no caller waits
for. Changes are not limited by it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .._system import SYSTEM
from ..errors import QueryTimeout

AGAIN_AFTER = 1.0  # seconds by which the limit that a server was told may be too long
INSTRUCTIONS = 10_000  # of SQLite's machine, between two looks at the clock

_until: ContextVar[float | None] = ContextVar("relet_reading_until", default=None)


@contextmanager
def reading_until(moment: float) -> Iterator[None]:
    """Looks within the block end at this moment of the monotonic clock, with QueryTimeout."""
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def limit() -> float | None:
    """The moment at which looks of this thread, or task, end."""
    return _until.get()


def left(until: float) -> float:
    """Seconds until then; raises if it is over."""
    seconds = until - SYSTEM.monotonic()
    if seconds <= 0:
        raise timed_out()
    return seconds


def timed_out() -> QueryTimeout:
    """What is raised."""
    return QueryTimeout("reading took longer than it may, and the query was ended: ask for less at once")


@contextmanager
def ended_at(connection: sqlite3.Connection, until: float | None) -> Iterator[None]:
    """Have SQLite end what runs on this connection at that moment."""
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
