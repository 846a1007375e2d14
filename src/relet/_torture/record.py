"""Triggers that record each change of a job, in the transaction that makes it. They exist only in a store for torture.

On SQLite, records are in the order of commits. On PostgreSQL they are so for each job, because a change waits for the
one before; those of different jobs may be recorded in another order than they commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from .settings import Settings

#: Columns of `jobs`, `finished` and `attempts` that records keep, if the table has them.
COLUMNS = {
    "jobs": (
        *("state", "version", "attempt", "max_attempts", "losses", "worker", "token", "expires_at", "run_at", "queue"),
        *("task", "target", "group_key", "unique_key", "request", "holds", "chain", "position", "created_at"),
        *("rank", "seq"),
    ),
    "finished": ("state", "version", "attempt", "token", "task", "result", "continued", "chain", "position"),
    "attempts": ("version", "attempt", "worker", "outcome", "expires_at"),
}
TIMES = {"expires_at", "run_at", "created_at"}
EVENTS = {"jobs": ("insert", "update", "delete"), "finished": ("insert", "delete"), "attempts": ("insert",)}
#: An update that changes none of these, such as a report of progress, is not recorded.
WATCHED = ("state", "version", "token", "expires_at", "request", "run_at")


@contextmanager
def connected(settings: Settings) -> Iterator[Any]:
    """A connection to the database that no fault touches, in autocommit mode."""
    if settings.is_sqlite:
        path = settings.direct.removeprefix("sqlite:///").partition("?")[0]
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60.0)) as connection:
            yield connection
    else:
        import psycopg

        with psycopg.connect(settings.direct, autocommit=True, target_session_attrs="read-write") as opened:
            yield opened


def install(settings: Settings) -> None:
    with connected(settings) as connection:
        make = sqlite_statements if settings.is_sqlite else postgres_statements
        for statement in make(settings.prefix):
            connection.execute(statement)


def records(settings: Settings) -> Iterator[tuple[int, float, str, str, str, str | None, str | None]]:
    """All records in their order: number, time, table, event, job, and the row before and after, as JSON."""
    text = "" if settings.is_sqlite else "::text"
    with connected(settings) as connection:
        yield from connection.execute(
            f'select seq, at, "table", event, job, before{text}, after{text} '
            f"from {settings.prefix}torture_records order by seq"
        )


def postgres_statements(prefix: str, now: str = "extract(epoch from clock_timestamp())") -> list[str]:
    """`now`: an expression for the time."""
    statements = [
        f"""create table {prefix}torture_records (
            seq bigint generated always as identity primary key,
            at double precision not null default {now},
            "table" text not null, event text not null, job text not null, before json, after json)""",
        f"create table {prefix}torture_ledger (job text not null, version integer not null)",
    ]
    for table, columns in COLUMNS.items():
        job = "job" if table == "attempts" else "id"
        before, after = (_row(columns, row, "json_build_object", "extract(epoch from {})") for row in ("old", "new"))
        changed = " or ".join(f"old.{name} is distinct from new.{name}" for name in WATCHED)
        changed = changed if table == "jobs" else "true"
        statements += [
            f"""create function {prefix}torture_{table}() returns trigger language plpgsql as $$
            begin
                if tg_op = 'INSERT' then
                    insert into {prefix}torture_records ("table", event, job, after)
                    values ('{table}', 'insert', new.{job}, {after});
                elsif tg_op = 'DELETE' then
                    insert into {prefix}torture_records ("table", event, job, before)
                    values ('{table}', 'delete', old.{job}, {before});
                elsif {changed} then
                    insert into {prefix}torture_records ("table", event, job, before, after)
                    values ('{table}', 'update', new.{job}, {before}, {after});
                end if;
                return null;
            end $$""",
            f"create trigger torture after {' or '.join(EVENTS[table])} on {prefix}{table} "
            f"for each row execute function {prefix}torture_{table}()",
        ]
    return statements


def sqlite_statements(prefix: str, now: str = "(julianday('now') - 2440587.5) * 86400.0") -> list[str]:
    """`now`: an expression for the time."""
    statements = [
        f"""create table {prefix}torture_records (
            seq integer primary key, at real not null default ({now}), "table" text not null, event text not null,
            job text not null, before text, after text)""",
        f"create table {prefix}torture_ledger (job text not null, version integer not null)",
    ]
    for table, columns in COLUMNS.items():
        job = "job" if table == "attempts" else "id"
        changed = " or ".join(f"old.{name} is not new.{name}" for name in WATCHED)
        for event in EVENTS[table]:
            before = "null" if event == "insert" else _row(columns, "old", "json_object", "{}")
            after = "null" if event == "delete" else _row(columns, "new", "json_object", "{}")
            when = f"when {changed}" if event == "update" else ""
            row = "old" if event == "delete" else "new"
            statements.append(
                f"""create trigger {prefix}torture_{table}_{event} after {event} on {prefix}{table} {when} begin
                    insert into {prefix}torture_records ("table", event, job, before, after)
                    values ('{table}', '{event}', {row}.{job}, {before}, {after});
                end"""
            )
    return statements


def _row(columns: tuple[str, ...], row: str, function: str, time: str) -> str:
    pairs = [f"'{name}', {time.format(f'{row}.{name}') if name in TIMES else f'{row}.{name}'}" for name in columns]
    return f"{function}({', '.join(pairs)})"
