"""Schedules: the ticks of cron expressions and of fixed intervals, against an independent library and by hand."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError

from relet import InvalidInput
from relet._core.cron import Cron, Every, Schedule

BERLIN, LORD_HOWE, APIA = (ZoneInfo(n) for n in ("Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"))
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "Africa/Casablanca",  # back for Ramadan, then forward
    "America/St_Johns",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Africa/Cairo",  # midnight is left out in spring
)
SPARSE = (
    "0 0 * * *",
    "30 2 * * *",
    "0 3 * * *",
    "15 2 * * sun",
    "5-50/15 2 * * *",
    "59 23 * * *",
    "7/20 0 * * *",
    "0 9-17/4 * * mon-fri",
    "30 0 1 * *",
    "0 0 1,15 * fri",
    "0 12 */10 * mon",
    "0 12 13 * */5",
    "0 2 31 * *",
    "0 0 L * *",
    "30 1 LW * *",
    "0 0 1,L * *",
    "0 1 LW * sat",
    "0 2 * * fri#2",
    "0 2 * * 5#2,mon#1",
    "30 2 * * 0L",
    "45 23 * * 7L,3L",
    "0 2 * mar,oct 0",
    "0 2 25-31 MAR,Oct Sun",
    "0 0 29 2 *",
    "0 5 * jan-jun/2 TUE-thu",
    "10,20 4 * * 5-7",
    "0 0 * * 0-7/7",
    "0 0 * * 1/3",
    "0 0 30 2 mon",
    "*/30 2 * * *",
    "* 2 29 3 *",
    "10 * 1 * *",
    "0 * * * sun",
    "30 */6 * * *",
    "*/20 3-5 * 4,10 *",
    "0-10/5 */3 * * 6",
    "0 0 * * 5,*",
)
STEPPED_OVER = ("*/30 2 * * *", "*/20 3-5 * 4,10 *")  # on Lord Howe, by the other library: a test below says why
DENSE = (
    "* * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "*/5 1-3 * * *",
    "0/15 0-23 * * *",
    "13 0-23 * * *",
    "0,15,30,45 1-3 * * *",
)


def at(text: str) -> float:
    """A moment in UTC, written 2026-03-29 01:00."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")


def ticks(text: str, after: str, until: str, zone: tzinfo) -> list[str]:
    return [utc(tick) for tick in Cron.parse(text).between(at(after), at(until), zone, 1000).moments]


def ours(text: str, after: float, until: float, zone: tzinfo) -> list[float]:
    return Cron.parse(text).between(after, until, zone, 10**6).moments


def theirs(text: str, after: float, until: float, zone: tzinfo) -> list[float]:
    def moments() -> Iterator[float]:
        for tick in CronSim(text, datetime.fromtimestamp(after, zone)):
            if (moment := tick.timestamp()) > until:
                return
            yield moment

    return list(moments())


def changes(zone: tzinfo) -> list[float]:
    """The hours of 2026 and 2027 in which the zone puts its clock forward or back."""
    hours = range(int(at("2026-01-01")), int(at("2028-01-01")), 3600)
    offsets = [datetime.fromtimestamp(hour, zone).utcoffset() for hour in hours]
    return [float(hour) for hour, one, two in zip(hours, offsets, offsets[1:], strict=False) if one != two]


@pytest.mark.long("UTC", "America/New_York", "America/St_Johns", "Asia/Kolkata", "Pacific/Apia", "Africa/Cairo")
@pytest.mark.parametrize("name", ZONES)
def test_years_of_ticks_agree_with_another_library(name: str) -> None:
    """Of one zone two years, of the others one: it is the other library that takes so long."""
    zone, end = ZoneInfo(name), at("2028-01-01" if name == "Europe/Berlin" else "2027-01-01")
    for text in SPARSE if zone is not LORD_HOWE else [t for t in SPARSE if t not in STEPPED_OVER]:
        found = ours(text, at("2025-12-31 23:59"), end, zone)
        assert found == theirs(text, at("2025-12-31 23:59"), end, zone), text


@pytest.mark.long("America/New_York", "America/St_Johns", "Pacific/Apia")
@pytest.mark.parametrize("name", ZONES)
def test_dense_ticks_agree_with_another_library_around_each_change_of_the_clock(name: str) -> None:
    zone = ZoneInfo(name)
    for middle in [*changes(zone), at("2026-02-28"), at("2027-12-31 12:00")]:
        for text in DENSE:
            found = ours(text, middle - 43200, middle + 43200, zone)
            assert found == theirs(text, middle - 43200, middle + 43200, zone), (text, utc(middle))


