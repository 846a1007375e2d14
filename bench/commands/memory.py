"""Whether a worker's memory grows with the jobs that it has run: a million through 100 slots."""

from __future__ import annotations

from bench import cells
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.sampling import Sampler
from bench.systems import RELET

HELP = "resident memory of a worker over a million jobs in 100 slots"
ROWS = (
    Row("memory", "Resident memory, 100 slots", "mib", "MiB, highest", True, "", ("first_mib", "last_mib", "growth")),
)
SLOTS = {"BENCH_CONCURRENCY": "100"}


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, (Cell("memory", RELET.name, memory, most=1),))


def memory(lab: Lab) -> Measured:
    """`growth`: how much more there is at the end than after the first tenth, by a line through the samples."""
    jobs = lab.size(1_000_000, 10_000)
    with lab.postgres_place(RELET) as place, Sampler(place, every=0.5 if jobs >= 100_000 else 0.05) as sampler:
        place.env |= SLOTS
        figures = cells.steady(place, jobs, block=jobs // 4, backlog=20_000)
        return {"memory": {"jobs": jobs, "rate": figures["rate"], **sampler.memory()}}
