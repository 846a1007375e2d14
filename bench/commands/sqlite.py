"""Relet on SQLite with synchronous=FULL, beside huey and a bare loop."""

from __future__ import annotations

from functools import partial

from bench import cells
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.systems import HUEY, HUEY_FAST, RAW_SQLITE, SQLITE, System

HELP = "SQLite with synchronous=FULL, beside huey and a bare loop"
ROWS = (
    Row("sqlite_drain", "SQLite: drain, 1 process", against="raw-sqlite", details=("cpu_us",)),
    Row("sqlite_bulk", "SQLite: enqueue, 1,000 a call", against="raw-sqlite", details=("cpu_us",)),
    Row("sqlite_single", "SQLite: enqueue one by one", against="raw-sqlite", details=("cpu_us",)),
    Row("sqlite_latency", "SQLite: latency of an idle worker", "p50", "ms", True, "relet-sqlite", ("p99", "max")),
)
SYSTEMS = (RAW_SQLITE, SQLITE, HUEY, HUEY_FAST)


def plan(lab: Lab) -> Plan:
    drains = [Cell("sqlite_drain", s.name, partial(drain, system=s)) for s in SYSTEMS]
    singles = [Cell("sqlite_single", s.name, partial(single, system=s)) for s in SYSTEMS]
    idle = [Cell("sqlite_latency", s.name, partial(latency, system=s), most=1) for s in (SQLITE, HUEY)]
    return Plan(ROWS, (*drains, *singles, *idle))


def drain(lab: Lab, system: System) -> Measured:
    found = cells.drain(lab, system, system.jobs(lab.size(50_000, 3_000)))
    return {"sqlite_bulk": found.pop("bulk"), "sqlite_drain": found}


def single(lab: Lab, system: System) -> Measured:
    return {"sqlite_single": cells.one_by_one(lab, system, lab.size(3_000, 200))}


def latency(lab: Lab, system: System) -> Measured:
    return {"sqlite_latency": cells.latency(lab, system, lab.size(500, 60))}
