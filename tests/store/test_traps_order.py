"""A paused job keeps its place at its target; which jobs wait for a target is decided under its lock."""

from __future__ import annotations

from typing import Any

import pytest

from relet._core.job import Raised, State, Wait
from relet._store.flows import control, inspect, maintenance, promote, replace, targets
from tests.harness import StoreHarness, draft
from tests.store.interleave import Background

ENDS: dict[str, tuple[Any, ...]] = {"cancel": (), "complete": (None,), "delete": ()}


def waiting_at_target(harness: StoreHarness, how: str) -> list[str]:
    """Three jobs of one target, of which the first waits for its target, by time or by what upkeep has done so far."""
    holder = harness.claim_new(target="x") if how == "behind a holder" else None
    first = harness.add(target="x", **({"delay": 5.0} if how == "due, not yet lined up" else {}))
    others = [harness.add(target="x", delay=10.0) for _ in range(2)]
    if how == "behind a holder":
        harness.promote_until_idle()
    harness.later(20.0)
    harness.run(control.pause, first)
    if holder is not None:
        harness.succeed(holder)
    return [first, *others]


WAITING_AT_TARGET = ["before the first promote", "due, not yet lined up", "behind a holder"]


@pytest.mark.parametrize("how", WAITING_AT_TARGET)
def test_a_job_paused_at_its_target_keeps_its_place_whatever_upkeep_has_done_so_far(
    harness: StoreHarness, how: str
) -> None:
    first, second, third = waiting_at_target(harness, how)
    seq = harness.query("select seq from {s}jobs where state = 'paused'")
    harness.promote_until_idle()
    job = harness.get(first)
    assert job is not None
    assert (job.state, job.wait, job.holds) == (State.PAUSED, Wait.TARGET, False)
    assert harness.query("select seq from {s}jobs where state = 'paused'") == seq
    assert [harness.state(id) for id in (second, third)] == [State.PENDING] * 2
    assert harness.claim() == []
    harness.run(control.resume, first)
    for id in (first, second, third):
        harness.promote_until_idle()
        (running,) = harness.claim()
        assert running.id == id
        harness.succeed(running)


@pytest.mark.parametrize("verb", ENDS)
@pytest.mark.parametrize("how", WAITING_AT_TARGET)
def test_jobs_behind_a_paused_job_go_on_once_that_is_gone(harness: StoreHarness, how: str, verb: str) -> None:
    first, second, third = waiting_at_target(harness, how)
    harness.promote_until_idle()
    harness.run(getattr(control, verb), first, *ENDS[verb])
    harness.promote_until_idle()
    assert [harness.state(id) for id in (second, third)] == [State.QUEUED, State.PENDING]


def test_bulk_verbs_keep_the_line_and_let_it_go_on(harness: StoreHarness) -> None:
    ids = [harness.add(target="x") for _ in range(3)]
    assert harness.run(control.bulk, control.pause, ids[:2]) == (2, 0, None)
    harness.promote_until_idle()
    assert harness.state(ids[2]) is State.PENDING
    assert harness.run(control.bulk, control.resume, ids[:1]) == (1, 0, None)
    harness.promote_until_idle()
    (running,) = harness.claim()
    harness.succeed(running)
    harness.promote_until_idle()
    assert (running.id, harness.claim()) == (ids[0], []), "the second is still paused"
    assert harness.run(control.bulk, control.cancel, ids[1:2]) == (1, 0, None)
    harness.promote_until_idle()
    assert harness.state(ids[2]) is State.QUEUED


@pytest.mark.parametrize("why", ["time", "jobs"])
def test_a_job_paused_before_it_waits_for_its_target_lets_others_pass(harness: StoreHarness, why: str) -> None:
    blocker = harness.claim_new()
    options = {"delay": 60.0} if why == "time" else {"depends_on": (blocker.id,)}
    first, second = harness.add(target="x", **options), harness.add(target="x")
    harness.run(control.pause, first)
    harness.later(120.0)
    harness.succeed(blocker)
    harness.promote_until_idle()
    job = harness.get(first)
    assert job is not None
    assert (job.state, job.wait) == (State.PAUSED, None)
    assert harness.state(second) is State.QUEUED
    third = harness.add(target="x")
    harness.run(control.resume, first)
    harness.succeed(harness.claim()[0])
    harness.promote_until_idle()
    assert (harness.state(first), harness.state(third)) == (State.QUEUED, State.PENDING), (
        "resumed, it stands where enqueue put it"
    )


def test_an_earlier_job_that_comes_into_line_passes_a_paused_one(harness: StoreHarness) -> None:
    early, paused, late = harness.add(target="x", delay=5.0), harness.add(target="x"), harness.add(target="x")
    harness.run(control.pause, paused)
    harness.promote_until_idle()
    harness.later(10.0).promote_until_idle()
    (running,) = harness.claim()
    assert running.id == early
    harness.succeed(running)
    harness.promote_until_idle()
    assert (harness.state(paused), harness.state(late)) == (State.PAUSED, State.PENDING)


def test_a_running_job_that_is_asked_to_pause_holds_its_target(harness: StoreHarness) -> None:
    job, second = harness.claim_new(target="x"), harness.add(target="x")
    harness.run(control.pause, job.id)
    harness.settle((job.lease, Raised("boom")))
    harness.promote_until_idle()
    paused = harness.get(job.id)
    assert paused is not None
    assert (paused.state, paused.wait, paused.holds) == (State.PAUSED, None, True)
    assert harness.state(second) is State.PENDING


