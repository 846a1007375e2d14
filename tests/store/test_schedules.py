"""Schedules by a clock that only the test moves: which ticks there are, and what becomes of each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from relet._core.job import Draft, State
from relet._core.schedule import Definition, ScheduleInfo, Tick, define
from relet._store.flows import control, maintenance, operations, schedules
from relet._store.flows.operations import Operation
from relet._store.flows.schedules import MAX_TICKS, MAX_WAITING, Ticked
from relet._store.query import Flow
from relet.errors import InvalidInput, ScheduleNotFound
from tests.store.interleave import Background, Bench, draft

BERLIN = "Europe/Berlin"
HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def b(either: Bench) -> Bench:
    return either


def defined(cron: str | None = None, *, given: Draft[Any] | None = None, **options: Any) -> Definition:
    wanted = {"every": None, "timezone": "UTC", "missed": "once", "overlap": "allow", **options}
    return define(given or draft(), cron, **wanted)


def put(b: Bench, name: str, cron: str | None = None, **options: Any) -> ScheduleInfo:
    return b.run(schedules.put, name, defined(cron, **options))


def tick(b: Bench, **options: Any) -> Ticked:
    return b.run(schedules.tick, options.pop("tasks", ["t"]), lambda: draft().id, **options)


def go_on(b: Bench, until: float, step: float) -> list[float]:
    """Look at the clock again and again; the moments for which jobs were enqueued."""
    found = []
    while b.now < until:
        b.later(min(step, until - b.now))
        found += [job.run_at.timestamp() for job in tick(b).jobs]
    return found


def ticks(b: Bench, name: str) -> list[Tick]:
    return b.run(schedules.ticks, name, limit=1000)


def info(b: Bench, name: str) -> ScheduleInfo:
    (found,) = b.run(schedules.schedules, name)
    return found


def at(text: str, zone: str = "UTC", fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def shown(moments: list[float], zone: str = BERLIN) -> list[str]:
    return [datetime.fromtimestamp(one, ZoneInfo(zone)).strftime("%d %H:%M%z") for one in moments]


# Which ticks there are


def test_a_tick_is_enqueued_once_however_often_anyone_looks(b: Bench) -> None:
    b.now = at("2027-01-01T00:00:30")
    assert put(b, "minutely", "* * * * *").next_at == datetime(2027, 1, 1, 0, 1, tzinfo=UTC)
    assert tick(b).jobs == []
    b.later(30)
    (job,) = tick(b).jobs
    assert job.run_at.timestamp() == b.now
    assert [tick(b).jobs for _ in range(3)] == [[], [], []]
    assert ticks(b, "minutely") == [Tick(job.run_at, job.id, None)]
    assert info(b, "minutely").last_job == job.id


@pytest.mark.parametrize("every", [0.1, 1 / 3])
def test_a_fixed_interval_has_every_tick_once_at_any_moment_of_looking(b: Bench, every: float) -> None:
    """PostgreSQL keeps microseconds: moments go there and back and are compared with the floats that they were."""
    b.now += 0.123456789
    begin = round(b.now, 3)
    put(b, "often", every=every, missed="all")
    found = go_on(b, begin + 30.5 * every, every / 3.1)
    assert found == pytest.approx([begin + every * n for n in range(1, 31)], abs=2e-6)
    moments = [one.at.timestamp() for one in ticks(b, "often")]
    assert len(moments) == len(set(moments)) == 30


def test_looking_at_the_very_moment_of_a_tick_loses_none(b: Bench) -> None:
    begin = round(b.now, 3)
    put(b, "often", every=0.1, missed="all")
    found = []
    for number in range(1, 40):
        b.now = begin + 0.1 * number
        found += tick(b).jobs
    b.later(0.01)
    assert len(found) + len(tick(b).jobs) == 39


def test_a_day_on_which_the_clock_is_put_forward(b: Bench) -> None:
    b.now = at("2027-03-28T00:30", BERLIN)
    put(b, "nightly", "30 2 * * *", timezone=BERLIN)
    assert shown(go_on(b, at("2027-03-29T03:00", BERLIN), 900)) == ["28 03:00+0200", "29 02:30+0200"]


def test_a_day_on_which_the_clock_is_put_back(b: Bench) -> None:
    b.now = at("2027-10-31T00:30", BERLIN)
    put(b, "nightly", "30 2 * * *", timezone=BERLIN)
    assert shown(go_on(b, at("2027-11-01T03:00", BERLIN), 900)) == ["31 02:30+0200", "01 02:30+0100"]


@pytest.mark.parametrize(("day", "hours"), [("2027-03-28", 23), ("2027-10-31", 25)])
def test_hours_of_a_day_whatever_its_length(b: Bench, day: str, hours: int) -> None:
    b.now = at(f"{day}T00:00", BERLIN) - 1
    put(b, "hourly", "0 * * * *", timezone=BERLIN)
    found = go_on(b, at(f"{day}T00:00", BERLIN) + hours * HOUR - 1, 900)
    assert found == [at(f"{day}T00:00", BERLIN) + n * HOUR for n in range(hours)]


# Missed ones


def test_missed_ticks_are_skipped_or_made_up_for_once_or_all(b: Bench) -> None:
    b.now = at("2027-03-27T23:59")
    for missed in ("skip", "once", "all"):
        put(b, missed, "0 * * * *", timezone=BERLIN, missed=missed)
    b.now = at("2027-03-28T06:30")  # the clock was put forward at 01:00 UTC
    by_name: dict[str, list[float]] = {"skip": [], "once": [], "all": []}
    for job in tick(b).jobs:
        (name,) = [name for name in by_name if job.id in {one.job for one in ticks(b, name)}]
        by_name[name].append(job.run_at.timestamp())
    assert by_name["skip"] == []
    assert by_name["once"] == [at("2027-03-28T06:00")]
    assert by_name["all"] == [at(f"2027-03-28T0{n}:00") for n in range(7)]
    assert tick(b).jobs == []
    assert {info(b, name).next_at for name in by_name} == {datetime(2027, 3, 28, 7, tzinfo=UTC)}


def test_a_tick_that_is_a_little_late_was_not_missed(b: Bench) -> None:
    b.now = at("2027-01-01T00:30")
    put(b, "hourly", "0 * * * *", missed="skip")
    b.now = at("2027-01-01T05:00:30")
    assert [job.run_at.timestamp() for job in tick(b).jobs] == [at("2027-01-01T05:00")]


def test_ten_years_in_which_nobody_was_there_are_one_look(b: Bench) -> None:
    b.now = at("2027-01-01T00:00:01")
    for cron in ("0 0 29 2 *", "*/5 * * * *", "0 3 * * *"):
        for missed in ("skip", "once"):
            put(b, f"{cron} {missed}", cron, timezone=BERLIN, missed=missed)
    b.now = at("2037-01-01T12:02:00")
    assert len(tick(b).jobs) == 3
    assert all(one.next_at and one.next_at.timestamp() > b.now for one in b.run(schedules.schedules))


def test_all_that_were_missed_come_a_hundred_at_a_time_in_order(b: Bench) -> None:
    begin = round(b.now, 3)
    put(b, "all", every=1.0, missed="all")
    b.later(250.5)
    found = [[job.run_at.timestamp() for job in tick(b).jobs] for _ in range(4)]
    assert [len(one) for one in found] == [100, 100, 50, 0]
    assert [moment for some in found for moment in some] == [begin + n for n in range(1, 251)]


def counted(flow: Flow[Ticked], seen: list[Any]) -> Flow[Ticked]:
    """A flow, and all that it asks of the store."""
    answer = None
    while True:
        try:
            asked = flow.send(answer)  # type: ignore[arg-type]
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        seen.append(asked)
        answer = yield asked


def test_however_much_was_missed_a_transaction_is_small_and_none_waits_for_another(b: Bench) -> None:
    overlaps = ("allow", "skip", "wait")
    names = [f"{overlap} {number}" for overlap in overlaps for number in range(4)]
    for name in names:
        put(b, name, every=1.0, missed="all", overlap=name.split()[0])
    b.later(1000.5)
    for _ in range(3):
        asked: list[Any] = []
        done = b.run(lambda: counted(schedules.tick(["t"], lambda: draft().id), asked))  # noqa: B023
        assert 0 < len(done.jobs) <= MAX_TICKS
        assert len(asked) < 20, "a few statements for all of them"
    found = {name: len(ticks(b, name)) for name in names}
    assert found == dict.fromkeys(names, 3 * (MAX_TICKS // len(names)))


def test_a_transaction_that_is_cut_off_costs_no_more_than_its_own_ticks(pg: Bench) -> None:
    begin = round(pg.now, 3)
    put(pg, "all", every=1.0, missed="all")
    pg.later(250.5)
    first = tick(pg).jobs
    other = pg.session()
    assert len(other.leave_open(schedules.tick(["t"], lambda: draft().id)).jobs) == MAX_TICKS
    other.roll_back()
    rest = [job for _ in range(2) for job in tick(pg).jobs]
    assert [job.run_at.timestamp() for job in [*first, *rest]] == [begin + n for n in range(1, 251)]
    assert (len(ticks(pg, "all")), pg.count("jobs")) == (250, 250)


def test_missed_ticks_that_wait_for_each_other_come_a_few_at_a_time(b: Bench) -> None:
    put(b, "one by one", every=60, overlap="wait", missed="all")
    b.later(60 * 25.5)
    assert [len(tick(b).jobs) for _ in range(4)] == [MAX_WAITING, MAX_WAITING, 5, 0]


# Overlapping ones


def run_next(b: Bench, **end: Any) -> None:
    """Claim the one job that may run, and end it."""
    b.settle_down()
    (job,) = b.claim(10)
    b.succeed(job, **end) if end.pop("well", True) else b.fail(job)


def test_overlapping_ticks_are_allowed_unless_told_otherwise(b: Bench) -> None:
    put(b, "any", every=60)
    for _ in range(3):
        assert len(tick(b.later(60)).jobs) == 1
    b.promote()
    assert len(b.claim(10)) == 3


@pytest.mark.parametrize("end", ["succeeds", "fails", "goes on and succeeds", "goes on and fails"])
def test_a_tick_is_skipped_while_the_chain_of_an_earlier_one_lives(b: Bench, end: str) -> None:
    put(b, "alone", every=60, overlap="skip")
    assert len(tick(b.later(60)).jobs) == 1
    assert tick(b.later(60)).jobs == []
    assert ticks(b, "alone")[0].note == "skipped: the one before was not over"
    if end.startswith("goes on"):
        run_next(b, continue_with=draft())
        assert tick(b.later(60)).jobs == []
    run_next(b, well=end.endswith("succeeds"))
    assert len(tick(b.later(60)).jobs) == 1


def test_a_job_that_was_run_now_is_heeded_like_one_of_a_tick(b: Bench) -> None:
    put(b, "alone", every=60, overlap="skip")
    id = draft().id
    operation = Operation(draft().id, "run_now", "alone")
    b.run(operations.once, operation, schedules.run_now, "alone", id)
    b.later(1).run(operations.once, operation, schedules.run_now, "alone", id)
    assert [(one.job, one.note) for one in ticks(b, "alone")] == [(id, "run now")]
    assert tick(b.later(60)).jobs == []
    run_next(b)
    assert len(tick(b.later(60)).jobs) == 1


@pytest.mark.parametrize("end", ["succeeds", "fails", "goes on and succeeds", "goes on and fails"])
def test_a_tick_waits_for_the_chains_of_those_before_however_they_end(b: Bench, end: str) -> None:
    put(b, "one by one", every=60, overlap="wait")
    jobs = []
    for _ in range(3):
        jobs += tick(b.later(60)).jobs
    b.settle_down()
    for job in jobs:
        (running,) = b.claim(10)
        assert running.id == job.id
        if end.startswith("goes on"):
            b.succeed(running, continue_with=draft())
            b.settle_down()
            (running,) = b.claim(10)
            assert running.chain == job.id
        b.succeed(running) if end.endswith("succeeds") else b.fail(running)
        b.settle_down()
    assert b.claim(10) == []


def test_missed_ticks_that_wait_run_one_by_one_also_if_one_of_them_is_cancelled(b: Bench) -> None:
    put(b, "one by one", every=60, overlap="wait", missed="all")
    first, second, third = tick(b.later(190)).jobs
    b.settle_down()
    (running,) = b.claim(10)
    assert running.id == first.id
    b.run(control.cancel, second.id)
    b.settle_down()
    assert b.claim(10) == [], "the first still runs"
    b.succeed(running)
    b.settle_down()
    assert [job.id for job in b.claim(10)] == [third.id]


def test_missed_ticks_that_may_not_overlap_are_one(b: Bench) -> None:
    put(b, "alone", every=60, overlap="skip", missed="all")
    b.later(60 * 3.5)
    assert len(tick(b).jobs) == 1
    assert [one.note is None for one in ticks(b, "alone")] == [False, False, True]


def test_a_tick_that_was_dealt_with_before_is_nothing_that_the_next_overlaps_with(b: Bench) -> None:
    begin = b.now
    put(b, "alone", every=60, overlap="skip", missed="all")
    (first,) = tick(b.later(60)).jobs
    run_next(b)
    back = f"to_timestamp({begin + 60})" if b.on_postgres else f"{begin + 60}"
    b.query(f"update {{s}}schedules set next_at = {back}")
    b.later(130)
    (second,) = tick(b).jobs
    found = [(one.at.timestamp(), one.job) for one in ticks(b, "alone")]
    assert found == [(begin + 180, None), (begin + 120, second.id), (begin + 60, first.id)]


# What people do to schedules


def test_ticks_of_a_pause_are_not_made_up_for(b: Bench) -> None:
    put(b, "all", every=60, missed="all")
    assert b.run(schedules.pause, "all").paused
    assert info(b, "all").next_at is None
    b.later(600)
    assert tick(b).jobs == []
    assert b.run(maintenance.work_ahead, ["t"]).next_tick is None
    resumed = b.run(schedules.resume, "all")
    assert not resumed.paused
    assert tick(b).jobs == []
    assert len(tick(b.later(60)).jobs) == 1


def test_resuming_what_was_not_paused_leaves_out_no_tick(b: Bench) -> None:
    put(b, "all", every=60)
    b.later(61)
    b.run(schedules.resume, "all")
    assert len(tick(b).jobs) == 1


def test_a_schedule_changed_back_and_forth_has_no_tick_twice(b: Bench) -> None:
    """Nor when the clock of the store was put back meanwhile: the row of the tick decides."""
    b.now = at("2027-01-01T00:00:59")
    put(b, "changed", "* * * * *")
    b.later(1)
    (job,) = tick(b).jobs
    for seconds in (-10.0, 5.0, -4.0):
        b.later(seconds)
        put(b, "changed", "*/2 * * * *")
        put(b, "changed", "* * * * *")
        assert tick(b).jobs == []
    b.now = at("2027-01-01T00:01:00")
    assert tick(b).jobs == []
    assert [one.job for one in ticks(b, "changed")] == [job.id]


def test_what_is_removed_ticks_no_more_and_leaves_its_jobs(b: Bench) -> None:
    put(b, "gone", every=60)
    (job,) = tick(b.later(60)).jobs
    b.run(schedules.remove, "gone")
    assert tick(b.later(600)).jobs == []
    assert ticks(b, "gone") == []
    assert b.state(job.id) is State.QUEUED
    for verb in (schedules.pause, schedules.resume):
        with pytest.raises(ScheduleNotFound, match="gone"):
            b.run(verb, "gone")
    with pytest.raises(ScheduleNotFound):
        b.run(schedules.run_now, "gone", draft().id)
    with pytest.raises(ScheduleNotFound):
        b.run(schedules.remove, "gone")


def test_removing_waits_for_a_tick_under_way_and_leaves_nothing_of_it(pg: Bench) -> None:
    put(pg, "gone", every=60)
    pg.later(60)
    other = pg.session()
    assert len(other.leave_open(schedules.tick(["t"], lambda: draft().id)).jobs) == 1
    removing = Background(lambda: pg.run(schedules.remove, "gone"))
    assert removing.blocked
    other.commit()
    removing.result()
    assert (pg.count("schedules"), pg.count("ticks")) == (0, 0)


def test_two_who_look_at_once_enqueue_one_job_and_do_not_wait(pg: Bench) -> None:
    put(pg, "shared", every=60)
    pg.later(60)
    other = pg.session()
    assert len(other.leave_open(schedules.tick(["t"], lambda: draft().id)).jobs) == 1
    assert Background(lambda: tick(pg)).result(5).jobs == []
    other.roll_back()
    assert len(tick(pg).jobs) == 1, "who rolled back has ticked nothing"


# What code says


def declare(b: Bench, **declared: Definition) -> None:
    b.run(schedules.declare, declared)


def test_code_counts_when_it_changes_and_people_in_between(b: Bench) -> None:
    declare(b, job=defined(every=60))
    assert info(b, "job").declared
    put(b, "job", every=10)
    declare(b, job=defined(every=60))  # a worker was started again
    assert info(b, "job").every == 10
    declare(b, job=defined(every=90))
    assert info(b, "job").every == 90
    b.run(schedules.pause, "job")
    declare(b, job=defined("0 3 * * *"))
    assert (info(b, "job").cron, info(b, "job").paused) == ("0 3 * * *", True)


def test_declaring_the_same_again_and_again_moves_no_tick(b: Bench) -> None:
    """Workers that start every few seconds must not put the next tick off for ever."""
    declare(b, job=defined(every=60))
    for _ in range(9):
        declare(b.later(6.5), job=defined(every=60))
    assert len(tick(b.later(2)).jobs) == 1


def test_an_old_and_a_new_version_of_the_code_side_by_side(b: Bench) -> None:
    """What the new one has declared stays while the old one runs on; each tick is had by one of them."""
    old, new = defined(every=60, given=draft()), defined(every=30, given=draft("new_task"))
    declare(b, job=old)
    declare(b.later(10), job=new, other=defined(every=30, given=draft()))
    assert tick(b.later(60), tasks=["t"]).jobs[0].task == "t"
    assert tick(b, tasks=["t"]).jobs == [], "the old one does not know the new task, and leaves it alone"
    (job,) = tick(b, tasks=["t", "new_task"]).jobs
    assert job.task == "new_task"


# What cannot be followed


def test_a_task_that_nobody_knows_does_not_fire_and_is_nothing_to_look_at(b: Bench) -> None:
    put(b, "unknown", every=1.0, given=draft("nobodys"))
    b.later(5)
    assert tick(b).jobs == []
    assert b.run(maintenance.work_ahead, ["t"]).next_tick is None
    assert b.run(maintenance.work_ahead, ["nobodys"]).next_tick == pytest.approx(-4, abs=0.01)


def test_a_zone_that_this_machine_lacks_holds_up_nobody_and_loses_no_tick_for_those_who_have_it(b: Bench) -> None:
    b.now = at("2027-01-01T02:59:30")
    put(b, "puzzle", "0 3 * * *", timezone="Etc/UTC")
    put(b, "plain", "0 3 * * *")
    b.query("update {s}schedules set definition = replace(cast(definition as text), 'Etc/UTC', 'Mars/Crater')"
            f"{'::json' if b.on_postgres else ''} where name = 'puzzle'")  # fmt: skip
    b.later(60)
    first = tick(b)
    assert [job.task for job in first.jobs] == ["t"]
    assert list(first.problems) == ["puzzle"]
    assert "no time zone 'Mars/Crater'" in first.problems["puzzle"]
    again = tick(b, without=first.unreadable)
    assert (again.jobs, again.problems) == ([], {})
    ahead = b.run(maintenance.work_ahead, ["t"], without=first.unreadable).next_tick
    assert ahead is not None
    assert ahead > HOUR, "only what can be followed is looked forward to"
    assert [one.name for one in b.run(schedules.schedules)] == ["plain", "puzzle"]
    b.query("update {s}schedules set definition = replace(cast(definition as text), 'Mars/Crater', 'Etc/UTC')"
            f"{'::json' if b.on_postgres else ''} where name = 'puzzle'")  # fmt: skip
    (late,) = tick(b, without=first.unreadable).jobs
    assert late.run_at.timestamp() == at("2027-01-01T03:00")


def test_a_definition_that_is_no_definition_is_a_puzzle_as_well(b: Bench) -> None:
    put(b, "strange", every=60)
    b.query("update {s}schedules set definition = '[\"a later format\"]'")
    found = tick(b.later(60))
    assert list(found.problems) == ["strange"]
    assert found.unreadable == ['["a later format"]']


def test_a_definition_that_cannot_be_read_hides_no_other_and_can_be_steered(b: Bench) -> None:
    put(b, "plain", every=60)
    put(b, "strange", every=60)
    b.query("update {s}schedules set definition = '[\"a later format\"]' where name = 'strange'")
    plain, strange = b.run(schedules.schedules)
    assert (plain.problem, strange.name, strange.task) == (None, "strange", "t")
    assert "this release cannot read" in (strange.problem or "")
    assert repr(strange) == "<schedule strange (cannot be read here) of t>"
    assert b.run(schedules.pause, "strange").paused
    for verb in (schedules.resume, schedules.run_now):
        with pytest.raises(InvalidInput, match=r"schedule strange .* cannot read: .*; put it anew, or remove it"):
            b.run(verb, "strange", *([draft().id] if verb is schedules.run_now else []))
    assert put(b, "strange", every=60).problem is None
    b.run(schedules.remove, "strange")
    assert [one.name for one in b.run(schedules.schedules)] == ["plain"]


# Many, and old


def test_a_thousand_that_are_due_at_once(b: Bench) -> None:
    b.run(schedules.declare, {f"s{n:04}": defined(every=60.0 + n % 7) for n in range(1000)})
    b.later(67)
    jobs = []
    for _ in range(20):
        jobs += tick(b).jobs
    assert len(jobs) == 1000
    assert tick(b).jobs == []
    assert b.count("ticks") == 1000


def test_ticks_go_after_a_while_unless_their_chains_live(b: Bench) -> None:
    put(b, "daily", every=60, missed="all")
    over, lives, goes_on = (tick(b.later(60)).jobs[0] for _ in range(3))
    b.settle_down()
    running = {job.id: job for job in b.claim(10)}
    b.succeed(running[over.id])
    b.succeed(running[goes_on.id], continue_with=draft())
    b.later(8 * DAY)
    b.prune(keep_finished=7 * DAY, keep_failed=7 * DAY)
    assert {one.job for one in ticks(b, "daily")} == {lives.id, goes_on.id}


# What a draft of a schedule may be


@pytest.mark.parametrize("options", [{"run_at": 5.0}, {"delay": 5.0}, {"unique": "x"}, {"depends_on": (draft().id,)}])
def test_a_schedule_says_when_and_its_draft_does_not(options: Any) -> None:
    (name,) = options
    with pytest.raises(InvalidInput, match=f"its draft cannot have {name}"):
        defined(every=60, given=draft(**options))
