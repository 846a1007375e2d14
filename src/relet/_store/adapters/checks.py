"""Checks of a caller's connection: it must be in a transaction, and open on the database that holds the jobs.

`what` describes the connection in messages.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

from ...errors import InvalidInput
from .. import migrate
from ..query import Row
from ..sqlite import SQLiteStore, is_busy
from ..store import Store

#: The use of a caller's connection. Only reads are allowed outside a transaction, and take no lock.
Purpose = Literal["read", "write", "migrate"]


def named(connection: Any) -> str:
    """The class of a connection, with its module."""
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def refuse_autocommit(what: str, instead: str) -> NoReturn:
    """Refuse a connection on which each statement would be a separate transaction."""
    raise InvalidInput(f"{what} is in no transaction: each statement would commit alone; use {instead}")


def same_system(store: Store, what: str, found: str) -> None:
    """Refuse a connection to another kind of database. `found`: its name in SQLAlchemy and Django."""
    if found != ("postgresql" if store.dialect == "postgres" else "sqlite"):
        raise InvalidInput(f"{what} is a connection to {found}, but the jobs live in {store.where}")


def same_file(store: Store, what: str, databases: Sequence[Row]) -> SQLiteStore:
    """Refuse a connection that is open on another file than the jobs. `databases`: the rows of pragma database_list."""
    files = {os.path.realpath(row[2]) for row in databases if row[2]}
    if not isinstance(store, SQLiteStore) or store.path is None or os.path.realpath(store.path) not in files:
        found = ", ".join(sorted(files)) or "memory"
        raise InvalidInput(f"{what} is open on {found}, but the jobs live in {store.where}")
    return store


def sqlite_schema(store: SQLiteStore, raw: sqlite3.Connection, purpose: Purpose) -> None:
    """Make sure that the file has Relet's tables. In a transaction that writes, take the write lock before it reads.

    SQLite lets the first write of a transaction wait for other writers. But it refuses a write that follows a read if
    another connection has written since that read.
    """
    if purpose == "migrate":
        return
    if purpose == "read":
        migrate.check(migrate.sqlite_applied(raw, store.quoted), store.where, "sqlite")
        return
    if not raw.in_transaction:
        store.ready()
        return
    try:
        raw.execute(f"update {store.quoted}_migrations set version = version where false")  # noqa: S608 - quoted
    except sqlite3.OperationalError as error:
        if is_busy(error):
            raise
    if (found := migrate.sqlite_applied(raw, store.quoted)).version == 0:
        store.migrate_on(raw)  # on this connection: no other can, as the caller may have the write lock
    else:
        # As seen by this connection: others may still see an older version than this transaction has made.
        migrate.check(found, store.where, "sqlite")


def sqlite_begin(raw: sqlite3.Connection) -> None:
    """Begin now the transaction that Python would begin with the first write, so that reads before it belong to it."""
    if not raw.in_transaction:
        raw.execute("begin immediate")
