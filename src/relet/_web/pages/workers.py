"""Workers, the jobs they hold, and the time left of each lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.worker import WorkerInfo
from .page import Page, PageContext

MAX_LEASES = 12
MAX_WORKERS = 100  # that are listed individually


def workers(view: PageContext) -> Page:
    """All workers, the lost ones first."""
    found = sorted(view.client.workers(), key=lambda one: (not one.lost, one.name))
    running = view.client.jobs(state="running", limit=500).jobs if found else []
    leases: dict[str, list[Any]] = {}
    for job in sorted(running, key=lambda job: (job.expires_at is None, job.expires_at)):
        leases.setdefault(job.worker or "", []).append(job)
    known = {one.name for one in found}
    context = {
        "workers": [{"info": one, "leases": leases.get(one.name, [])} for one in found[:MAX_WORKERS]],
        "number": len(found),
        "left": max(len(found) - MAX_WORKERS, 0),
        "max_leases": MAX_LEASES,
        "unknown_workers": sorted(leases.keys() - known),
        "leases": leases,
        "capacity": capacity(found),
    }
    return Page("Workers", "workers.html", context)


def capacity(workers: Sequence[WorkerInfo]) -> dict[str, int]:
    """The slots of all live workers, how many of them are used, and the number of lost workers."""
    alive = [one for one in workers if not one.lost]
    slots = sum(one.slots for one in alive)
    used = sum(one.running for one in alive)
    return {"slots": slots, "used": used, "lost": len(workers) - len(alive)}
