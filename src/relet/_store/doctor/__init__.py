"""Looking at a store for what may hurt: the checks, and in `judge*.py` what to make of what they see.

expected        what a schema must hold, read from the migrations
judge*          figures in, findings out: thresholds and words
postgres, sqlite the checks of each store, over a connection of their own
"""

from __future__ import annotations

from ..._core.finding import Finding
from ...errors import StoreError
from ..sqlite import SQLiteStore
from ..store import Store


def examine(store: Store) -> list[Finding]:
    """Everything that there is to say of a store. Never raises because of what it finds."""
    if isinstance(store, SQLiteStore):
        from . import sqlite

        return sqlite.examine(store)
    from ..postgres import PostgresStore  # SQLite shall not need what PostgreSQL does
    from . import postgres

    if not isinstance(store, PostgresStore):
        raise StoreError(f"there is no doctor for {store.where}")
    return postgres.examine(store)