def test_a_paused_head_costs_no_promotes(harness: StoreHarness) -> None:
    head = harness.add(target="x")
    harness.run(control.pause, head)
    harness.add(target="x")
    done = harness.promote()
    assert (done.promoted, done.more, done.next_due) == ([], False, None)
    outlook = harness.run(maintenance.work_ahead)
    assert (outlook.nudged, outlook.next_due) == (False, None)
    harness.run(control.resume, head)
    harness.run(control.pause, head)
    assert harness.promote().promoted == []
    assert not harness.run(maintenance.work_ahead).nudged


@pytest.mark.parametrize("timed", [True, False])
def test_a_paused_job_that_is_replaced_leaves_the_line_only_with_a_new_time(harness: StoreHarness, timed: bool) -> None:
    first, second = harness.add(target="x", unique="k"), harness.add(target="x")
    harness.run(control.pause, first)
    harness.promote_until_idle()
    newer = draft(unique="k", replace=True, delay=60.0 if timed else None)
    assert harness.run(replace.replace, {first: newer}) == {first}
    harness.promote_until_idle()
    job = harness.get(first)
    assert job is not None
    assert (job.state, job.wait) == (State.PAUSED, None if timed else Wait.TARGET)
    assert harness.state(second) is (State.QUEUED if timed else State.PENDING)
    assert harness.run(control.resume, first).wait is (Wait.TIME if timed else Wait.TARGET)


def test_explain_names_the_paused_job_at_the_head_of_the_line(harness: StoreHarness) -> None:
    first, second = harness.add(target="x"), harness.add(target="x")
    harness.run(control.pause, first)
    harness.promote_until_idle()
    assert harness.run(inspect.explain, second) == [
        f"job {first}, the first in line at target x, is paused; resume or cancel that one",
        "1 in line before it",
    ]
    paused, place = harness.run(inspect.explain, first)
    assert paused.startswith("it is paused since")
    assert place == "it keeps its place in line at target x: no job behind it runs meanwhile"
    view = harness.run(targets.target, "x", limit=9)
    assert (view.holder, [job.id for job in view.line], view.waiting) == (None, [first, second], 2)


# What is looked up without a lock is looked at again under it.


@pytest.mark.read_committed
@pytest.mark.parametrize("moment", ["promote/target_heads", "promote/lock_pending", "promote/promote"])
def test_a_head_that_is_paused_while_promote_looks_keeps_its_place(pg_harness: StoreHarness, moment: str) -> None:
    head, second = pg_harness.add(target="x"), pg_harness.add(target="x")
    steps = pg_harness.session().steps(promote.promote())
    steps.before(moment)
    pausing = Background(lambda: pg_harness.run(control.pause, head))
    if moment == "promote/promote":  # it has the head locked
        assert pausing.blocked
        assert steps.finish().promoted == [head]
        assert pausing.result().holds
    else:
        pausing.result()
        assert steps.finish().promoted == []
    pg_harness.promote_until_idle()
    assert (pg_harness.state(head), pg_harness.state(second)) == (State.PAUSED, State.PENDING)
    pg_harness.run(control.resume, head)
    pg_harness.promote_until_idle()
    assert (pg_harness.state(head), pg_harness.state(second)) == (State.QUEUED, State.PENDING)


def test_a_head_whose_pause_is_not_yet_committed_is_decided_afterwards(pg_harness: StoreHarness) -> None:
    for commits in (True, False):
        head, second = pg_harness.add(target=f"x{commits}"), pg_harness.add(target=f"x{commits}")
        person = pg_harness.session()
        person.leave_open(control.pause(head))
        assert Background(pg_harness.promote).result(5).promoted == []
        (person.commit if commits else person.roll_back)()
        pg_harness.promote_until_idle()
        assert (pg_harness.state(head), pg_harness.state(second)) == (
            State.PAUSED if commits else State.QUEUED,
            State.PENDING,
        )


@pytest.mark.read_committed
@pytest.mark.parametrize("moment", ["promote/target_heads", "promote/lock_pending"])
def test_promote_does_not_overtake_a_replace_that_puts_the_head_off(pg_harness: StoreHarness, moment: str) -> None:
    head, second = pg_harness.add(target="x", unique="k"), pg_harness.add(target="x")
    steps = pg_harness.session().steps(promote.promote())
    steps.before(moment)
    newer = draft(unique="k", replace=True, delay=3600.0)
    assert pg_harness.run(replace.replace, {head: newer}) == {head}
    assert head not in steps.finish().promoted
    pg_harness.promote_until_idle()
    job = pg_harness.get(head)
    assert job is not None
    assert (job.state, job.wait) == (State.PENDING, Wait.TIME)
    assert [one.id for one in pg_harness.claim()] == [second]


@pytest.mark.read_committed
def test_promote_does_not_overtake_a_replace_that_puts_a_due_job_off(pg_harness: StoreHarness) -> None:
    for target in (None, "x"):
        job = pg_harness.add(target=target, unique=f"k{target}", delay=5.0)
        pg_harness.later(10.0)
        steps = pg_harness.session().steps(promote.promote())
        steps.before("promote/lock_due")
        pg_harness.run(replace.replace, {job: draft(replace=True, delay=3600.0)})
        assert steps.finish().promoted == []
        pg_harness.promote_until_idle()
        assert pg_harness.claim() == []
