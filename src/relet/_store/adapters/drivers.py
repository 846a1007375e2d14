"""Flows on the caller's connection: enqueue and succeed in a transaction that the caller commits, reads, migrations.

Supported: psycopg (sync, async), asyncpg, SQLAlchemy's Connection and Session and their async versions, Django on
either database, sqlite3. A connection is recognised by the module and the name of its class, so that none of the
drivers has to be installed. A connection that would commit each statement by itself is refused: Relet promises "all or
nothing".
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from ...errors import InvalidInput, ReletError, SchemaMismatch, StoreBusy
from .. import migrate
from ..query import NO_TRAITS, TRAITS, Flow, Query, Row, texts, values
from ..runner import AsyncConnection, Connection, adrive, drive
from ..sqlite import SQLiteAdapter, is_busy
from ..store import Store
from .checks import Purpose, named, refuse_autocommit, same_file, same_system, sqlite_begin, sqlite_schema
from .django import DjangoAdapter

if TYPE_CHECKING:
    import psycopg

R = TypeVar("R")

_COLON = re.compile(r"(?<!:):(?=\w)")


class CallersConnection(Connection, Protocol):
    """A caller's connection, which migrations can use as well."""

    def execute_text(self, sql: str) -> list[Row]:
        """Run one statement of a migration."""


class CallersAsyncConnection(AsyncConnection, Protocol):
    """A caller's async connection, which migrations can use as well."""

    async def execute_text(self, sql: str) -> list[Row]:
        """Run one statement of a migration."""


