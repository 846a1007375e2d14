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
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .._version import __version__
from ..errors import SchemaMismatch, StoreBusy
from .fragments import Dialect
from .query import in_schema, split, with_channels

if TYPE_CHECKING:
    import psycopg

_FILE = re.compile(r"(\d{4})\.(postgres|sqlite)\.sql")
#: SQLSTATEs when another process has made the same object at the same moment: a catalog row, schema, table or type.
RACED = ("23505", "42P06", "42P07", "42710")
MAX_RACES = 100

_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.M)
_LIST = re.compile(r"^-- \{(\w+)\}: (.+(?:\n--     .+)*)$", re.M)


class Applied(NamedTuple):
    """The version of a schema (0: no schema), the oldest version that a release must know to work with it, and the
    release that migrated it last."""

    version: int
    oldest: int
    release: str | None


NOTHING = Applied(0, 0, None)


@cache
def migrations(dialect: Dialect) -> dict[int, str]:
    """The texts of the migrations by version, in order."""
    found = {}
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


def _applied(table: str) -> str:
    """The version that a release must know is the highest that any of the applied migrations requires."""
    required = f"(select max(coalesce(oldest, version)) from {table})"  # noqa: S608
    return f"select version, {required}, release from {table} order by version desc limit 1"  # noqa: S608


def postgres_applied(connection: psycopg.Connection[Any], quoted: str) -> Applied:
    """The version of a PostgreSQL schema."""
    if connection.execute("select to_regclass(%s)", (f"{quoted}.migrations",)).fetchone() == (None,):
        return NOTHING
    found = connection.execute(_applied(f"{quoted}.migrations").encode()).fetchone()
    return Applied(*found) if found else NOTHING


class _Raced(Exception):
    """Another process has made the same object at the same moment, and has committed it."""


def migrate_postgres(connection: psycopg.Connection[Any], schema: str, quoted: str) -> list[int]:
    """Apply the missing migrations in one transaction. Processes that migrate one schema at once wait for one row."""
    for _ in range(MAX_RACES):
        with suppress(_Raced), connection.transaction():
            # Each statement must see what others have committed meanwhile.
            connection.execute("set transaction isolation level read committed")
            _lock_migrations(connection, quoted)
            return _apply_missing(connection, schema, quoted)
    raise StoreBusy(f"other processes keep creating schema {schema} at the same time; try again")


def _lock_migrations(connection: psycopg.Connection[Any], quoted: str) -> None:
    """Lock the row that serializes migrations. Make it first, with its table and schema, if it does not exist.

    Not an advisory lock: on some engines it locks nothing.

    `if not exists` does not help against another transaction that makes the same object and has not committed yet: our
    statement waits for it, and then a unique index of the catalog refuses ours.
    """
    lock = f"{quoted}.migration_lock"
    try:
        connection.execute(f"create schema if not exists {quoted}")
        connection.execute(
            f"create table if not exists {quoted}.migrations"
            " (version integer primary key, applied_at timestamptz not null default statement_timestamp(),"
            " oldest integer, release text)"
        )
        connection.execute(f"create table if not exists {lock} (single boolean primary key check (single))")
        connection.execute(f"insert into {lock} values (true) on conflict do nothing")  # noqa: S608
    except Exception as error:
        if getattr(error, "sqlstate", None) in RACED:
            raise _Raced from error
        raise
    connection.execute(f"select 1 from {lock} for update")  # noqa: S608


def _apply_missing(connection: psycopg.Connection[Any], schema: str, quoted: str) -> list[int]:
    """One statement at a time, as some engines and poolers accept no more."""
    found = postgres_applied(connection, quoted)
    if found.version > newest("postgres"):
        check(found, f"schema {schema}")
    missing = {version: text for version, text in migrations("postgres").items() if version > found.version}
    for version, text in missing.items():
        for statement in split(with_channels(in_schema(text, "postgres", quoted), schema)):
            connection.execute(statement)
        connection.execute(
            f"insert into {quoted}.migrations (version, oldest, release) values (%s, %s, %s)",  # noqa: S608
            (version, oldest(version, text), __version__),
        )
    return list(missing)


def sqlite_applied(connection: sqlite3.Connection, schema: str) -> Applied:
    """The version of the schema in a SQLite file."""
    if not connection.execute("select 1 from sqlite_master where name = ?", (f"{schema}_migrations",)).fetchone():
        return NOTHING
    try:
        found = connection.execute(_applied(f"{schema}_migrations")).fetchone()
    except sqlite3.OperationalError as error:
        hint = "give the App another schema="
        raise SchemaMismatch(f"the table {schema}_migrations in this file is not Relet's ({error}): {hint}") from error
    return Applied(*found) if found else NOTHING


def migrate_sqlite(connection: sqlite3.Connection, schema: str, where: str) -> list[int]:
    """Apply the missing migrations in the caller's transaction, which has the write lock."""
    applied = []
    connection.execute(
        f"create table if not exists {schema}_migrations"
        " (version integer primary key, applied_at real not null, oldest integer, release text)"
    )
    found = sqlite_applied(connection, schema)
    if found.version > newest("sqlite"):
        check(found, where, "sqlite")
    for version, text in migrations("sqlite").items():
        if version > found.version:
            for statement in split(in_schema(text, "sqlite", schema)):
                connection.execute(statement)
            moment = "(julianday('now') - 2440587.5) * 86400"
            connection.execute(
                f"insert into {schema}_migrations (version, applied_at, oldest, release)"  # noqa: S608
                f" values (?, {moment}, ?, ?)",
                (version, oldest(version, text), __version__),
            )
            applied.append(version)
    return applied
