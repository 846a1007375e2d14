"""Flows on the caller's connection: enqueue, and succeed, in a transaction that is theirs to commit.

Supported: psycopg (sync, async), asyncpg, SQLAlchemy's Connection and Session and their async twins, sqlite3. Each is
known by the module that its class comes from, so that none of them need be installed. A connection that would commit
each statement by itself is refused: the promise is "all or nothing".
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..core.errors import InvalidInput, StoreBusy
from .query import Flow, Query, Row, texts
from .runner import AsyncConnection, Connection, adrive, drive
from .sqlite import OnSQLite, SQLiteStore, is_busy
from .store import Store

if TYPE_CHECKING:
    import psycopg

R = TypeVar("R")


def run_on(store: Store, connection: Any, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> R:
    """Run a flow in the caller's transaction on a sync connection."""
    kind = _kind(connection)
    if kind in _ASYNC:
        raise TypeError(f"{_named(connection)} is async: use the async twin (aenqueue, asucceed, app.aclient)")
    on = _SYNC.get(kind, _unknown)(store, connection)
    with _clear_errors():
        result, wakes = drive(flow(*args, **kwargs), on)
        for statement in store.notifications(wakes):
            on.execute(statement)
    return result


async def arun_on(store: Store, connection: Any, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> R:
    """Run a flow in the caller's transaction on an async connection."""
    kind = _kind(connection)
    if kind in _SYNC:
        raise TypeError(f"{_named(connection)} is not async: use the plain twin (enqueue, succeed, app.client)")
    on = _ASYNC.get(kind, _unknown)(store, connection)
    with _clear_errors():
        result, wakes = await adrive(flow(*args, **kwargs), on)
        for statement in store.notifications(wakes):
            await on.execute(statement)
    return result


class OnPsycopg:
    """A caller's psycopg connection. The cursor is ours: theirs may have any row factory."""

    def __init__(self, store: Store, raw: psycopg.Connection[Any]) -> None:
        self._schema = _postgres(store, raw)
        self._raw = raw
        if raw.autocommit and raw.info.transaction_status == _IDLE:
            _refuse_autocommit(raw, "with connection.transaction():")

    def begin(self) -> None:
        """Theirs is open, or opens with the first statement."""

    def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        from psycopg import Cursor
        from psycopg.rows import tuple_row

        (text,) = texts(query.name, "postgres", "pyformat", self._schema)
        with Cursor(self._raw, row_factory=tuple_row) as cursor:
            cursor.execute(text.sql, query.params)
            return list(cursor.fetchall()) if cursor.description else []


class OnAsyncPsycopg:
    """A caller's async psycopg connection."""

    def __init__(self, store: Store, raw: psycopg.AsyncConnection[Any]) -> None:
        self._schema = _postgres(store, raw)
        self._raw = raw
        if raw.autocommit and raw.info.transaction_status == _IDLE:
            _refuse_autocommit(raw, "async with connection.transaction():")

    async def begin(self) -> None:
        """Theirs is open, or opens with the first statement."""

    async def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        from psycopg import AsyncCursor
        from psycopg.rows import tuple_row

        (text,) = texts(query.name, "postgres", "pyformat", self._schema)
        async with AsyncCursor(self._raw, row_factory=tuple_row) as cursor:
            await cursor.execute(text.sql, query.params)
            return list(await cursor.fetchall()) if cursor.description else []


class OnAsyncpg:
    """A caller's asyncpg connection. All that goes in and out is text, numbers and booleans: codecs do not matter."""

    def __init__(self, store: Store, raw: Any) -> None:
        self._schema = _postgres(store, raw)
        self._raw = raw
        if not raw.is_in_transaction():
            _refuse_autocommit(raw, "async with connection.transaction():")

    async def begin(self) -> None:
        """Theirs is open."""

    async def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        (text,) = texts(query.name, "postgres", "dollar", self._schema)
        return [tuple(row) for row in await self._raw.fetch(text.sql, *text.numbered(query.params))]


class _OnAlchemy:
    """What a caller's SQLAlchemy connections and sessions share. They are not unwrapped: their BEGIN is lazy."""

    def __init__(self, store: Store, raw: Any) -> None:
        self._raw = raw
        bind = raw.get_bind() if hasattr(raw, "get_bind") else raw
        found = bind.dialect.name
        wanted = "postgresql" if store.dialect == "postgres" else "sqlite"
        if found != wanted:
            raise InvalidInput(f"{_named(raw)} speaks to {found}, but the jobs live in {store.where}")
        if raw_options(raw).get("isolation_level") == "AUTOCOMMIT":
            _refuse_autocommit(raw, "an engine without AUTOCOMMIT")
        self._schema = store.quoted
        self._dialect = store.dialect

    def statements(self, query: Query) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The texts to run, with their parameters."""
        from sqlalchemy import text as clause

        for text in texts(query.name, self._dialect, "alchemy", self._schema):
            yield clause(text.sql), text.named(query.params)


class OnAlchemy(_OnAlchemy):
    """A caller's SQLAlchemy Connection or Session."""

    def begin(self) -> None:
        """Theirs opens with the first statement."""

    def execute(self, query: Query) -> list[Row]:
        """Run a statement, or a script: the answer is what all of it returns."""
        answer: list[Row] = []
        for statement, params in self.statements(query):
            result = self._raw.execute(statement, params)
            answer += [tuple(row) for row in result] if result.returns_rows else []
        return answer


class OnAsyncAlchemy(_OnAlchemy):
    """A caller's SQLAlchemy AsyncConnection or AsyncSession."""

    async def begin(self) -> None:
        """Theirs opens with the first statement."""

    async def execute(self, query: Query) -> list[Row]:
        """Run a statement, or a script: the answer is what all of it returns."""
        answer: list[Row] = []
        for statement, params in self.statements(query):
            result = await self._raw.execute(statement, params)
            answer += [tuple(row) for row in result] if result.returns_rows else []
        return answer


class OnCallersSQLite(OnSQLite):
    """A caller's sqlite3 connection to the very file that the jobs live in."""

    def __init__(self, store: Store, raw: sqlite3.Connection) -> None:
        super().__init__(raw)
        files = {os.path.realpath(row[2]) for row in raw.execute("pragma database_list") if row[2]}
        if not isinstance(store, SQLiteStore) or store.path is None or os.path.realpath(store.path) not in files:
            there = ", ".join(sorted(files)) or "memory"
            raise InvalidInput(f"this sqlite3 connection is open on {there}, but the jobs live in {store.where}")
        commits_alone = raw.isolation_level is None or getattr(raw, "autocommit", -1) is True
        if commits_alone and not raw.in_transaction:
            _refuse_autocommit(raw, 'connection.execute("begin immediate")')
        store.ready()

    def execute(self, query: Query) -> list[Row]:
        """Run a script, whatever factories the connection has."""
        rows, text = self._raw.row_factory, self._raw.text_factory
        self._raw.row_factory, self._raw.text_factory = None, str
        try:
            return super().execute(query)
        finally:
            self._raw.row_factory, self._raw.text_factory = rows, text


def raw_options(raw: Any) -> dict[str, Any]:
    """The execution options of an SQLAlchemy connection; a session has none of its own."""
    return dict(raw.get_execution_options()) if hasattr(raw, "get_execution_options") else {}


_IDLE = 0  # psycopg's TransactionStatus.IDLE

_SYNC: dict[str, Callable[[Store, Any], Connection]] = {
    "psycopg.Connection": OnPsycopg,
    "sqlalchemy.Connection": OnAlchemy,
    "sqlalchemy.Session": OnAlchemy,
    "sqlalchemy.scoped_session": OnAlchemy,
    "sqlite3.Connection": OnCallersSQLite,
}
_ASYNC: dict[str, Callable[[Store, Any], AsyncConnection]] = {
    "psycopg.AsyncConnection": OnAsyncPsycopg,
    "asyncpg.Connection": OnAsyncpg,
    "asyncpg.PoolConnectionProxy": OnAsyncpg,
    "sqlalchemy.AsyncConnection": OnAsyncAlchemy,
    "sqlalchemy.AsyncSession": OnAsyncAlchemy,
    "sqlalchemy.async_scoped_session": OnAsyncAlchemy,
}


def _kind(connection: Any) -> str:
    """`library.Class` of the first base class that we know; subclasses count."""
    for base in type(connection).__mro__:
        kind = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        if kind in _SYNC or kind in _ASYNC:
            return kind
    return ""


def _unknown(store: Store, connection: Any) -> NoReturn:
    known = ", ".join(sorted({*_SYNC, *_ASYNC}))
    raise TypeError(f"cannot enqueue on {_named(connection)}; known are {known}")


def _named(connection: Any) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def _postgres(store: Store, connection: Any) -> str:
    if store.dialect != "postgres":
        raise InvalidInput(f"{_named(connection)} speaks to PostgreSQL, but the jobs live in {store.where}")
    return store.quoted


def _refuse_autocommit(connection: Any, instead: str) -> NoReturn:
    raise InvalidInput(f"{_named(connection)} is in no transaction: each statement would commit alone; use {instead}")


@contextmanager
def _clear_errors() -> Iterator[None]:
    """A deferred transaction of SQLite that has read cannot always write: say what to do about it."""
    try:
        yield
    except Exception as error:
        if is_busy(getattr(error, "orig", None) or error):
            raise StoreBusy(
                "SQLite refuses the write: another connection holds the lock, or has written since your transaction "
                'first read; begin transactions that will write with "begin immediate", and try again'
            ) from error
        raise
