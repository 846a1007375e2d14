"""Chains of three, fan-in, fan-out and completions in a transaction, drained beside plain jobs."""

from __future__ import annotations

from functools import partial

from bench import cells
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.systems import RELET

HELP = "chains of three, fan-in, fan-out and completion in a transaction, beside plain jobs"
ROWS = (
    Row("chains", "Handler calls per second", unit="calls/s", against="plain jobs", details=("cpu_us", "server_us")),
)
KINDS = {
    "plain jobs": ("plain", 1),
    "chains of three": ("chains", 3),
    "fan-in of 999": ("fan_in", 1),
    "fan-out to 999": ("fan_out", 1),
    "in transactions": ("transactions", 1),
}


def plan(lab: Lab) -> Plan:
    cells = [Cell("chains", name, partial(measure, name=name)) for name in KINDS]
    return Plan(ROWS, tuple(cells))


def measure(lab: Lab, name: str) -> Measured:
    feature, calls = KINDS[name]
    system = RELET.variant(feature, calls=calls, BENCH_FEATURE=feature)
    found = cells.drain(lab, system, lab.size(20_000, 1_000))
    found.pop("bulk")
    return {"chains": found}
