"""Relet beside its peers: drain with 1 and 2 processes, bulk enqueue, flaky jobs, bytes written."""

from __future__ import annotations

from functools import partial

from bench import cells
from bench.commands import enqueue
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.systems import CELERY, DRAMATIQ, GRAPHILE_DEFAULT, PEERS, RAW, RELET, SLOW_PEERS, THREADS, System

HELP = "relet beside graphile-worker, pg-boss, pgqueuer, procrastinate, awa, dramatiq and celery"
CPU = ("cpu_us", "server_us")
FAST = (RAW, RELET, *PEERS)
OTHERS = (*SLOW_PEERS, DRAMATIQ, CELERY)
ROWS = (
    Row("drain1", "Drain, 1 process", details=CPU),
    Row("drain2", "Drain, 2 processes", details=CPU),
    Row("bulk", "Enqueue, 1,000 a call", details=CPU),
    Row("flaky", "1 ms of sleep, 100 at a time, 5 % fail once", details=CPU),
    Row("wal", "WAL per job, enqueue and drain", "wal_bytes", "bytes", less_is_better=True, note="keeps"),
    Row("disk", "Disk per finished job", "disk_bytes", "bytes", less_is_better=True, note="keeps"),
)


def plan(lab: Lab) -> Plan:
    """Drains of the fast systems, the others with one process only."""
    wide = lab.options.only or not lab.options.quick
    slow = (*OTHERS, GRAPHILE_DEFAULT) if wide else ()
    cells = [Cell("drain1", s.name, partial(drain, system=s, processes=1)) for s in (*FAST, THREADS, *slow)]
    cells += [Cell("drain2", s.name, partial(drain, system=s, processes=2)) for s in FAST]
    cells += [Cell("flaky", s.name, partial(flaky, system=s)) for s in (RELET, THREADS, *PEERS, *slow) if s != CELERY]
    singles = [cell for cell in enqueue.plan(lab).cells if cell.name == "single" or cell.system == "COPY"]
    return Plan((*ROWS, enqueue.ROWS[0]), (*cells, *singles))


def drain(lab: Lab, system: System, processes: int) -> Measured:
    found = cells.drain(lab, system, system.jobs(lab.size(50_000, 4_000)), processes)
    bulk = found.pop("bulk")
    if processes > 1:
        return {"drain2": found}
    if system.store != "postgres":
        return {"drain1": found, "bulk": bulk}
    written = {row: found[f"{row}_bytes"] + bulk[f"{row}_bytes"] for row in ("wal", "disk")}
    return {"drain1": found, "bulk": bulk, **{row: {f"{row}_bytes": bytes} for row, bytes in written.items()}}


def flaky(lab: Lab, system: System) -> Measured:
    return {"flaky": cells.flaky(lab, system, system.jobs(lab.size(20_000, 2_000)))}
