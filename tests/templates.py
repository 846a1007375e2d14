"""Stores in memory whose tables are copied from a template, which takes a tenth of the time that migrations take."""

from __future__ import annotations

import atexit
import sqlite3
from functools import cache

from relet._store.sqlite import SQLiteStore
from relet._store.store import Store


def fill_in(store: Store) -> None:
    """Give a new store in memory the tables that `migrate` would make. Does nothing to others."""
    if isinstance(store, SQLiteStore) and store._memory:
        with store._writing:
            _template().backup(store._open_writer())


@cache
def _template() -> sqlite3.Connection:
    store, template = SQLiteStore(None), sqlite3.connect(":memory:", check_same_thread=False)
    store.migrate()
    store._open_writer().backup(template)
    store.close()
    atexit.register(template.close)
    return template
