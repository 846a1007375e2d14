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
from tests.harness import StoreHarness, draft
from tests.store.interleave import Background

BERLIN = "Europe/Berlin"
HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def b(either_harness: StoreHarness) -> StoreHarness:
    return either_harness


def defined(cron: str | None = None, *, given: Draft[Any] | None = None, **options: Any) -> Definition:
    wanted = {"every": None, "timezone": "UTC", "missed": "once", "overlap": "allow", **options}
    return define(given or draft(), cron, **wanted)


def put(harness: StoreHarness, name: str, cron: str | None = None, **options: Any) -> ScheduleInfo:
    return harness.run(schedules.put, name, defined(cron, **options))


def tick(harness: StoreHarness, **options: Any) -> Ticked:
    return harness.run(schedules.tick, options.pop("tasks", ["t"]), lambda: draft().id, **options)


def go_on(harness: StoreHarness, until: float, step: float) -> list[float]:
    """Look at the clock again and again; the moments for which jobs were enqueued."""
    found = []
    while harness.now < until:
        harness.later(min(step, until - harness.now))
        found += [job.run_at.timestamp() for job in tick(harness).jobs]
    return found


def ticks(harness: StoreHarness, name: str) -> list[Tick]:
    return harness.run(schedules.ticks, name, limit=1000)


def info(harness: StoreHarness, name: str) -> ScheduleInfo:
    (found,) = harness.run(schedules.schedules, name)
    return found


