"""The schema: made once, by the first process; checked at the start; refused when it is not ours to work with."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from relet import App
from relet._store import migrate
from relet.errors import SchemaMismatch, StoreError
from tests import forks
from tests.conftest import SERVERS
from tests.databases import inventory
from tests.servers import local_names
from tests.store.interleave import Background

pytestmark = pytest.mark.every_server

ALL = list(migrate.migrations("postgres"))


@pytest.fixture
def app(store_url: str, schema: str) -> Iterator[App]:
    """An app in a store that holds nothing at all."""
    app = make_app(store_url, schema)
    yield app
    app.close()


def make_app(url: str, schema: str) -> App:
    app = App(url, schema=schema)

    @app.task
    def work(value: Any = None) -> Any:
        return value

    return app


def version(app: App) -> int:
    (number,) = sql(app, "select max(version) from {schema}migrations").fetchone()
    return int(number)


def sql(app: App, statement: str) -> Any:
    """Run something on a connection of the test's own."""
    store = app._store()
    if store.dialect == "postgres":
        connection: Any = psycopg.connect(store._url)  # type: ignore[attr-defined]
        statement = statement.format(schema=f"{store.schema}.")  # type: ignore[attr-defined]
    else:
        connection = sqlite3.connect(store._memory or store.path, uri=bool(store._memory))  # type: ignore[attr-defined]
        statement = statement.format(schema=f"{store.quoted}_")
    with closing(connection):
        cursor = connection.execute(statement)
        rows = iter(cursor.fetchall() if cursor.description else [])
        connection.commit()

    class Rows:
        def fetchone(self) -> Any:
            return next(rows, None)

    return Rows()


@pytest.mark.long
def test_a_fresh_store_is_migrated_once(app: App) -> None:
    newest = migrate.newest(app._store().dialect)
    assert app.client.migrate() == list(range(1, newest + 1))
    before = inventory(app._store())
    assert app.client.migrate() == []
    assert inventory(app._store()) == before
    assert version(app) == newest
    app.lookup("work").enqueue()
    assert app.client.migrate() == []
    assert app.client.count() == 1, "jobs stay"


def test_both_dialects_are_at_the_same_version() -> None:
    assert (
        list(migrate.migrations("postgres"))
        == list(migrate.migrations("sqlite"))
        == list(range(1, migrate.newest("sqlite") + 1))
    )


@pytest.mark.long
def test_the_error_of_postgres_without_a_schema_names_the_command(pg_url: str, schema: str) -> None:
    app = make_app(pg_url, schema)
    for use in (app.client.count, app.lookup("work").enqueue, app.client.queues):
        with pytest.raises(
            SchemaMismatch, match=rf"schema {schema} of .* holds no Relet schema yet: run app.client.migrate"
        ):
            use()
    app.client.migrate()
    app.lookup("work").enqueue()
    assert app.client.count() == 1, "the app that was refused goes on"
    app.close()


def test_a_new_file_needs_no_migrate(sqlite_url: str) -> None:
    app = make_app(sqlite_url, "relet")
    app.lookup("work").enqueue()
    assert app.client.count() == 1
    assert app.client.migrate() == []
    app.close()


def test_a_newer_schema_is_refused(app: App, store_url: str, schema: str) -> None:
    app.client.migrate()
    newest = migrate.newest(app._store().dialect)
    stamp = "statement_timestamp()" if app._store().dialect == "postgres" else "0"
    sql(app, f"insert into {{schema}}migrations (version, applied_at) values ({newest + 1}, {stamp})")
    app._store()._checked = False  # as in a program that starts now
    for use in (app.client.count, app.lookup("work").enqueue, app.client.migrate):
        with pytest.raises(
            SchemaMismatch, match=f"is at version {newest + 1}, this release knows {newest}: upgrade relet"
        ):
            use()
    assert inventory(app._store())["jobs"] == 0


def add_version(app: App, version: int, oldest: int) -> None:
    """As if a later release had migrated."""
    stamp = "statement_timestamp()" if app._store().dialect == "postgres" else "0"
    row = f"{version}, {stamp}, {oldest}, '9.9.9'"
    sql(app, f"insert into {{schema}}migrations (version, applied_at, oldest, release) values ({row})")
    app._store()._checked = False  # as in a program that starts now


def test_every_migration_says_which_releases_work_with_it() -> None:
    said = [{n: migrate.oldest(n, text) for n, text in migrate.migrations(d).items()} for d in ("postgres", "sqlite")]
    assert said[0] == said[1]
    assert all(1 <= oldest <= version for version, oldest in said[0].items())
    assert all("\n-- oldest: " in text for d in ("postgres", "sqlite") for text in migrate.migrations(d).values())


def test_a_newer_schema_that_was_made_for_this_release_as_well_is_worked_with(app: App) -> None:
    app.client.migrate()
    newest = migrate.newest(app._store().dialect)
    add_version(app, newest + 1, oldest=newest)
    add_version(app, newest + 2, oldest=1)
    app.lookup("work").enqueue()
    assert app.client.count() == 1
    assert app.client.migrate() == []
    assert version(app) == newest + 2


