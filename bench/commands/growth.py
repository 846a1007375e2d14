"""Whether throughput depends on the size of things: backlog, queues, targets, payloads, processes."""

from __future__ import annotations

from functools import partial

from bench import cells
from bench.cells import Figures, Window
from bench.lab import Lab
from bench.places import PostgresPlace
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import wait_until
from bench.rows import Copier, enqueue_one
from bench.systems import RELET

HELP = "backlog 1k to 10M, 1 to 100 queues, 1 to 10k targets, payloads 50 B to 100 KB, 1 to 8 processes"
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


def plan(lab: Lab) -> Plan:
    cells = [
        Cell(
            f"growth_{kind}", _name(kind, size), partial(measure, kind=kind, size=size), most=1 if size > 1e6 else 1000
        )
        for kind, sizes in SIZES.items()
        for size in (sizes if not lab.options.quick else (sizes[0], sizes[min(2, len(sizes) - 1)]))
    ]
    return Plan(ROWS, tuple(cells))


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
