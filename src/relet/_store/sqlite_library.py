"""The SQLite library of this Python: its WAL-reset bug, when that matters, and how to get a newer one."""

from __future__ import annotations

import os
import sqlite3
import sys

FIXED_WAL_RESET = (3, 51, 3)


def has_wal_reset_bug() -> bool:
    """True if two processes that write at the same moment can damage a file. Rare; one process is safe."""
    return sqlite3.sqlite_version_info < FIXED_WAL_RESET


def how_to_upgrade() -> str:
    """Advice how to get a newer SQLite here: it belongs to the system, or to this Python."""
    library = _shared_library()
    if library is not None:
        return f"upgrade the system's SQLite ({library}), or run a Python that brings its own"
    return f"run a newer Python than {sys.executable}, which brings SQLite {sqlite3.sqlite_version}"


def _shared_library() -> str | None:
    """The path of the shared library; None if it is part of Python, or if the operating system does not tell."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libsqlite3" in line}
    except OSError:
        return None
    return min(paths, default=None)


def is_shared(path: str, locks: str = "/proc/locks") -> bool:
    """Whether another process has this file open in WAL mode. True, too, if the operating system does not tell.

    Each connection has a lock on the file that ends in -shm. That file must not be opened here to ask: closing it would
    release the locks of this process.
    """
    try:
        number = os.stat(f"{path}-shm").st_ino
        with open(locks, encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except FileNotFoundError:
        return not os.path.exists(locks)
    except OSError:
        return True
    # 1: POSIX  ADVISORY  READ 1234 08:01:5678 128 128
    ours = str(os.getpid())
    return any(len(line) > 5 and line[5].rpartition(":")[2] == str(number) and line[4] != ours for line in lines)