def test_half_an_hour_is_not_stepped_over_where_the_other_library_does() -> None:
    # On Lord Howe the clock goes from 02:00 back to 01:30. Looking for an hour, cronsim steps 3600 seconds at a time
    # from a full hour; after half an hour's change these steps land on half hours, and what fits between is missed.
    # Cron looks at each minute, so 02:00 is due.
    after, until = at("2026-04-04 13:00"), at("2026-04-05 13:00")
    assert [utc(tick) for tick in ours("*/30 2 * * *", after, until, LORD_HOWE)] == [
        "2026-04-04 15:30",
        "2026-04-04 16:00",
    ]
    assert [utc(tick) for tick in theirs("*/30 2 * * *", after, until, LORD_HOWE)] == ["2026-04-04 16:00"]


def test_a_start_within_the_repeated_hour_gives_no_tick_that_has_passed_where_the_other_library_does() -> None:
    # 03:10 Berlin summer time becomes 02:10; cronsim forgets which 02:10 it was given, and answers with the first
    # 02:30, which was forty minutes before.
    after = at("2026-10-25 01:10")
    assert utc(Cron.parse("30 2 * * *").next(after, BERLIN)) == "2026-10-26 01:30"
    assert next(CronSim("30 2 * * *", datetime.fromtimestamp(after, BERLIN))).timestamp() < after


def test_a_range_of_one_with_a_step_is_that_one_where_the_other_library_goes_on() -> None:
    # crontab(5): a step skips through the range. cronsim takes 5-5/15 for 5/15, which goes on to the end.
    assert ticks("5-5/15 * * * *", "2026-01-01 00:00", "2026-01-01 02:00", UTC) == [
        "2026-01-01 00:05",
        "2026-01-01 01:05",
    ]
    assert len(theirs("5-5/15 * * * *", at("2026-01-01 00:00"), at("2026-01-01 02:00"), UTC)) == 8


def test_the_last_friday_may_be_named_as_the_second_may_where_the_other_library_wants_a_number() -> None:
    assert ours("0 0 * * friL", at("2026-01-01"), at("2027-01-01"), UTC) == ours(
        "0 0 * * 5L", at("2026-01-01"), at("2027-01-01"), UTC
    )
    with pytest.raises(CronSimError):
        CronSim("0 0 * * friL", datetime.now(UTC))


def test_a_step_on_the_last_day_is_refused_where_the_other_library_ignores_it() -> None:
    assert CronSim("0 0 L/2 * *", datetime.now(UTC))
    with pytest.raises(InvalidInput, match=r"day of month must be 1 to 31, L or LW, not l \(in l/2\)"):
        Cron.parse("0 0 L/2 * *")


def test_a_day_that_a_zone_left_out_is_made_up_for_as_an_hour_is() -> None:
    # Apia had no 30 December 2011. Debian's cron speaks of changes of less than three hours only; like the other
    # library, we know no such limit: a job a day is due that day, too, as soon as there is a wall clock again.
    found = ours("0 12 * * *", at("2011-12-29 00:00"), at("2012-01-01 00:00"), APIA)
    assert [utc(tick) for tick in found] == [
        "2011-12-29 22:00",
        "2011-12-30 10:00",
        "2011-12-30 22:00",
        "2011-12-31 22:00",
    ]
    assert found == theirs("0 12 * * *", at("2011-12-29 00:00"), at("2012-01-01 00:00"), APIA)


# Berlin, 29 March 2026: at 01:00 UTC the wall goes from 02:00 to 03:00.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30 2 * * *", ["28 01:30", "29 01:00", "30 00:30"]),  # left out: at once after the change
        (
            "0,15,30,45 2 * * *",
            [
                "28 01:00",
                "28 01:15",
                "28 01:30",
                "28 01:45",
                "29 01:00",
                "30 00:00",
                "30 00:15",
                "30 00:30",
                "30 00:45",
            ],
        ),
        ("30 2,3 29 * *", ["29 01:00", "29 01:30"]),
        ("0 2,3 29 * *", ["29 01:00"]),  # both are due at the same moment: once
        ("59 1 29 * *", ["29 00:59"]),
        ("0 3 29 * *", ["29 01:00"]),
        ("*/30 2 29 * *", []),  # a wildcard: the wall never shows it
        ("30 * 29 3 *", [f"{d} {h:02}:30" for d, h in [(28, 23), *((29, h) for h in range(22))]]),
        ("0 */2 29 * *", ["28 23:00", "29 02:00"] + [f"29 {h:02}:00" for h in range(4, 22, 2)]),
    ],
)
def test_spring_in_berlin(text: str, expected: list[str]) -> None:
    found = ticks(text, "2026-03-28 00:30", "2026-03-30 00:45", BERLIN)
    assert found == [f"2026-03-{tick}" for tick in expected]


