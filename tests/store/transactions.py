"""A caller's transactions, in every way in which a caller may have one: a library, a colour, and odd settings of it."""

from __future__ import annotations

import inspect
import json
import sqlite3
from collections import namedtuple
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import asyncpg
import psycopg
import psycopg.rows
from psycopg.types.json import set_json_loads
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from relet import App, Draft, Job

#: A table of the caller's own, in the same transaction as the jobs.
OWN = "caller_rows"


@dataclass
class Transaction:
    """One that is open, or opens with the first statement."""

    connection: Any
    is_async: bool
    execute: Callable[[str], Any]
    commit: Callable[[], Any]
    rollback: Callable[[], Any]

    async def enqueue(self, app: App, *drafts: Draft[Any]) -> list[Job[Any]]:
        if self.is_async:
            return await app.aclient.enqueue_many(drafts, connection=self.connection)
        return app.client.enqueue_many(drafts, connection=self.connection)

    async def complete(self, app: App, job: Any, *result: Any, **options: Any) -> Job[Any]:
        if self.is_async:
            return await app.aclient.complete(job, *result, connection=self.connection, **options)
        return app.client.complete(job, *result, connection=self.connection, **options)

    async def do(self, sql: str) -> None:
        await _awaited(self.execute(sql))

    async def end(self, *, commit: bool) -> None:
        await _awaited(self.commit() if commit else self.rollback())


async def _awaited(value: Any) -> None:
    if inspect.isawaitable(value):
        await value


Way = Callable[[str], Any]  # from a URL to an async context manager of a Transaction


# psycopg


def psycopg_way(row_factory: Any = psycopg.rows.tuple_row, cursor_factory: Any = None, **options: Any) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        with psycopg.connect(url, row_factory=row_factory, cursor_factory=cursor_factory, **options) as raw:
            yield Transaction(raw, False, lambda sql: raw.execute(sql.encode()), raw.commit, raw.rollback)
            raw.rollback()

    return way


def psycopg_async_way(row_factory: Any = psycopg.rows.tuple_row, cursor_factory: Any = None) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        connect = psycopg.AsyncConnection.connect
        async with await connect(url, row_factory=row_factory, cursor_factory=cursor_factory) as raw:
            yield Transaction(raw, True, lambda sql: raw.execute(sql.encode()), raw.commit, raw.rollback)
            await raw.rollback()

    return way


@asynccontextmanager
async def psycopg_autocommit_block(url: str) -> AsyncIterator[Transaction]:
    """Autocommit is on, and a block of `transaction()` is open: that is a transaction."""
    with psycopg.connect(url, autocommit=True) as raw:
        block = raw.transaction()
        block.__enter__()
        rollback = psycopg.Rollback()
        yield Transaction(
            raw,
            False,
            lambda sql: raw.execute(sql.encode()),
            lambda: block.__exit__(None, None, None),
            lambda: block.__exit__(psycopg.Rollback, rollback, None),
        )


@asynccontextmanager
async def psycopg_odd_types(url: str) -> AsyncIterator[Transaction]:
    """JSON, UUIDs, times and numbers are read in ways of the caller's own."""
    with psycopg.connect(url) as raw:
        set_json_loads(lambda data: f"mine: {data!r}", raw)

        class Mine(psycopg.adapt.Loader):
            def load(self, data: Any) -> str:
                return f"mine: {bytes(data)!r}"

        for name in ("uuid", "timestamptz", "json", "jsonb", "numeric", "interval"):
            raw.adapters.register_loader(name, Mine)
        yield Transaction(raw, False, lambda sql: raw.execute(sql.encode()), raw.commit, raw.rollback)
        raw.rollback()


# asyncpg


def asyncpg_way(prepare: Callable[[Any], Any] | None = None) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        raw = await asyncpg.connect(url)
        try:
            if prepare is not None:
                await prepare(raw)
            open_one = raw.transaction()
            await open_one.start()
            yield Transaction(raw, True, raw.execute, open_one.commit, open_one.rollback)
        finally:
            await raw.close()

    return way


