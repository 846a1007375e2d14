"""What a caller's connection must be: in a transaction, and open on the database that the jobs live in.

`what` is the connection, as a person would name it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any, NoReturn

from ...errors import InvalidInput
from .. import migrate
from ..query import Row
from ..sqlite import SQLiteStore, is_busy
from ..store import Store


def named(connection: Any) -> str:
    """A connection by its class."""
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def refuse_autocommit(what: str, instead: str) -> NoReturn:
    """Each statement would be a transaction of its own."""
    raise InvalidInput(f"{what} is in no transaction: each statement would commit alone; use {instead}")


def same_system(store: Store, what: str, found: str) -> None:
    """Refuse a connection to another kind of database; given the word that SQLAlchemy and Django both have for it."""
    if found != ("postgresql" if store.dialect == "postgres" else "sqlite"):
        raise InvalidInput(f"{what} speaks to {found}, but the jobs live in {store.where}")


def same_file(store: Store, what: str, databases: Sequence[Row]) -> SQLiteStore:
    """Refuse a connection that is open on another file than the jobs live in; given the rows of database_list."""
    files = {os.path.realpath(row[2]) for row in databases if row[2]}
    if not isinstance(store, SQLiteStore) or store.path is None or os.path.realpath(store.path) not in files:
        there = ", ".join(sorted(files)) or "memory"
        raise InvalidInput(f"{what} is open on {there}, but the jobs live in {store.where}")
    return store


def sqlite_schema(store: SQLiteStore, raw: sqlite3.Connection) -> None:
    """Make sure that the file holds our tables. In a transaction: take the write lock before the first look.

    SQLite makes a first write wait for others, but refuses one that comes after a look if they have written meanwhile.
    """
    if not raw.in_transaction:
        store.ready()
        return
    try:
        raw.execute(f"update {store.quoted}_migrations set version = version where false")  # noqa: S608
    except sqlite3.OperationalError as error:
        if is_busy(error):
            raise
    if (found := migrate.sqlite_applied(raw, store.quoted)).version == 0:
        store.migrate_on(raw)  # nobody else can: the caller may have the write lock
    else:
        migrate.check(found, store.where, "sqlite")  # what others see may be older than what this transaction has made


def sqlite_begin(raw: sqlite3.Connection) -> None:
    """Open the transaction that Python would open with the first write: what is looked at before belongs to it."""
    if not raw.in_transaction:
        raw.execute("begin immediate")
