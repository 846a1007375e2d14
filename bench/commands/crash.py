"""Workers are killed with SIGKILL under a backlog: how long until the jobs that they held run again."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

from bench import cells
from bench.lab import Lab
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import Program, Stuck, wait_until
from bench.rows import client_app
from bench.statistic import percentile
from bench.systems import RELET

HELP = "from kill -9 of a worker until the jobs that it held run again"
ROWS = (
    Row(
        "crash",
        "Kill to the next start of a held job, leases of 2 s",
        "p50",
        "s",
        True,
        "",
        ("p90", "p99", "max", "held"),
    ),
)
LEASE = 2.0
ENV = {"BENCH_FEATURE": "work", "BENCH_SECONDS": "0.05", "BENCH_LEASE": str(LEASE), "BENCH_CONCURRENCY": "20"}


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, (Cell("crash", RELET.name, crash),))


def crash(lab: Lab) -> Measured:
    """Two workers, one of which is killed and replaced several times. In the end every job is finished."""
    jobs, kills = lab.size(20_000, 4_000), lab.size(6, 1) if lab.options.jobs is None else 2
    with lab.postgres_place(RELET) as place, tempfile.TemporaryDirectory(prefix="relet-bench-") as folder:
        notes = Path(folder) / "notes"
        place.env |= {**ENV, "BENCH_NOTES": str(notes)}
        producer = place.start("producer")
        producer.ask(f"bulk {jobs}")
        held = _kill(place, kills)
        if not held:
            raise Stuck("the killed workers held no jobs: the backlog was too small")
        wait_until(lambda: held.keys() <= _restarts(notes, held).keys(), 120.0, "the jobs of killed workers run again")
        place.await_empty(300.0)
        if (finished := place.value("select count(*) from relet.finished")) != jobs:
            raise cells.Wrong(f"{finished} of {jobs} jobs finished")
        spent = list(_restarts(notes, held).values())
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {"crash": {**{k: percentile(spent, v) for k, v in shares.items()}, "max": max(spent), "held": len(held)}}


def _kill(place: PostgresPlace, kills: int) -> dict[str, float]:
    """When the worker of each held job was killed."""
    workers = [_start(place), _start(place)]
    held: dict[str, float] = {}
    for number in range(kills):
        time.sleep(LEASE + 0.5)
        victim = workers[number % 2]
        victim.kill()
        moment = time.time()
        held |= dict.fromkeys(_held_by(place, victim), moment)
        workers[number % 2] = _start(place)
    return held


def _start(place: PostgresPlace) -> Program:
    worker = place.start("worker")
    worker.go()
    return worker


def _held_by(place: PostgresPlace, worker: Program) -> list[str]:
    with client_app(place.url) as app:
        running = app.client.jobs(state="running", limit=1000).jobs
    return [job.id for job in running if str(worker.pid) in re.split(r"\D+", job.worker or "")]


def _restarts(notes: Path, held: dict[str, float]) -> dict[str, float]:
    """Seconds from the kill to the first start after it, by job."""
    found: dict[str, float] = {}
    for line in notes.read_text().splitlines():
        job, _, moment = line.partition(" ")
        if job in held and float(moment) > held[job]:
            found.setdefault(job, float(moment) - held[job])
    return found
