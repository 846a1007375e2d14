"""The cost of one worker for hundreds of tenants while they have no jobs, and how soon it runs a job of one of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.commands.growth import track_statements
from bench.commands.idle import backends
from bench.environments import ROOT
from bench.lab import Lab
from bench.machine import cpu_seconds
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import wait_until
from bench.systems import RELET
from relet import App

HELP = "connections, threads and statements of one worker for 500 tenants without jobs"
DETAILS = ("tenants", "connections", "threads", "worker_percent", "server_percent", "p50_ms", "p99_ms")
ROWS = (
    Row("tenants", "One worker for many tenants without jobs", "statements", "statements a second", True, "", DETAILS),
)
TENANTS, WATCHED = 500, 60.0
SESSIONS = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'relet'"
CALLS = "select coalesce(sum(calls), 0) from pg_stat_statements where query not like '%pg_stat_%'"


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, (Cell("tenants", "relet", measure, most=1),))


def measure(lab: Lab) -> Measured:
    number, watched = (50, 10.0) if lab.options.quick else (TENANTS, WATCHED)
    with lab.postgres_place(RELET) as place, App(place.url) as app:
        track_statements(place)

        @app.task(name="noop")
        def noop(account: str, cents: int) -> None: ...

        names = [f"t{n}" for n in range(number)]
        for name in names:
            app.client.tenant(name).migrate()
        with _worker(place) as worker:
            clients = [app.client.tenant(name) for name in names]
            wait_until(lambda: all(client.workers() for client in clients), 600.0, "every tenant was visited")
            app.close()
            time.sleep(30.0)  # connections that are not used are closed, and sessions of the last visits
            found = idle_costs(lab, place, worker.pid, watched)
            found |= latencies(app, noop, names)
    return {"tenants": {"tenants": number, **found}}


class _worker:
    """A worker for all tenants, as a process."""

    def __init__(self, place: PostgresPlace) -> None:
        command = [sys.executable, "-m", "relet", "worker", "bench.app:app", "--all-tenants", "-c", "2"]
        env = {**os.environ, "BENCH_URL": place.url}
        self._process = subprocess.Popen(command, env=env, cwd=ROOT, stderr=subprocess.DEVNULL)
        self.pid = self._process.pid

    def __enter__(self) -> _worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30.0)
        except subprocess.TimeoutExpired:
            self._process.kill()


def idle_costs(lab: Lab, place: PostgresPlace, pid: int, seconds: float) -> dict[str, float]:
    def server() -> float:
        return sum(backends(lab, place).values())

    place.db.execute("select pg_stat_statements_reset()")
    began, worker, before, connections, threads = time.monotonic(), cpu_seconds(pid), server(), 0, 0
    while time.monotonic() - began < seconds:
        connections = max(connections, int(place.value(SESSIONS)))
        threads = max(threads, len(list(Path(f"/proc/{pid}/task").iterdir())))
        time.sleep(0.2)
    passed = time.monotonic() - began
    return {
        "statements": float(place.value(CALLS)) / passed,
        "connections": connections,
        "threads": threads,
        "worker_percent": 100 * (cpu_seconds(pid) - worker) / passed,
        "server_percent": 100 * (server() - before) / passed,
    }


def latencies(app: App, noop: Any, names: list[str]) -> dict[str, float]:
    """Milliseconds from the call of enqueue until the result of a tenant that slept is read."""
    found: list[float] = []
    for name in names[:: max(len(names) // 50, 1)]:
        began = time.monotonic()
        job = noop.using(tenant=name).enqueue("acct-1", 1)
        app.client.tenant(name).result(job, timeout=60)
        found.append(1000 * (time.monotonic() - began))
    found.sort()
    return {"p50_ms": statistics.median(found), "p99_ms": found[-1]}
