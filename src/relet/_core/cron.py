"""When a schedule is due: the arithmetic of cron expressions and of fixed intervals.

A moment is seconds since 1970. A tick is a moment at which the schedule is due. The wall clock is that of the zone
that the caller gives; what happens when it is put forward or back is what Debian's cron documents (see `Cron`).
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
    """Some ticks, oldest first, and whether there are more before the end that was asked for."""

    moments: list[float]
    more: bool


class Schedule(ABC):
    """What `Cron` and `Every` have in common."""

    __slots__ = ()

    @abstractmethod
    def next(self, after: float, zone: tzinfo) -> float:
        """The first tick strictly after a moment."""

    @abstractmethod
    def previous(self, until: float, zone: tzinfo) -> float | None:
        """The last tick at or before a moment, None if there was none. As quick after ten years as after a minute."""

    def between(self, after: float, until: float, zone: tzinfo, limit: int) -> Ticks:
        """The ticks after one moment, up to and including another: the `limit` oldest of them.

        Whoever wants them all goes on from the last one given while there are more; whoever wants the latest only
        asks for `previous(until)` and compares it with `after`.
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
    """A tick every so many seconds, the first of them that many after the start."""

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
        # Multiplied, not added up, so that the millionth tick is as exact as the first.
        return float(self.start + number * self.seconds)

    def _count(self, until: float) -> int:
        """How many ticks there are up to and including a moment."""
        count = max(math.floor((until - self.start) / self.seconds), 0)
        # The division may be off by a rounding; the ticks themselves decide.
        while count and self._tick(count) > until:
            count -= 1
        while self._tick(count + 1) <= until:
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class Cron(Schedule):
    """A cron expression: minute, hour, day of month, month, day of week.

    Fields take lists, ranges, steps and names; days also `L` (last), `LW` (last from Monday to Friday), `fri#2` (second
    Friday) and `5L` (last Friday). If neither field for days starts with `*`, a day that fits either of them will do,
    otherwise it must fit both. The words `@hourly`, `@daily` and so on stand for what they say.

    When the zone puts its clock forward or back, a schedule whose minute or hour starts with `*` is due whenever the
    wall clock shows a time that fits: not at times left out, and twice at times that come twice. Any other is due once
    for each time that fits: when a time that comes twice is shown first, and for times left out as soon as the clock
    has been put forward (several of them are one tick).
    """

    text: str
    minutes: int = field(compare=False, repr=False)
    hours: int = field(compare=False, repr=False)
    months: int = field(compare=False, repr=False)
    days: tuple[tuple[int, ...], ...] = field(compare=False, repr=False)
    wild: bool = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Read an expression; whatever is wrong with it is refused with `InvalidInput`."""
        return cls(*read(text))

    def __str__(self) -> str:
        return self.text

    def next(self, after: float, zone: tzinfo) -> float:
        """The first tick strictly after a moment."""
        here = datetime.fromtimestamp(math.floor(after), zone)
        wall = here.replace(second=0, tzinfo=None, fold=0) + MINUTE
        tick = self._first(wall, after, zone)
        if self.wild and here.fold == 0 and (put_back := _put_back(here, zone)) > NO_TIME:
            # This hour comes again, and what has passed of it may fit before anything that lies ahead on the wall.
            tick = min(tick, self._first((wall - put_back).replace(second=0), after, zone))
        return tick

    def previous(self, until: float, zone: tzinfo) -> float:
        """The last tick at or before a moment."""
        # next(t) is at or before `until` for exactly the t before the tick that is sought. So: back in strides that
        # double until there is a tick, then halve what is left. That is two calls of `next` for each doubling of the
        # distance, about forty for a leap day, and nothing depends on how many ticks there were in between.
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
        while (later := self.next(tick, zone)) <= until:  # one at most, unless a zone's offset changed by seconds
            tick = later
        return tick

    def _first(self, wall: datetime, after: float, zone: tzinfo) -> float:
        """The first tick after a moment, of those at or after a time on the wall."""
        while True:
            wall = self._fit(wall)
            for tick in self._moments(wall, zone):
                if tick > after:
                    return tick
            wall += MINUTE

    def _moments(self, wall: datetime, zone: tzinfo) -> tuple[float, ...]:
        """The ticks that a time on the wall stands for: two if it comes twice, none if it is left out, as may be."""
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
        """The first time at or after the one given that fits all fields, leaving aside whether the zone has it."""
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
    """By how much the clock is put back over this time: above zero if it comes twice, below if it is left out."""
    early, late = wall.replace(tzinfo=zone, fold=0).utcoffset(), wall.replace(tzinfo=zone, fold=1).utcoffset()
    return NO_TIME if early is None or late is None else early - late


def _moment(wall: datetime, zone: tzinfo) -> float:
    return wall.replace(tzinfo=zone).timestamp()
