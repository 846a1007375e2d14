"""Schemas of PostgreSQL that one test after another uses, emptied after each.

To make a schema and to drop it takes as long as most tests do. A process of tests therefore keeps those that it has
made, for whatever module asks next, unless a test has left more behind than rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from relet._store.open import open_store
from tests.servers import Server

EMPTIED = (
    "jobs", "finished", "keys", "dependencies", "attempts", "nudges", "queues", "steps", "signals", "rates", "starts",
    "group_limits", "ready_groups", "group_nudges", "tags", "reruns",
    "schedules", "ticks", "workers", "stats", "audit", "operations", "queue_samples",
    "ended_sessions", "sleepers",
)  # fmt: skip

#: Deleted rows are still there until a vacuum, and slow down statements that read a whole table.
TOO_BIG = 8_000_000

#: Tables, columns, indexes, constraints, triggers, functions and rights: everything but rows.
SHAPE = """
    select 'class', c.relname, c.relkind::text, c.relacl::text, c.reloptions::text,
        (select string_agg(concat_ws(' ', a.attname, a.atttypid::regtype, a.attnotnull), ', ' order by a.attnum)
         from pg_attribute a where a.attrelid = c.oid and a.attnum > 0)
    from pg_class c where c.relnamespace = %(schema)s::regnamespace
    union all
    select 'constraint', conname, conrelid::regclass::text, pg_get_constraintdef(oid), null, null
    from pg_constraint where connamespace = %(schema)s::regnamespace
    union all
    select 'trigger', t.tgname, c.relname, t.tgenabled::text, null, null
    from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = %(schema)s::regnamespace
    union all
    select 'function', proname, md5(prosrc), proacl::text, null, null
    from pg_proc where pronamespace = %(schema)s::regnamespace
    union all
    select 'schema', nspacl::text, pg_get_userbyid(nspowner), null, null, null
    from pg_namespace where oid = %(schema)s::regnamespace
    order by 1, 2, 3
"""
SIZE = """
    select coalesce(sum(pg_relation_size(oid)), 0)::bigint
    from pg_class where relnamespace = %(schema)s::regnamespace and relkind in ('r', 'i')
"""


def emptying(schema: str) -> list[str]:
    """The statements that delete the rows that a test has left in a schema."""
    return [
        *(f"delete from {schema}.{table}" for table in EMPTIED),
        f"delete from {schema}.pulse",
        f"insert into {schema}.pulse default values",
        f"update {schema}.arming set armed_until = '-infinity'",
        f"update {schema}.quarantine set worker = null",
    ]


class SharedSchema:
    """A schema, and a connection that empties it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = f"t_{uuid.uuid4().hex[:12]}"
        store = open_store(server.dsn, schema=self.name)
        store.migrate()
        store.close()
        self._raw: psycopg.Connection[Any] | None = None
        self._new = self._shape()

    def empty(self) -> None:
        """Of all that a test has left."""
        self._execute(*emptying(self.name))

    def is_as_new(self) -> bool:
        """Whether its tables are small, and as they were made. Fails if a connection still has a lock."""
        self._execute(
            f"lock table {', '.join(f'{self.name}.{table}' for table in EMPTIED)} in access exclusive mode",
        )
        (size,) = self._connection().execute(SIZE, {"schema": self.name}).fetchone() or (0,)
        return bool(size < TOO_BIG) and self._shape() == self._new

    def drop(self) -> None:
        self._connection().close()
        self.server.drop_schema(self.name)

    def _shape(self) -> list[Any]:
        migrations = self._connection().execute(f"select version, null from {self.name}.migrations".encode()).fetchall()
        return [*self._connection().execute(SHAPE, {"schema": self.name}).fetchall(), *migrations]

    def _execute(self, *statements: str) -> None:
        """In one transaction. Does not wait long for a lock: a test forgot the connection that has it."""
        self._connection().execute("; ".join(["set lock_timeout = '10s'", *statements]).encode())

    def _connection(self) -> psycopg.Connection[Any]:
        """Kept from test to test; a new one if a test has terminated it."""
        if self._raw is None or self._raw.closed:
            self._raw = psycopg.connect(self.server.dsn, autocommit=True)
        return self._raw


class Schemas:
    """Schemas that a process of tests has made and that no test uses just now."""

    def __init__(self) -> None:
        self._idle: list[SharedSchema] = []

    @contextmanager
    def one_of(self, server: Server) -> Iterator[SharedSchema]:
        """An empty schema, for this caller alone."""
        fit = [schema for schema in self._idle if schema.server == server]
        schema = fit[-1] if fit else SharedSchema(server)
        if fit:
            self._idle.remove(schema)
        try:
            yield schema
        except BaseException:
            schema.drop()
            raise
        schema.empty()  # a module that shares one store among its tests leaves the rows of the last
        if schema.is_as_new():
            self._idle.append(schema)
        else:
            schema.drop()

    def close(self) -> None:
        for schema in self._idle:
            schema.drop()


_SCHEMAS = pytest.StashKey[Schemas]()


def schemas_of(config: pytest.Config) -> Schemas:
    """Those of this process, dropped when it ends."""
    if _SCHEMAS not in config.stash:
        config.stash[_SCHEMAS] = made = Schemas()
        config.add_cleanup(made.close)
    return config.stash[_SCHEMAS]
