"""Checks of a store for problems. The checks read figures, and the modules `judge*` turn figures into findings.

expected         the objects that a schema must have, read from the migrations
judge*           figures in, findings out: thresholds and texts
postgres, sqlite the checks of each store, over a separate connection
"""

from __future__ import annotations

from ..._core.finding import Finding
from ...errors import StoreError
from ..sqlite import SQLiteStore
from ..store import Store
from . import judge


def examine(store: Store) -> list[Finding]:
    """All findings about a store. Problems are returned as findings, never raised."""
    if isinstance(store, SQLiteStore):
        from . import sqlite

        return sqlite.examine(store)
    from ..postgres import PostgresStore  # imported here: SQLite must work without psycopg
    from . import postgres

    if not isinstance(store, PostgresStore):
        raise StoreError(f"no checks exist for {store.where}")
    return postgres.examine(store) + ([] if store.replica is None else [judge.replica(store.replica.status())])
