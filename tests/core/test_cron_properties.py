"""Random expressions in random zones: against the definition, minute by minute, and against another library."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from relet import InvalidInput
from relet._core.cron import Cron
from tests.plugin.selection import rounds

ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/St_Johns"),
    *("Asia/Kolkata", "Pacific/Apia", "Africa/Cairo", "America/Santiago", "Pacific/Chatham", "Antarctica/Troll"),
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
START, END = int(datetime(2019, 1, 1, tzinfo=UTC).timestamp()), int(datetime(2031, 1, 1, tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Field:
    """A field's text, and the numbers and marks (L, LW, 5#2, 5L) that it means."""

    text: str
    means: frozenset[int | str]

    @property
    def starred(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True)
class Expression:
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(part.text for part in (self.minute, self.hour, self.day, self.month, self.weekday))

    @property
    def wild(self) -> bool:
        return self.minute.starred or self.hour.starred

    def fits(self, wall: datetime) -> bool:
        if wall.minute not in self.minute.means or wall.hour not in self.hour.means:
            return False
        if wall.month not in self.month.means:
            return False
        by_date, by_weekday = (
            bool(marks_of_date(wall) & self.day.means),
            bool(marks_of_weekday(wall) & self.weekday.means),
        )
        if self.day.starred or self.weekday.starred:
            return by_date and by_weekday
        return by_date or by_weekday


def marks_of_date(wall: datetime) -> set[int | str]:
    marks: set[int | str] = {wall.day}
    if (wall + DAY).month != wall.month:
        marks.add("L")
    later = [wall + n * DAY for n in range(1, 4)]
    if wall.isoweekday() <= 5 and not any(d.month == wall.month and d.isoweekday() <= 5 for d in later):
        marks.add("LW")
    return marks


def marks_of_weekday(wall: datetime) -> set[int | str]:
    weekday = wall.isoweekday() % 7
    last = (wall + 7 * DAY).month != wall.month
    return {weekday, f"{weekday}#{(wall.day - 1) // 7 + 1}", f"{weekday}L" if last else "-"}


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = (), marks: str = "") -> Field:
    def written(number: int) -> str:
        name = names[number - low] if names and number - low < len(names) and draw(st.booleans()) else str(number)
        return draw(st.sampled_from([name, name.upper()]))

    numbers, steps = st.integers(low, high), st.integers(1, high)
    texts: list[str] = []
    means: set[int | str] = set()
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        kind = draw(st.sampled_from(["*", "*", "*/", "n", "n", "n", "n-n", "n-n/", "n/", *marks.split()]))
        first, last, step = draw(numbers), draw(numbers), draw(steps)
        first, last = min(first, last), max(first, last)
        weekday = first % 7
        nth = draw(st.integers(1, 5))
        terms: dict[str, tuple[str, set[int | str]]] = {
            "*": ("*", set(range(low, high + 1))),
            "*/": (f"*/{step}", set(range(low, high + 1, step))),
            "n": (written(first), {first}),
            "n-n": (f"{written(first)}-{written(last)}", set(range(first, last + 1))),
            "n-n/": (f"{written(first)}-{last}/{step}", set(range(first, last + 1, step))),
            "n/": (f"{written(first)}/{step}", set(range(first, high + 1, step))),
            "L": ("L", {"L"}),
            "LW": ("lw", {"LW"}),
            "#": (f"{first}#{nth}", {f"{weekday}#{nth}"}),
            "nL": (f"{first}L", {f"{weekday}L"}),
        }
        text, meant = terms[kind]
        assume(kind != "n-n/" or first < last)  # the other library reads 5-5/2 as 5/2; tested elsewhere
        texts.append(text)
        means |= meant
    if high == 7 and 7 in means:
        means.add(0)
    return Field(",".join(texts), frozenset(means))


EXPRESSIONS = st.builds(
    Expression,
    fields(0, 59),
    st.one_of(fields(0, 23), fields(0, 23), st.just(Field("1-3", frozenset({1, 2, 3})))),
    st.one_of(st.just(Field("*", frozenset(range(1, 32)))), fields(1, 31, marks="L LW")),
    st.one_of(st.just(Field("*", frozenset(range(1, 13)))), fields(1, 12, MONTHS)),
    st.one_of(st.just(Field("*", frozenset(range(8)))), fields(0, 7, WEEKDAYS, marks="# nL")),
)


@cache
def changes(name: str) -> tuple[int, ...]:
    """About when the zone's offset changes."""
    zone = ZoneInfo(name)
    days = range(START, END, 86400)
    offsets = [datetime.fromtimestamp(day, zone).utcoffset() for day in days]
    return tuple(day + 43200 for day, one, two in zip(days, offsets, offsets[1:], strict=False) if one != two)


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, float]:
    """A zone and a moment, mostly one close to a change of the clock, sometimes between two seconds."""
    name = draw(st.sampled_from(ZONES))
    days = changes(name)
    if days and draw(st.integers(0, 3)) > 0:
        moment = draw(st.sampled_from(days)) + draw(st.integers(-48 * 60, 36 * 60)) * 60
    else:
        moment = draw(st.integers(START, END))
    return name, moment + draw(st.sampled_from([0.0, 0.0, 0.25, 59.999]))


