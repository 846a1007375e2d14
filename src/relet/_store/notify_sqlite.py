"""Notices when other processes have changed a SQLite file."""

from __future__ import annotations

import os
import sqlite3
import threading

from .._system import SYSTEM

WATCH_EVERY = 0.025

#: Locked while a listener calls SQLite. A fork at that moment would leave SQLite's own locks taken in the child, for
#: ever.
fork_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=fork_lock.acquire, after_in_parent=fork_lock.release, after_in_child=fork_lock.release)


class SQLiteListener:
    """Polls SQLite's count of the changes that other connections have made. A poll costs microseconds."""

    def __init__(self, raw: sqlite3.Connection | None) -> None:
        self._raw = raw  # None: in memory, where every change is published in this process
        self._seen = self._version()

    def wait(self, seconds: float, channels: frozenset[str]) -> set[str]:
        """All channels once the count has changed: it does not tell what has changed."""
        end = SYSTEM.monotonic() + seconds
        while SYSTEM.monotonic() < end:
            if (version := self._version()) != self._seen:
                self._seen = version
                return set(channels)
            SYSTEM.sleep(WATCH_EVERY)
        return set()

    def close(self) -> None:
        if self._raw:
            with fork_lock:
                self._raw.close()

    def _version(self) -> int:
        with fork_lock:
            return int(self._raw.execute("pragma data_version").fetchone()[0]) if self._raw else 0
