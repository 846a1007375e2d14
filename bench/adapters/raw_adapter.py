"""The limit on PostgreSQL: claim and finish rows of a lean table in a bare psycopg loop.

No handlers, no lease renewal, no retries. A claim takes 500 rows; finishing moves them to an archive table.
"""

import json
import os
import sys
import time
import uuid

import psycopg
import wire

BATCH = int(os.environ.get("BENCH_BATCH", "500"))
PAYLOAD = json.dumps({"account": "acct-7", "cents": 500})
SCHEMA = """
create table live (
    id uuid primary key default gen_random_uuid(), seq bigint generated always as identity,
    state "char" not null default 'q', queue text not null default 'default', task text not null default 'noop',
    run_at timestamptz not null default now(), attempt smallint not null default 0, token uuid,
    expires_at timestamptz, started_at timestamptz, payload jsonb not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index live_claim on live (queue, seq) where state = 'q';
create table archive (
    id uuid not null, queue text, task text, attempt smallint, started_at timestamptz,
    finished_at timestamptz default now(), payload jsonb, result jsonb
);
"""
CLAIM = """
with due as materialized (
    select ctid from live where state = 'q' and queue = 'default' order by seq limit %(batch)s for update skip locked
)
update live set state = 'r', token = %(token)s, expires_at = now() + interval '30s', started_at = now(),
    attempt = attempt + 1
from due where live.ctid = due.ctid returning live.id, task, attempt, payload
"""
FINISH = """
with gone as (
    delete from live using unnest(%(ids)s::uuid[]) as done (id) where live.id = done.id and live.token = %(token)s
    returning live.id, queue, task, attempt, started_at, payload
)
insert into archive (id, queue, task, attempt, started_at, payload) select * from gone
"""
PLANS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit")  # an empty table's statistics mislead


def main(role):
    db = psycopg.connect(os.environ["BENCH_URL"], autocommit=True)
    if role == "setup":
        version = db.info.server_version
        db.execute(SCHEMA.replace("gen_random_uuid()", "uuidv7()") if version >= 180000 else SCHEMA)
    elif role == "worker":
        work(db)
    else:
        produce(db)


def work(db):
    for setting in PLANS:
        db.execute(f"set {setting} = off")
    calls = wire.Calls()
    wire.serve_worker(calls)
    while True:
        token, began = uuid.uuid4(), time.time()
        rows = db.execute(CLAIM, {"batch": BATCH, "token": token}, binary=True, prepare=True).fetchall()
        if not rows:
            time.sleep(0.001)
            continue
        db.execute(FINISH, {"ids": [row[0] for row in rows], "token": token}, binary=True, prepare=True)
        calls.add(len(rows), began)


def produce(db):
    insert = "insert into live (payload) values (%s) returning id"
    insert_many = "insert into live (payload) select unnest(%s::jsonb[]) returning id"

    def one():
        db.execute(insert, (PAYLOAD,), prepare=True).fetchone()

    def bulk(n):
        db.execute(insert_many, ([PAYLOAD] * n,), prepare=True).fetchall()

    wire.serve_producer(one, bulk, lambda sent: one(), lambda numbers: bulk(len(numbers)))


main(sys.argv[1])
