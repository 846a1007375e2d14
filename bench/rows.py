"""Rows of relet's own tables, made by copying one that relet wrote.

Nothing here knows the columns: they are read from the catalogue, so that a change of the schema needs no change here.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from psycopg import sql

from bench.places import PostgresPlace
from relet import App, Job

COLUMNS = """
select a.attname from pg_attribute a
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity = ''
    and coalesce(pg_get_expr(d.adbin, d.adrelid), '') not like 'nextval%%'
order by a.attnum
"""
# A UUIDv7: the time in milliseconds, then random bits with the variant of a UUIDv4.
NEW_ID = """(lpad(to_hex((extract(epoch from {moment}) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid"""
NOW = "clock_timestamp()"


def new_id() -> str:
    """The same in Python."""
    number = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10), "big")
    return str(uuid.UUID(int=number & ~(0xF000 << 64) & ~(0xC000 << 48) | (0x7000 << 64) | (0x8000 << 48)))


@contextmanager
def client_app(url: str) -> Iterator[App]:
    """An app with the task of the benchmarks, for drafts; workers have their own."""
    app = App(url)

    @app.task
    async def noop(account: str, cents: int) -> None: ...

    try:
        yield app
    finally:
        app.close()


def enqueue_one(url: str, **options: Any) -> Job[Any]:
    with client_app(url) as app:
        return app.tasks["noop"].using(**options).enqueue("acct-7", 500)


class Copier:
    """Copies one row of a table, each time under a new id."""

    def __init__(self, place: PostgresPlace, table: str, job: str) -> None:
        self._db, self._table = place.db, sql.SQL(table)
        self._job = job
        names = [row[0] for row in self._db.execute(COLUMNS, (table,))]
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        row = self._db.execute(sql.SQL("select {}::text from {} where id = %s").format(
            sql.SQL("::text, ").join(map(sql.Identifier, names)), self._table), (job,)).fetchone()  # fmt: skip
        if row is None:
            raise LookupError(f"{table} has no row {job}")
        self.columns, self._names, self._row = columns, names, dict(zip(names, row, strict=True))

    def multiply(
        self, number: int, changes: Mapping[str, str] | None = None, moment: str = NOW, first: int = 1
    ) -> None:
        """Insert so many copies on the server.

        `changes`: SQL by column, in which `n` is the number of the copy, beginning with `first`, and `moment` the time
        in its id. The argument `moment` is SQL for that time.
        """
        values = sql.SQL(", ").join(self._expression(name, changes or {}) for name in self._names)
        statement = sql.SQL(
            "insert into {table} ({columns}) select {values} from (select n, moment, {id} as new_id from ("
            "select n, {moment} as moment from generate_series({first}, {last}) n) moments) copies, "
            "(select * from {table} where id = {job}) original"
        )  # fmt: skip
        self._db.execute(statement.format(
            table=self._table, columns=self.columns, values=values, first=first, last=first + number - 1, job=self._job,
            id=sql.SQL(NEW_ID.format(moment="moment")), moment=sql.SQL(moment)))  # fmt: skip

    def _expression(self, name: str, changes: Mapping[str, str]) -> sql.Composable:
        if name in changes:
            return sql.SQL(changes[name])
        return sql.SQL("new_id") if self._row[name] == self._job else sql.SQL("original.") + sql.Identifier(name)

    @property
    def used(self) -> list[str]:
        """The columns that are not null, which an insert must contain."""
        return [name for name in self._names if self._row[name] is not None]

    def texts(self) -> list[str]:
        """The values of those columns for a new job."""
        id = new_id()
        return [id if self._row[name] == self._job else self._row[name] for name in self.used]
