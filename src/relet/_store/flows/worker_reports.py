"""What workers say: every few seconds each says that it is there, and what it has counted since."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.worker import WorkerFacts
from ..query import BEGIN, Flow, as_json, write
from . import stats
from .stats import Count


def report(id: str, facts: WorkerFacts, running: int, stopping: bool, counts: Sequence[Count] = ()) -> Flow[None]:
    """A worker is there. With it goes what it has counted since it last said so; said again, it is counted once."""
    yield BEGIN
    about = as_json(facts)
    said = {"name": facts.name, "host": facts.host, "pid": facts.pid, "running": running, "stopping": stopping}
    if (yield write("stats/upsert_worker", **said, report=id, about=about)):
        yield from stats.add(counts)


def forget(name: str) -> Flow[None]:
    """A worker has stopped in good order."""
    yield write("stats/delete_worker", name=name)
