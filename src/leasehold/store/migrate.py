"""Migrations: numbered files applied in order, each in one transaction, under a lock, once."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..core.errors import SchemaMismatch
from .query import Dialect, in_schema, split

if TYPE_CHECKING:
    import psycopg

_FILE = re.compile(r"(\d{4})\.(postgres|sqlite)\.sql")


@cache
def migrations(dialect: Dialect) -> dict[int, str]:
    """The texts by version, in order."""
    found = {}
    for file in (files(__package__) / "migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match and match[2] == dialect:
            found[int(match[1])] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


def newest(dialect: Dialect) -> int:
    """The version that this release works with."""
    return max(migrations(dialect))


def check(found: int, where: str, dialect: Dialect = "postgres") -> None:
    """Refuse a schema that is older or newer than this release."""
    wanted = newest(dialect)
    if found == 0:
        raise SchemaMismatch(f"{where} holds no Leasehold schema yet: run app.client.migrate()")
    if found < wanted:
        raise SchemaMismatch(f"{where} is at version {found}, this release needs {wanted}: run app.client.migrate()")
    if found > wanted:
        raise SchemaMismatch(f"{where} is at version {found}, this release knows {wanted}: upgrade leasehold")


def postgres_version(connection: psycopg.Connection[Any], quoted: str) -> int:
    """The version of a schema; 0 if there is none."""
    if connection.execute("select to_regclass(%s)", (f"{quoted}.migrations",)).fetchone() == (None,):
        return 0
    (version,) = connection.execute(f"select coalesce(max(version), 0) from {quoted}.migrations").fetchone() or (0,)  # noqa: S608
    return int(version)


def migrate_postgres(connection: psycopg.Connection[Any], schema: str, quoted: str) -> list[int]:
    """Apply what is missing. All who migrate one schema at once queue up behind one lock."""
    applied = []
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"leasehold:{schema}",))
        connection.execute(f"create schema if not exists {quoted}")
        connection.execute(
            f"create table if not exists {quoted}.migrations"
            " (version integer primary key, applied_at timestamptz not null default statement_timestamp())"
        )
        found = postgres_version(connection, quoted)
        if found > newest("postgres"):
            check(found, f"schema {schema}")
        for version, text in migrations("postgres").items():
            if version > found:
                connection.execute(in_schema(text, "postgres", quoted).replace("{channel}", f"'{schema}.jobs'"))
                connection.execute(f"insert into {quoted}.migrations (version) values (%s)", (version,))  # noqa: S608
                applied.append(version)
    return applied


def sqlite_version(connection: sqlite3.Connection, schema: str) -> int:
    """The version of a file; 0 if it holds no schema."""
    if not connection.execute("select 1 from sqlite_master where name = ?", (f"{schema}_migrations",)).fetchone():
        return 0
    try:
        found = connection.execute(f"select coalesce(max(version), 0) from {schema}_migrations").fetchone()  # noqa: S608
    except sqlite3.OperationalError as error:
        hint = "give the App another schema="
        raise SchemaMismatch(f"the table {schema}_migrations here is not Leasehold's ({error}): {hint}") from error
    return int(found[0])


def migrate_sqlite(connection: sqlite3.Connection, schema: str, where: str) -> list[int]:
    """Apply what is missing, in one transaction that keeps everybody else out. The caller has begun it."""
    applied = []
    connection.execute(
        f"create table if not exists {schema}_migrations (version integer primary key, applied_at real not null)"
    )
    found = sqlite_version(connection, schema)
    if found > newest("sqlite"):
        check(found, where, "sqlite")
    for version, text in migrations("sqlite").items():
        if version > found:
            for statement in split(in_schema(text, "sqlite", schema)):
                connection.execute(statement)
            moment = "(julianday('now') - 2440587.5) * 86400"
            connection.execute(f"insert into {schema}_migrations values (?, {moment})", (version,))  # noqa: S608
            applied.append(version)
    return applied
