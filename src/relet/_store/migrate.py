"""Migrations: numbered files, each applied once, in order, in one transaction, statement by statement, under a lock.

A release works with the version that its own migrations make, and with later versions that declare it: each file has a
line `-- oldest: N`, which is stored with its version. A release whose newest migration is N, or a later one, works with
a schema to which this file was applied. So an operator can migrate a store while programs of the previous release run,
and can also restart them. A schema migrated by a file without the line works with no earlier release.

A file may name a list of columns in a comment, `-- {kept}: id, chain`, continued in lines that begin with `--     `.
The statements of the file then contain `{kept}`, or `{j.kept}` for the columns of table `j`. The list is not made from
the fields of `Job`, because a migration must not change after its release.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from .._version import __version__
from ..errors import SchemaMismatch, StoreBusy
from . import rows
from .fragments import Dialect
from .query import Row, in_schema, plain_name, split, with_channels

if TYPE_CHECKING:
    import psycopg

R = TypeVar("R")

_FILE = re.compile(r"(\d{4})\.(postgres|sqlite|rows)\.sql")
#: SQLSTATEs when another process has made the same object at the same moment: a catalog row, schema, table or type.
RACED = ("23505", "42P06", "42P07", "42710")
MAX_RACES = 100

_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.M)
_LIST = re.compile(r"^-- \{(\w+)\}: (.+(?:\n--     .+)*)$", re.M)


class Applied(NamedTuple):
    """The version of a schema (0: no schema), the oldest version that a release must know to work with it, and the
    release that migrated it last. `statements`: which texts of statements the schema needs."""

    version: int
    oldest: int
    release: str | None
    statements: Dialect | None = None


NOTHING = Applied(0, 0, None)


@cache
def migrations(dialect: Dialect) -> dict[int, str]:
    """The texts of the migrations by version, in order."""
    found = dict(migrations("postgres")) if dialect == "rows" else {}
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    for name in os.listdir(folder):
        match = _FILE.fullmatch(name)
        if match and match[2] == dialect:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[int(match[1])] = _with_lists(file.read())
    return dict(sorted(found.items()))


def _with_lists(text: str) -> str:
    """Fill in the lists of columns that a migration names."""
    for name, words in _LIST.findall(text):
        columns = words.replace("\n--", "").replace(",", " ").split()
        text = text.replace(f"{{{name}}}", ", ".join(columns))
        text = text.replace(f"{{j.{name}}}", ", ".join(f"j.{column}" for column in columns))
    return text


def newest(dialect: Dialect) -> int:
    """The version that the migrations of this release make."""
    return max(migrations(dialect))


def oldest(version: int, text: str) -> int:
    """The oldest version whose releases work with a schema that this migration was applied to."""
    match = _OLDEST.search(text)
    return int(match[1]) if match else version


def check(found: Applied, where: str, dialect: Dialect = "postgres") -> None:
    """Raise SchemaMismatch if the schema is older than this release, or newer and not compatible with it."""
    wanted = newest(dialect)
    if found.version == 0:
        raise SchemaMismatch(f"{where} holds no Relet schema yet: run app.client.migrate()")
    if found.version < wanted:
        raise SchemaMismatch(
            f"{where} is at version {found.version}, this release needs {wanted}: run app.client.migrate()"
        )
    if found.oldest > wanted:
        by = f" (by relet {found.release}, for releases that know {found.oldest})" if found.release else ""
        raise SchemaMismatch(f"{where} is at version {found.version}{by}, this release knows {wanted}: upgrade relet")


def outcome(applied: list[int], found: Applied, dialect: Dialect) -> str:
    """A sentence that says what a migration did, and what that means for programs of other releases."""
    if not applied:
        ahead = (
            f"is at version {found.version}, newer than this release, which knows {newest(dialect)} and works with it"
        )
        return ahead if found.version > newest(dialect) else "is up to date"
    done, before = f"applied {', '.join(map(str, applied))}", applied[0] - 1
    if before == 0:
        return done
    if found.oldest <= before:
        return f"{done}; programs of the release before work with it as well"
    return f"{done}; programs of releases that do not know version {found.oldest} cannot work with it: upgrade them now"


Steps = Generator[str, list[Row], R]  # yields statements, and receives their rows


def run_steps(steps: Steps[R], execute: Callable[[str], list[Row]]) -> R:
    """Run the statements that a generator yields."""
    try:
        statement = next(steps)
        while True:
            statement = steps.send(execute(statement))
    except StopIteration as end:
        return cast(R, end.value)


async def arun_steps(steps: Steps[R], execute: Callable[[str], Awaitable[list[Row]]]) -> R:
    """Async version of `run_steps`."""
    try:
        statement = next(steps)
        while True:
            statement = steps.send(await execute(statement))
    except StopIteration as end:
        return cast(R, end.value)


def applied(dialect: Dialect, quoted: str) -> Steps[Applied]:
    """The version of a schema."""
    table = _table(dialect, quoted)
    seen = yield _exists(dialect, table, quoted)
    if not seen or seen[0][0] is None:
        return NOTHING
    # The version that a release must know is the highest that any of the applied migrations requires.
    required = f"(select max(coalesce(oldest, version)) from {table})"
    found = yield f"select version, {required}, release from {table} order by version desc limit 1"
    return Applied(*found[0])._replace(statements=_statements_of(dialect, seen[0])) if found else NOTHING


def postgres_statements(connection: psycopg.Connection[Any], quoted: str) -> Dialect:
    """Which statements a PostgreSQL schema needs."""
    return run_steps(statements(quoted), partial(_on_postgres, connection)) or "postgres"


def statements(quoted: str) -> Steps[Dialect | None]:
    """Which statements a PostgreSQL schema needs; None: there is no schema."""
    (row,) = yield _exists("postgres", _table("postgres", quoted), quoted)
    return None if row[0] is None else _statements_of("postgres", row)


def _statements_of(dialect: Dialect, row: Row) -> Dialect:
    """By the kind of its table `finished`: only the schema of PostgreSQL proper has partitions."""
    return "sqlite" if dialect == "sqlite" else "postgres" if row[1] == "p" else "rows"


def _table(dialect: Dialect, quoted: str) -> str:
    return in_schema("{schema}.migrations", dialect, quoted)


def _exists(dialect: Dialect, table: str, quoted: str) -> str:
    if dialect != "sqlite":
        kind = f"(select relkind::text from pg_catalog.pg_class where oid = to_regclass('{quoted}.finished'))"
        return f"select to_regclass('{table}')::text, {kind}"
    return f"select 1 from sqlite_master where name = '{table}'"


def apply_missing(dialect: Dialect, quoted: str, where: str) -> Steps[list[int]]:
    """Apply the missing migrations in an open transaction, one statement at a time, as some engines and poolers accept
    no more. Processes that migrate one schema at once wait for one row, or for the write lock of SQLite."""
    for statement in _preparation(dialect, quoted):
        yield statement
    found = yield from applied(dialect, quoted)
    dialect = found.statements or dialect
    if found.version > newest(dialect):
        check(found, where, dialect)
    missing = [version for version in migrations(dialect) if version > found.version]
    for version in missing:
        for statement in _statements(dialect, quoted, version):
            yield statement
    return missing


def script(dialect: Dialect, quoted: str, since: int) -> str:
    """The migrations after version `since` as one text, for a program that runs SQL: psql, sqlite3, Alembic."""
    statements = list(_preparation(dialect, quoted))
    for version in migrations(dialect):
        if version > since:
            statements += _statements(dialect, quoted, version)
    return "\n\n".join(["begin;", *(f"{statement};" for statement in statements), "commit;"]) + "\n"


def _preparation(dialect: Dialect, quoted: str) -> list[str]:
    """Make the table of migrations. On PostgreSQL, lock the row that serializes them; make it first, if necessary.

    Not an advisory lock: on some engines it locks nothing.
    """
    table = _table(dialect, quoted)
    if dialect == "sqlite":
        columns = "version integer primary key, applied_at real not null, oldest integer, release text"
        return [f"create table if not exists {table} ({columns})"]
    moment = "timestamptz not null default statement_timestamp()"
    columns = f"version integer primary key, applied_at {moment}, oldest integer, release text"
    lock = f"{quoted}.migration_lock"
    return [
        f"create schema if not exists {quoted}",
        f"create table if not exists {table} ({columns})",
        f"create table if not exists {lock} (single boolean primary key check (single))",
        f"insert into {lock} values (true) on conflict do nothing",
        f"select 1 from {lock} for update",
    ]


def _statements(dialect: Dialect, quoted: str, version: int) -> list[str]:
    """The statements of a migration, and the one that records it."""
    text = migrations(dialect)[version]
    filled = [in_schema(statement, dialect, quoted) for statement in unfilled(dialect, version)]
    if dialect != "sqlite":
        filled = [with_channels(statement, plain_name(quoted)) for statement in filled]
    moment = "(julianday('now') - 2440587.5) * 86400" if dialect == "sqlite" else "statement_timestamp()"
    record = (
        f"insert into {_table(dialect, quoted)} (version, applied_at, oldest, release)"
        f" values ({version}, {moment}, {oldest(version, text)}, '{__version__}')"
    )
    return [*filled, record]


def unfilled(dialect: Dialect, version: int) -> list[str]:
    """The statements of a migration, without the name of the schema."""
    found = split(migrations(dialect)[version])
    return rows.migration(found, migrations("postgres")[1]) if dialect == "rows" else found


def postgres_applied(connection: psycopg.Connection[Any], quoted: str) -> Applied:
    """The version of a PostgreSQL schema."""
    return run_steps(applied("postgres", quoted), partial(_on_postgres, connection))


def _on_postgres(connection: psycopg.Connection[Any], statement: str) -> list[Row]:
    cursor = connection.execute(statement.encode())
    return cursor.fetchall() if cursor.description else []


class _Raced(Exception):
    """Another process has made the same object at the same moment, and has committed it."""


def migrate_postgres(
    connection: psycopg.Connection[Any], schema: str, quoted: str, dialect: Dialect = "postgres"
) -> list[int]:
    """Apply the missing migrations in one transaction. `dialect`: of a new schema.

    `if not exists` does not help against another transaction that makes the same object and has not committed yet: our
    statement waits for it, and then a unique index of the catalog refuses ours.
    """
    makes_schema = _preparation("postgres", quoted)

    def execute(statement: str) -> list[Row]:
        try:
            return _on_postgres(connection, statement)
        except Exception as error:
            if statement in makes_schema and getattr(error, "sqlstate", None) in RACED:
                raise _Raced from error
            raise

    for _ in range(MAX_RACES):
        with suppress(_Raced), connection.transaction():
            # Each statement must see what others have committed meanwhile.
            connection.execute("set transaction isolation level read committed")
            return run_steps(apply_missing(dialect, quoted, f"schema {schema}"), execute)
    raise StoreBusy(f"other processes keep creating schema {schema} at the same time; try again")


def sqlite_applied(connection: sqlite3.Connection, schema: str) -> Applied:
    """The version of the schema in a SQLite file."""
    try:
        return run_steps(applied("sqlite", schema), lambda statement: connection.execute(statement).fetchall())
    except sqlite3.OperationalError as error:
        if "no such column" not in str(error):
            raise
        hint = "give the App another schema="
        raise SchemaMismatch(f"the table {schema}_migrations in this file is not Relet's ({error}): {hint}") from error


def migrate_sqlite(connection: sqlite3.Connection, schema: str, where: str) -> list[int]:
    """Apply the missing migrations in the caller's transaction, which has the write lock."""
    sqlite_applied(connection, schema)  # refuses a table of another program
    steps = apply_missing("sqlite", schema, where)
    return run_steps(steps, lambda statement: connection.execute(statement).fetchall())
