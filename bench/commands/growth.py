"""Whether throughput and response times depend on the size of things: backlog, queues, targets, payloads, processes.

`--only calls` leaves the throughput out, and times every verb of the client, every page, every request of the API and
every statement of a worker over a large store. Of a verb that goes on as long as there are jobs for it, each
transaction is timed. At scale 1 that takes 20 GB of disk; at `--scale 0.01` a few minutes and 2 GB. `--keep NAME` keeps
the store in a database of the server that `--dsn` names, and goes on with it next time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from bench import calls, cells, large, pages
from bench.cells import Figures, Window
from bench.environments import Unavailable
from bench.lab import Lab
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import wait_until
from bench.rows import Copier, enqueue_one
from bench.systems import RELET
from relet import App

CALLS = "calls"
HELP = (
    "every verb and page over ten million jobs (--only calls); drain: backlog 1k to 10M, 1 to 100 queues, 1 to 10k "
    "targets, payloads 50 B to 100 KB, 1 to 8 processes"
)
SIZES = {
    "backlog": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "queues": (1, 10, 100),
    "targets": (1, 10, 100, 1_000, 10_000),
    "payload": (50, 1_000, 10_000, 100_000),
    "processes": (1, 2, 4, 8),
}
TITLES = {"backlog": "jobs waiting", "payload": "bytes of payload"}
MOST = 5_000_000  # copies in one statement


def _name(kind: str, size: int) -> str:
    return f"{size:,} {TITLES.get(kind, kind)}"


ROWS = tuple(
    Row(
        f"growth_{kind}",
        f"Drain by number of {TITLES.get(kind, kind)}",
        against=_name(kind, sizes[0]),
        details=("jobs",),
    )
    for kind, sizes in SIZES.items()
)


FIGURES = ("p50", "max", "cpu", "buffers")
CALL_ROWS = (
    Row(CALLS, "Every verb, page and request over a large store", "p99", "ms", True, "", FIGURES, "verdict"),
    Row("upkeep", "Upkeep and unbounded counts over that store, without a bar", "p99", "ms", True, "", FIGURES),
)


def plan(lab: Lab) -> Plan:
    cells = [
        Cell(
            f"growth_{kind}", _name(kind, size), partial(measure, kind=kind, size=size), most=1 if size > 1e6 else 1000
        )
        for kind, sizes in SIZES.items()
        for size in (sizes if not lab.options.quick else (sizes[0], sizes[min(2, len(sizes) - 1)]))
    ]
    return Plan((*ROWS, *CALL_ROWS), (*cells, Cell(CALLS, CALLS, every_call, most=1)))


def every_call(lab: Lab) -> Measured:
    """Pages first, then verbs, which change the store, and last what a worker runs."""
    scale = lab.options.scale or (0.002 if lab.options.quick else 1.0)
    rounds = lab.size(200, 3)
    with lab.postgres_place(RELET, lab.options.keep) as place, large.make_app(place.url) as app:
        track_statements(place)
        filling = large.Filling(place, app, scale, lambda text: print(f"  {text}", file=sys.stderr))
        filling.run()
        began, barred, upkeep = time.monotonic(), list[dict[str, Any]](), list[dict[str, Any]]()
        for figures in _timed(app, place, filling.ids, rounds):
            print(f"  {figures['p99']:8.1f} ms  {figures['system']}", file=sys.stderr)
            (barred if figures["note"] else upkeep).append(figures)
        print(
            f"  {len(barred)} calls: {time.monotonic() - began:.0f} s, {place.size()['disk']:,} bytes", file=sys.stderr
        )
    return {CALLS: barred, "upkeep": upkeep}


def _timed(app: App, place: PostgresPlace, ids: dict[str, str], rounds: int) -> Iterator[dict[str, Any]]:
    yield from pages.time_pages(app, place, ids, rounds)
    yield from pages.time_changes(app, place, rounds)
    for call in calls.all_calls(app, place, ids, rounds):
        yield calls.time_call(place, call, rounds)


def track_statements(place: PostgresPlace) -> None:
    """Have the server count the buffers that each statement touches, those of its functions included."""
    if "pg_stat_statements" not in place.value("show shared_preload_libraries"):
        raise Unavailable("the server does not load pg_stat_statements")
    place.db.execute("create extension if not exists pg_stat_statements")
    place.db.execute(f"alter database {place.database} set pg_stat_statements.track = 'top'".encode())


def measure(lab: Lab, kind: str, size: int) -> Measured:
    jobs, row = lab.size(20_000, 1_000), f"growth_{kind}"
    if kind == "backlog":
        return {row: backlog(lab, size, min(jobs, size))}
    if kind == "processes":
        return {row: cells.drain(lab, RELET, jobs, size)}
    if kind == "payload":
        jobs = max(min(jobs, 100_000_000 // size), 500)
    feature = "targets" if kind == "targets" else "plain"
    variable = {"queues": "BENCH_QUEUES", "targets": "BENCH_TARGETS", "payload": "BENCH_PAYLOAD"}[kind]
    if kind == "targets" and size < 10:
        jobs //= 10  # one at a time
    system = RELET.variant(feature, BENCH_FEATURE=feature, **{variable: size})
    return {row: cells.drain(lab, system, jobs)}


def backlog(lab: Lab, size: int, jobs: int) -> Figures:
    """Of so many waiting jobs, the first ones are run; then the worker stops."""
    with lab.postgres_place(RELET) as place:
        fill(place, size)
        worker = place.start("worker", {"BENCH_MAX_JOBS": str(jobs)})
        window = Window(place, [])
        worker.go()
        wait_until(worker.has_ended, 300.0, f"{jobs} of {size} jobs are run")
        calls, left = worker.counts.calls, place.unfinished()
        if calls + left != size:
            raise cells.Wrong(f"{calls} handler calls and {left} jobs left do not make {size}")
        rate = calls / (worker.counts.last - worker.counts.first)
        return {"jobs": calls, "rate": rate, **window.figures(calls)}


def fill(place: PostgresPlace, size: int) -> None:
    copier = Copier(place, "relet.jobs", enqueue_one(place.url).id)
    left = size - 1
    while left:
        copier.multiply(min(left, MOST))
        left -= min(left, MOST)
    place.db.execute("vacuum analyze relet.jobs")
    place.checkpoint()
