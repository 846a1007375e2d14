"""Reports of workers: every few seconds each reports that it runs, and its counts since the last report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.worker import WorkerFacts
from ..query import BEGIN, Flow, as_json, write
from . import stats
from .stats import Count


def report(id: str, facts: WorkerFacts, running: int, stopping: bool, counts: Sequence[Count] = ()) -> Flow[None]:
    """Store a worker's report, and add its counts. A repeated report (same id) is counted once."""
    if counts:
        yield BEGIN
    if (yield write("stats/upsert_worker", **_row(facts), running=running, stopping=stopping, report=id)):
        yield from stats.add(counts)


def _row(facts: WorkerFacts) -> dict[str, Any]:
    return {"name": facts.name, "host": facts.host, "pid": facts.pid, "about": as_json(facts)}


def stay(id: str, facts: WorkerFacts) -> Flow[None]:
    """Report that a worker without jobs is still there."""
    yield write("stats/upsert_worker", **_row(facts), running=0, stopping=False, report=id)


def forget(name: str) -> Flow[None]:
    """Delete the row of a worker that has stopped."""
    yield write("stats/delete_worker", name=name)