def test_the_requirement_of_any_migration_for_a_release_counts(app: App) -> None:
    app.client.migrate()
    newest = migrate.newest(app._store().dialect)
    add_version(app, newest + 1, oldest=newest + 1)
    add_version(app, newest + 2, oldest=newest)
    for use in (app.client.count, app.lookup("work").enqueue, app.client.migrate):
        by = rf"by relet 9.9.9, for releases that know {newest + 1}"
        why = rf"version {newest + 2} \({by}\), this release knows {newest}: upgrade relet"
        with pytest.raises(SchemaMismatch, match=why):
            use()


def test_an_older_schema_is_refused_until_it_is_migrated(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    app.client.migrate()
    app.lookup("work").enqueue()
    dialect = app._store().dialect
    newest = migrate.newest(dialect)
    later = {**migrate.migrations(dialect), newest + 1: "create table {schema}.more (n integer)"}
    if dialect == "sqlite":
        later[newest + 1] = "create table more (n integer); insert into more values (1); insert into more values (2)"
    monkeypatch.setattr(migrate, "migrations", lambda _: later)
    app._store()._checked = False
    for use in (app.client.count, app.lookup("work").enqueue):
        with pytest.raises(
            SchemaMismatch, match=f"is at version {newest}, this release needs {newest + 1}: run app.client.migrate"
        ):
            use()
    assert app.client.migrate() == [newest + 1]
    assert "more" in inventory(app._store())
    assert app.client.count() == 1
    assert app.client.migrate() == []


def test_a_migration_that_fails_leaves_nothing_of_itself(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    app.client.migrate()
    dialect = app._store().dialect
    newest = migrate.newest(dialect)
    prefix = "{schema}."
    broken = f"create table {prefix}more (n integer); create table {prefix}jobs (n integer)"
    later = {**migrate.migrations(dialect), newest + 1: broken}
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda _: later)
        with pytest.raises(StoreError, match="jobs"):
            app.client.migrate()
    assert "more" not in inventory(app._store())
    assert version(app) == newest
    assert app.client.count() == 0


@pytest.mark.long
def test_a_first_migration_that_fails_leaves_nothing_at_all(
    pg_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(make_app(pg_url, schema)) as app, psycopg.connect(pg_url, autocommit=True) as raw:
        broken = {1: f"{migrate.migrations('postgres')[1]}; select 1 / 0"}
        with monkeypatch.context() as patch:
            patch.setattr(migrate, "migrations", lambda _: broken)
            with pytest.raises(StoreError, match="division by zero"):
                app.client.migrate()
        assert raw.execute("select to_regnamespace(%s)", (schema,)).fetchone() == (None,)
        assert app.client.migrate() == ALL


@pytest.mark.long
def test_statements_are_sent_one_at_a_time(pg_url: str, schema: str) -> None:
    """Several at once cannot be prepared."""

    class Preparing(psycopg.Connection[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            return super().execute(query, params, prepare=True)

    with Preparing.connect(pg_url, autocommit=True) as raw:
        with pytest.raises(psycopg.errors.SyntaxError, match="multiple commands"):
            raw.execute("select 1; select 2")
        assert migrate.migrate_postgres(raw, schema, f'"{schema}"') == ALL
        raw.execute(f"drop schema {schema} cascade")


@pytest.mark.long
@pytest.mark.parametrize("made", ["schema", "table", "lock"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_objects_that_another_process_makes_at_the_same_moment_are_waited_for(
    pg_url: str, schema: str, made: str, end: str
) -> None:
    """`create if not exists` fails where another transaction has made the same and is not over."""
    with closing(make_app(pg_url, schema)) as app, psycopg.connect(pg_url, autocommit=True) as raw:
        statements = [
            f"create schema {schema}",
            f"create table {schema}.migrations"
            " (version integer primary key, applied_at timestamptz default now(), oldest integer, release text)",
            f"create table {schema}.migration_lock (single boolean primary key check (single))",
        ]
        before = ["schema", "table", "lock"].index(made)
        for statement in (*statements[:before], "begin", *statements[before:]):
            raw.execute(statement.encode())
        migrating = Background(app.client.migrate)
        assert migrating.blocked
        raw.execute(end.encode())
        assert migrating.result() == ALL
        assert app.client.count() == 0


def test_who_migrates_waits_for_the_row(pg_url: str, schema: str) -> None:
    with closing(make_app(pg_url, schema)) as app, psycopg.connect(pg_url) as raw:
        app.client.migrate()
        raw.execute(f"select 1 from {schema}.migration_lock for update".encode())
        migrating = Background(app.client.migrate)
        assert migrating.blocked
        raw.rollback()
        assert migrating.result() == []


def test_a_process_that_has_waited_sees_the_changes_made_meanwhile_whatever_the_isolation_level_of_the_role(
    pg_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = f"{pg_url}{'&' if '?' in pg_url else '?'}options=-c%20default_transaction_isolation%3Dserializable"
    with closing(make_app(strict, schema)) as app, psycopg.connect(pg_url) as raw:
        app.client.migrate()
        later = {**migrate.migrations("postgres"), ALL[-1] + 1: "create table {schema}.more (n integer)"}
        monkeypatch.setattr(migrate, "migrations", lambda _: later)
        for statement in ("select 1 from {}.migration_lock for update", "create table {}.more (n integer)"):
            raw.execute(statement.format(schema).encode())
        raw.execute(f"insert into {schema}.migrations (version) values ({ALL[-1] + 1})".encode())
        migrating = Background(app.client.migrate)
        assert migrating.blocked
        raw.commit()
        assert migrating.result() == []


RACE = """
import os, sys
from relet import App
app = App(sys.argv[1], schema=sys.argv[2])
@app.task
def work(): ...
gate, start = os.pipe()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        os.close(start)
        os.read(gate, 1)
        sys.stdout.write(f"{app.client.migrate()}\\n")
        sys.stdout.flush()
        work.enqueue()
        os._exit(0)
    children.append(child)
os.close(start)
sys.exit(sum(os.waitpid(child, 0)[1] for child in children) != 0)
"""


@pytest.mark.parametrize("kind", ["sqlite", *local_names()])
def test_eight_processes_that_migrate_at_once_make_one_schema(
    request: pytest.FixtureRequest, kind: str, tmp_path: Path, schema: str
) -> None:
    server = None if kind == "sqlite" else request.config.stash[SERVERS].get(kind)
    url = f"sqlite:///{tmp_path / 'race.db'}" if server is None else server.dsn
    try:
        race = forks.run([sys.executable, "-c", RACE, url, schema], timeout=100)
        assert race.returncode == 0, race.stderr
        everything = str(list(range(1, migrate.newest("sqlite") + 1)))
        assert sorted(race.stdout.splitlines()) == sorted([everything, *["[]"] * 7])
        app = App(url, schema=schema)
        assert app.client.count() == 8
        app.close()
    finally:
        if server is not None:
            server.drop_schema(schema)


@pytest.mark.long
def test_two_schemas_in_one_database_know_nothing_of_each_other(pg_url: str, schema: str) -> None:
    here, there = make_app(pg_url, schema), make_app(pg_url, f"{schema}_2")
    try:
        here.client.migrate()
        with pytest.raises(SchemaMismatch):
            there.client.count()
        there.client.migrate()
        job = here.lookup("work").using(unique="k", target="t").enqueue()
        assert there.client.get(job) is None
        assert there.lookup("work").using(unique="k", target="t").enqueue().existing is False
        there.client.complete(there.client.jobs().jobs[0])
        assert here.client.get(job) == job
    finally:
        here.close()
        there.close()
        with psycopg.connect(pg_url) as connection:
            connection.execute(f"drop schema {schema}_2 cascade".encode())


def test_a_schema_with_the_name_of_a_keyword_is_quoted(pg_url: str) -> None:
    app = make_app(pg_url, "select")
    try:
        app.client.migrate()
        job = app.lookup("work").using(target="t", unique="k").enqueue()
        assert app.client.complete(job).state == "succeeded"
    finally:
        app.close()
        with psycopg.connect(pg_url) as connection:
            connection.execute('drop schema if exists "select" cascade')


# the user's own file


TABLES = [
    "migrations (id integer primary key, name text)",
    "jobs (id integer)",
    "keys (k)",
    "sequence (n)",
    "queues (x)",
]


@pytest.mark.parametrize("table", TABLES)
def test_a_file_may_hold_tables_of_the_users_own_with_such_names(tmp_path: Path, table: str) -> None:
    path = tmp_path / "mine.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create table {table}")
    app = make_app(f"sqlite:///{path}", "relet")
    app.lookup("work").enqueue()
    assert app.client.count() == 1
    app.close()


def test_two_schemas_in_one_file_know_nothing_of_each_other(tmp_path: Path) -> None:
    here, there = (make_app(f"sqlite:///{tmp_path / 'shop.db'}", schema) for schema in ("here", "there"))
    job = here.lookup("work").using(unique="k", target="t").enqueue()
    assert there.client.get(job) is None
    assert there.lookup("work").using(unique="k", target="t").enqueue().existing is False
    there.client.complete(there.client.jobs().jobs[0])
    assert here.client.get(job) == job
    here.close()
    there.close()


@pytest.mark.parametrize("table", [f"relet_{table}" for table in TABLES])
def test_a_file_whose_own_tables_have_our_very_names_gets_a_clear_error(tmp_path: Path, table: str) -> None:
    path = tmp_path / "mine.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create table {table}")
        before = connection.execute("select name, sql from sqlite_master").fetchall()
    app = make_app(f"sqlite:///{path}", "relet")
    with pytest.raises(StoreError, match=table.partition(" ")[0]):
        app.lookup("work").enqueue()
    with pytest.raises(StoreError, match=table.partition(" ")[0]):
        app.client.migrate()
    app.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select name, sql from sqlite_master").fetchall() == before, "nothing was added"
