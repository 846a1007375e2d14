"""Workers, as of their last reports (`worker_reports.py`)."""

from __future__ import annotations

from msgspec import Struct

from ..._core.job import utc
from ..._core.worker import WorkerInfo
from ..query import Flow, Row, read, read_only
from . import mapping

LOST_AFTER = 15.0  # seconds without a report, at least
MISSED = 3  # reports: then a worker is lost


@read_only
def workers() -> Flow[list[WorkerInfo]]:
    """Every worker that runs, or was lost recently."""
    return [_worker(row) for row in (yield read("inspect/workers"))]


class _Facts(Struct):
    """The fields of `WorkerFacts` that are read. A worker of another release may send more, or fewer."""

    queues: tuple[str, ...] | None = None
    slots: int = 0
    tasks: tuple[str, ...] = ()
    lease: float = 0.0
    version: str = "unknown"
    every: float = 0.0


def _worker(row: Row) -> WorkerInfo:
    name, host, pid, about, running, stopping, started, seen, silent = row
    facts = mapping.lenient(_Facts, about)
    return WorkerInfo(
        name=name,
        host=host,
        pid=pid,
        queues=facts.queues,
        slots=facts.slots,
        tasks=facts.tasks,
        lease=facts.lease,
        version=facts.version,
        running=running,
        stopping=bool(stopping),
        started_at=utc(started),
        seen_at=utc(seen),
        lost=silent > max(LOST_AFTER, MISSED * facts.every),
    )