# Berlin, 25 October 2026: at 01:00 UTC the wall goes from 03:00 back to 02:00.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30 2 * * *", ["24 00:30", "25 00:30", "26 01:30"]),  # once, the first time
        ("0,30 2 25 * *", ["25 00:00", "25 00:30"]),
        ("0 3 25 * *", ["25 02:00"]),
        ("*/30 2 25 * *", ["25 00:00", "25 00:30", "25 01:00", "25 01:30"]),  # a wildcard: whenever the wall shows it
        ("30 * 25 * *", [f"{d} {h:02}:30" for d, h in [(24, 22), (24, 23), *((25, h) for h in range(23))]]),
        ("0 */2 25 * *", ["24 22:00", "25 00:00", "25 01:00"] + [f"25 {h:02}:00" for h in range(3, 23, 2)]),
    ],
)
def test_autumn_in_berlin(text: str, expected: list[str]) -> None:
    found = ticks(text, "2026-10-24 00:00", "2026-10-26 01:30", BERLIN)
    assert found == [f"2026-10-{tick}" for tick in expected]


def test_a_tick_is_strictly_after_the_moment_and_on_the_full_minute() -> None:
    cron = Cron.parse("*/5 * * * *")
    noon = at("2026-01-01 12:00")
    just_before = math.nextafter(noon, 0)  # would be noon if it were rounded to microseconds
    assert cron.next(just_before, UTC) == noon
    assert [cron.next(noon + d, UTC) - noon for d in (-0.5, 0, 0.5, 59.5, 299.5, 300)] == [0, 300, 300, 300, 300, 600]


def test_words_such_as_daily_mean_their_expressions_in_any_case() -> None:
    def same(word: str, text: str) -> bool:
        span = at("2026-01-01"), at("2026-03-02"), BERLIN
        return str(Cron.parse(word)) == word and ours(word, *span) == ours(text, *span)

    assert same("@hourly", "0 * * * *")
    assert same("@daily", "0 0 * * *")
    assert same("@Midnight", "0 0 * * *")
    assert same("@weekly", "0 0 * * sun")
    assert same("@monthly", "0 0 1 * *")
    assert same("@yearly", "0 0 1 1 *")
    assert same("@ANNUALLY", "0 0 1 1 *")


def test_an_expression_is_a_value_that_keeps_its_text_with_single_spaces() -> None:
    cron = Cron.parse("  0\t9  * *   Mon-FRI\n")
    assert (str(cron), repr(cron)) == ("0 9 * * Mon-FRI", "Cron(text='0 9 * * Mon-FRI')")
    assert cron == Cron.parse("0 9 * * Mon-FRI") != Cron.parse("0 9 * * mon-fri")
    assert hash(cron) == hash(Cron.parse("0 9 * * Mon-FRI"))
    assert pickle.loads(pickle.dumps(cron)).next(0, UTC) == cron.next(0, UTC)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("61 * * * *", 'cron "61 * * * *": minute must be 0 to 59, not 61'),
        ("* 24 * * *", 'cron "* 24 * * *": hour must be 0 to 23, not 24'),
        ("* 9-24 * * *", "hour must be 0 to 23, not 24 (in 9-24)"),
        ("* * 0 * *", "day of month must be 1 to 31, L or LW, not 0"),
        ("* * 15W * *", "day of month must be 1 to 31, L or LW, not 15w"),
        ("* * * 13 *", "month must be 1 to 12 or jan to dec, not 13"),
        ("* * * january *", "month must be 1 to 12 or jan to dec, not january"),
        ("* * * * 8", "day of week must be 0 to 7 or sun to sat, not 8"),
        ("* * * * L", "day of week must be 0 to 7 or sun to sat, not l"),
        ("* * * * jan", "day of week must be 0 to 7 or sun to sat, not jan"),
        ("1,,2 * * * *", "minute must be 0 to 59, not nothing"),
        ("-1 * * * *", "minute must be 0 to 59, not nothing (in -1)"),
        ("1.5 * * * *", "minute must be 0 to 59, not 1.5"),
        ("? * * * *", "minute must be 0 to 59, not ?"),
        ("*/0 * * * *", "minute: the step must be 1 to 1000000, not 0"),
        ("*/ * * * *", "minute: the step must be 1 to 1000000, not nothing"),
        ("*/5/2 * * * *", "minute: the step must be 1 to 1000000, not 5/2"),
        ("30-10 * * * *", "minute range 30-10 runs backwards"),
        ("* * * * sat-sun", "day of week range sat-sun runs backwards; Sunday at its end is 7"),
        ("* * * * fri#6", "day of week: the number after fri# must be 1 to 5, not 6"),
        ("* * * * 1-5#2", "day of week must be 0 to 7 or sun to sat, not 1-5 (in 1-5#2)"),
        ("0 0 30 2 *", "there is no such day: day of month 30, month 2, day of week *"),
        ("0 0 31 2,apr,6 *", "there is no such day: day of month 31, month 2,apr,6, day of week *"),
        ("0 0 */31 * mon#2", "there is no such day: day of month */31, month *, day of week mon#2"),
        ("0 0 0 * * *", "it has six fields, there must be five: minute is the first, there is none for seconds"),
        ("* * * *", "there must be five fields: minute, hour, day of month, month, day of week; not 4"),
        ("@reboot", "unknown shortcut; use one of @hourly, @daily, @midnight, "),
        ("@daily * * * *", "unknown shortcut"),
        ("", "a cron expression must be 1 to 500 ASCII characters, not ''"),
        ("* * * * \u017fun", "ASCII"),
        ("* * * * \x00", "ASCII"),
        ("9" * 5000 + " * * * *", "a cron expression must be 1 to 500 ASCII characters"),
        (5, "a cron expression must be 1 to 500 ASCII characters, not 5"),
    ],
)
def test_wrong_expressions_are_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Cron.parse(text)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 200


