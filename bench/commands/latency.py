"""How soon an idle worker begins a job, and how soon one that is half busy does."""

from __future__ import annotations

from functools import partial

from bench import cells
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.systems import GRAPHILE, PGBOSS_WORK, PGQUEUER, RELET, SLOW_PEERS, System

HELP = "from the enqueue call to the first line of the handler, idle and at half load"
TAIL = ("p90", "p99", "max", "cpu_us")
ROWS = (
    Row("latency", "Latency of an idle worker", "p50", "ms", less_is_better=True, against="relet", details=TAIL),
    Row("loaded", "Latency at half load", "p50", "ms", less_is_better=True, against="", details=TAIL, note="load"),
)
SYSTEMS = (RELET, GRAPHILE, PGBOSS_WORK, PGQUEUER)


def plan(lab: Lab) -> Plan:
    slow = () if lab.options.quick else SLOW_PEERS
    idle = [Cell("latency", system.name, partial(latency, system=system)) for system in (*SYSTEMS, *slow)]
    return Plan(ROWS, (*idle, Cell("loaded", RELET.name, loaded)))


def latency(lab: Lab, system: System) -> Measured:
    return {"latency": cells.latency(lab, system, lab.size(2_000, 100))}


def loaded(lab: Lab) -> Measured:
    """Half load is half of the rate at which the same worker drains, measured right before."""
    drained = cells.drain(lab, RELET, lab.size(50_000, 4_000))
    figures = cells.latency(lab, RELET, lab.size(1_000, 100), load=drained["rate"] / 2)
    return {"loaded": figures | {"note": f"{drained['rate'] / 2:,.0f} jobs/s"}}
