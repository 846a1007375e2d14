"""A paused job keeps its place in line, and what stands in line is decided under its lock."""

from __future__ import annotations

from typing import Any

import pytest

from relet._core.job import Raised, State, Wait
from relet._store.flows import control, inspect, maintenance, promote, replace, targets
from tests.store.interleave import Background, Bench, draft

ENDS: dict[str, tuple[Any, ...]] = {"cancel": (), "complete": (None,), "delete": ()}


def in_line(b: Bench, how: str) -> list[str]:
    """Three jobs of one target, of which the first stands in line, by time or by what upkeep has done so far."""
    holder = b.take(target="x") if how == "behind a holder" else None
    first = b.add(target="x", **({"delay": 5.0} if how == "due, not yet lined up" else {}))
    others = [b.add(target="x", delay=10.0) for _ in range(2)]
    if how == "behind a holder":
        b.settle_down()
    b.later(20.0)
    b.run(control.pause, first)
    if holder is not None:
        b.succeed(holder)
    return [first, *others]


IN_LINE = ["before the first promote", "due, not yet lined up", "behind a holder"]


@pytest.mark.parametrize("how", IN_LINE)
def test_a_job_paused_in_line_keeps_its_place_whatever_upkeep_has_done_so_far(b: Bench, how: str) -> None:
    first, second, third = in_line(b, how)
    seq = b.query("select seq from {s}jobs where state = 'paused'")
    b.settle_down()
    job = b.get(first)
    assert job is not None
    assert (job.state, job.wait, job.holds) == (State.PAUSED, Wait.TARGET, False)
    assert b.query("select seq from {s}jobs where state = 'paused'") == seq
    assert [b.state(id) for id in (second, third)] == [State.PENDING] * 2
    assert b.claim() == []
    b.run(control.resume, first)
    for id in (first, second, third):
        b.settle_down()
        (running,) = b.claim()
        assert running.id == id
        b.succeed(running)


@pytest.mark.parametrize("verb", ENDS)
@pytest.mark.parametrize("how", IN_LINE)
def test_what_stands_behind_a_paused_job_goes_on_once_that_is_gone(b: Bench, how: str, verb: str) -> None:
    first, second, third = in_line(b, how)
    b.settle_down()
    b.run(getattr(control, verb), first, *ENDS[verb])
    b.settle_down()
    assert [b.state(id) for id in (second, third)] == [State.QUEUED, State.PENDING]


def test_bulk_verbs_keep_the_line_and_let_it_go_on(b: Bench) -> None:
    ids = [b.add(target="x") for _ in range(3)]
    assert b.run(control.bulk, control.pause, ids[:2]) == (2, 0, None)
    b.settle_down()
    assert b.state(ids[2]) is State.PENDING
    assert b.run(control.bulk, control.resume, ids[:1]) == (1, 0, None)
    b.settle_down()
    (running,) = b.claim()
    b.succeed(running)
    b.settle_down()
    assert (running.id, b.claim()) == (ids[0], []), "the second is still paused"
    assert b.run(control.bulk, control.cancel, ids[1:2]) == (1, 0, None)
    b.settle_down()
    assert b.state(ids[2]) is State.QUEUED


@pytest.mark.parametrize("why", ["time", "jobs"])
def test_a_job_paused_before_it_stands_in_line_lets_others_pass(b: Bench, why: str) -> None:
    blocker = b.take()
    options = {"delay": 60.0} if why == "time" else {"depends_on": (blocker.id,)}
    first, second = b.add(target="x", **options), b.add(target="x")
    b.run(control.pause, first)
    b.later(120.0)
    b.succeed(blocker)
    b.settle_down()
    job = b.get(first)
    assert job is not None
    assert (job.state, job.wait) == (State.PAUSED, None)
    assert b.state(second) is State.QUEUED
    third = b.add(target="x")
    b.run(control.resume, first)
    b.succeed(b.claim()[0])
    b.settle_down()
    assert (b.state(first), b.state(third)) == (State.QUEUED, State.PENDING), "resumed, it stands where enqueue put it"


def test_an_earlier_job_that_comes_into_line_passes_a_paused_one(b: Bench) -> None:
    early, paused, late = b.add(target="x", delay=5.0), b.add(target="x"), b.add(target="x")
    b.run(control.pause, paused)
    b.settle_down()
    b.later(10.0).settle_down()
    (running,) = b.claim()
    assert running.id == early
    b.succeed(running)
    b.settle_down()
    assert (b.state(paused), b.state(late)) == (State.PAUSED, State.PENDING)


def test_a_running_job_that_is_asked_to_pause_holds_its_target(b: Bench) -> None:
    job, second = b.take(target="x"), b.add(target="x")
    b.run(control.pause, job.id)
    b.settle((job.lease, Raised("boom")))
    b.settle_down()
    paused = b.get(job.id)
    assert paused is not None
    assert (paused.state, paused.wait, paused.holds) == (State.PAUSED, None, True)
    assert b.state(second) is State.PENDING


