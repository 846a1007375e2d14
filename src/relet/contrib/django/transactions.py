"""The transactions that Relet begins on a connection of Django's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction


@contextmanager
def begun(database: str) -> Iterator[Any]:
    """`transaction.atomic()` on the connection of this thread. At READ COMMITTED, unless a transaction is open.

    The connection may begin its transactions at another level. With a snapshot, a job could not be completed after a
    renewal, and an enqueue could be refused.
    """
    connection = connections[database]
    with _read_committed(connection), transaction.atomic(using=database):
        yield connection


@contextmanager
def _read_committed(connection: Any) -> Iterator[None]:
    """Within the block, the connection begins its transactions at READ COMMITTED."""
    if connection.vendor != "postgresql" or not connection.get_autocommit():
        yield
        return
    from django.db.backends.postgresql.psycopg_any import IsolationLevel  # needs a driver of PostgreSQL

    raw = connection.connection
    before = raw.isolation_level
    raw.isolation_level = IsolationLevel.READ_COMMITTED
    try:
        yield
    finally:
        if connection.connection is raw and not raw.closed:
            raw.isolation_level = before
