"""Many worker processes on one server: measured with up to 64 of them, and simulated for 1,000 and 10,000.

First the processes are idle, then jobs arrive one at a time, then all processes run long jobs, and last they drain a
backlog together. On a machine with few cores the processes take its time from one another, so that the figures to
compare are those of the server: CPU for each job, and buffers and claims for each job.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from bench import cells
from bench.commands.growth import track_statements
from bench.commands.idle import CLAIM, backends, statement
from bench.commands.tenants import CALLS, SESSIONS
from bench.fleet_model import Costs, Fleet, Simulation
from bench.lab import Lab
from bench.machine import cpu_seconds
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import Program, wait_until
from bench.statistic import percentile
from bench.systems import RELET

HELP = "1 to 64 worker processes on one server, and the costs of 10,000 simulated with what was measured"
ROWS = (
    Row(
        "fleet_idle", "Idle processes", "statements", "a second and process", True, "",
        ("connections", "connection_mib", "server_us", "worker_percent"),
    ),
    Row("fleet_single", "Jobs one at a time", "p50", "ms", True, "", ("p99", "server_us", "claims", "cores")),
    Row("fleet_long", "Each process runs jobs", "statements", "a second and process", True, "", ("server_us",)),
    Row(
        "fleet_drain", "Drain of a backlog by all processes", "server_us", "us of server CPU", True, "",
        ("rate", "claims", "buffers"),
    ),
    Row(
        "fleet_simulated", "Simulated with the costs of the largest run", "cores", "cores of the server", True, "",
        ("statements", "connections", "p50", "p99"),
    ),
)  # fmt: skip
SIZES, RATE, SLOTS, CORES = (1, 8, 64), 100.0, 2, 8
SETTLED = 45.0  # seconds after its last job until a process has closed connections and checks seldom
#: processes, jobs a second, seconds of a job
SIMULATED = (
    (64, RATE, 0.0), (1_000, 0.0, 0.0), (1_000, 1_000.0, 1.0), (10_000, 0.0, 0.0), (10_000, 5_000.0, 1.0),
)  # fmt: skip


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, (Cell("fleet", RELET.name, measure, most=1),))


def measure(lab: Lab) -> Measured:
    found: dict[str, list[dict[str, Any]]] = {row.name: [] for row in ROWS}
    for size in (1, 2) if lab.options.quick else SIZES:
        for row, figures in run(lab, size).items():
            found[row].append({"system": _name(size), **figures})
    idle, single, long = (found[row][-1] for row in ("fleet_idle", "fleet_single", "fleet_long"))
    costs = Costs(
        idle["statements"], idle["server_us"] / 1e6 / idle["statements"],
        long["statements"], long["server_us"] / 1e6 / long["statements"], single["server_us"] / 1e6,
    )  # fmt: skip
    found["fleet_simulated"] = list(_simulate(costs, idle["connections"], 2.0 if lab.options.quick else 30.0))
    return found


def _name(processes: int) -> str:
    return f"{processes:,} process{'es' if processes > 1 else ''}"


def _simulate(costs: Costs, connections: float, seconds: float) -> Iterator[dict[str, Any]]:
    for processes, rate, duration in SIMULATED:
        fleet = Fleet(processes, 10, rate, duration, CORES)
        jobs = f", {rate:,.0f} jobs/s of {duration:g} s" if rate else ", idle"
        figures = Simulation(fleet, costs, Random(1)).run(seconds)
        yield {"system": _name(processes) + jobs, "connections": connections * processes, **figures}


def run(lab: Lab, size: int) -> dict[str, dict[str, Any]]:
    """Figures by row of so many processes."""
    quick = lab.options.quick
    with lab.postgres_place(RELET) as place:
        place.env |= {"BENCH_CONCURRENCY": str(SLOTS), "BENCH_SECONDS": "1.0" if quick else "40.0"}
        track_statements(place)
        workers = [place.start("worker") for _ in range(size)]
        for worker in workers:
            worker.go()
        producer = place.start("producer")
        _drain(lab, place, workers, producer, 50 * size)  # every process has run a job before anything is measured
        return {
            "fleet_idle": _idle(lab, place, workers, 2.0 if quick else 30.0),
            "fleet_long": _long(lab, place, workers, 0.5 if quick else 20.0),
            "fleet_drain": _drain(lab, place, workers, producer, lab.size(20_000, 500)),
            "fleet_single": _single(lab, place, workers, producer, lab.size(1_500, 50)),
        }


class _Costs:
    """Filled at the end of `_watched`."""

    seconds = server = statements = 0.0


@contextmanager
def _watched(lab: Lab, place: PostgresPlace) -> Iterator[_Costs]:
    """Seconds, statements, and CPU of the server's processes for sessions while the body runs."""
    found = _Costs()
    place.db.execute("select pg_stat_statements_reset()")
    before, began = backends(lab, place), time.monotonic()
    yield found
    found.seconds = time.monotonic() - began
    found.server = sum(cpu - before.get(pid, 0.0) for pid, cpu in backends(lab, place).items())
    found.statements = float(place.value(CALLS))


