"""Parses cron expressions into bit sets, which are quick to search."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from ..errors import InvalidInput

MAX_LENGTH = 500
SHORTCUTS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# Each field becomes a bit set. Days of the month have two more bits, for `L` and `LW`. A weekday w has bit w for every
# one in the month, w + 8 * n for the nth, and w + 8 * 6 for the last.
LAST_DAY, LAST_WORKDAY = 32, 33
LAST_OF_MONTH = 6


class Fields(NamedTuple):
    """A cron expression and its fields as bit sets."""

    text: str
    minutes: int
    hours: int
    months: int
    days: tuple[tuple[int, ...], ...]  # matching days, by weekday of the 1st, then by length of the month - 28
    wild: bool  # whether the minute or the hour starts with *


class _Field(Struct, frozen=True):
    """One of the five fields: its name, and the numbers and names that it accepts. `also` ends its error message."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    also: str = ""

    def bits(self, text: str) -> int:
        bits = 0
        for item in text.split(","):
            bits |= self._item(item)
        return bits

    def _item(self, item: str) -> int:
        if self.name == "day of month" and item in ("l", "lw"):
            return 1 << (LAST_DAY if item == "l" else LAST_WORKDAY)
        if self.name == "day of week":
            weekday, hash_, nth = item.partition("#")
            if hash_:
                return 1 << self._number(weekday, item) % 7 + 8 * self._count(nth, 5, f"the number after {weekday}#")
            if item.endswith("l") and item != "l":
                return 1 << self._number(item[:-1], item) % 7 + 8 * LAST_OF_MONTH
            bits = self._range(item)
            return bits & 0x7F | bits >> 7  # 7 and 0 are both Sunday
        return self._range(item)

    def _range(self, item: str) -> int:
        span, slash, step = item.partition("/")
        low, dash, high = span.partition("-")
        if span == "*":
            first, last = self.low, self.high
        else:
            first = self._number(low, item)
            last = self._number(high, item) if dash else self.high if slash else first
        if last < first:
            hint = "; Sunday at its end is 7" if high == "sun" else ""
            raise _FieldError(f"{self.name} range {span} runs backwards{hint}")
        return sum(1 << n for n in range(first, last + 1, self._count(step, 10**6, "the step") if slash else 1))

    def _number(self, text: str, item: str) -> int:
        if text in self.names:
            return self.names.index(text) + self.low
        if text.isdigit() and self.low <= int(text) <= self.high:
            return int(text)
        where = f" (in {item})" if item != text else ""
        raise _FieldError(f"{self.name} must be {self.low} to {self.high}{self.also}, not {text or 'nothing'}{where}")

    def _count(self, text: str, maximum: int, what: str) -> int:
        if text.isdigit() and 1 <= int(text) <= maximum:
            return int(text)
        raise _FieldError(f"{self.name}: {what} must be 1 to {maximum}, not {text or 'nothing'}")


class _FieldError(Exception):
    """An error in a field. `read` adds the expression to its message."""


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31, also=", L or LW"),
    _Field("month", 1, 12, MONTHS, also=" or jan to dec"),
    _Field("day of week", 0, 7, WEEKDAYS, also=" or sun to sat"),
)


def read(text: object) -> Fields:
    """Parse an expression, or raise InvalidInput."""
    expression = " ".join(text.split()) if isinstance(text, str) else ""
    if not (0 < len(expression) <= MAX_LENGTH and expression.isascii() and expression.isprintable()):
        raise InvalidInput(f"a cron expression must be 1 to {MAX_LENGTH} ASCII characters, not {repr(text)[:80]}")
    try:
        return _fields(expression)
    except _FieldError as error:
        raise InvalidInput(f'cron "{expression}": {error}') from None


def _fields(text: str) -> Fields:
    parts = _split(text.lower())
    minutes, hours, dom, months, dow = (field.bits(part) for field, part in zip(FIELDS, parts, strict=True))
    either = not (parts[2].startswith("*") or parts[4].startswith("*"))
    days = tuple(_days_by_length(dom, dow, either, first) for first in range(7))
    if not _matches_any_day(months, days):
        raise _FieldError(f"there is no such day: day of month {parts[2]}, month {parts[3]}, day of week {parts[4]}")
    wild = parts[0].startswith("*") or parts[1].startswith("*")
    return Fields(text, minutes, hours, months, days, wild)


def _split(text: str) -> list[str]:
    if text.startswith("@") and text not in SHORTCUTS:
        raise _FieldError(f"unknown shortcut; use one of {', '.join(SHORTCUTS)}")
    parts = SHORTCUTS.get(text, text).split()
    if len(parts) == 6:
        raise _FieldError("it has six fields, there must be five: minute is the first, there is none for seconds")
    if len(parts) != 5:
        fields = "minute, hour, day of month, month, day of week"
        raise _FieldError(f"there must be five fields: {fields}; not {len(parts)}")
    return parts


def _days_by_length(dom: int, dow: int, either: bool, first: int) -> tuple[int, ...]:
    """The matching days of a month of 28, 29, 30 and 31 days."""
    return tuple(_days(dom, dow, either, first, length) for length in range(28, 32))


def _days(dom: int, dow: int, either: bool, first: int, length: int) -> int:
    """The matching days, as bits, of a month with this length whose 1st is this weekday (Monday is 0)."""
    by_date = dom & (2 << length) - 2
    by_weekday = 0
    if dom >> LAST_DAY & 1:
        by_date |= 1 << length
    if dom >> LAST_WORKDAY & 1:
        by_date |= 1 << length - max((first + length - 1) % 7 - 4, 0)
    for day in range(1, length + 1):
        wanted = 1 | 1 << 8 * ((day + 6) // 7) | (1 << 8 * LAST_OF_MONTH if day + 7 > length else 0)
        if dow >> (first + day) % 7 & wanted:
            by_weekday |= 1 << day
    return by_date | by_weekday if either else by_date & by_weekday


def _matches_any_day(months: int, days: tuple[tuple[int, ...], ...]) -> bool:
    """Whether any day matches. Each month, in each of its lengths, starts on every weekday in some year."""
    from calendar import monthrange

    lengths = {monthrange(2000, month)[1] for month in range(1, 13) if months >> month & 1}
    if months >> 2 & 1:
        lengths.add(28)  # February, which has 29 days in 2000
    return any(by_length[length - 28] for by_length in days for length in lengths)


def lowest_from(bits: int, minimum: int) -> int | None:
    """The number of the lowest bit that is set, `minimum` or above; None if there is none."""
    rest = bits >> minimum
    return minimum + lowest(rest) if rest else None


def lowest(bits: int) -> int:
    """The number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1
