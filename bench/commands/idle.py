"""The cost to the server of a claim that finds nothing.

A worker that polls 100 times a second serves an empty store; 100 queues that hold only future jobs; 100 queues that are
named to it; and a store with a million jobs of tasks that it does not know, in 3,000 queues. Each store has run a job
before: PostgreSQL does not cache the root of an index that has never had an entry. One connection claims again and
again: `server_us` is the CPU of a claim, buffers and milliseconds are by pg_stat_statements. `cycle_us` is the CPU of
all that an idle worker sends each time it polls: a check, and claims where the check finds queued jobs.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from functools import partial

from bench import cells
from bench.environments import Unavailable
from bench.lab import Lab
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.rows import Copier, client_app, enqueue_one
from bench.systems import RELET
from relet._store.flows import claim
from relet._store.flows.claim_scope import Scope

HELP = "server CPU, buffers and time of a claim that finds nothing"
DETAILS = ("buffers", "milliseconds", "cycle_us")
CLAIMS = 300
ROWS = (Row("idle", "An empty claim", "server_us", "us of server CPU", True, "", DETAILS),)
POLL = 0.01
# The statement that locks rows to claim them, and the one that checks whether there is work.
CLAIM, CHECK = "%skip locked%", "%wait = 'time'%"
STATEMENT = """
select s.calls, s.mean_exec_time, (s.shared_blks_hit + s.shared_blks_read)::float / s.calls
from pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.query ilike %s order by s.calls desc limit 1
"""


def plan(lab: Lab) -> Plan:
    stores: dict[str, tuple[Callable[[Lab, PostgresPlace], None], dict[str, str]]] = {
        "empty store": (lambda lab, place: None, {}),
        "100 queues": (future_jobs, {}),
        "100 named queues": (future_jobs, {"BENCH_SERVES": json.dumps([f"q{n}" for n in range(100)])}),
        "unknown tasks": (unknown_tasks, {}),
    }
    cells = [Cell("idle", name, partial(claims, fill=fill, env=env), most=1) for name, (fill, env) in stores.items()]
    return Plan(ROWS, tuple(cells))


def claims(lab: Lab, fill: Callable[[Lab, PostgresPlace], None], env: dict[str, str]) -> Measured:
    seconds = 2.0 if lab.options.quick else 10.0
    with lab.postgres_place(RELET) as place:
        _track(place)
        _run_one(place)
        fill(lab, place)
        place.checkpoint()
        alone = _claim_alone(lab, place, json.loads(env.get("BENCH_SERVES", '["default"]')))
        _, milliseconds, buffers = statement(place, CLAIM)
        claim = {"server_us": alone, "milliseconds": milliseconds, "buffers": buffers}
        worker = place.start("worker", {"BENCH_POLL": str(POLL), **env})
        worker.go()
        time.sleep(2.0)
        return {"idle": {**claim, "cycle_us": _cycle(lab, place, seconds)}}


def _claim_alone(lab: Lab, place: PostgresPlace, queues: list[str]) -> float:
    """Microseconds of CPU that one claim takes, the least of five loops: others may disturb, none can speed it up."""
    with client_app(place.url) as app:
        store, scopes = app._store(), [Scope(queue, 1000) for queue in queues]

        def loop(number: int) -> float:
            before = backends(lab, place)
            for _ in range(number):
                token = str(uuid.uuid4())
                store.run(claim.claim_plain, "bench", token, scopes, list(app.tasks), want=1000, lease=30.0)
            after = backends(lab, place)
            return sum(cpu - before.get(pid, 0.0) for pid, cpu in after.items()) / number

        loop(20)
        return 1e6 * min(loop(CLAIMS) for _ in range(5))


def _run_one(place: PostgresPlace) -> None:
    enqueue_one(place.url)
    cells.drain_place(place, 1)


def _track(place: PostgresPlace) -> None:
    if "pg_stat_statements" not in place.value("show shared_preload_libraries"):
        raise Unavailable("the server does not load pg_stat_statements")
    place.db.execute("create extension pg_stat_statements")
    place.db.execute(f"alter database {place.database} set pg_stat_statements.track = 'all'".encode())


def _cycle(lab: Lab, place: PostgresPlace, seconds: float) -> float:
    """Microseconds of CPU that a worker takes each time it polls."""
    place.db.execute("select pg_stat_statements_reset()")
    before = backends(lab, place)
    time.sleep(seconds)
    after = backends(lab, place)
    calls, *_ = statement(place, CHECK)
    return 1e6 * sum(cpu - before.get(pid, 0.0) for pid, cpu in after.items()) / calls


def statement(place: PostgresPlace, like: str) -> tuple[int, float, float]:
    """How often the statement was run, its milliseconds and its buffers."""
    row = place.db.execute(STATEMENT, [like]).fetchone()
    if row is None:
        raise Unavailable(f"no statement {like} was run")
    return row


def backends(lab: Lab, place: PostgresPlace) -> dict[int, float]:
    """CPU seconds of the worker's backends."""
    query = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    return {pid: lab.postgres.backend_seconds(pid) for (pid,) in place.db.execute(query)}


def future_jobs(lab: Lab, place: PostgresPlace) -> None:
    for number in range(100):
        enqueue_one(place.url, queue=f"q{number}", delay=86400)


def unknown_tasks(lab: Lab, place: PostgresPlace) -> None:
    copier = Copier(place, "relet.jobs", enqueue_one(place.url).id)
    changes = {"task": "'unknown_' || n % 50", "queue": "'q' || n % 3000"}
    copier.multiply(lab.size(1_000_000, 20_000), changes)
    place.db.execute("delete from relet.jobs where task = 'noop'")
    place.db.execute("vacuum analyze relet.jobs")