def _idle(lab: Lab, place: PostgresPlace, workers: Sequence[Program], seconds: float) -> dict[str, Any]:
    """Per process."""
    time.sleep(0.0 if lab.options.quick else SETTLED)
    cpu, size = sum(cpu_seconds(worker.pid) for worker in workers), len(workers)
    with _watched(lab, place) as costs:
        time.sleep(seconds)
    connections = int(place.value(SESSIONS))
    return {
        "statements": costs.statements / costs.seconds / size,
        "server_us": 1e6 * costs.server / costs.seconds / size,
        "connections": connections / size,
        "connection_mib": _private_mib(backends(lab, place)),
        "worker_percent": 100 * (sum(cpu_seconds(worker.pid) for worker in workers) - cpu) / costs.seconds / size,
    }


def _private_mib(pids: dict[int, float]) -> float:
    """The memory of one of these processes that it does not share, on average."""
    found = []
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # it has ended, or belongs to another user
        found.append(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024)
    return sum(found) / len(found) if found else 0.0


def _long(lab: Lab, place: PostgresPlace, workers: Sequence[Program], seconds: float) -> dict[str, Any]:
    """Per process, while each of them runs jobs for longer than that."""
    producer = place.start("producer", {"BENCH_FEATURE": "work"})
    calls = cells.count_calls(workers)
    producer.ask(f"bulk {SLOTS * len(workers)}")
    running = "select count(*) from relet.jobs where state = 'running'"
    wait_until(lambda: place.value(running) == SLOTS * len(workers), 60.0, "every slot has a job")
    with _watched(lab, place) as costs:
        time.sleep(seconds)
    wait_until(lambda: cells.count_calls(workers) == calls + SLOTS * len(workers), 120.0, "the long jobs are over")
    place.await_empty(60.0)
    size = len(workers)
    return {
        "statements": costs.statements / costs.seconds / size,
        "server_us": 1e6 * costs.server / costs.seconds / size,
    }


def _drain(lab: Lab, place: PostgresPlace, workers: Sequence[Program], producer: Program, jobs: int) -> dict[str, Any]:
    """Per job, from its enqueue, a thousand in one call, to its end."""
    before = cells.count_calls(workers)
    with _watched(lab, place) as costs:
        began = time.time()
        producer.ask(f"bulk {jobs}")
        wait_until(lambda: cells.count_calls(workers) >= before + jobs, cells.PATIENCE, f"{jobs} handler calls")
        place.await_empty(60.0)
    cells.check_calls(workers, before + jobs)
    claims, _, buffers = statement(place, CLAIM)
    seconds = max(worker.counts.last for worker in workers) - began
    return {
        "jobs": jobs,
        "rate": jobs / seconds,
        "server_us": 1e6 * costs.server / jobs,
        "claims": claims / jobs,
        "buffers": buffers * claims / jobs,
    }


def _single(lab: Lab, place: PostgresPlace, workers: Sequence[Program], producer: Program, jobs: int) -> dict[str, Any]:
    """The cost of a job that wakes an idle process; the processes end."""
    idle = 0.0
    if not lab.options.quick:
        time.sleep(SETTLED)
        with _watched(lab, place) as costs:
            time.sleep(10.0)
        idle = costs.server / costs.seconds
    before = cells.count_calls(workers)
    with _watched(lab, place) as costs:
        producer.ask(f"paced {jobs} {RATE:g}")
        wait_until(lambda: cells.count_calls(workers) >= before + jobs, 60.0, "all stamps")
        place.await_empty(60.0)
    cells.check_calls(workers, before + jobs)
    claims, *_ = statement(place, CLAIM)
    found = [spent for worker in workers for spent in worker.latencies()]
    if len(found) != jobs:
        raise cells.Wrong(f"{len(found)} of {jobs} jobs reported a latency")
    return {
        "jobs": jobs,
        "p50": percentile(found, 0.5),
        "p99": percentile(found, 0.99),
        "server_us": 1e6 * max(costs.server - idle * costs.seconds, 0.0) / jobs,
        "claims": claims / jobs,
        "cores": costs.server / costs.seconds,
    }
