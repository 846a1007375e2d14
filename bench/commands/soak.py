"""An hour at half load: whether the worker's memory or the live tables grow."""

from __future__ import annotations

import time

from bench import cells
from bench.lab import Lab
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import wait_until
from bench.sampling import Sampler
from bench.statistic import median
from bench.systems import RELET

HELP = "one hour at half load: memory of the worker, and size of the tables that hold live jobs"
DETAILS = ("first_mib", "last_mib", "growth", "table_mib", "bloat", "rate", "jobs")
ROWS = (Row("soak", "One hour at half load", "mib", "MiB, highest", True, "", DETAILS),)
# Finished jobs are kept, so their partitions grow; everything else should not.
LIVE = """
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c
where c.relnamespace = 'relet'::regnamespace and c.relkind = 'r' and not c.relispartition
"""


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, (Cell("soak", RELET.name, soak, most=1),))


def soak(lab: Lab) -> Measured:
    seconds = 8.0 if lab.options.quick else 3600.0
    rate = cells.drain(lab, RELET, lab.size(50_000, 4_000))["rate"] / 2
    with lab.postgres_place(RELET) as place, Sampler(place, every=seconds / 360) as sampler:
        worker, producer = place.start("worker"), place.start("producer")
        worker.go()
        producer.begin(f"load {rate:g} {seconds:g}")
        sizes = _watch(place, seconds)
        wait_until(lambda: place.unfinished() == 0, 120.0, "the last jobs are finished")
        finished = int(place.value("select count(*) from relet.finished"))
        cells.check_calls([worker], finished)
    first, last = median(sizes[: len(sizes) // 4]), median(sizes[-(len(sizes) // 4) :])
    tables = {"table_mib": last / 2**20, "bloat": last / first}
    return {"soak": {"jobs": finished, "rate": finished / seconds, **sampler.memory(), **tables}}


def _watch(place: PostgresPlace, seconds: float) -> list[int]:
    """Bytes of the live tables, a hundred times."""
    sizes = []
    for _ in range(100):
        time.sleep(seconds / 100)
        sizes.append(int(place.value(LIVE)))
    return sizes