def test_a_paused_head_costs_no_promotes(b: Bench) -> None:
    head = b.add(target="x")
    b.run(control.pause, head)
    b.add(target="x")
    done = b.promote()
    assert (done.promoted, done.more, done.next_due) == ([], False, None)
    outlook = b.run(maintenance.work_ahead)
    assert (outlook.nudged, outlook.next_due) == (False, None)
    b.run(control.resume, head)
    b.run(control.pause, head)
    assert b.promote().promoted == []
    assert not b.run(maintenance.work_ahead).nudged


@pytest.mark.parametrize("timed", [True, False])
def test_a_paused_job_that_is_replaced_leaves_the_line_only_with_a_new_time(b: Bench, timed: bool) -> None:
    first, second = b.add(target="x", unique="k"), b.add(target="x")
    b.run(control.pause, first)
    b.settle_down()
    newer = draft(unique="k", replace=True, **({"delay": 60.0} if timed else {}))
    assert b.run(replace.replace, {first: newer}) == {first}
    b.settle_down()
    job = b.get(first)
    assert job is not None
    assert (job.state, job.wait) == (State.PAUSED, None if timed else Wait.TARGET)
    assert b.state(second) is (State.QUEUED if timed else State.PENDING)
    assert b.run(control.resume, first).wait is (Wait.TIME if timed else Wait.TARGET)


def test_explain_names_the_paused_job_at_the_head_of_the_line(b: Bench) -> None:
    first, second = b.add(target="x"), b.add(target="x")
    b.run(control.pause, first)
    b.settle_down()
    assert b.run(inspect.explain, second) == [
        f"job {first}, the first in line at target x, is paused; resume or cancel that one",
        "1 in line before it",
    ]
    paused, place = b.run(inspect.explain, first)
    assert paused.startswith("it is paused since")
    assert place == "it keeps its place in line at target x: no job behind it runs meanwhile"
    view = b.run(targets.target, "x", limit=9)
    assert (view.holder, [job.id for job in view.line], view.waiting) == (None, [first, second], 2)


# What is looked up without a lock is looked at again under it.


@pytest.mark.parametrize("moment", ["promote/target_heads", "promote/lock_pending", "promote/promote"])
def test_a_head_that_is_paused_while_promote_looks_keeps_its_place(pg: Bench, moment: str) -> None:
    head, second = pg.add(target="x"), pg.add(target="x")
    steps = pg.session().steps(promote.promote())
    steps.before(moment)
    pausing = Background(lambda: pg.run(control.pause, head))
    if moment == "promote/promote":  # it has the head locked
        assert pausing.blocked
        assert steps.finish().promoted == [head]
        assert pausing.result().holds
    else:
        pausing.result()
        assert steps.finish().promoted == []
    pg.settle_down()
    assert (pg.state(head), pg.state(second)) == (State.PAUSED, State.PENDING)
    pg.run(control.resume, head)
    pg.settle_down()
    assert (pg.state(head), pg.state(second)) == (State.QUEUED, State.PENDING)


def test_a_head_whose_pause_is_not_yet_committed_is_decided_afterwards(pg: Bench) -> None:
    for commits in (True, False):
        head, second = pg.add(target=f"x{commits}"), pg.add(target=f"x{commits}")
        person = pg.session()
        person.leave_open(control.pause(head))
        assert Background(pg.promote).result(5).promoted == []
        (person.commit if commits else person.roll_back)()
        pg.settle_down()
        assert (pg.state(head), pg.state(second)) == (State.PAUSED if commits else State.QUEUED, State.PENDING)


@pytest.mark.parametrize("moment", ["promote/target_heads", "promote/lock_pending"])
def test_promote_does_not_overtake_a_replace_that_puts_the_head_off(pg: Bench, moment: str) -> None:
    head, second = pg.add(target="x", unique="k"), pg.add(target="x")
    steps = pg.session().steps(promote.promote())
    steps.before(moment)
    newer = draft(unique="k", replace=True, delay=3600.0)
    assert pg.run(replace.replace, {head: newer}) == {head}
    assert head not in steps.finish().promoted
    pg.settle_down()
    job = pg.get(head)
    assert job is not None
    assert (job.state, job.wait) == (State.PENDING, Wait.TIME)
    assert [one.id for one in pg.claim()] == [second]


def test_promote_does_not_overtake_a_replace_that_puts_a_due_job_off(pg: Bench) -> None:
    for target in (None, "x"):
        job = pg.add(target=target, unique=f"k{target}", delay=5.0)
        pg.later(10.0)
        steps = pg.session().steps(promote.promote())
        steps.before("promote/lock_due")
        pg.run(replace.replace, {job: draft(replace=True, delay=3600.0)})
        assert steps.finish().promoted == []
        pg.settle_down()
        assert pg.claim() == []
