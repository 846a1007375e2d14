"""Workers, as they last spoke of themselves (`reports.py`)."""

from __future__ import annotations

import msgspec

from ...core.job import utc
from ...core.worker import WorkerFacts, WorkerInfo
from ..query import Flow, Row, look, read

LOST_AFTER = 15.0  # seconds without a word: three reports have not come


@look
def workers(*, now: float | None = None) -> Flow[list[WorkerInfo]]:
    """Every worker that is there, or was lost lately."""
    return [_worker(row) for row in (yield read("workers", now=now))]


_facts = msgspec.json.Decoder(WorkerFacts)


def _worker(row: Row) -> WorkerInfo:
    about, running, stopping, started, seen, silent = row
    facts = _facts.decode(about)
    return WorkerInfo(
        name=facts.name,
        host=facts.host,
        pid=facts.pid,
        queues=facts.queues,
        slots=facts.slots,
        tasks=facts.tasks,
        lease=facts.lease,
        version=facts.version,
        running=running,
        stopping=bool(stopping),
        started_at=utc(started),
        seen_at=utc(seen),
        lost=silent > LOST_AFTER,
    )
