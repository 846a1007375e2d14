"""The overview: totals, charts, and the latest failures."""

from __future__ import annotations

from ..._core.job import State
from ..._core.redact import redacted
from ..._core.views import by_state, counted_at
from . import cache, figures
from .page import Page, PageContext

FEW = 6


def overview(view: PageContext) -> Page:
    """Totals and charts, with the busiest queues, lost workers and latest failures."""
    which = figures.range_of(view.query.get("range"))
    history = cache.shared(view, which, which.step, lambda: figures.history(view, which))
    queues = [one for one in view.client.queues() if one.queue != "*"]
    workers = view.client.workers()
    schedules = [one for one in view.client.schedules.all() if one.next_at and not (one.paused or one.problem)]
    totals = {str(state): sum(by_state(one)[state] for one in queues) for state in State if not state.over}
    context = {
        "which": which,
        "ranges": figures.RANGES,
        "totals": totals,
        "counted_at": counted_at(queues),
        "at_least": any(one.at_least for one in queues),
        "history": history,
        "queues": sorted(queues, key=lambda one: (-one.queued - one.running, one.queue))[:FEW],
        "queues_left": max(len(queues) - FEW, 0),
        "oldest": max((one.oldest for one in queues if one.oldest is not None), default=None),
        "workers": sorted(workers, key=lambda one: (not one.lost, one.name))[:FEW],
        "workers_left": max(len(workers) - FEW, 0),
        "slots": sum(one.slots for one in workers if not one.lost),
        "used": sum(one.running for one in workers if not one.lost),
        "lost": sum(one.lost for one in workers),
        "failures": redacted(view.client.failures(limit=FEW), view.redact),
        "schedules": sorted(schedules, key=lambda one: one.next_at or view.now)[:FEW],
    }
    return Page("Overview", "overview.html", context)
