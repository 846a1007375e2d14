"""A watch on a SQLite file: whether other processes have changed it."""

from __future__ import annotations

import os
import sqlite3
import threading

from .._system import SYSTEM

WATCH_EVERY = 0.025

#: Held while a watch is in SQLite: a fork at that moment would leave SQLite's own locks taken in the child, for ever.
asking = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=asking.acquire, after_in_parent=asking.release, after_in_child=asking.release)


class SQLiteListener:
    """A watch on the file: SQLite counts the changes that others have made, and asking costs microseconds."""

    def __init__(self, raw: sqlite3.Connection | None) -> None:
        self._raw = raw  # None: in memory, where whoever changes something says so
        self._seen = self._version()

    def wait(self, seconds: float, channels: frozenset[str]) -> set[str]:
        """Anything may have happened once the count has changed."""
        end = SYSTEM.monotonic() + seconds
        while SYSTEM.monotonic() < end:
            if (version := self._version()) != self._seen:
                self._seen = version
                return set(channels)
            SYSTEM.sleep(WATCH_EVERY)
        return set()

    def close(self) -> None:
        """Stop watching."""
        if self._raw:
            with asking:
                self._raw.close()

    def _version(self) -> int:
        with asking:
            return int(self._raw.execute("pragma data_version").fetchone()[0]) if self._raw else 0
