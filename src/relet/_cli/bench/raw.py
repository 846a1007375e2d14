"""The same work as a bare loop of SQL: the speed of the database without a queue."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs

if TYPE_CHECKING:
    import psycopg

BATCH = 500
PAYLOAD = '{"account":"acct-7","cents":500}'


class RawLoop(Protocol):
    """A minimal table of jobs, and an archive."""

    def insert(self) -> None:
        """Insert one job in one transaction."""

    def insert_many(self, number: int) -> None: ...

    def analyze(self) -> None:
        """Update the statistics of the query planner."""

    def step(self) -> int:
        """Claim and finish a batch. Returns its size."""


TABLES = """
create table {schema}.raw_live (
    seq bigint generated always as identity, id uuid primary key default gen_random_uuid(),
    queue text not null default 'default', token uuid, attempt smallint not null default 0, payload json
);
create index raw_claim on {schema}.raw_live (queue, seq) where token is null;
create table {schema}.raw_archive (id uuid, queue text, attempt smallint, payload json, finished_at timestamptz)
"""
CLAIM = """
with due as materialized (
    select ctid from {schema}.raw_live where token is null and queue = 'default' order by seq limit %s
    for update skip locked
)
update {schema}.raw_live live set token = %s, attempt = attempt + 1 from due where live.ctid = due.ctid
returning live.id, payload
"""
FINISH = """
with gone as (
    delete from {schema}.raw_live where id = any(%s) and token = %s returning id, queue, attempt, payload
)
insert into {schema}.raw_archive select id, queue, attempt, payload, now() from gone
"""


class PostgresLoop:
    """Claims with SKIP LOCKED, finishes by moving rows to the archive."""

    def __init__(self, url: str, schema: str) -> None:
        import psycopg

        self._db = psycopg.connect(url, autocommit=True)
        self._schema = schema
        self._execute(TABLES)

    def _execute(self, statement: str, parameters: Any = None) -> psycopg.Cursor[Any]:
        text = statement.format(schema=self._schema).encode()
        return self._db.execute(text, parameters, prepare=parameters is not None)

    def close(self) -> None:
        self._db.close()

    def insert(self) -> None:
        self._execute("insert into {schema}.raw_live (payload) values (%s)", [PAYLOAD])

    def insert_many(self, number: int) -> None:
        self._execute("insert into {schema}.raw_live (payload) select unnest(%s::json[])", [[PAYLOAD] * number])

    def analyze(self) -> None:
        self._execute("vacuum analyze {schema}.raw_live")

    def step(self) -> int:
        token = uuid.uuid4()
        rows = self._execute(CLAIM, [BATCH, token]).fetchall()
        if rows:
            self._execute(FINISH, [[row[0] for row in rows], token])
        return len(rows)


class SQLiteLoop:
    """Claims and finishes a batch in two transactions, as a worker must."""

    def __init__(self, path: str, query: str) -> None:
        level = parse_qs(query).get("synchronous", ["full"])[0]
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute(f"pragma synchronous = {level}")
        self._db.executescript("""
            create table live (seq integer primary key, id text not null unique, token text, payload text);
            create index claim on live (seq) where token is null;
            create table archive (id text primary key, payload text, finished_at real) without rowid;""")

    def close(self) -> None:
        self._db.close()

    def insert(self) -> None:
        self._db.execute("insert into live (id, payload) values (?, ?)", (str(uuid.uuid4()), PAYLOAD))

    def insert_many(self, number: int) -> None:
        self._db.execute("begin immediate")
        rows = [(str(uuid.uuid4()), PAYLOAD) for _ in range(number)]
        self._db.executemany("insert into live (id, payload) values (?, ?)", rows)
        self._db.execute("commit")

    def analyze(self) -> None:
        self._db.execute("analyze")

    def step(self) -> int:
        due = "(select seq from live where token is null order by seq limit ?)"
        claim = f"update live set token = ? where seq in {due} returning id, payload"
        rows = self._db.execute(claim, (str(uuid.uuid4()), BATCH)).fetchall()
        if rows:
            ids = json.dumps([row[0] for row in rows])
            some = "where id in (select value from json_each(?))"
            self._db.execute("begin immediate")
            self._db.execute(f"insert into archive select id, payload, ? from live {some}", (time.time(), ids))
            self._db.execute(f"delete from live {some}", (ids,))
            self._db.execute("commit")
        return len(rows)
