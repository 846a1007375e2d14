"""The overview: totals, charts, and the latest failures."""

from __future__ import annotations

from ..._core.redact import redacted
from ..._core.views import counted_at
from . import cache, figures
from .attention import problems
from .page import Page, PageContext
from .queues import totals
from .schedules import rhythm
from .workers import capacity

FEW = 6


def overview(view: PageContext) -> Page:
    """Totals and charts, with the busiest queues, lost workers and latest failures."""
    which = figures.range_of(view.query.get("range"))
    history = cache.shared(view, which, which.step, lambda: figures.history(view, which))
    queues = [one for one in view.client.queues() if one.queue != "*"]
    workers = view.client.workers()
    schedules = [one for one in view.client.schedules.all() if one.next_at and not (one.paused or one.problem)]
    oldest = [one.oldest for one in queues if one.oldest is not None]
    context = {
        "problems": problems(view, queues, workers),
        "is_new": not history.anything and not queues and not workers,
        "example_task": next(iter(sorted(view.tasks)), ""),
        "rhythm": rhythm,
        "which": which,
        "ranges": figures.RANGES,
        "totals": totals(queues),
        "counted_at": counted_at(queues),
        "at_least": any(one.at_least for one in queues),
        "history": history,
        "queues": sorted(queues, key=lambda one: (-one.queued - one.running, one.queue))[:FEW],
        "queues_left": max(len(queues) - FEW, 0),
        "oldest": max(oldest, default=None),
        "workers": sorted(workers, key=lambda one: (not one.lost, one.name))[:FEW],
        "workers_left": max(len(workers) - FEW, 0),
        "capacity": capacity(workers),
        "failures": redacted(view.client.failures(limit=FEW), view.redact),
        "schedules": sorted(schedules, key=lambda one: one.next_at or view.now)[:FEW],
    }
    return Page("Overview", "overview.html", context)
