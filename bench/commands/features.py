"""The cost of features, as a ratio to plain jobs.

The rate of a feature is jobs / (seconds to enqueue them, 1,000 a call, + seconds to drain them with one process).
targets: 1,000 of them. max_running: a limit of 100 for the queue. fair groups: 1,000 keys served in turn. unique keys:
one per job. dependencies: pairs, of which the second job waits for the first.
"""

from __future__ import annotations

from functools import partial

from bench import cells
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.systems import RELET

HELP = "targets, max_running, fair groups, unique keys and dependencies, as a ratio to plain jobs"
ROWS = (Row("features", "Features, enqueue and drain", against="plain", details=("enqueue", "drain")),)
FEATURES = {
    "plain": "plain",
    "targets": "targets",
    "max_running": "max_running",
    "fair groups": "fair",
    "unique keys": "unique",
    "dependencies": "dependencies",
}


def plan(lab: Lab) -> Plan:
    cells = [Cell("features", name, partial(measure, feature=feature)) for name, feature in FEATURES.items()]
    return Plan(ROWS, tuple(cells))


def measure(lab: Lab, feature: str) -> Measured:
    system = RELET.variant(feature, BENCH_FEATURE=feature)
    found = cells.drain(lab, system, lab.size(20_000, 2_000))
    enqueued = found.pop("bulk")
    rate = found["jobs"] / (found["seconds"] + enqueued["seconds"])
    return {"features": {**found, "rate": rate, "enqueue": enqueued["rate"], "drain": found["rate"]}}
