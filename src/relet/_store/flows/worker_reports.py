"""Reports of workers: every few seconds each reports that it runs, and its counts since the last report."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.worker import WorkerFacts
from ..query import BEGIN, Flow, as_json, write
from . import stats
from .stats import Count


def report(id: str, facts: WorkerFacts, running: int, stopping: bool, counts: Sequence[Count] = ()) -> Flow[None]:
    """Store a worker's report, and add its counts. A repeated report (same id) is counted once."""
    if counts:
        yield BEGIN
    about = as_json(facts)
    row = {"name": facts.name, "host": facts.host, "pid": facts.pid, "running": running, "stopping": stopping}
    if (yield write("stats/upsert_worker", **row, report=id, about=about)):
        yield from stats.add(counts)


def forget(name: str) -> Flow[None]:
    """Delete the row of a worker that has stopped."""
    yield write("stats/delete_worker", name=name)
