"""A worker that is 1 ms away from its server, and the round trips of each verb.

The delay comes from `tc netem` on the loopback of a network namespace, where that is possible (Linux, root); elsewhere
from a proxy. The proxy takes CPU, so the worker beside it goes through a proxy without delay.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import psycopg

from bench import cells
from bench.cells import WARM_UP, Figures
from bench.environments import ROOT
from bench.lab import Lab, Options
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.proxy import Proxy
from bench.rows import client_app
from bench.statistic import median
from bench.systems import RELET

HELP = "a drain over 1 ms of network delay, and the round trips of each verb"
ROWS = (
    Row(
        "network",
        "Drain over 1 ms of delay",
        against="local",
        details=("round_trip_ms", "trips_per_1000"),
        note="delay",
    ),
    Row("round_trips", "Round trips of each verb", "round_trips", "round trips", True, ""),
)
DELAY = 0.0005  # seconds, in each direction
NETEM = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "500us", "limit", "100000"]
CALLS = 5


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, (Cell("network", RELET.name, network), Cell("round_trips", RELET.name, verbs, most=1)))


def network(lab: Lab) -> Measured:
    return {"network": in_namespace(lab) if has_netem() else through_proxy(lab)}


def through_proxy(lab: Lab) -> list[Figures]:
    found = []
    for name, delay in (("local", 0.0), ("1 ms delay", DELAY)):
        with lab.postgres_place(RELET) as place, Proxy(lab.postgres.address, delay) as proxy:
            place.env["BENCH_URL"] = place.url_through(proxy.port)
            jobs = _enqueue(place, lab)
            before = proxy.round_trips
            figures = cells.drain_place(place, jobs)
            trips = 1000 * (proxy.round_trips - before) / jobs
            found.append({"system": name, **figures, **_ping(place), "trips_per_1000": trips, "note": "by a proxy"})
    return found


def _enqueue(place: PostgresPlace, lab: Lab) -> int:
    jobs = lab.size(50_000, 4_000) + WARM_UP
    producer = place.start("producer")
    producer.ask(f"bulk {jobs}")
    producer.kill()
    place.checkpoint()
    return jobs


def _ping(place: PostgresPlace) -> Figures:
    """The round trip as it is, in milliseconds."""
    times = []
    with psycopg.connect(place.env["BENCH_URL"], autocommit=True) as connection:
        for _ in range(50):
            begin = time.perf_counter()
            connection.execute("select 1")
            times.append(1000 * (time.perf_counter() - begin))
    return {"round_trip_ms": median(times)}


def has_netem() -> bool:
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("unshare", "ip", "tc")):
        return False
    probe = ["unshare", "--net", "sh", "-c", f"ip link set lo up && {' '.join(NETEM)}"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def in_namespace(lab: Lab) -> list[Figures]:
    """A child process with its own loopback and its own server."""
    command = ["unshare", "--net", sys.executable, "-m", "bench.commands.network", json.dumps(asdict(lab.options))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        raise cells.Wrong(f"the measurement in a network namespace failed: {done.stderr[-500:]}")
    found: list[Figures] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(options: str) -> None:
    """Runs in the namespace."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    found = []
    with Lab(Options(**{**json.loads(options), "dsn": None})) as lab:
        for name, delayed in (("local", False), ("1 ms delay", True)):
            with lab.postgres_place(RELET) as place:
                jobs = _enqueue(place, lab)
                if delayed:
                    subprocess.run(NETEM, check=True)
                figures = cells.drain_place(place, jobs)
                found.append({"system": name, **figures, **_ping(place), "note": "by tc netem"})
    print(json.dumps(found))


def verbs(lab: Lab) -> Measured:
    """Bursts that a client sends for one call of each verb, on warm connections; the median of some calls."""
    with (
        lab.postgres_place(RELET) as place,
        Proxy(lab.postgres.address) as proxy,
        client_app(place.url_through(proxy.port)) as app,
    ):
        found = [{"system": name, "round_trips": _trips(proxy, call)} for name, call in _calls(app).items()]
    return {"round_trips": found}


def _trips(proxy: Proxy, call: Callable[[], object]) -> float:
    counts = []
    for _ in range(CALLS):
        before = proxy.round_trips
        call()
        counts.append(float(proxy.round_trips - before))
    return median(counts[1:])  # the first may connect and prepare


def _calls(app: Any) -> dict[str, Callable[[], object]]:
    noop, client = app.tasks["noop"], app.client
    job = noop.using(delay=3600).enqueue("acct-7", 500)
    numbers = iter(range(1000))
    return {
        "enqueue": lambda: noop.enqueue("acct-7", 500),
        "enqueue_many of 1,000": lambda: client.enqueue_many([noop.draft("acct-7", 500) for _ in range(1000)]),
        "enqueue with a target": lambda: noop.using(target="t").enqueue("acct-7", 500),
        "enqueue with a unique key": lambda: noop.using(unique=f"u{next(numbers)}").enqueue("acct-7", 500),
        "enqueue with a dependency": lambda: noop.using(depends_on=[job]).enqueue("acct-7", 500),
        "get": lambda: client.get(job.id),
        "count": lambda: client.count(),
        "jobs": lambda: client.jobs(limit=50),
        "queues": lambda: client.queues(),
        "pause and resume": lambda: (client.pause(job), client.resume(job)),
        "pause_queue": lambda: client.pause_queue("other"),
        "enqueue and cancel": lambda: client.cancel(noop.enqueue("acct-7", 500)),
        "enqueue and delete": lambda: client.delete(noop.enqueue("acct-7", 500)),
    }


if __name__ == "__main__":
    main(sys.argv[1])
