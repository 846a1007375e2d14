"""Relet's worker by itself: processes, threads, slots, flaky jobs, and its cost while it waits."""

from __future__ import annotations

import time
from functools import partial

from bench import cells
from bench.commands import peers
from bench.lab import Lab
from bench.machine import cpu_seconds
from bench.plan import Cell, Measured, Plan, Row
from bench.systems import RAW, RELET, THREADS

HELP = "processes, threads, slots, flaky jobs, and the CPU of an idle worker"
SLOTS = RELET.variant("100 slots", BENCH_CONCURRENCY=100)
ROWS = (
    *(row for row in peers.ROWS if row.name in ("drain1", "drain2", "flaky")),
    Row("waiting", "CPU of an idle worker", "percent", "% of a core", less_is_better=True, against=""),
)


def plan(lab: Lab) -> Plan:
    ones = [Cell("drain1", s.name, partial(peers.drain, system=s, processes=1)) for s in (RAW, RELET, THREADS, SLOTS)]
    twos = [Cell("drain2", s.name, partial(peers.drain, system=s, processes=2)) for s in (RAW, RELET, THREADS)]
    flaky = [Cell("flaky", s.name, partial(peers.flaky, system=s)) for s in (RELET, THREADS)]
    return Plan(ROWS, (*ones, *twos, *flaky, Cell("waiting", RELET.name, waiting)))


def waiting(lab: Lab) -> Measured:
    """A worker that has run some jobs and has nothing more to do."""
    seconds = 3.0 if lab.options.quick else 20.0
    with lab.place(RELET) as place:
        worker, producer = place.start("worker"), place.start("producer")
        worker.go()
        producer.ask("one 20")
        place.await_empty()
        cells.check_calls([worker], 20)
        time.sleep(2.0)
        before, server = cpu_seconds(worker.pid), lab.postgres.cpu_seconds()
        time.sleep(seconds)
        used, served = cpu_seconds(worker.pid) - before, lab.postgres.cpu_seconds() - server
    return {"waiting": {"percent": 100 * used / seconds, "server_percent": 100 * served / seconds}}
