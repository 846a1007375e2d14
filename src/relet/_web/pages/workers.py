"""Workers, the jobs they hold, and the time left of each lease."""

from __future__ import annotations

from typing import Any

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
    context = {
        "workers": [{"info": one, "leases": leases.get(one.name, [])} for one in found[:MAX_WORKERS]],
        "number": len(found),
        "left": max(len(found) - MAX_WORKERS, 0),
        "max_leases": MAX_LEASES,
        "unknown_workers": sorted(set(leases) - {one.name for one in found}),
        "leases": leases,
        "slots": sum(one.slots for one in found if not one.lost),
        "used": sum(one.running for one in found if not one.lost),
        "lost": sum(one.lost for one in found),
    }
    return Page("Workers", "workers.html", context)
