"""Unique keys: traps that each catch a design which looks right. What must hold is the name of the test."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from relet._core.job import Raised, State, Succeeded
from relet._store.flows import control, enqueue, settle
from relet.errors import KeyTaken
from tests.harness import StoreHarness, draft, half
from tests.store.interleave import Background


def test_a_key_is_free_again_once_its_job_is_over_or_has_failed(harness: StoreHarness) -> None:
    for end in ("succeed", "fail", "cancel", "delete"):
        job = harness.claim_new(unique="k")
        assert harness.enqueue(draft(unique="k"))[0].id == job.id
        if end in ("succeed", "fail"):
            getattr(harness, end)(job)
        else:
            harness.release(job)
            harness.run(getattr(control, end), job.id)
        assert harness.count("keys") == 0, end


def test_a_window_outlives_its_finished_job(harness: StoreHarness) -> None:
    job = harness.claim_new(unique="k", unique_for=60.0)
    harness.succeed(job)
    again = harness.later(59).enqueue(draft(unique="k", unique_for=60.0))[0]
    assert (again.id, again.existing, again.state) == (job.id, True, State.SUCCEEDED)
    assert not harness.later(2).enqueue(draft(unique="k", unique_for=60.0))[0].existing


@pytest.mark.parametrize("gone", ["deleted", "pruned", "pruned after failing"])
def test_a_window_whose_job_is_gone_still_refuses_its_key(harness: StoreHarness, gone: str) -> None:
    job = harness.claim_new(unique="k", unique_for=3600.0)
    if gone == "deleted":
        harness.run(control.delete, job.id)
    else:
        harness.fail(job) if "failing" in gone else harness.succeed(job)
        harness.later(60).prune()
    with pytest.raises(KeyTaken) as refused:  # the window outlives its job
        harness.enqueue(draft(unique="k", unique_for=3600.0))
    assert refused.value.holder == job.id


@pytest.mark.parametrize("end", ["complete", "cancel", "delete"])
def test_a_key_taken_after_a_window_does_not_go_to_the_job_whose_window_it_was(harness: StoreHarness, end: str) -> None:
    old = harness.add(unique="k", unique_for=20.0)
    (new,) = harness.later(30).enqueue(draft(unique="k", depends_on=(old,)))
    harness.run(getattr(control, end), new.id, *([None, None] if end == "complete" else []))
    assert harness.count("keys") == 0


def test_a_retaken_key_makes_resume_an_error_that_names_the_holder(harness: StoreHarness) -> None:
    old = harness.claim_new(unique="k")
    harness.fail(old)
    new = harness.add(unique="k")
    with pytest.raises(KeyTaken, match=new):
        harness.run(control.resume, old.id)
    assert harness.state(old.id) is State.FAILED
    harness.run(control.cancel, new)
    assert harness.run(control.resume, old.id).state is State.PENDING
    assert harness.enqueue(draft(unique="k"))[0].id == old.id


def test_a_resumed_job_does_not_open_its_window_again(harness: StoreHarness) -> None:
    job = harness.claim_new(unique="k", unique_for=60.0)
    harness.fail(job)
    harness.later(100).run(control.resume, job.id)
    assert not harness.enqueue(draft(unique="k", unique_for=60.0))[0].existing


def test_a_successor_whose_key_is_taken_is_an_error_and_not_the_silent_end_of_a_chain(harness: StoreHarness) -> None:
    holder = harness.add(unique="k", queue="elsewhere")
    job = harness.claim_new()
    state = harness.succeed(job, continue_with=draft(unique="k"))
    assert state is State.PENDING
    found = harness.get(job.id)
    assert found is not None
    assert holder in (found.error or "")


def test_a_successor_may_go_on_with_the_key_of_the_job_that_it_continues(harness: StoreHarness) -> None:
    job = harness.claim_new(unique="sync-7")
    following = draft(unique="sync-7")
    assert harness.succeed(job, continue_with=following) is State.SUCCEEDED
    assert harness.state(following.id) is State.QUEUED
    assert harness.enqueue(draft(unique="sync-7"))[0].id == following.id


def test_a_lost_lease_takes_no_key_for_the_successor_that_it_cannot_make(harness: StoreHarness) -> None:
    job = harness.claim_new()
    harness.later(60).reap()
    assert harness.settle((job.lease, Succeeded(None, continue_with=draft(unique="k")))) == [None]
    assert harness.count("keys") == 0
    assert not harness.enqueue(draft(unique="k"))[0].existing


def test_a_settle_repeated_after_its_successor_ended_leaves_no_key_behind(harness: StoreHarness) -> None:
    job = harness.claim_new()
    outcome = Succeeded(None, continue_with=draft(unique="k"))
    assert harness.settle((job.lease, outcome)) == [State.SUCCEEDED]
    (second,) = harness.claim()
    harness.succeed(second)
    assert harness.settle((job.lease, outcome)) == [State.SUCCEEDED]
    assert harness.count("keys") == 0
    assert not harness.enqueue(draft(unique="k"))[0].existing


def test_a_repeated_settle_does_not_make_a_second_successor(harness: StoreHarness) -> None:
    job = harness.claim_new()
    outcome = Succeeded(None, continue_with=draft(unique="k"))
    assert harness.settle((job.lease, outcome)) == harness.settle((job.lease, outcome)) == [State.SUCCEEDED]
    assert harness.count("jobs") == 1
    assert harness.count("keys") == 1


def test_a_successor_whose_id_is_known_already_is_an_error_and_not_the_silent_end_of_a_chain(
    harness: StoreHarness,
) -> None:
    other = harness.claim_new(queue="elsewhere")
    harness.succeed(other)
    live = harness.add(queue="elsewhere")
    for known in (live, other.id):
        job = harness.claim_new()
        dependent = harness.enqueue(draft(depends_on=(job.id,), queue="elsewhere"))[0].id
        harness.promote()
        state: State | None
        try:
            state = harness.succeed(job, continue_with=draft(id=known, fresh=False))
        except Exception:
            state = harness.state(job.id)
        harness.promote_until_idle()
        if state is State.SUCCEEDED:  # then the chain must not hang in the air: its dependents must hear of its end
            assert harness.state(dependent) is State.QUEUED


def test_a_draft_that_waits_for_one_whose_key_is_taken_waits_for_the_holder(harness: StoreHarness) -> None:
    holder = harness.claim_new(unique="k")
    first = draft(unique="k")
    existing, second = harness.enqueue(first, draft(depends_on=(first.id,), queue="elsewhere"))
    assert existing.id == holder.id
    harness.promote_until_idle()
    assert harness.state(second.id) is State.PENDING
    harness.succeed(holder)
    harness.promote_until_idle()
    assert harness.state(second.id) is State.QUEUED


def test_two_drafts_with_one_key_in_a_batch_make_one_job(harness: StoreHarness) -> None:
    one, two = harness.enqueue(draft(unique="k"), draft(unique="k"))
    assert (one.id, two.existing) == (two.id, True)
    assert harness.count("jobs") == 1


def test_two_successors_with_one_key_in_a_batch_make_one_job(harness: StoreHarness) -> None:
    harness.enqueue(draft(), draft())
    jobs = harness.claim()
    states = harness.settle(*((job.lease, Succeeded(None, continue_with=draft(unique="k"))) for job in jobs))
    assert sorted(str(state) for state in states) == ["pending", "succeeded"]


def test_two_successors_with_one_id_in_a_batch_do_not_both_go_on(harness: StoreHarness) -> None:
    harness.enqueue(draft(), draft())
    jobs = harness.claim()
    following = draft()
    states = harness.settle(*((job.lease, Succeeded(None, continue_with=following)) for job in jobs))
    assert sorted(str(state) for state in states) == ["pending", "succeeded"]
    refused = harness.get(jobs[states.index(State.PENDING)].id)
    assert refused is not None
    assert f"job {following.id} exists already" in (refused.error or "")


def test_a_key_freed_by_failing_is_taken_again_only_once(harness: StoreHarness) -> None:
    """Of two failed jobs that had one key after each other, one can be resumed."""
    first = harness.claim_new(unique="k")
    harness.fail(first)
    second = harness.claim_new(unique="k")
    harness.fail(second)
    harness.run(control.resume, first.id)
    with pytest.raises(KeyTaken):
        harness.run(control.resume, second.id)


def test_cancelling_a_failed_job_leaves_the_key_with_its_new_holder(harness: StoreHarness) -> None:
    old = harness.claim_new(unique="k")
    harness.fail(old)
    new = harness.add(unique="k")
    harness.run(control.cancel, old.id)
    assert harness.enqueue(draft(unique="k"))[0].id == new


# What follows needs two transactions at once.


@pytest.mark.read_committed
def test_an_enqueue_waits_for_an_open_one_with_its_key_and_gets_it_after_a_rollback(pg_harness: StoreHarness) -> None:
    other = pg_harness.session()
    other.leave_open(enqueue.enqueue([draft(unique="k")]))
    waiting = Background(lambda: pg_harness.enqueue(draft(unique="k")))
    assert waiting.blocked
    other.roll_back()
    (job,) = waiting.result()
    assert not job.existing
    assert pg_harness.state(job.id) is State.QUEUED


@pytest.mark.read_committed
def test_an_enqueue_waits_for_an_open_one_with_its_key_and_finds_it_after_the_commit(pg_harness: StoreHarness) -> None:
    other = pg_harness.session()
    (first,) = other.leave_open(enqueue.enqueue([draft(unique="k")]))
    waiting = Background(lambda: pg_harness.enqueue(draft(unique="k")))
    assert waiting.blocked
    other.commit()
    (job,) = waiting.result()
    assert (job.id, job.existing) == (first.id, True)


def test_an_enqueue_that_found_its_key_taken_does_not_hold_up_the_settle_of_the_holder(
    pg_harness: StoreHarness,
) -> None:
    """A caller's transaction that only learnt of an existing job must not stop a worker's whole batch."""
    holder = pg_harness.claim_new(unique="k")
    caller = pg_harness.session()
    (found,) = caller.leave_open(enqueue.enqueue([draft(unique="k")]))
    assert found.id == holder.id
    assert Background(lambda: pg_harness.succeed(holder)).result(5) is State.SUCCEEDED


def test_an_enqueue_that_found_its_key_taken_does_not_hold_up_reaping_nor_limited_claims(
    pg_harness: StoreHarness,
) -> None:
    pg_harness.claim_new(unique="k", policy={"on_expired": "fail"})
    pg_harness.limit("default", 5)
    pg_harness.add()
    caller = pg_harness.session()
    caller.leave_open(enqueue.enqueue([draft(unique="k")]))
    pg_harness.later(60)
    assert len(Background(pg_harness.reap).result(5)) == 1
    assert len(Background(lambda: pg_harness.claim(1)).result(5)) == 1


def test_an_enqueue_that_found_its_key_taken_does_not_hold_up_promote(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.claim_new()
    pg_harness.add(unique="k", depends_on=(blocker.id,), policy={"on_dependency_failure": "cancel"})
    waiting = pg_harness.add(delay=5)
    pg_harness.promote_until_idle()
    pg_harness.fail(blocker)
    caller = pg_harness.session()
    caller.leave_open(enqueue.enqueue([draft(unique="k")]))
    pg_harness.later(10)
    assert waiting in Background(pg_harness.promote).result(5).promoted


def test_settling_two_keyed_jobs_does_not_deadlock_with_a_caller_who_meets_their_keys_in_the_other_order(
    pg_harness: StoreHarness,
) -> None:
    for first, second in (("k1", "k2"), ("k2", "k1")):
        jobs = [pg_harness.claim_new(unique=key) for key in ("k1", "k2")]
        caller = pg_harness.session()
        caller.leave_open(enqueue.enqueue([draft(unique=first)]))
        outcomes = [(job.lease, Raised("no", fatal=True)) for job in jobs]
        settling = Background(partial(pg_harness.settle, *outcomes))
        if settling.blocked:
            time.sleep(1.2)  # past its own look for deadlocks: the next to look, and to pay, is the caller
        asking = Background(partial(caller.leave_open, enqueue.enqueue([draft(unique=second)])))
        asking.result()  # a deadlock would be the caller's, whose transaction it would cost
        caller.roll_back()
        settling.result()


@pytest.mark.read_committed
def test_a_window_that_ends_while_an_enqueue_waits_for_it_is_opened_anew(pg_harness: StoreHarness) -> None:
    """The moment that decides must be one and the same for taking a key and for looking up who has it."""
    pg_harness.store.clock = None  # the windows end while the test sleeps
    other = pg_harness.session()
    window = 0.6
    (first,) = other.leave_open(enqueue.enqueue([draft(unique="k", unique_for=window)]))
    waiting = Background(lambda: pg_harness.run(enqueue.enqueue, [draft(unique="k", unique_for=60.0)]))
    assert waiting.blocked
    time.sleep(window)
    other.commit()
    (second,) = waiting.result()
    third = pg_harness.run(enqueue.enqueue, [draft(unique="k", unique_for=60.0)])[0]
    if second.id == first.id:  # it stood in the window: then the next one, who comes after it, opens a new one
        assert not third.existing
    else:
        assert third.id == second.id, "two jobs in one window"


def test_a_window_that_ends_between_two_statements_of_an_enqueue_is_opened_anew(pg_harness: StoreHarness) -> None:
    pg_harness.store.clock = None  # the windows end while the test sleeps
    (first,) = pg_harness.enqueue(draft(unique="k", unique_for=10.0))
    flow = enqueue.enqueue([draft(unique="k", unique_for=60.0)])
    steps = pg_harness.session().steps(flow)
    (moment,) = pg_harness.query("select extract(epoch from clock_timestamp())::float8")[0]
    pg_harness.query(f"update {{s}}keys set until = to_timestamp({moment + 0.5})")
    steps.after("enqueue/take_keys")
    time.sleep(0.6)
    second = steps.finish()[0]
    third = pg_harness.run(enqueue.enqueue, [draft(unique="k", unique_for=60.0)])[0]
    if second.id == first.id:
        assert not third.existing
    else:
        assert third.id == second.id, "two jobs in one window"


def test_a_key_freed_between_two_statements_of_an_enqueue_does_not_make_a_job_without_its_key(
    pg_harness: StoreHarness,
) -> None:
    holder = pg_harness.claim_new(unique="k")
    steps = pg_harness.session().steps(enqueue.enqueue([draft(unique="k")]))
    steps.after("enqueue/take_keys")
    settling = Background(lambda: pg_harness.succeed(holder))
    _ = settling.blocked
    (job,) = steps.finish()
    settling.result()
    live = pg_harness.count("jobs", "unique_key = 'k'")
    assert live == pg_harness.count("keys"), "a live job and its key go together"
    assert job.existing == (job.id == holder.id)


def test_a_key_given_up_in_an_open_completion_is_waited_for(pg_harness: StoreHarness) -> None:
    holder = pg_harness.claim_new(unique="k")
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(holder.lease, Succeeded(None))], half))
    waiting = Background(lambda: pg_harness.enqueue(draft(unique="k")))
    assert waiting.blocked
    handler.roll_back()
    assert waiting.result()[0].id == holder.id


# Batches on connections of ours, where new jobs that wait for nothing take a shorter way.


def test_a_batch_keeps_its_order_whatever_its_drafts_have(harness: StoreHarness) -> None:
    mixes: list[dict[str, Any]] = [{"unique": "a"}, {}, {"unique": "b", "unique_for": 60.0}, {}, {"unique": "c"}]
    jobs = harness.run(enqueue.enqueue_directly, [draft(**options) for options in mixes])
    assert [job.unique for job in jobs] == ["a", None, "b", None, "c"]
    assert [job.id for job in harness.claim(10)] == [job.id for job in jobs]


def test_plain_jobs_of_a_batch_come_in_order_beside_those_that_wait(harness: StoreHarness) -> None:
    first = draft()
    batch = [draft(target="t"), first, draft(depends_on=(first.id,)), draft(unique="a"), draft()]
    jobs = harness.run(enqueue.enqueue_directly, batch)
    assert [job.id for job in jobs] == [one.id for one in batch]
    claimed = harness.claim(10)
    assert [job.id for job in claimed] == [batch[1].id, batch[3].id, batch[4].id]
    harness.succeed(claimed[0])
    harness.promote()
    assert {job.id for job in harness.claim(10)} == {batch[0].id, batch[2].id}, "the first was watched"


def test_keys_that_are_taken_are_found_and_the_others_are_taken_at_once(harness: StoreHarness) -> None:
    (there,) = harness.run(enqueue.enqueue_directly, [draft(unique="taken")])
    batch = [draft(unique="free"), draft(unique="taken"), draft(unique="free"), draft()]
    jobs = harness.run(enqueue.enqueue_directly, batch)
    assert [job.id for job in jobs] == [batch[0].id, there.id, batch[0].id, batch[3].id]
    assert [job.existing for job in jobs] == [False, True, True, False]
    assert harness.count("keys") == 2
