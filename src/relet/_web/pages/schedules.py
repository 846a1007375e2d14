"""Schedules: their next ticks, and the jobs of the latest ones."""

from __future__ import annotations

from datetime import datetime

from ..._core.cron import Cron, Every
from ..._core.job import utc
from ..._core.schedule import ScheduleInfo, zone_of
from ...errors import InvalidInput
from .cron_words import cron_words
from .formatting import duration, pretty
from .page import Page, PageContext, PageNotFound

TICKS = 30
NEXT = 5


def schedules(view: PageContext) -> Page:
    """All schedules; with `name` in the URL, the page of that schedule."""
    if "name" in view.query:
        return schedule(view, view.query["name"])
    found = view.client.schedules.all()
    late = max((one.next_at for one in found if one.next_at), default=view.now)
    found.sort(key=lambda one: (one.paused, one.next_at or late, one.name))
    return Page("Schedules", "schedules.html", {"schedules": found, "rhythm": rhythm, "expression": expression})


def schedule(view: PageContext, name: str) -> Page:
    """One schedule, and its latest ticks with their jobs."""
    found = view.client.schedules.get(name)
    if found is None:
        raise PageNotFound(f"There is no schedule named {name}.")
    ticks = view.client.schedules.ticks(name, limit=TICKS)
    jobs = {tick.job: view.client.get(tick.job) for tick in ticks if tick.job}
    context = {
        "one": found,
        "ticks": ticks,
        "jobs": jobs,
        "rhythm": rhythm,
        "expression": expression,
        "payload": pretty(view.redact(found.payload_json)),
        "upcoming": upcoming(found),
    }
    return Page(f"Schedule {name}", "schedule.html", context)


def upcoming(info: ScheduleInfo) -> list[datetime]:
    """The next ticks of a schedule. Empty if it is paused."""
    if info.paused or info.next_at is None:
        return []
    ticks = [info.next_at]
    try:
        clock = Every(info.every, info.next_at.timestamp()) if info.every is not None else Cron.parse(info.cron or "")
        while len(ticks) < NEXT:
            ticks.append(utc(clock.next(ticks[-1].timestamp(), zone_of(info.timezone))))
    except (InvalidInput, ValueError, OverflowError):
        pass  # this release cannot read the schedule: return only the next tick, which is stored
    return ticks


def rhythm(info: ScheduleInfo) -> str:
    """The interval, or the cron expression, in words; an expression of an unusual kind as it is."""
    return f"every {duration(info.every)}" if info.every is not None else cron_words(info.cron or "") or info.when


def expression(info: ScheduleInfo) -> str:
    """The cron expression, if `rhythm` does not contain it."""
    return info.cron or "" if info.every is None and cron_words(info.cron or "") else ""
