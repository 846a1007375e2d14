"""When a schedule is due: the arithmetic of cron expressions and of fixed intervals.

A moment is seconds since 1970. A tick is a moment at which the schedule is due. A wall time is a datetime without a
time zone, as a clock in the caller's zone shows it. Clock changes are treated as Debian's cron documents (see `Cron`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from . import validate
from .cron_fields import lowest, lowest_from, read

SHORTEST_INTERVAL = 0.1
MINUTE = timedelta(minutes=1)
NO_TIME = timedelta(0)


class Ticks(NamedTuple):
    """Some ticks of an interval, oldest first. `more`: the interval has further ticks."""

    moments: list[float]
    more: bool


class Schedule(ABC):
    """The base of `Cron` and `Every`."""

    __slots__ = ()

    @abstractmethod
    def next(self, after: float, zone: tzinfo) -> float:
        """The first tick strictly after a moment."""

    @abstractmethod
    def previous(self, until: float, zone: tzinfo) -> float | None:
        """The last tick at or before a moment; None if there was none.

        The cost does not depend on the number of ticks.
        """

    def between(self, after: float, until: float, zone: tzinfo, limit: int) -> Ticks:
        """The oldest ticks after `after`, up to and including `until`; at most `limit`.

        To get all of them, call again with the last tick as `after` while there are more. To get the latest only, call
        `previous(until)` and compare it with `after`.
        """
        moments: list[float] = []
        tick = self.next(after, zone)
        while tick <= until:
            if len(moments) >= limit:
                return Ticks(moments, True)
            moments.append(tick)
            tick = self.next(tick, zone)
        return Ticks(moments, False)


@dataclass(frozen=True, slots=True)
class Every(Schedule):
    """A fixed interval. The first tick is one interval after `start`."""

    seconds: float
    start: float

    def __post_init__(self) -> None:
        validate.seconds("the interval of a schedule", self.seconds, minimum=SHORTEST_INTERVAL)
        validate.seconds("the start of a schedule", self.start, maximum=validate.YEAR_2100)

    def next(self, after: float, zone: tzinfo = UTC) -> float:
        return self._tick(self._count(after) + 1)

    def previous(self, until: float, zone: tzinfo = UTC) -> float | None:
        count = self._count(until)
        return self._tick(count) if count else None

    def _tick(self, number: int) -> float:
        # Multiplying avoids the rounding errors of a sum, so the millionth tick is as exact as the first.
        return float(self.start + number * self.seconds)

    def _count(self, until: float) -> int:
        """The number of ticks up to and including a moment."""
        count = max(math.floor((until - self.start) / self.seconds), 0)
        # The division may round to the wrong side, so compare the ticks themselves.
        while count and self._tick(count) > until:
            count -= 1
        while self._tick(count + 1) <= until:
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class Cron(Schedule):
    """A cron expression: minute, hour, day of month, month, day of week.

    Fields take lists, ranges, steps and names. The day fields also take `L` (last day), `LW` (last day from Monday to
    Friday), `fri#2` (second Friday) and `5L` (last Friday). A day must match both day fields; if neither of them starts
    with `*`, it need only match one. `@hourly`, `@daily` and the like are accepted.

    When the zone puts its clock forward, some wall times are skipped; when it puts the clock back, some are repeated.
    A schedule whose minute or hour starts with `*` follows the wall clock: it has no tick at a skipped time, and two
    at a repeated one. Any other schedule has one tick for each matching time: the first of a repeated time, and for
    skipped times the moment after the change (one tick for all of them).
    """

    text: str
    minutes: int = field(compare=False, repr=False)
    hours: int = field(compare=False, repr=False)
    months: int = field(compare=False, repr=False)
    days: tuple[tuple[int, ...], ...] = field(compare=False, repr=False)
    wild: bool = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Parse an expression, or raise InvalidInput."""
        return cls(*read(text))

    def __str__(self) -> str:
        return self.text

    def next(self, after: float, zone: tzinfo) -> float:
        """The first tick strictly after a moment."""
        here = datetime.fromtimestamp(math.floor(after), zone)
        wall = here.replace(second=0, tzinfo=None, fold=0) + MINUTE
        tick = self._first(wall, after, zone)
        if self.wild and here.fold == 0 and (put_back := _put_back(here, zone)) > NO_TIME:
            # This hour will be repeated. A wall time that has passed may come again before any later one matches.
            tick = min(tick, self._first((wall - put_back).replace(second=0), after, zone))
        return tick

    def previous(self, until: float, zone: tzinfo) -> float:
        """The last tick at or before a moment."""
        # next(t) <= until holds exactly for every t before the tick we search. So step back by strides that double
        # until next() finds a tick, then bisect. That takes two calls of next() for each doubling of the distance,
        # about forty for a leap day, however many ticks lie between.
        stride = 60.0
        while (tick := self.next(until - stride, zone)) > until:
            stride *= 2
        end = until
        while end - tick >= 60:
            middle = (tick + end) / 2
            later = self.next(middle, zone)
            if later <= until:
                tick = later
            else:
                end = middle
        while (later := self.next(tick, zone)) <= until:  # at most once, unless the zone's offset changed by seconds
            tick = later
        return tick

    def _first(self, wall: datetime, after: float, zone: tzinfo) -> float:
        """The first tick after the moment `after` whose wall time is `wall` or later."""
        while True:
            wall = self._fit(wall)
            for tick in self._moments(wall, zone):
                if tick > after:
                    return tick
            wall += MINUTE

    def _moments(self, wall: datetime, zone: tzinfo) -> tuple[float, ...]:
        """The ticks of a matching wall time: two if it is repeated, none if it is skipped (see `Cron`)."""
        put_back = _put_back(wall, zone)
        if put_back > NO_TIME and self.wild:
            return _moment(wall, zone), _moment(wall.replace(fold=1), zone)
        if put_back < NO_TIME:
            if self.wild:
                return ()
            while _put_back(wall, zone) < NO_TIME:
                wall += MINUTE
        return (_moment(wall, zone),)

    def _fit(self, wall: datetime) -> datetime:
        """The first wall time at or after `wall` that matches all fields. The zone may skip it."""
        year, month, day = wall.year, wall.month, wall.day
        if self.months >> month & 1 and self._days(year, month) >> day & 1:
            if self.hours >> wall.hour & 1 and (minute := lowest_from(self.minutes, wall.minute)) is not None:
                return wall.replace(minute=minute)
            if (hour := lowest_from(self.hours, wall.hour + 1)) is not None:
                return wall.replace(hour=hour, minute=lowest(self.minutes))
            day += 1
        elif not self.months >> month & 1:
            day = 32
        while (found := lowest_from(self._days(year, month), day)) is None:
            later = lowest_from(self.months, month + 1)
            if later is None:
                year, later = year + 1, lowest(self.months)
            month, day = later, 1
        return datetime(year, month, found, lowest(self.hours), lowest(self.minutes))

    def _days(self, year: int, month: int) -> int:
        from calendar import monthrange

        first, length = monthrange(year, month)
        return self.days[first][length - 28]


def _put_back(wall: datetime, zone: tzinfo) -> timedelta:
    """By how much the clock is put back at this wall time: positive if it is repeated, negative if it is skipped."""
    early, late = wall.replace(tzinfo=zone, fold=0).utcoffset(), wall.replace(tzinfo=zone, fold=1).utcoffset()
    return NO_TIME if early is None or late is None else early - late


def _moment(wall: datetime, zone: tzinfo) -> float:
    return wall.replace(tzinfo=zone).timestamp()
