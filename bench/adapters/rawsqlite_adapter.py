"""The limit on SQLite: finish one batch and claim the next in one transaction. WAL, synchronous=FULL."""

import json
import os
import sqlite3
import sys
import time
import uuid

import wire

BATCH = int(os.environ.get("BENCH_BATCH", "500"))
PAYLOAD = json.dumps({"account": "acct-7", "cents": 500})
SCHEMA = """
create table live (
    seq integer primary key, id text not null unique, state text not null default 'q',
    queue text not null default 'default', task text not null default 'noop', attempt integer not null default 0,
    token text, expires_at real, started_at real, payload text not null
);
create index live_claim on live (queue, seq) where state = 'q';
create table archive (
    id text primary key, queue text, task text, attempt integer, started_at real, finished_at real, payload text
) without rowid;
"""
ARCHIVE = """
insert into archive select id, queue, task, attempt, started_at, ?, payload from live
where id in (select value from json_each(?))
"""
DELETE = "delete from live where id in (select value from json_each(?))"
CLAIM = """
update live set state = 'r', token = ?, expires_at = ?, started_at = ?, attempt = attempt + 1
where seq in (select seq from live where state = 'q' and queue = 'default' order by seq limit ?)
returning id, task, attempt, payload
"""


def main(role):
    db = sqlite3.connect(os.environ["BENCH_FILE"], isolation_level=None, timeout=30)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = full")
    if role == "setup":
        db.executescript(SCHEMA)
    elif role == "worker":
        work(db)
    else:
        produce(db)


def work(db):
    calls = wire.Calls()
    wire.serve_worker(calls)
    held = []
    while True:
        began, claimed = time.time(), held
        db.execute("begin immediate")
        if held:
            ids = json.dumps([row[0] for row in held])
            db.execute(ARCHIVE, (began, ids))
            db.execute(DELETE, (ids,))
        held = db.execute(CLAIM, (str(uuid.uuid4()), began + 30, began, BATCH)).fetchall()
        db.execute("commit")
        if claimed or held:
            calls.add(len(claimed), began)
        else:
            time.sleep(0.002)


def produce(db):
    insert = "insert into live (id, payload) values (?, ?)"

    def one():
        db.execute(insert, (str(uuid.uuid4()), PAYLOAD))

    def bulk(n):
        db.execute("begin immediate")
        db.executemany(insert, [(str(uuid.uuid4()), PAYLOAD) for _ in range(n)])
        db.execute("commit")

    wire.serve_producer(one, bulk, lambda sent: one(), lambda numbers: bulk(len(numbers)))


main(sys.argv[1])
