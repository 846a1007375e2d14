"""`relet bench`: measure relet on your own database, and compare it with a bare loop of SQL.

scratch   a temporary schema or file for the measurements
measure   the measurements
raw       the same work without a queue
app       the tasks that the worker process runs
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import logs
from ..._core import validate
from .. import output
from ..load_app import load_app

if TYPE_CHECKING:
    from .measure import Figures

DESCRIPTION = """\
Measure enqueue, drain and latency on your own database, and the same work as a bare loop of SQL.

It uses a scratch schema (PostgreSQL) or a scratch file beside yours (SQLite), and removes it afterwards, also after
Ctrl-C. It does not touch your tables, but your server does the work: do not run it beside production."""
MAX_JOBS = 1_000_000


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="measure enqueue, drain and latency on your own database",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("where", nargs="?", metavar="URL or APP", help="the URL of a database, or an app, such as shop:app (default "
        "RELET_URL, else a SQLite file)")  # fmt: skip
    add("--jobs", type=int, default=20_000, metavar="N", help="jobs to enqueue in bulk and to drain (default 20,000)")
    add("--processes", type=int, default=1, metavar="N", help="worker processes (default 1)")
    add("-c", "--concurrency", type=int, default=10, metavar="N", help="slots of each process (default 10)")
    add("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, then print one table."""
    from .measure import measure  # only this command needs it
    from .scratch import scratch

    logs.configure("error", as_json=False)
    jobs = validate.integer("--jobs", options.jobs, 100, MAX_JOBS)
    processes = validate.integer("--processes", options.processes, 1, 100)
    slots = validate.integer("--concurrency", options.concurrency, 1, 10_000)
    with _interrupted_by_sigterm(), scratch(_url(options.where)) as store:
        figures = measure(store, jobs, processes, slots)
    if options.json:
        output.as_json(figures.document())
    else:
        _print(figures)
    return 0


def _url(where: str | None) -> str | None:
    if where is None:
        return os.environ.get("RELET_URL")
    if "://" in where:
        return where
    app = load_app(where)
    app.close()
    return app._url


def _print(figures: Figures) -> None:
    processes = "1 worker process" if figures.processes == 1 else f"{figures.processes} worker processes"
    print(f"{figures.where}: {figures.jobs:,} jobs, {processes} with {figures.slots} slots\n")
    rates = (
        ("enqueue one by one", figures.single, figures.raw_single),
        ("enqueue 1,000 a call", figures.bulk, figures.raw_bulk),
        ("drain", figures.drain, figures.raw_drain),
    )
    lines = [(name, f"{own:,.0f}", f"{raw:,.0f}", f"{own / raw:.2f}") for name, own, raw in rates]
    output.table(("JOBS/S", "RELET", "BARE LOOP", "RATIO"), lines)
    latency = ", ".join(f"{name} {value:.1f}" for name, value in figures.document()["latency"].items())
    print(f"\nFrom enqueue to the start of the handler, in ms: {latency}.")
    print("Every job ran exactly once. The bare loop has no handlers, leases or retries: it is the database's limit.")


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt, so that it cleans up like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
