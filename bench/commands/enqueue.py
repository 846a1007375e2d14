"""Enqueue one by one and in bulk, beside peers, a bare loop, and plain COPY and INSERT into relet's own table."""

from __future__ import annotations

import time
from functools import partial

from psycopg import sql

from bench import cells
from bench.cells import Figures, Window
from bench.lab import Lab
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.rows import Copier, enqueue_one
from bench.systems import PEERS, RAW, RELET, SLOW_PEERS, System

HELP = "one by one and 1,000 a call, beside peers and plain COPY and INSERT into the same table"
CPU = ("cpu_us", "server_us")
ROWS = (
    Row("single", "Enqueue one by one, one client", details=CPU),
    Row("bulk", "Enqueue, 1,000 a call", details=CPU),
)
ASYNC = RELET.variant("async", BENCH_PRODUCER="async")
CHUNK = 1000


def plan(lab: Lab) -> Plan:
    systems = (RAW, RELET, *PEERS, *(SLOW_PEERS if not lab.options.quick else ()))
    singles = [Cell("single", system.name, partial(single, system=system)) for system in (*systems, ASYNC)]
    bulks = [Cell("bulk", system.name, partial(bulk, system=system)) for system in (*systems, ASYNC)]
    limits = [Cell("single", "INSERT", insert), Cell("bulk", "COPY", copy)]
    return Plan(ROWS, (*singles, limits[0], *bulks, limits[1]))


def single(lab: Lab, system: System) -> Measured:
    jobs = max(int(lab.size(3_000, 300) * min(3 * system.share, 1.0)), 100)
    return {"single": cells.one_by_one(lab, system, jobs)}


def bulk(lab: Lab, system: System) -> Measured:
    """Drained afterwards, to check that everything arrived."""
    found = cells.drain(lab, system, system.jobs(lab.size(50_000, 4_000)))
    return {"bulk": found["bulk"]}


def copy(lab: Lab) -> Measured:
    """COPY of 1,000 rows a transaction into relet's table, rows made within the time, as drafts are."""
    jobs = lab.size(50_000, 4_000)
    with lab.postgres_place(RELET) as place:
        copier = Copier(place, "relet.jobs", enqueue_one(place.url).id)
        columns = sql.SQL(", ").join(map(sql.Identifier, copier.used))
        statement = sql.SQL("copy relet.jobs ({}) from stdin").format(columns)
        window, begin = Window(place, []), time.perf_counter()
        for sent in range(0, jobs, CHUNK):
            with place.db.cursor() as cursor, cursor.copy(statement) as stream:
                stream.write("".join("\t".join(copier.texts()) + "\n" for _ in range(min(CHUNK, jobs - sent))))
        return {"bulk": _checked(place, jobs, time.perf_counter() - begin, window)}


def insert(lab: Lab) -> Measured:
    """A prepared INSERT of the same columns, one a transaction."""
    jobs = lab.size(3_000, 300)
    with lab.postgres_place(RELET) as place:
        copier = Copier(place, "relet.jobs", enqueue_one(place.url).id)
        columns = sql.SQL(", ").join(map(sql.Identifier, copier.used))
        marks = sql.SQL(", ").join(sql.Placeholder() * len(copier.used))
        statement = sql.SQL("insert into relet.jobs ({}) values ({})").format(columns, marks).as_string(place.db)
        window, begin = Window(place, []), time.perf_counter()
        for _ in range(jobs):
            place.db.execute(statement.encode(), copier.texts(), prepare=True)
        return {"single": _checked(place, jobs, time.perf_counter() - begin, window)}


def _checked(place: PostgresPlace, jobs: int, seconds: float, window: Window) -> Figures:
    used = window.figures(jobs)
    if (found := place.unfinished()) != jobs + 1:
        raise cells.Wrong(f"{found} rows instead of {jobs + 1}")
    return {"jobs": jobs, "rate": jobs / seconds, **used}