async def odd_codecs(raw: Any) -> None:
    for name in ("json", "jsonb"):
        await raw.set_type_codec(name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    for name in ("uuid", "timestamptz", "numeric"):
        await raw.set_type_codec(name, schema="pg_catalog", encoder=lambda v: 1 / 0, decoder=lambda v: f"mine: {v}")


@asynccontextmanager
async def asyncpg_pool(url: str) -> AsyncIterator[Transaction]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as raw:
        open_one = raw.transaction()
        await open_one.start()
        yield Transaction(raw, True, raw.execute, open_one.commit, open_one.rollback)


# SQLAlchemy


def alchemy_url(url: str, driver: str) -> str:
    """postgresql://... for SQLAlchemy, with a driver named; SQLite's paths have the same form."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}+{driver}://{rest}"


def alchemy_connection(driver: str) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        engine = create_engine(alchemy_url(url, driver), poolclass=NullPool)
        with engine.connect() as raw:
            yield Transaction(raw, False, lambda sql: raw.execute(text(sql)), raw.commit, raw.rollback)

    return way


def alchemy_session(driver: str, *, scoped: bool = False) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        engine = create_engine(alchemy_url(url, driver), poolclass=NullPool)
        raw: Any = scoped_session(sessionmaker(engine)) if scoped else Session(engine)
        try:
            yield Transaction(raw, False, lambda sql: raw.execute(text(sql)), raw.commit, raw.rollback)
        finally:
            raw.close()

    return way


def alchemy_async_connection(driver: str) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        engine = create_async_engine(alchemy_url(url, driver), poolclass=NullPool)
        async with engine.connect() as raw:
            yield Transaction(raw, True, lambda sql: raw.execute(text(sql)), raw.commit, raw.rollback)
        await engine.dispose()

    return way


def alchemy_async_session(driver: str, *, scoped: bool = False) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        engine = create_async_engine(alchemy_url(url, driver), poolclass=NullPool)
        raw: Any = async_scoped_session(async_sessionmaker(engine), lambda: 1) if scoped else AsyncSession(engine)
        try:
            yield Transaction(raw, True, lambda sql: raw.execute(text(sql)), raw.commit, raw.rollback)
        finally:
            await raw.close()
            await engine.dispose()

    return way


# sqlite3


def sqlite_way(prepare: Callable[[sqlite3.Connection], Any] | None = None, begin: str = "", **options: Any) -> Way:
    @asynccontextmanager
    async def way(url: str) -> AsyncIterator[Transaction]:
        raw = sqlite3.connect(url.removeprefix("sqlite:///"), **options)
        try:
            if prepare is not None:
                prepare(raw)
            if begin:
                raw.execute(begin)
            yield Transaction(raw, False, raw.execute, raw.commit, raw.rollback)
        finally:
            raw.close()

    return way


def dict_rows(raw: sqlite3.Connection) -> None:
    """As the documentation of Python has it."""
    raw.row_factory = lambda cursor, row: {
        column[0]: value for column, value in zip(cursor.description, row, strict=True)
    }


def record_rows(raw: sqlite3.Connection) -> None:
    raw.row_factory = lambda cursor, row: SimpleNamespace(n=len(row))


def named_rows(raw: sqlite3.Connection) -> None:
    raw.row_factory = sqlite3.Row


def bytes_text(raw: sqlite3.Connection) -> None:
    raw.text_factory = bytes


def shouting_text(raw: sqlite3.Connection) -> None:
    raw.text_factory = lambda data: data.decode().upper()


Row = namedtuple("Row", ["id"])

POSTGRES_WAYS: dict[str, Way] = {
    "psycopg": psycopg_way(),
    "psycopg-dict_row": psycopg_way(psycopg.rows.dict_row),
    "psycopg-namedtuple_row": psycopg_way(psycopg.rows.namedtuple_row),
    "psycopg-class_row": psycopg_way(psycopg.rows.class_row(Row)),
    "psycopg-scalar_row": psycopg_way(psycopg.rows.scalar_row),
    "psycopg-client_cursor": psycopg_way(cursor_factory=psycopg.ClientCursor),
    "psycopg-raw_cursor": psycopg_way(cursor_factory=psycopg.RawCursor),
    "psycopg-no_prepare": psycopg_way(prepare_threshold=None),
    "psycopg-always_prepare": psycopg_way(prepare_threshold=0),
    "psycopg-odd_types": psycopg_odd_types,
    "psycopg-autocommit_block": psycopg_autocommit_block,
    "psycopg-async": psycopg_async_way(),
    "psycopg-async-dict_row": psycopg_async_way(psycopg.rows.dict_row),
    "psycopg-async-client_cursor": psycopg_async_way(cursor_factory=psycopg.AsyncClientCursor),
    "asyncpg": asyncpg_way(),
    "asyncpg-odd_codecs": asyncpg_way(odd_codecs),
    "asyncpg-pool": asyncpg_pool,
    "sqlalchemy-connection": alchemy_connection("psycopg"),
    "sqlalchemy-session": alchemy_session("psycopg"),
    "sqlalchemy-scoped_session": alchemy_session("psycopg", scoped=True),
    "sqlalchemy-async-psycopg": alchemy_async_connection("psycopg"),
    "sqlalchemy-async-asyncpg": alchemy_async_connection("asyncpg"),
    "sqlalchemy-async_session-psycopg": alchemy_async_session("psycopg"),
    "sqlalchemy-async_session-asyncpg": alchemy_async_session("asyncpg"),
    "sqlalchemy-async_scoped_session": alchemy_async_session("asyncpg", scoped=True),
}
SQLITE_WAYS: dict[str, Way] = {
    "sqlite3": sqlite_way(),
    "sqlite3-row": sqlite_way(named_rows),
    "sqlite3-dict": sqlite_way(dict_rows),
    "sqlite3-record": sqlite_way(record_rows),
    "sqlite3-bytes": sqlite_way(bytes_text),
    "sqlite3-shouting": sqlite_way(shouting_text),
    "sqlite3-immediate": sqlite_way(isolation_level="IMMEDIATE"),
    "sqlite3-by_hand": sqlite_way(isolation_level=None, begin="begin immediate"),
    "sqlite3-deferred_by_hand": sqlite_way(isolation_level=None, begin="begin"),
    "sqlite3-types": sqlite_way(detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES),
    "sqlalchemy-pysqlite-connection": alchemy_connection("pysqlite"),
    "sqlalchemy-pysqlite-session": alchemy_session("pysqlite"),
    "sqlalchemy-aiosqlite-connection": alchemy_async_connection("aiosqlite"),
    "sqlalchemy-aiosqlite-session": alchemy_async_session("aiosqlite"),
}
