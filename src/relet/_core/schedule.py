"""Schedules: their definitions, and which of their ticks are due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from ..errors import InvalidInput
from . import validate
from .codecs import Decodable, value_of
from .cron import Cron, Every, Schedule
from .job import Draft

Missed = Literal["skip", "once", "all"]
Overlap = Literal["allow", "skip", "wait"]

ON_TIME = 60.0  # seconds: a tick that is noticed later counts as missed
MAX_DUE = 100  # ticks of one schedule that are handled at a time


class Due(NamedTuple):
    """The ticks to enqueue jobs for now, and the time of the next one (None: never)."""

    ticks: Sequence[float]
    next_at: float | None


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The job that a schedule enqueues, and when."""

    draft: Draft[Any]
    cron: str | None = None
    every: float | None = None  # seconds
    start: float | None = None  # of a fixed interval
    timezone: str = "UTC"
    missed: Missed = "once"
    overlap: Overlap = "allow"

    def due(self, next_at: float, now: float, limit: int = MAX_DUE) -> Due:
        """The ticks from `next_at` until now that need a job. Some may have been missed while no worker ran.

        With `missed="all"` these are the first `limit`; the next one is then due at once.
        """
        clock, zone = self.clock(), zone_of(self.timezone)
        if self.missed == "all":
            ticks, more = clock.between(next_at - 0.001, now, zone, limit)
            return Due(ticks, clock.next(ticks[-1] if more else now, zone))
        latest = clock.previous(now, zone)
        if latest is None or latest < next_at - 0.001 or (self.missed == "skip" and now - latest > ON_TIME):
            return Due([], clock.next(now, zone))
        return Due([latest], clock.next(now, zone))

    def first(self, now: float) -> float:
        """The first tick after a moment."""
        return self.clock().next(now, zone_of(self.timezone))

    def clock(self) -> Schedule:
        """The ticks of the cron expression or of the interval."""
        if self.every is not None:
            return Every(self.every, self.start or 0.0)
        return Cron.parse(self.cron or "")


class Tick(NamedTuple):
    """One tick of a schedule: the job that was enqueued for it, or why none was."""

    at: datetime
    job: str | None
    note: str | None


class ScheduleInfo(Decodable, frozen=True, rename={"payload_json": "payload"}):
    """A schedule as the store knew it at one moment."""

    name: str
    task: str
    queue: str
    payload_json: str
    cron: str | None
    every: float | None
    timezone: str
    missed: Missed
    overlap: Overlap
    paused: bool
    next_at: datetime | None
    last_at: datetime | None
    last_job: str | None
    declared: bool  # in code
    problem: str | None = None  # why this release cannot read the definition; most other fields are then empty

    @property
    def payload(self) -> Any:
        """The arguments of its jobs, as plain JSON values."""
        return value_of(self.payload_json, self._codecs)

    @property
    def when(self) -> str:
        """The cron expression or the interval, to be displayed."""
        if self.problem is not None:
            return "cannot be read here"
        return self.cron or f"every {self.every:g} s"

    def __repr__(self) -> str:
        return f"<schedule {self.name} ({self.when}) of {self.task}{', paused' if self.paused else ''}>"


def define(
    draft: Draft[Any], cron: str | None, every: float | None, timezone: str, missed: Missed, overlap: Overlap
) -> Definition:
    """Check the arguments of a schedule and make its definition."""
    if not isinstance(draft, Draft):
        raise InvalidInput(f"a schedule takes a draft (task.draft(...)), not {type(draft).__name__}")
    if (cron is None) == (every is None):
        raise InvalidInput('a schedule has either a cron expression ("*/5 * * * *") or every=seconds')
    if cron is not None:
        cron = str(Cron.parse(cron))
    for name in ("run_at", "delay", "unique", "depends_on"):
        if getattr(draft, name):
            raise InvalidInput(f"a schedule decides when its jobs run: its draft cannot have {name}")
    zone_of(validate.text("timezone", timezone))
    return Definition(
        msgspec.structs.replace(draft, fresh=True, context=None),  # each job starts a new trace
        cron,
        None if every is None else validate.seconds("every", every, minimum=0.1),
        timezone=timezone,
        missed=validate.one_of("missed", missed, ("skip", "once", "all")),  # type: ignore[arg-type]
        overlap=validate.one_of("overlap", overlap, ("allow", "skip", "wait")),  # type: ignore[arg-type]
    )


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """The time zone, or InvalidInput."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError, TypeError):
        raise InvalidInput(
            f"there is no time zone {name!r}; use a name such as Europe/Berlin (if the system has no time zones, "
            "install tzdata)"
        ) from None
