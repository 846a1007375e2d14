"""Workers: who is there, what they hold, and for how much longer."""

from __future__ import annotations

from typing import Any

from .context import Page, View

MOST_HELD = 12
MOST = 100  # workers that are shown one by one


def workers(view: View) -> Page:
    """All workers, the lost ones first."""
    found = sorted(view.client.workers(), key=lambda one: (not one.lost, one.name))
    running = view.client.jobs(state="running", limit=500).jobs if found else []
    held: dict[str, list[Any]] = {}
    for job in sorted(running, key=lambda job: (job.expires_at is None, job.expires_at)):
        held.setdefault(job.worker or "", []).append(job)
    context = {
        "workers": [{"info": one, "held": held.get(one.name, [])} for one in found[:MOST]],
        "number": len(found),
        "left": max(len(found) - MOST, 0),
        "most_held": MOST_HELD,
        "strangers": sorted(set(held) - {one.name for one in found}),
        "held": held,
        "slots": sum(one.slots for one in found if not one.lost),
        "used": sum(one.running for one in found if not one.lost),
        "lost": sum(one.lost for one in found),
    }
    return Page("Workers", "workers.html", context)