def parsed(expression: Expression) -> Cron:
    try:
        return Cron.parse(expression.text)
    except InvalidInput as refused:
        if "there is no such day" not in str(refused):
            raise
    # The other library refuses some such days, too, and gives up after 50 years on the others.
    with pytest.raises((CronSimError, StopIteration)):
        next(CronSim(expression.text, datetime.now(UTC)))
    return reject()


def by_definition(expression: Expression, after: float, until: float, zone: ZoneInfo) -> list[float]:
    """Each minute's look at the wall, as cron has it.

    With a wildcard, it is due if the wall fits. Without, if it fits for the first time, or a time that was stepped over
    does: that is, if any time fits that lies between the latest ever shown and the one that is shown now.
    """
    found = []
    # Three hours ahead, so that what was shown before `after` is known.
    minutes = range(int(after) // 60 * 60 - 3 * 3600, int(until) + 1, 60)
    latest = datetime.fromtimestamp(minutes[0], zone).replace(tzinfo=None)
    for minute in minutes[1:]:
        wall = datetime.fromtimestamp(minute, zone).replace(tzinfo=None, fold=0)
        if expression.wild:
            due = expression.fits(wall)
        else:
            due = False
            while latest < wall:
                latest += MINUTE
                due = expression.fits(latest) or due
        if due and minute > after:
            found.append(float(minute))
    return found


PLENTY = settings(
    max_examples=5000 if os.environ.get("RELET_HYPOTHESIS") == "thorough" else rounds(50, all=150),
    deadline=None,
    print_blob=True,
    database=None if os.environ.get("CI") else settings().database,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@PLENTY
@given(EXPRESSIONS, moments())
def test_ticks_are_those_of_the_definition_none_more_and_none_less(
    expression: Expression, moment: tuple[str, float]
) -> None:
    cron, zone, after = parsed(expression), ZoneInfo(moment[0]), moment[1]
    until = after + 8 * 3600
    assert cron.between(after, until, zone, 10_000) == (by_definition(expression, after, until, zone), False)


@pytest.mark.long
@PLENTY
@given(EXPRESSIONS, moments())
def test_the_next_tick_is_later_fits_the_wall_clock_and_is_the_previous_one_of_the_tick_after_it(
    expression: Expression, moment: tuple[str, float]
) -> None:
    cron, zone, after = parsed(expression), ZoneInfo(moment[0]), moment[1]
    tick = cron.next(after, zone)
    wall = datetime.fromtimestamp(tick, zone).replace(tzinfo=None)
    before = datetime.fromtimestamp(tick - 60, zone).replace(tzinfo=None)
    stepped_over = [before + n * MINUTE for n in range(1, int((wall - before) / MINUTE))]
    assert tick > after
    assert expression.fits(wall) or (not expression.wild and any(expression.fits(time) for time in stepped_over))
    latest = cron.previous(after, zone)
    assert latest <= after
    assert (cron.next(latest, zone), cron.next(latest - 1, zone)) == (tick, latest)
    assert cron.previous(tick, zone) == tick


@pytest.mark.long
@PLENTY
@given(EXPRESSIONS, moments())
def test_the_next_ticks_agree_with_another_library(expression: Expression, moment: tuple[str, float]) -> None:
    name, after = moment
    zone = ZoneInfo(name)
    start = datetime.fromtimestamp(after, zone)
    # Two faults of the other library: it steps over half hours, and forgets which of two equal times it starts at.
    assume(not (name == "Australia/Lord_Howe" and expression.wild) and not start.fold)
    cron, other = parsed(expression), CronSim(expression.text, start)
    for _ in range(4):
        after = cron.next(after, zone)
        assert after == next(other).timestamp()


WORDS = st.text(alphabet="0123456789*/,-#LWmonfriju", min_size=1, max_size=6)


@PLENTY
@given(st.integers(0, 4), WORDS, st.sampled_from(["* * * * *", "0 2 L 2-12 *", "5 4 1 * mon"]))
def test_the_same_expressions_are_refused_as_by_another_library(position: int, word: str, others: str) -> None:
    parts = others.split()
    parts[position] = word
    text = " ".join(parts)
    try:
        Cron.parse(text)
    except InvalidInput as refused:
        if "there is no such day" in str(refused):
            return
        assume("L/" not in text and "LW/" not in text)  # it ignores the step
        with pytest.raises(CronSimError):
            CronSim(text, datetime.now(UTC))
    else:
        assume(not any(name + "L" in text for name in ("mon", "fri")))  # it knows 5L, but not friL
        CronSim(text, datetime.now(UTC))
