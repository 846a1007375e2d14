"""Databases for tests: fixtures for one of each kind, apps on them, and the number of rows in their tables.

A schema of PostgreSQL takes a while to make, so that tests share it one after another, emptied after each of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from relet import App, Job
from relet._store.postgres import PostgresStore
from relet._store.sqlite import SQLiteStore
from relet._store.store import Store
from tests.conftest import PG_KINDS, SERVERS, SQLITE_FILE, SQLITE_KINDS
from tests.schemas import SharedSchema, schemas_of
from tests.templates import fill_in


@dataclass(frozen=True)
class Database:
    """A database, and the schema in it that an app uses."""

    kind: str
    url: str
    schema: str
    shared: SharedSchema | None = None

    def app(self) -> App:
        return App(self.url, schema=self.schema)

    @property
    def is_postgres(self) -> bool:
        return self.kind not in SQLITE_KINDS

    def empty(self) -> None:
        """Delete the rows that a test has left in a shared schema."""
        assert self.shared is not None
        self.shared.empty()


@pytest.fixture(scope="module", params=PG_KINDS)
def pg_schema(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A schema of PostgreSQL, for the tests of a module one after another."""
    yield from shared_schema(request)


@pytest.fixture
def pg_database(pg_schema: Database) -> Iterator[Database]:
    """PostgreSQL: the first server, and with `--all` every other."""
    yield pg_schema
    pg_schema.empty()


@pytest.fixture(scope="module", params=["memory", SQLITE_FILE, *PG_KINDS])
def _any_schema(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param in SQLITE_KINDS:
        yield Database(request.param, "", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture
def database(_any_schema: Database, tmp_path: Path) -> Iterator[Database]:
    """Every kind of store."""
    if _any_schema.is_postgres:
        yield _any_schema
        _any_schema.empty()
    else:
        path = ":memory:" if _any_schema.kind == "memory" else tmp_path / "relet.db"
        yield Database(_any_schema.kind, f"sqlite:///{path}", "relet")


@pytest.fixture
def app(database: Database) -> Iterator[App]:
    """An app in an empty store of each kind."""
    app = database.app()
    fill_in(app._store())
    yield app
    app.close()


@pytest.fixture
def pg_app(pg_database: Database) -> Iterator[App]:
    """An app in an empty PostgreSQL."""
    app = pg_database.app()
    yield app
    app.close()


def shared_schema(request: pytest.FixtureRequest) -> Iterator[Database]:
    """The body of a fixture of a module, whose parameter is a kind of PostgreSQL."""
    server = request.config.stash[SERVERS].get(request.param)
    with schemas_of(request.config).one_of(server) as schema:
        yield Database(request.param, server.dsn, schema.name, schema)


def inventory(store: Store) -> dict[str, int]:
    """How many rows each table of a store holds; nothing at all if there are no tables."""
    if isinstance(store, PostgresStore):
        return _postgres_inventory(store)
    assert isinstance(store, SQLiteStore)
    if store.path is not None and not Path(store.path).exists():
        return {}
    place = store._memory or f"file:{store.path}?mode=ro"
    with closing(sqlite3.connect(place, uri=True)) as connection:
        found = connection.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
        return {name.removeprefix(f"{store.quoted}_"): _count(connection, name) for (name,) in found.fetchall()}


def _postgres_inventory(store: PostgresStore) -> dict[str, int]:
    with psycopg.connect(store._url) as connection:
        names = connection.execute(
            "select relname from pg_class where relnamespace = to_regnamespace(%s) and relkind in ('r', 'p')"
            " and not relispartition",
            (store.schema,),
        ).fetchall()
        return {name: _count(connection, f"{store.schema}.{name}") for (name,) in names}


def _count(connection: Any, table: str) -> int:
    return int(connection.execute(f"select count(*) from {table}").fetchone()[0])


def ids(jobs: list[Job[Any]]) -> list[str]:
    return [job.id for job in jobs]