def at(text: str, zone: str = "UTC", fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def shown(moments: list[float], zone: str = BERLIN) -> list[str]:
    return [datetime.fromtimestamp(one, ZoneInfo(zone)).strftime("%d %H:%M%z") for one in moments]


# Which ticks there are


def test_a_tick_is_enqueued_once_however_often_anyone_looks(harness: StoreHarness) -> None:
    harness.now = at("2027-01-01T00:00:30")
    assert put(harness, "minutely", "* * * * *").next_at == datetime(2027, 1, 1, 0, 1, tzinfo=UTC)
    assert tick(harness).jobs == []
    harness.later(30)
    (job,) = tick(harness).jobs
    assert job.run_at.timestamp() == harness.now
    assert [tick(harness).jobs for _ in range(3)] == [[], [], []]
    assert ticks(harness, "minutely") == [Tick(job.run_at, job.id, None)]
    assert info(harness, "minutely").last_job == job.id


@pytest.mark.parametrize("every", [0.1, 1 / 3])
def test_a_fixed_interval_has_every_tick_once_at_any_moment_of_looking(harness: StoreHarness, every: float) -> None:
    """PostgreSQL keeps microseconds: moments go there and back and are compared with the floats that they were."""
    harness.now += 0.123456789
    begin = round(harness.now, 3)
    put(harness, "often", every=every, missed="all")
    found = go_on(harness, begin + 30.5 * every, every / 3.1)
    assert found == pytest.approx([begin + every * n for n in range(1, 31)], abs=2e-6)
    moments = [one.at.timestamp() for one in ticks(harness, "often")]
    assert len(moments) == len(set(moments)) == 30


def test_looking_at_the_very_moment_of_a_tick_loses_none(harness: StoreHarness) -> None:
    begin = round(harness.now, 3)
    put(harness, "often", every=0.1, missed="all")
    found = []
    for number in range(1, 40):
        harness.now = begin + 0.1 * number
        found += tick(harness).jobs
    harness.later(0.01)
    assert len(found) + len(tick(harness).jobs) == 39


def test_a_day_on_which_the_clock_is_put_forward(harness: StoreHarness) -> None:
    harness.now = at("2027-03-28T00:30", BERLIN)
    put(harness, "nightly", "30 2 * * *", timezone=BERLIN)
    assert shown(go_on(harness, at("2027-03-29T03:00", BERLIN), 900)) == ["28 03:00+0200", "29 02:30+0200"]


def test_a_day_on_which_the_clock_is_put_back(harness: StoreHarness) -> None:
    harness.now = at("2027-10-31T00:30", BERLIN)
    put(harness, "nightly", "30 2 * * *", timezone=BERLIN)
    assert shown(go_on(harness, at("2027-11-01T03:00", BERLIN), 900)) == ["31 02:30+0200", "01 02:30+0100"]


@pytest.mark.parametrize(("day", "hours"), [("2027-03-28", 23), ("2027-10-31", 25)])
def test_hours_of_a_day_whatever_its_length(harness: StoreHarness, day: str, hours: int) -> None:
    harness.now = at(f"{day}T00:00", BERLIN) - 1
    put(harness, "hourly", "0 * * * *", timezone=BERLIN)
    found = go_on(harness, at(f"{day}T00:00", BERLIN) + hours * HOUR - 1, 900)
    assert found == [at(f"{day}T00:00", BERLIN) + n * HOUR for n in range(hours)]


# Missed ones


def test_missed_ticks_are_skipped_or_made_up_for_once_or_all(harness: StoreHarness) -> None:
    harness.now = at("2027-03-27T23:59")
    for missed in ("skip", "once", "all"):
        put(harness, missed, "0 * * * *", timezone=BERLIN, missed=missed)
    harness.now = at("2027-03-28T06:30")  # the clock was put forward at 01:00 UTC
    by_name: dict[str, list[float]] = {"skip": [], "once": [], "all": []}
    for job in tick(harness).jobs:
        (name,) = [name for name in by_name if job.id in {one.job for one in ticks(harness, name)}]
        by_name[name].append(job.run_at.timestamp())
    assert by_name["skip"] == []
    assert by_name["once"] == [at("2027-03-28T06:00")]
    assert by_name["all"] == [at(f"2027-03-28T0{n}:00") for n in range(7)]
    assert tick(harness).jobs == []
    assert {info(harness, name).next_at for name in by_name} == {datetime(2027, 3, 28, 7, tzinfo=UTC)}


def test_a_tick_that_is_a_little_late_was_not_missed(harness: StoreHarness) -> None:
    harness.now = at("2027-01-01T00:30")
    put(harness, "hourly", "0 * * * *", missed="skip")
    harness.now = at("2027-01-01T05:00:30")
    assert [job.run_at.timestamp() for job in tick(harness).jobs] == [at("2027-01-01T05:00")]


def test_ten_years_in_which_no_worker_ran_are_one_look(harness: StoreHarness) -> None:
    harness.now = at("2027-01-01T00:00:01")
    for cron in ("0 0 29 2 *", "*/5 * * * *", "0 3 * * *"):
        for missed in ("skip", "once"):
            put(harness, f"{cron} {missed}", cron, timezone=BERLIN, missed=missed)
    harness.now = at("2037-01-01T12:02:00")
    assert len(tick(harness).jobs) == 3
    assert all(one.next_at and one.next_at.timestamp() > harness.now for one in harness.run(schedules.schedules))


def test_all_that_were_missed_come_a_hundred_at_a_time_in_order(harness: StoreHarness) -> None:
    begin = round(harness.now, 3)
    put(harness, "all", every=1.0, missed="all")
    harness.later(250.5)
    found = [[job.run_at.timestamp() for job in tick(harness).jobs] for _ in range(4)]
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


def test_however_much_was_missed_a_transaction_is_small_and_none_waits_for_another(harness: StoreHarness) -> None:
    overlaps = ("allow", "skip", "wait")
    names = [f"{overlap} {number}" for overlap in overlaps for number in range(4)]
    for name in names:
        put(harness, name, every=1.0, missed="all", overlap=name.split()[0])
    harness.later(1000.5)
    for _ in range(3):
        asked: list[Any] = []
        done = harness.run(lambda: counted(schedules.tick(["t"], lambda: draft().id), asked))  # noqa: B023
        assert 0 < len(done.jobs) <= MAX_TICKS
        assert len(asked) < 20, "a few statements for all of them"
    found = {name: len(ticks(harness, name)) for name in names}
    assert found == dict.fromkeys(names, 3 * (MAX_TICKS // len(names)))


def test_a_transaction_that_is_cut_off_costs_no_more_than_its_own_ticks(pg_harness: StoreHarness) -> None:
    begin = round(pg_harness.now, 3)
    put(pg_harness, "all", every=1.0, missed="all")
    pg_harness.later(250.5)
    first = tick(pg_harness).jobs
    other = pg_harness.session()
    assert len(other.leave_open(schedules.tick(["t"], lambda: draft().id)).jobs) == MAX_TICKS
    other.roll_back()
    rest = [job for _ in range(2) for job in tick(pg_harness).jobs]
    assert [job.run_at.timestamp() for job in [*first, *rest]] == [begin + n for n in range(1, 251)]
    assert (len(ticks(pg_harness, "all")), pg_harness.count("jobs")) == (250, 250)


def test_missed_ticks_that_wait_for_each_other_come_a_few_at_a_time(harness: StoreHarness) -> None:
    put(harness, "one by one", every=60, overlap="wait", missed="all")
    harness.later(60 * 25.5)
    assert [len(tick(harness).jobs) for _ in range(4)] == [MAX_WAITING, MAX_WAITING, 5, 0]


# Overlapping ones


def run_next(harness: StoreHarness, **end: Any) -> None:
    """Claim the one job that may run, and end it."""
    harness.promote_until_idle()
    (job,) = harness.claim(10)
    harness.succeed(job, **end) if end.pop("well", True) else harness.fail(job)


def test_overlapping_ticks_are_allowed_unless_told_otherwise(harness: StoreHarness) -> None:
    put(harness, "any", every=60)
    for _ in range(3):
        assert len(tick(harness.later(60)).jobs) == 1
    harness.promote()
    assert len(harness.claim(10)) == 3


@pytest.mark.parametrize("end", ["succeeds", "fails", "goes on and succeeds", "goes on and fails"])
def test_a_tick_is_skipped_while_the_chain_of_an_earlier_one_lives(harness: StoreHarness, end: str) -> None:
    put(harness, "alone", every=60, overlap="skip")
    assert len(tick(harness.later(60)).jobs) == 1
    assert tick(harness.later(60)).jobs == []
    assert ticks(harness, "alone")[0].note == "skipped: the one before was not over"
    if end.startswith("goes on"):
        run_next(harness, continue_with=draft())
        assert tick(harness.later(60)).jobs == []
    run_next(harness, well=end.endswith("succeeds"))
    assert len(tick(harness.later(60)).jobs) == 1


def test_a_job_that_was_run_now_is_heeded_like_one_of_a_tick(harness: StoreHarness) -> None:
    put(harness, "alone", every=60, overlap="skip")
    id = draft().id
    operation = Operation(draft().id, "run_now", "alone")
    harness.run(operations.once, operation, schedules.run_now, "alone", id)
    harness.later(1).run(operations.once, operation, schedules.run_now, "alone", id)
    assert [(one.job, one.note) for one in ticks(harness, "alone")] == [(id, "run now")]
    assert tick(harness.later(60)).jobs == []
    run_next(harness)
    assert len(tick(harness.later(60)).jobs) == 1


@pytest.mark.parametrize("end", ["succeeds", "fails", "goes on and succeeds", "goes on and fails"])
def test_a_tick_waits_for_the_chains_of_those_before_however_they_end(harness: StoreHarness, end: str) -> None:
    put(harness, "one by one", every=60, overlap="wait")
    jobs = []
    for _ in range(3):
        jobs += tick(harness.later(60)).jobs
    harness.promote_until_idle()
    for job in jobs:
        (running,) = harness.claim(10)
        assert running.id == job.id
        if end.startswith("goes on"):
            harness.succeed(running, continue_with=draft())
            harness.promote_until_idle()
            (running,) = harness.claim(10)
            assert running.chain == job.id
        harness.succeed(running) if end.endswith("succeeds") else harness.fail(running)
        harness.promote_until_idle()
    assert harness.claim(10) == []


def test_missed_ticks_that_wait_run_one_by_one_also_if_one_of_them_is_cancelled(harness: StoreHarness) -> None:
    put(harness, "one by one", every=60, overlap="wait", missed="all")
    first, second, third = tick(harness.later(190)).jobs
    harness.promote_until_idle()
    (running,) = harness.claim(10)
    assert running.id == first.id
    harness.run(control.cancel, second.id)
    harness.promote_until_idle()
    assert harness.claim(10) == [], "the first still runs"
    harness.succeed(running)
    harness.promote_until_idle()
    assert [job.id for job in harness.claim(10)] == [third.id]


def test_missed_ticks_that_may_not_overlap_are_one(harness: StoreHarness) -> None:
    put(harness, "alone", every=60, overlap="skip", missed="all")
    harness.later(60 * 3.5)
    assert len(tick(harness).jobs) == 1
    assert [one.note is None for one in ticks(harness, "alone")] == [False, False, True]


def test_a_tick_that_was_dealt_with_before_is_nothing_that_the_next_overlaps_with(harness: StoreHarness) -> None:
    begin = harness.now
    put(harness, "alone", every=60, overlap="skip", missed="all")
    (first,) = tick(harness.later(60)).jobs
    run_next(harness)
    back = f"to_timestamp({begin + 60})" if harness.on_postgres else f"{begin + 60}"
    harness.query(f"update {{s}}schedules set next_at = {back}")
    harness.later(130)
    (second,) = tick(harness).jobs
    found = [(one.at.timestamp(), one.job) for one in ticks(harness, "alone")]
    assert found == [(begin + 180, None), (begin + 120, second.id), (begin + 60, first.id)]


# What people do to schedules


def test_ticks_of_a_pause_are_not_made_up_for(harness: StoreHarness) -> None:
    put(harness, "all", every=60, missed="all")
    assert harness.run(schedules.pause, "all").paused
    assert info(harness, "all").next_at is None
    harness.later(600)
    assert tick(harness).jobs == []
    assert harness.run(maintenance.work_ahead, ["t"]).next_tick is None
    resumed = harness.run(schedules.resume, "all")
    assert not resumed.paused
    assert tick(harness).jobs == []
    assert len(tick(harness.later(60)).jobs) == 1


def test_resuming_a_schedule_that_was_not_paused_leaves_out_no_tick(harness: StoreHarness) -> None:
    put(harness, "all", every=60)
    harness.later(61)
    harness.run(schedules.resume, "all")
    assert len(tick(harness).jobs) == 1


def test_a_schedule_changed_back_and_forth_has_no_tick_twice(harness: StoreHarness) -> None:
    """Nor when the clock of the store was put back meanwhile: the row of the tick decides."""
    harness.now = at("2027-01-01T00:00:59")
    put(harness, "changed", "* * * * *")
    harness.later(1)
    (job,) = tick(harness).jobs
    for seconds in (-10.0, 5.0, -4.0):
        harness.later(seconds)
        put(harness, "changed", "*/2 * * * *")
        put(harness, "changed", "* * * * *")
        assert tick(harness).jobs == []
    harness.now = at("2027-01-01T00:01:00")
    assert tick(harness).jobs == []
    assert [one.job for one in ticks(harness, "changed")] == [job.id]


def test_a_schedule_that_is_removed_ticks_no_more_and_leaves_its_jobs(harness: StoreHarness) -> None:
    put(harness, "gone", every=60)
    (job,) = tick(harness.later(60)).jobs
    harness.run(schedules.remove, "gone")
    assert tick(harness.later(600)).jobs == []
    assert ticks(harness, "gone") == []
    assert harness.state(job.id) is State.QUEUED
    for verb in (schedules.pause, schedules.resume):
        with pytest.raises(ScheduleNotFound, match="gone"):
            harness.run(verb, "gone")
    with pytest.raises(ScheduleNotFound):
        harness.run(schedules.run_now, "gone", draft().id)
    with pytest.raises(ScheduleNotFound):
        harness.run(schedules.remove, "gone")


def test_removing_waits_for_a_tick_under_way_and_leaves_nothing_of_it(pg_harness: StoreHarness) -> None:
    put(pg_harness, "gone", every=60)
    pg_harness.later(60)
    other = pg_harness.session()
    assert len(other.leave_open(schedules.tick(["t"], lambda: draft().id)).jobs) == 1
    removing = Background(lambda: pg_harness.run(schedules.remove, "gone"))
    assert removing.blocked
    other.commit()
    removing.result()
    assert (pg_harness.count("schedules"), pg_harness.count("ticks")) == (0, 0)


def test_two_who_look_at_once_enqueue_one_job_and_do_not_wait(pg_harness: StoreHarness) -> None:
    put(pg_harness, "shared", every=60)
    pg_harness.later(60)
    other = pg_harness.session()
    assert len(other.leave_open(schedules.tick(["t"], lambda: draft().id)).jobs) == 1
    assert Background(lambda: tick(pg_harness)).result(5).jobs == []
    other.roll_back()
    assert len(tick(pg_harness).jobs) == 1, "who rolled back has ticked nothing"


# What code says


def declare(harness: StoreHarness, **declared: Definition) -> None:
    harness.run(schedules.declare, declared)


def test_code_counts_when_it_changes_and_people_in_between(harness: StoreHarness) -> None:
    declare(harness, job=defined(every=60))
    assert info(harness, "job").declared
    put(harness, "job", every=10)
    declare(harness, job=defined(every=60))  # a worker was started again
    assert info(harness, "job").every == 10
    declare(harness, job=defined(every=90))
    assert info(harness, "job").every == 90
    harness.run(schedules.pause, "job")
    declare(harness, job=defined("0 3 * * *"))
    assert (info(harness, "job").cron, info(harness, "job").paused) == ("0 3 * * *", True)


def test_declaring_the_same_again_and_again_moves_no_tick(harness: StoreHarness) -> None:
    """Workers that start every few seconds must not put the next tick off for ever."""
    declare(harness, job=defined(every=60))
    for _ in range(9):
        declare(harness.later(6.5), job=defined(every=60))
    assert len(tick(harness.later(2)).jobs) == 1


def test_an_old_and_a_new_version_of_the_code_side_by_side(harness: StoreHarness) -> None:
    """What the new one has declared stays while the old one runs on; each tick is had by one of them."""
    old, new = defined(every=60, given=draft()), defined(every=30, given=draft("new_task"))
    declare(harness, job=old)
    declare(harness.later(10), job=new, other=defined(every=30, given=draft()))
    assert tick(harness.later(60), tasks=["t"]).jobs[0].task == "t"
    assert tick(harness, tasks=["t"]).jobs == [], "the old one does not know the new task, and leaves it alone"
    (job,) = tick(harness, tasks=["t", "new_task"]).jobs
    assert job.task == "new_task"


# What cannot be followed


def test_a_task_that_no_worker_knows_does_not_fire_and_is_nothing_to_look_at(harness: StoreHarness) -> None:
    put(harness, "unknown", every=1.0, given=draft("nobodys"))
    harness.later(5)
    assert tick(harness).jobs == []
    assert harness.run(maintenance.work_ahead, ["t"]).next_tick is None
    assert harness.run(maintenance.work_ahead, ["nobodys"]).next_tick == pytest.approx(-4, abs=0.01)


def test_a_zone_that_this_machine_lacks_blocks_no_schedule_and_loses_no_tick_for_workers_that_have_it(
    harness: StoreHarness,
) -> None:
    harness.now = at("2027-01-01T02:59:30")
    put(harness, "puzzle", "0 3 * * *", timezone="Etc/UTC")
    put(harness, "plain", "0 3 * * *")
    harness.query("update {s}schedules set definition = replace(cast(definition as text), 'Etc/UTC', 'Mars/Crater')"
            f"{'::json' if harness.on_postgres else ''} where name = 'puzzle'")  # fmt: skip
    harness.later(60)
    first = tick(harness)
    assert [job.task for job in first.jobs] == ["t"]
    assert list(first.problems) == ["puzzle"]
    assert "no time zone 'Mars/Crater'" in first.problems["puzzle"]
    again = tick(harness, without=first.unreadable)
    assert (again.jobs, again.problems) == ([], {})
    ahead = harness.run(maintenance.work_ahead, ["t"], without=first.unreadable).next_tick
    assert ahead is not None
    assert ahead > HOUR, "only what can be followed is looked forward to"
    assert [one.name for one in harness.run(schedules.schedules)] == ["plain", "puzzle"]
    harness.query("update {s}schedules set definition = replace(cast(definition as text), 'Mars/Crater', 'Etc/UTC')"
            f"{'::json' if harness.on_postgres else ''} where name = 'puzzle'")  # fmt: skip
    (late,) = tick(harness, without=first.unreadable).jobs
    assert late.run_at.timestamp() == at("2027-01-01T03:00")


def test_a_definition_that_is_no_definition_is_a_puzzle_as_well(harness: StoreHarness) -> None:
    put(harness, "strange", every=60)
    harness.query("update {s}schedules set definition = '[\"a later format\"]'")
    found = tick(harness.later(60))
    assert list(found.problems) == ["strange"]
    assert found.unreadable == ['["a later format"]']


def test_a_definition_that_cannot_be_read_hides_no_other_and_can_be_steered(harness: StoreHarness) -> None:
    put(harness, "plain", every=60)
    put(harness, "strange", every=60)
    harness.query("update {s}schedules set definition = '[\"a later format\"]' where name = 'strange'")
    plain, strange = harness.run(schedules.schedules)
    assert (plain.problem, strange.name, strange.task) == (None, "strange", "t")
    assert "this release cannot read" in (strange.problem or "")
    assert repr(strange) == "<schedule strange (cannot be read here) of t>"
    assert harness.run(schedules.pause, "strange").paused
    for verb in (schedules.resume, schedules.run_now):
        with pytest.raises(InvalidInput, match=r"schedule strange .* cannot read: .*; put it anew, or remove it"):
            harness.run(verb, "strange", *([draft().id] if verb is schedules.run_now else []))
    assert put(harness, "strange", every=60).problem is None
    harness.run(schedules.remove, "strange")
    assert [one.name for one in harness.run(schedules.schedules)] == ["plain"]


# Many, and old


@pytest.mark.long
def test_a_thousand_that_are_due_at_once(harness: StoreHarness) -> None:
    harness.run(schedules.declare, {f"s{n:04}": defined(every=60.0 + n % 7) for n in range(1000)})
    harness.later(67)
    jobs = []
    for _ in range(20):
        jobs += tick(harness).jobs
    assert len(jobs) == 1000
    assert tick(harness).jobs == []
    assert harness.count("ticks") == 1000


def test_ticks_go_after_a_while_unless_their_chains_live(harness: StoreHarness) -> None:
    put(harness, "daily", every=60, missed="all")
    over, lives, goes_on = (tick(harness.later(60)).jobs[0] for _ in range(3))
    harness.promote_until_idle()
    running = {job.id: job for job in harness.claim(10)}
    harness.succeed(running[over.id])
    harness.succeed(running[goes_on.id], continue_with=draft())
    harness.later(8 * DAY)
    harness.prune(keep_finished=7 * DAY, keep_failed=7 * DAY)
    assert {one.job for one in ticks(harness, "daily")} == {lives.id, goes_on.id}


# What a draft of a schedule may be


@pytest.mark.parametrize("options", [{"run_at": 5.0}, {"delay": 5.0}, {"unique": "x"}, {"depends_on": (draft().id,)}])
def test_a_schedule_says_when_and_its_draft_does_not(options: Any) -> None:
    (name,) = options
    with pytest.raises(InvalidInput, match=f"its draft cannot have {name}"):
        defined(every=60, given=draft(**options))
