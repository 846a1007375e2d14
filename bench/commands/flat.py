"""Whether throughput stays the same: under a held snapshot, and beside millions of finished and future jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import psycopg

from bench import cells
from bench.cells import WARM_UP, Figures
from bench.lab import Lab
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.rows import Copier, enqueue_one
from bench.systems import PEERS, RELET, System

HELP = "a held snapshot over 300,000 jobs; 10 million finished and 1 million future jobs"
ROWS = (
    Row(
        "snapshot",
        "Jobs/s of successive blocks of 50,000 under a held snapshot",
        "blocks",
        details=("disk",),
        against="",
    ),
    Row("history", "Drain beside 10 million finished and 1 million future jobs", against="empty"),
)
AT_ONCE = 1_000_000
# Counting the future jobs would take longer than the drain; these two parts have an index each.
DUE = """select (exists (select from relet.jobs where state = 'queued')
    or exists (select from relet.jobs where expires_at is not null))::int"""


def plan(lab: Lab) -> Plan:
    held = [Cell("snapshot", system.name, partial(snapshot, system=system), most=2) for system in (RELET, *PEERS)]
    return Plan(ROWS, (*held, Cell("history", RELET.name, history, most=1)))


def snapshot(lab: Lab, system: System) -> Measured:
    jobs = lab.size(300_000, 8_000)
    with lab.postgres_place(system) as place, held_snapshot(place):
        return {"snapshot": cells.steady(place, jobs, block=min(50_000, jobs // 4))}


@contextmanager
def held_snapshot(place: PostgresPlace) -> Iterator[None]:
    """A transaction that can see every row from now on, so that none of them can be vacuumed."""
    with psycopg.connect(place.url, autocommit=True) as other:
        other.execute("begin isolation level repeatable read")
        other.execute("select txid_current()")
        yield
        other.execute("rollback")


def history(lab: Lab) -> Measured:
    """One full store and one empty one take turns."""
    found: list[Figures] = []
    system = replace(RELET, unfinished=DUE)
    with lab.postgres_place(system) as full, lab.postgres_place(system) as empty:
        for place in (full, empty):
            place.db.execute("set enable_seqscan = off")
            _enqueue(place, 1_000)
            cells.drain_place(place, 1_000)
        fill(full, lab.size(10_000_000, 20_000), lab.size(1_000_000, 2_000))
        for _ in range(lab.options.repeat or 3):
            for name, place in (("full", full), ("empty", empty)):
                found.append({"system": name, **_drain(place, lab.size(200_000, 4_000))})
    return {"history": [figures | {"turn": number // 2 + 1} for number, figures in enumerate(found)]}


def fill(place: PostgresPlace, finished: int, future: int) -> None:
    """Copies of a job that has finished, and of one that is due in a month."""
    sources = {
        "relet.finished": (place.value("select id::text from relet.finished limit 1"), finished),
        "relet.jobs": (enqueue_one(place.url, delay=30 * 86400).id, future),
    }
    for table, (job, number) in sources.items():
        copier = Copier(place, table, job)
        for begin in range(0, number, AT_ONCE):
            copier.multiply(min(AT_ONCE, number - begin))
        place.db.execute(f"vacuum analyze {table}".encode())
    place.checkpoint()


def _enqueue(place: PostgresPlace, jobs: int) -> None:
    producer = place.start("producer")
    producer.ask(f"bulk {jobs}")
    producer.kill()


def _drain(place: PostgresPlace, jobs: int) -> Figures:
    _enqueue(place, jobs + WARM_UP)
    place.checkpoint()
    return cells.drain_place(place, jobs + WARM_UP)