def test_some_ticks_are_listed_and_it_is_told_whether_there_are_more() -> None:
    cron, after, until = Cron.parse("0 * * * *"), at("2026-01-01 00:00"), at("2026-01-01 03:00")
    hours = [after + 3600, after + 7200, after + 10800]
    assert cron.between(after, until, UTC, 4) == cron.between(after, until, UTC, 3) == (hours, False)
    assert cron.between(after, until, UTC, 2) == (hours[:2], True)
    assert cron.between(hours[1], until, UTC, 2) == (hours[2:], False)
    assert cron.between(after, until - 1, UTC, 3) == (hours[:2], False)
    assert cron.between(after, until, UTC, 0) == ([], True)
    assert cron.between(until, after, UTC, 5) == ([], False)


class Counted(Cron):
    """Counts how often the next tick was asked for."""

    asked = 0

    def next(self, after: float, zone: tzinfo) -> float:
        Counted.asked += 1
        return Cron.next(self, after, zone)


@pytest.mark.parametrize(
    ("text", "latest"),
    [
        ("* * * * *", "2026-10-25 01:10"),
        ("11 * * * *", "2026-10-25 00:11"),
        ("59 2 * * *", "2026-10-25 00:59"),  # it is 02:10 for the second time; 02:59 was the first time
        ("0 0 * * *", "2026-10-24 22:00"),
        ("0 0 1 1 *", "2025-12-31 23:00"),
        ("0 0 29 2 *", "2024-02-28 23:00"),
        ("0 0 29 2 */7", "2004-02-28 23:00"),  # the leap days that are Sundays
    ],
)
def test_the_latest_tick_is_found_in_few_steps_however_many_there_were(text: str, latest: str) -> None:
    counted = Counted.parse(text)
    Counted.asked = 0
    assert utc(counted.previous(at("2026-10-25 01:10"), BERLIN)) == latest
    assert Counted.asked <= 60


def test_an_interval_ticks_from_its_start_and_does_not_drift() -> None:
    start = at("2026-01-01 00:00")
    every: Schedule = Every(0.1, start)
    assert every.next(start - 1e6, UTC) == start + 0.1
    tick = start
    for number in range(1, 20_001):
        after, tick = tick, every.next(tick, UTC)
        assert tick == start + number * 0.1 > after
        assert every.previous(tick, UTC) == tick
    assert (every.previous(start, UTC), every.previous(start + 0.15, UTC)) == (None, start + 0.1)
    assert Every(60, 0).next(at("2026-01-01 00:00")) == at("2026-01-01 00:01")
    assert Every(3600, start).between(start, start + 86400 * 3650, UTC, 2) == ([start + 3600, start + 7200], True)


@pytest.mark.parametrize(("seconds", "start"), [(0, 0), (-1, 0), (float("nan"), 0), (1e12, 0), (60, -1), (60, 1e12)])
def test_an_interval_that_makes_no_sense_is_refused(seconds: float, start: float) -> None:
    with pytest.raises(InvalidInput, match="of a schedule must be seconds from"):
        Every(seconds, start)