def run_on(store: Store, connection: Any, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> R:
    """Run a flow in the caller's transaction on a sync connection."""
    kind = _sync_kind(connection)
    with _clear_errors(store.where):
        adapter = _SYNC.get(kind, _unknown)(store, connection, _purpose(flow))
        if not store.knows_statements:
            store.learn_statements(migrate.run_steps(migrate.statements(store.quoted), adapter.execute_text))
        result, notifications = drive(flow(*args, **kwargs), adapter)
        for statement in store.notifying_statements(notifications):
            adapter.execute(statement)
    return result


async def arun_on(store: Store, connection: Any, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> R:
    """Run a flow in the caller's transaction on an async connection."""
    kind = _async_kind(connection)
    adapter = _ASYNC.get(kind, _unknown)(store, connection, _purpose(flow))
    with _clear_errors(store.where):
        if not store.knows_statements:
            store.learn_statements(await migrate.arun_steps(migrate.statements(store.quoted), adapter.execute_text))
        result, notifications = await adrive(flow(*args, **kwargs), adapter)
        for statement in store.notifying_statements(notifications):
            await adapter.execute(statement)
    return result


def migrate_on(store: Store, connection: Any) -> list[int]:
    """Apply the missing migrations in the caller's transaction on a sync connection."""
    kind = _sync_kind(connection)
    with _clear_errors(store.where):
        adapter = _SYNC.get(kind, _unknown)(store, connection, "migrate")
        adapter.begin()
        return migrate.run_steps(_missing(store), adapter.execute_text)


async def amigrate_on(store: Store, connection: Any) -> list[int]:
    """Apply the missing migrations in the caller's transaction on an async connection."""
    kind = _async_kind(connection)
    adapter = _ASYNC.get(kind, _unknown)(store, connection, "migrate")
    with _clear_errors(store.where):
        await adapter.begin()
        return await migrate.arun_steps(_missing(store), adapter.execute_text)


def _missing(store: Store) -> migrate.Steps[list[int]]:
    return migrate.apply_missing(store.new_statements, store.quoted, store.where)


def _purpose(flow: Callable[..., Flow[Any]]) -> Purpose:
    return "read" if TRAITS.get(flow, NO_TRAITS).read_only else "write"


class PsycopgAdapter:
    """A caller's psycopg connection, with a cursor of Relet: the connection's own may have any row factory."""

    def __init__(self, store: Store, raw: psycopg.Connection[Any], purpose: Purpose) -> None:
        self._store = store
        self._schema = _postgres(store, raw)
        self._clock = store.clock
        self._raw = raw
        if purpose != "read" and raw.autocommit and raw.info.transaction_status == _IDLE:
            refuse_autocommit(named(raw), "with connection.transaction():")

    def begin(self) -> None:
        """Do nothing: the caller's transaction is open, or begins with the first statement."""

    def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        from psycopg import Cursor
        from psycopg.rows import tuple_row

        with Cursor(self._raw, row_factory=tuple_row) as cursor:
            for text in texts(query.name, self._store.statements, "pyformat", self._schema, self._clock is not None):
                cursor.execute(text.sql, values(query, self._clock))
            return list(cursor.fetchall()) if cursor.description else []

    def execute_text(self, sql: str) -> list[Row]:
        """Run a statement of a migration."""
        from psycopg import Cursor
        from psycopg.rows import tuple_row

        with Cursor(self._raw, row_factory=tuple_row) as cursor:
            cursor.execute(sql.encode())
            return list(cursor.fetchall()) if cursor.description else []


class AsyncPsycopgAdapter:
    """A caller's async psycopg connection."""

    def __init__(self, store: Store, raw: psycopg.AsyncConnection[Any], purpose: Purpose) -> None:
        self._store = store
        self._schema = _postgres(store, raw)
        self._clock = store.clock
        self._raw = raw
        if purpose != "read" and raw.autocommit and raw.info.transaction_status == _IDLE:
            refuse_autocommit(named(raw), "async with connection.transaction():")

    async def begin(self) -> None:
        """Do nothing: the caller's transaction is open, or begins with the first statement."""

    async def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        from psycopg import AsyncCursor
        from psycopg.rows import tuple_row

        async with AsyncCursor(self._raw, row_factory=tuple_row) as cursor:
            for text in texts(query.name, self._store.statements, "pyformat", self._schema, self._clock is not None):
                await cursor.execute(text.sql, values(query, self._clock))
            return list(await cursor.fetchall()) if cursor.description else []

    async def execute_text(self, sql: str) -> list[Row]:
        """Run a statement of a migration."""
        from psycopg import AsyncCursor
        from psycopg.rows import tuple_row

        async with AsyncCursor(self._raw, row_factory=tuple_row) as cursor:
            await cursor.execute(sql.encode())
            return list(await cursor.fetchall()) if cursor.description else []


class AsyncpgAdapter:
    """A caller's asyncpg connection. Parameters and results are text, numbers and booleans: codecs do not matter."""

    def __init__(self, store: Store, raw: Any, purpose: Purpose) -> None:
        self._store = store
        self._schema = _postgres(store, raw)
        self._clock = store.clock
        self._raw = raw
        if purpose != "read" and not raw.is_in_transaction():
            refuse_autocommit(named(raw), "async with connection.transaction():")

    async def begin(self) -> None:
        """Do nothing: the caller's transaction is open."""

    async def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        params, answer = values(query, self._clock), []
        for text in texts(query.name, self._store.statements, "dollar", self._schema, self._clock is not None):
            answer = await self._raw.fetch(text.sql, *text.numbered(params))
        return [tuple(row) for row in answer]

    async def execute_text(self, sql: str) -> list[Row]:
        """Run a statement of a migration."""
        return [tuple(row) for row in await self._raw.fetch(sql)]


class _SQLAlchemyBase:
    """The common part of the SQLAlchemy adapters. Connections are not unwrapped, as SQLAlchemy's BEGIN is lazy."""

    def __init__(self, store: Store, raw: Any, purpose: Purpose) -> None:
        self._raw = raw
        self._purpose = purpose
        bind = raw.get_bind() if hasattr(raw, "get_bind") else raw
        same_system(store, named(raw), bind.dialect.name)
        self._store = store
        self._schema = store.quoted
        self._checked = False
        self._dialect = store.dialect

    def check(self, connection: Any, databases: Sequence[Row]) -> None:
        """Refuse a connection that commits each statement, or is open on another file. Call it before the first use."""
        level = connection.get_execution_options().get("isolation_level")
        # There is no public way to read the isolation level that an engine was made with.
        level = level or getattr(connection.dialect, "_on_connect_isolation_level", None)
        if level == "AUTOCOMMIT" and self._purpose != "read":
            refuse_autocommit(named(self._raw), "an engine without AUTOCOMMIT")
        if self._dialect == "sqlite":
            same_file(self._store, named(self._raw), databases)
        self._checked = True

    def begins_late(self, connection: Any) -> bool:
        """True on SQLite: the driver begins with the first write, so reads before it would be in no transaction."""
        is_sqlite = self._dialect == "sqlite" and self._purpose != "read"
        return is_sqlite and not connection.connection.driver_connection.in_transaction

    def statements(self, query: Query) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The texts to run, with their parameters."""
        params = values(query, self._store.clock)
        for text in texts(query.name, self._store.statements, "alchemy", self._schema, self._store.clock is not None):
            yield _clause(text.sql), text.named(params)

    def statement(self, sql: str) -> Any:
        """A statement of a migration, whose colons begin no parameters."""
        return _clause(_COLON.sub(r"\\:", sql))


class SQLAlchemyAdapter(_SQLAlchemyBase):
    """A caller's SQLAlchemy Connection or Session."""

    def begin(self) -> None:
        """The caller's transaction begins with the first statement; on SQLite it is begun here."""
        self._prepare()
        if self.begins_late(self._connection()):
            self._raw.execute(_clause("begin immediate"))

    def execute(self, query: Query) -> list[Row]:
        """Run a statement or a script. Returns the rows of all statements."""
        self._prepare()
        answer: list[Row] = []
        for statement, params in self.statements(query):
            result = self._raw.execute(statement, params)
            answer += [tuple(row) for row in result] if result.returns_rows else []
        return answer

    def execute_text(self, sql: str) -> list[Row]:
        """Run a statement of a migration."""
        result = self._raw.execute(self.statement(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    def _prepare(self) -> None:
        if not self._checked:
            connection = self._connection()
            found = connection.execute(_clause(DATABASES)).fetchall() if self._dialect == "sqlite" else []
            self.check(connection, found)

    def _connection(self) -> Any:
        return self._raw.connection() if hasattr(self._raw, "get_bind") else self._raw


class AsyncSQLAlchemyAdapter(_SQLAlchemyBase):
    """A caller's SQLAlchemy AsyncConnection or AsyncSession."""

    async def begin(self) -> None:
        """The caller's transaction begins with the first statement; on SQLite it is begun here."""
        await self._prepare()
        if self.begins_late((await self._connection()).sync_connection):
            await self._raw.execute(_clause("begin immediate"))

    async def execute(self, query: Query) -> list[Row]:
        """Run a statement or a script. Returns the rows of all statements."""
        await self._prepare()
        answer: list[Row] = []
        for statement, params in self.statements(query):
            result = await self._raw.execute(statement, params)
            answer += [tuple(row) for row in result] if result.returns_rows else []
        return answer

    async def execute_text(self, sql: str) -> list[Row]:
        """Run a statement of a migration."""
        result = await self._raw.execute(self.statement(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    async def _prepare(self) -> None:
        if not self._checked:
            connection = await self._connection()
            found = (await connection.execute(_clause(DATABASES))).fetchall() if self._dialect == "sqlite" else []
            self.check(connection.sync_connection, found)

    async def _connection(self) -> Any:
        return await self._raw.connection() if hasattr(self._raw, "get_bind") else self._raw


@contextmanager
def _plain(raw: sqlite3.Connection) -> Iterator[None]:
    """Return rows as tuples and text as str within the block, whatever factories the caller has set."""
    rows, text = raw.row_factory, raw.text_factory
    raw.row_factory, raw.text_factory = None, str
    try:
        yield
    finally:
        raw.row_factory, raw.text_factory = rows, text


class CallersSQLiteAdapter(SQLiteAdapter):
    """A caller's sqlite3 connection to the file that holds the jobs."""

    def __init__(self, store: Store, raw: sqlite3.Connection, purpose: Purpose) -> None:
        super().__init__(raw, store.quoted, store.clock)
        with _plain(raw):
            own = same_file(store, named(raw), raw.execute("pragma database_list").fetchall())
            commits_alone = raw.isolation_level is None or getattr(raw, "autocommit", -1) is True
            if commits_alone and not raw.in_transaction and purpose != "read":
                refuse_autocommit(named(raw), 'connection.execute("begin immediate")')
            sqlite_schema(own, raw, purpose)
        self._purpose = purpose

    def begin(self) -> None:
        """Begin the caller's transaction, unless it is open."""
        if self._purpose != "read":
            sqlite_begin(self._raw)

    def execute(self, query: Query) -> list[Row]:
        """Run a script, whatever row and text factories the connection has."""
        with _plain(self._raw):
            return super().execute(query)

    def execute_text(self, sql: str) -> list[Row]:
        """Run a statement of a migration."""
        with _plain(self._raw):
            return self._raw.execute(sql).fetchall()


def _clause(sql: str) -> Any:
    from sqlalchemy import text

    return text(sql)


DATABASES = "pragma database_list"

_IDLE = 0  # psycopg's TransactionStatus.IDLE

_SYNC: dict[str, Callable[[Store, Any, Purpose], CallersConnection]] = {
    "django.BaseDatabaseWrapper": DjangoAdapter,
    "django.ConnectionProxy": DjangoAdapter,
    "psycopg.Connection": PsycopgAdapter,
    "sqlalchemy.Connection": SQLAlchemyAdapter,
    "sqlalchemy.Session": SQLAlchemyAdapter,
    "sqlalchemy.scoped_session": SQLAlchemyAdapter,
    "sqlite3.Connection": CallersSQLiteAdapter,
}
_ASYNC: dict[str, Callable[[Store, Any, Purpose], CallersAsyncConnection]] = {
    "psycopg.AsyncConnection": AsyncPsycopgAdapter,
    "asyncpg.Connection": AsyncpgAdapter,
    "asyncpg.PoolConnectionProxy": AsyncpgAdapter,
    "sqlalchemy.AsyncConnection": AsyncSQLAlchemyAdapter,
    "sqlalchemy.AsyncSession": AsyncSQLAlchemyAdapter,
    "sqlalchemy.async_scoped_session": AsyncSQLAlchemyAdapter,
}


def _kind(connection: Any) -> str:
    """`library.Class` of the first supported base class; subclasses are supported too."""
    for base in type(connection).__mro__:
        kind = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        if kind in _SYNC or kind in _ASYNC:
            return kind
    return ""


def _sync_kind(connection: Any) -> str:
    kind = _kind(connection)
    if kind in _ASYNC:
        raise TypeError(f"{named(connection)} is async: use the async method (aenqueue, asucceed, app.aclient)")
    return kind


def _async_kind(connection: Any) -> str:
    kind = _kind(connection)
    if kind in _SYNC:
        raise TypeError(f"{named(connection)} is not async: use the sync method (enqueue, succeed, app.client)")
    return kind


def _unknown(store: Store, connection: Any, purpose: Purpose) -> NoReturn:
    known = ", ".join(sorted({*_SYNC, *_ASYNC}))
    raise TypeError(f"cannot use {named(connection)} as a connection; supported: {known}")


def _postgres(store: Store, connection: Any) -> str:
    if store.dialect != "postgres":
        raise InvalidInput(f"{named(connection)} is a connection to PostgreSQL, but the jobs live in {store.where}")
    return store.quoted


@contextmanager
def _clear_errors(where: str) -> Iterator[None]:
    """Replace driver errors that have a known remedy by errors of Relet that state it. Others are raised unchanged."""
    try:
        yield
    except Exception as error:
        of_django = type(error).__module__ == "django.db.utils"
        cause = (error.__cause__ if of_django else getattr(error, "orig", None)) or error
        missing = getattr(cause, "sqlstate", None) in ("42P01", "3F000") or "no such table: " in str(cause)
        if missing and not isinstance(error, ReletError):
            raise SchemaMismatch(f"{where} holds no Relet schema: run app.client.migrate()") from error
        if is_busy(cause):
            begin = 'the option "transaction_mode": "IMMEDIATE" of the database' if of_django else '"begin immediate"'
            raise StoreBusy(
                "SQLite refuses the write: another connection holds the lock, or has written since your transaction "
                f"first read; begin transactions that will write with {begin}, and try again"
            ) from error
        raise
