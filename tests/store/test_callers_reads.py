"""Reads and migrations on a caller's connection: they see, and are part of, its open transaction."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from relet import App
from relet._store import migrate
from relet.errors import SchemaMismatch
from tests.databases import Database
from tests.store.transactions import POSTGRES_WAYS, SQLITE_WAYS, Transaction, Way


def with_work(app: App) -> App:
    @app.task
    def work(value: Any = None) -> Any:
        return value

    return app


async def on(caller: Transaction, app: App, verb: str, *args: Any, **options: Any) -> Any:
    client = app.aclient if caller.is_async else app.client
    found = getattr(client, verb)(*args, connection=caller.connection, **options)
    return await found if inspect.isawaitable(found) else found


async def enqueue_and_read(app: App, way: Way, url: str) -> None:
    async with way(url) as caller:
        (job,) = await caller.enqueue(app, app.lookup("work").draft(1))
        assert await on(caller, app, "get", job) == job
        assert app.client.get(job) is None, "no other connection sees it"
        assert await on(caller, app, "get", "no id") is None
        assert await on(caller, app, "attempts", job) == []
        assert (await on(caller, app, "jobs", task="work")).jobs == [job]
        assert await on(caller, app, "count", state="queued") == 1
        await caller.end(commit=False)


@pytest.mark.parametrize("way", POSTGRES_WAYS.values(), ids=POSTGRES_WAYS.keys())
def test_reads_see_the_open_transaction_on_postgres(pg_app: App, pg_database: Database, way: Way) -> None:
    asyncio.run(enqueue_and_read(with_work(pg_app), way, pg_database.url))


@pytest.mark.parametrize("way", SQLITE_WAYS.values(), ids=SQLITE_WAYS.keys())
def test_reads_see_the_open_transaction_of_a_file(tmp_path: Path, way: Way) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with with_work(App(url)) as app:
        app.client.migrate()
        asyncio.run(enqueue_and_read(app, way, url))


async def migrate_twice(app: App, way: Way, url: str) -> None:
    versions = list(migrate.migrations(app._store().dialect))
    async with way(url) as caller:
        assert await on(caller, app, "migrate") == versions
        await caller.end(commit=False)
    with pytest.raises(SchemaMismatch):
        app._store().check()
    async with way(url) as caller:
        assert await on(caller, app, "migrate") == versions
        await caller.end(commit=True)
    async with way(url) as caller:
        assert await on(caller, app, "migrate") == []
        (job,) = await caller.enqueue(app, app.lookup("work").draft(1))
        await caller.end(commit=True)
    assert app.client.get(job) == job
    assert app.client.migrate() == []


#: One of each driver and of each kind of session; the others differ in no call that a migration makes.
FAST = {"psycopg", "asyncpg", "sqlalchemy-connection", "sqlalchemy-session", "sqlalchemy-async-asyncpg"}


@pytest.mark.parametrize(
    "way", [pytest.param(name, marks=[] if name in FAST else pytest.mark.long) for name in POSTGRES_WAYS]
)
def test_a_migration_is_part_of_the_transaction_on_postgres(pg_database: Database, way: str) -> None:
    name = f"{pg_database.schema}_own"
    with with_work(App(pg_database.url, schema=name)) as app:
        try:
            asyncio.run(migrate_twice(app, POSTGRES_WAYS[way], pg_database.url))
        finally:
            with psycopg.connect(pg_database.url) as connection:
                connection.execute(f'drop schema if exists "{name}" cascade'.encode())


@pytest.mark.parametrize("way", SQLITE_WAYS.values(), ids=SQLITE_WAYS.keys())
def test_a_migration_is_part_of_the_transaction_of_a_file(tmp_path: Path, way: Way, monkeypatch: Any) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with with_work(App(url)) as app:
        # A check of an empty file would make its tables.
        monkeypatch.setattr(app._store(), "check", lambda: migrate.check(app._store().applied(), "the file", "sqlite"))
        asyncio.run(migrate_twice(app, way, url))


def test_reads_are_allowed_outside_a_transaction_and_writes_are_not(tmp_path: Path, pg_database: Database) -> None:
    with with_work(App(f"sqlite:///{tmp_path}/jobs.db")) as app:
        job = app.lookup("work").enqueue(1)
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as raw:
            assert app.client.get(job, connection=raw) == job
            assert not raw.in_transaction
    with with_work(pg_database.app()) as app:
        job = app.lookup("work").enqueue(1)
        with psycopg.connect(pg_database.url, autocommit=True) as connection:
            assert app.client.get(job, connection=connection) == job


def test_a_read_in_a_transaction_takes_no_write_lock(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with with_work(App(f"sqlite:///{path}")) as app:
        job = app.lookup("work").enqueue(1)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("begin")
            assert app.client.get(job, connection=reader) == job
            with closing(sqlite3.connect(path, timeout=0.1)) as writer:
                writer.execute("begin immediate")
                writer.rollback()
            reader.rollback()


def test_the_error_of_a_read_of_a_file_without_tables_names_the_command(tmp_path: Path) -> None:
    with with_work(App(f"sqlite:///{tmp_path}/jobs.db")) as app, closing(sqlite3.connect(tmp_path / "jobs.db")) as raw:
        raw.execute("create table mine (n integer)")
        with pytest.raises(SchemaMismatch, match=r"run app\.client\.migrate"):
            app.client.jobs(connection=raw)


def script_of(app: App, since: int, tmp_path: Path) -> str:
    """The output of the command, which needs no database."""
    (tmp_path / "shop.py").write_text(
        f"from relet import App\napp = App({app._url!r}, schema={app._schema!r})\n"  # as a user's module has it
    )
    command = [sys.executable, "-m", "relet", "migrate", "shop:app", "--sql", "--since", str(since)]
    return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout


def test_the_sql_of_the_migrations_makes_the_same_tables_in_a_file(tmp_path: Path) -> None:
    with (
        with_work(App(f"sqlite:///{tmp_path}/jobs.db")) as app,
        with_work(App(f"sqlite:///{tmp_path}/other.db")) as other,
    ):
        script = script_of(app, 0, tmp_path)
        assert not (tmp_path / "jobs.db").exists()
        with closing(sqlite3.connect(tmp_path / "jobs.db")) as raw:
            raw.executescript(script)
        assert app.client.migrate() == []
        assert app.lookup("work").enqueue(1).state == "queued"
        other.client.migrate()
        tables = "select type, name, tbl_name from sqlite_master where name not like 'sqlite_%' order by 1, 2"
        found = []
        for name in ("jobs.db", "other.db"):
            with closing(sqlite3.connect(tmp_path / name)) as raw:
                found.append(raw.execute(tables).fetchall())
        assert found[0] == found[1]


def test_the_sql_of_the_migrations_runs_in_steps_on_postgres(pg_database: Database, tmp_path: Path) -> None:
    name = f"{pg_database.schema}_sql"
    with with_work(App(pg_database.url, schema=name)) as app:
        scripts = script_of(app, 0, tmp_path), script_of(app, 3, tmp_path)
        assert "error_type" in scripts[1]
        first = f'create table "{name}".jobs ('
        assert first in scripts[0]
        assert first not in scripts[1], "version 3 and those before it are left out"
        try:
            with psycopg.connect(pg_database.url, autocommit=True) as connection:
                connection.execute(scripts[0].encode())
            assert app.client.migrate() == []
            assert app.lookup("work").enqueue(1).state == "queued"
        finally:
            with psycopg.connect(pg_database.url) as connection:
                connection.execute(f'drop schema if exists "{name}" cascade'.encode())
