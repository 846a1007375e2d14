"""Unique keys: traps that each catch a design which looks right. What must hold is the name of the test."""

from __future__ import annotations

import time

import pytest

from relet._core.job import Raised, State, Succeeded
from relet._store.flows import control, enqueue, settle
from relet.errors import KeyTaken
from tests.store.interleave import Background, Bench, draft, half


def test_a_key_is_free_again_once_its_job_is_over_or_has_failed(b: Bench) -> None:
    for end in ("succeed", "fail", "cancel", "delete"):
        job = b.take(unique="k")
        assert b.enqueue(draft(unique="k"))[0].id == job.id
        if end in ("succeed", "fail"):
            getattr(b, end)(job)
        else:
            b.release(job)
            b.run(getattr(control, end), job.id)
        assert b.count("keys") == 0, end


def test_a_window_outlives_its_finished_job(b: Bench) -> None:
    job = b.take(unique="k", unique_for=60.0)
    b.succeed(job)
    again = b.later(59).enqueue(draft(unique="k", unique_for=60.0))[0]
    assert (again.id, again.existing, again.state) == (job.id, True, State.SUCCEEDED)
    assert not b.later(2).enqueue(draft(unique="k", unique_for=60.0))[0].existing


@pytest.mark.parametrize("gone", ["deleted", "pruned", "pruned after failing"])
def test_a_window_whose_job_is_gone_still_refuses_its_key(b: Bench, gone: str) -> None:
    job = b.take(unique="k", unique_for=3600.0)
    if gone == "deleted":
        b.run(control.delete, job.id)
    else:
        b.fail(job) if "failing" in gone else b.succeed(job)
        b.later(60).prune()
    with pytest.raises(KeyTaken) as refused:  # the window outlives its job
        b.enqueue(draft(unique="k", unique_for=3600.0))
    assert refused.value.holder == job.id


@pytest.mark.parametrize("end", ["complete", "cancel", "delete"])
def test_a_key_taken_after_a_window_does_not_go_to_the_job_whose_window_it_was(b: Bench, end: str) -> None:
    old = b.add(unique="k", unique_for=20.0)
    (new,) = b.later(30).enqueue(draft(unique="k", depends_on=(old,)))
    b.run(getattr(control, end), new.id, *([None, None] if end == "complete" else []))
    assert b.count("keys") == 0


def test_a_retaken_key_makes_resume_an_error_that_names_the_holder(b: Bench) -> None:
    old = b.take(unique="k")
    b.fail(old)
    new = b.add(unique="k")
    with pytest.raises(KeyTaken, match=new):
        b.run(control.resume, old.id)
    assert b.state(old.id) is State.FAILED
    b.run(control.cancel, new)
    assert b.run(control.resume, old.id).state is State.PENDING
    assert b.enqueue(draft(unique="k"))[0].id == old.id


def test_a_resumed_job_does_not_open_its_window_again(b: Bench) -> None:
    job = b.take(unique="k", unique_for=60.0)
    b.fail(job)
    b.later(100).run(control.resume, job.id)
    assert not b.enqueue(draft(unique="k", unique_for=60.0))[0].existing


def test_a_successor_whose_key_is_taken_is_an_error_and_not_the_silent_end_of_a_chain(b: Bench) -> None:
    holder = b.add(unique="k", queue="elsewhere")
    job = b.take()
    state = b.succeed(job, continue_with=draft(unique="k"))
    assert state is State.PENDING
    found = b.get(job.id)
    assert found is not None
    assert holder in (found.error or "")


def test_a_successor_may_go_on_with_the_key_of_the_job_that_it_continues(b: Bench) -> None:
    job = b.take(unique="sync-7")
    following = draft(unique="sync-7")
    assert b.succeed(job, continue_with=following) is State.SUCCEEDED
    assert b.state(following.id) is State.QUEUED
    assert b.enqueue(draft(unique="sync-7"))[0].id == following.id


def test_a_lost_lease_takes_no_key_for_the_successor_that_it_cannot_make(b: Bench) -> None:
    job = b.take()
    b.later(60).reap()
    assert b.settle((job.lease, Succeeded(None, continue_with=draft(unique="k")))) == [None]
    assert b.count("keys") == 0
    assert not b.enqueue(draft(unique="k"))[0].existing


def test_a_settle_repeated_after_its_successor_ended_leaves_no_key_behind(b: Bench) -> None:
    job = b.take()
    outcome = Succeeded(None, continue_with=draft(unique="k"))
    assert b.settle((job.lease, outcome)) == [State.SUCCEEDED]
    (second,) = b.claim()
    b.succeed(second)
    assert b.settle((job.lease, outcome)) == [State.SUCCEEDED]
    assert b.count("keys") == 0
    assert not b.enqueue(draft(unique="k"))[0].existing


def test_a_repeated_settle_does_not_make_a_second_successor(b: Bench) -> None:
    job = b.take()
    outcome = Succeeded(None, continue_with=draft(unique="k"))
    assert b.settle((job.lease, outcome)) == b.settle((job.lease, outcome)) == [State.SUCCEEDED]
    assert b.count("jobs") == 1
    assert b.count("keys") == 1


def test_a_successor_whose_id_is_known_already_is_an_error_and_not_the_silent_end_of_a_chain(b: Bench) -> None:
    other = b.take(queue="elsewhere")
    b.succeed(other)
    live = b.add(queue="elsewhere")
    for known in (live, other.id):
        job = b.take()
        dependent = b.enqueue(draft(depends_on=(job.id,), queue="elsewhere"))[0].id
        b.promote()
        try:
            state = b.succeed(job, continue_with=draft(id=known, fresh=False))
        except Exception:
            state = b.state(job.id)
        b.settle_down()
        if state is State.SUCCEEDED:  # then the chain must not hang in the air: its dependents must hear of its end
            assert b.state(dependent) is State.QUEUED


def test_a_draft_that_waits_for_one_whose_key_is_taken_waits_for_the_holder(b: Bench) -> None:
    holder = b.take(unique="k")
    first = draft(unique="k")
    existing, second = b.enqueue(first, draft(depends_on=(first.id,), queue="elsewhere"))
    assert existing.id == holder.id
    b.settle_down()
    assert b.state(second.id) is State.PENDING
    b.succeed(holder)
    b.settle_down()
    assert b.state(second.id) is State.QUEUED


def test_two_drafts_with_one_key_in_a_batch_make_one_job(b: Bench) -> None:
    one, two = b.enqueue(draft(unique="k"), draft(unique="k"))
    assert (one.id, two.existing) == (two.id, True)
    assert b.count("jobs") == 1


def test_two_successors_with_one_key_in_a_batch_make_one_job(b: Bench) -> None:
    b.enqueue(draft(), draft())
    jobs = b.claim()
    states = b.settle(*((job.lease, Succeeded(None, continue_with=draft(unique="k"))) for job in jobs))
    assert sorted(str(state) for state in states) == ["pending", "succeeded"]


def test_two_successors_with_one_id_in_a_batch_do_not_both_go_on(b: Bench) -> None:
    b.enqueue(draft(), draft())
    jobs = b.claim()
    following = draft()
    states = b.settle(*((job.lease, Succeeded(None, continue_with=following)) for job in jobs))
    assert sorted(str(state) for state in states) == ["pending", "succeeded"]
    refused = b.get(jobs[states.index(State.PENDING)].id)
    assert refused is not None
    assert f"job {following.id} exists already" in (refused.error or "")


def test_a_key_freed_by_failing_is_taken_again_only_once(b: Bench) -> None:
    """Of two failed jobs that had one key after each other, one can be resumed."""
    first = b.take(unique="k")
    b.fail(first)
    second = b.take(unique="k")
    b.fail(second)
    b.run(control.resume, first.id)
    with pytest.raises(KeyTaken):
        b.run(control.resume, second.id)


def test_cancelling_a_failed_job_leaves_the_key_with_its_new_holder(b: Bench) -> None:
    old = b.take(unique="k")
    b.fail(old)
    new = b.add(unique="k")
    b.run(control.cancel, old.id)
    assert b.enqueue(draft(unique="k"))[0].id == new


# What follows needs two transactions at once.


def test_an_enqueue_waits_for_an_open_one_with_its_key_and_gets_it_after_a_rollback(pg: Bench) -> None:
    other = pg.session()
    other.leave_open(enqueue.enqueue([draft(unique="k")]))
    waiting = Background(lambda: pg.enqueue(draft(unique="k")))
    assert waiting.blocked
    other.roll_back()
    (job,) = waiting.result()
    assert not job.existing
    assert pg.state(job.id) is State.QUEUED


def test_an_enqueue_waits_for_an_open_one_with_its_key_and_finds_it_after_the_commit(pg: Bench) -> None:
    other = pg.session()
    (first,) = other.leave_open(enqueue.enqueue([draft(unique="k")]))
    waiting = Background(lambda: pg.enqueue(draft(unique="k")))
    assert waiting.blocked
    other.commit()
    (job,) = waiting.result()
    assert (job.id, job.existing) == (first.id, True)


def test_an_enqueue_that_found_its_key_taken_does_not_hold_up_the_settle_of_the_holder(pg: Bench) -> None:
    """A caller's transaction that only learnt of an existing job must not stop a worker's whole batch."""
    holder = pg.take(unique="k")
    caller = pg.session()
    (found,) = caller.leave_open(enqueue.enqueue([draft(unique="k")]))
    assert found.id == holder.id
    assert Background(lambda: pg.succeed(holder)).result(5) is State.SUCCEEDED


def test_an_enqueue_that_found_its_key_taken_does_not_hold_up_reaping_nor_limited_claims(pg: Bench) -> None:
    pg.take(unique="k", policy={"on_expired": "fail"})
    pg.limit("default", 5)
    pg.add()
    caller = pg.session()
    caller.leave_open(enqueue.enqueue([draft(unique="k")]))
    pg.later(60)
    assert len(Background(pg.reap).result(5)) == 1
    assert len(Background(lambda: pg.claim(1)).result(5)) == 1


def test_an_enqueue_that_found_its_key_taken_does_not_hold_up_promote(pg: Bench) -> None:
    blocker = pg.take()
    pg.add(unique="k", depends_on=(blocker.id,), policy={"on_dependency_failure": "cancel"})
    waiting = pg.add(delay=5)
    pg.settle_down()
    pg.fail(blocker)
    caller = pg.session()
    caller.leave_open(enqueue.enqueue([draft(unique="k")]))
    pg.later(10)
    assert waiting in Background(pg.promote).result(5).promoted


def test_settling_two_keyed_jobs_does_not_deadlock_with_a_caller_who_meets_their_keys_in_the_other_order(
    pg: Bench,
) -> None:
    for first, second in (("k1", "k2"), ("k2", "k1")):
        jobs = [pg.take(unique=key) for key in ("k1", "k2")]
        caller = pg.session()
        caller.leave_open(enqueue.enqueue([draft(unique=first)]))
        settling = Background(lambda jobs=jobs: pg.settle(*((job.lease, Raised("no", fatal=True)) for job in jobs)))
        if settling.blocked:
            time.sleep(1.2)  # past its own look for deadlocks: the next to look, and to pay, is the caller
        asking = Background(
            lambda caller=caller, second=second: caller.leave_open(enqueue.enqueue([draft(unique=second)]))
        )
        asking.result()  # a deadlock would be the caller's, whose transaction it would cost
        caller.roll_back()
        settling.result()


def test_a_window_that_ends_while_an_enqueue_waits_for_it_is_opened_anew(pg: Bench) -> None:
    """The moment that decides must be one and the same for taking a key and for looking up who has it."""
    pg.store.clock = None  # the windows end while the test sleeps
    other = pg.session()
    window = 0.6
    (first,) = other.leave_open(enqueue.enqueue([draft(unique="k", unique_for=window)]))
    waiting = Background(lambda: pg.run(enqueue.enqueue, [draft(unique="k", unique_for=60.0)]))
    assert waiting.blocked
    time.sleep(window)
    other.commit()
    (second,) = waiting.result()
    third = pg.run(enqueue.enqueue, [draft(unique="k", unique_for=60.0)])[0]
    if second.id == first.id:  # it stood in the window: then the next one, who comes after it, opens a new one
        assert not third.existing
    else:
        assert third.id == second.id, "two jobs in one window"


def test_a_window_that_ends_between_two_statements_of_an_enqueue_is_opened_anew(pg: Bench) -> None:
    pg.store.clock = None  # the windows end while the test sleeps
    (first,) = pg.enqueue(draft(unique="k", unique_for=10.0))
    flow = enqueue.enqueue([draft(unique="k", unique_for=60.0)])
    steps = pg.session().steps(flow)
    (moment,) = pg.query("select extract(epoch from clock_timestamp())::float8")[0]
    pg.query(f"update {{s}}keys set until = to_timestamp({moment + 0.5})")
    steps.after("enqueue/take_keys")
    time.sleep(0.6)
    second = steps.finish()[0]
    third = pg.run(enqueue.enqueue, [draft(unique="k", unique_for=60.0)])[0]
    if second.id == first.id:
        assert not third.existing
    else:
        assert third.id == second.id, "two jobs in one window"


def test_a_key_freed_between_two_statements_of_an_enqueue_does_not_make_a_job_without_its_key(pg: Bench) -> None:
    holder = pg.take(unique="k")
    steps = pg.session().steps(enqueue.enqueue([draft(unique="k")]))
    steps.after("enqueue/take_keys")
    settling = Background(lambda: pg.succeed(holder))
    _ = settling.blocked
    (job,) = steps.finish()
    settling.result()
    live = pg.count("jobs", "unique_key = 'k'")
    assert live == pg.count("keys"), "a live job and its key go together"
    assert job.existing == (job.id == holder.id)


def test_a_key_given_up_in_an_open_completion_is_waited_for(pg: Bench) -> None:
    holder = pg.take(unique="k")
    handler = pg.session()
    handler.leave_open(settle.settle([(holder.lease, Succeeded(None))], half))
    waiting = Background(lambda: pg.enqueue(draft(unique="k")))
    assert waiting.blocked
    handler.roll_back()
    assert waiting.result()[0].id == holder.id


# Batches on connections of ours, where new jobs that wait for nothing take a shorter way.


def test_a_batch_keeps_its_order_whatever_its_drafts_have(b: Bench) -> None:
    mixes = [{"unique": "a"}, {}, {"unique": "b", "unique_for": 60.0}, {}, {"unique": "c"}]
    jobs = b.run(enqueue.enqueue_directly, [draft(**options) for options in mixes])
    assert [job.unique for job in jobs] == ["a", None, "b", None, "c"]
    assert [job.id for job in b.claim(10)] == [job.id for job in jobs]


def test_plain_jobs_of_a_batch_come_in_order_beside_those_that_wait(b: Bench) -> None:
    first = draft()
    batch = [draft(target="t"), first, draft(depends_on=(first.id,)), draft(unique="a"), draft()]
    jobs = b.run(enqueue.enqueue_directly, batch)
    assert [job.id for job in jobs] == [one.id for one in batch]
    claimed = b.claim(10)
    assert [job.id for job in claimed] == [batch[1].id, batch[3].id, batch[4].id]
    b.succeed(claimed[0])
    b.promote()
    assert {job.id for job in b.claim(10)} == {batch[0].id, batch[2].id}, "the first was watched"


def test_keys_that_are_taken_are_found_and_the_others_are_taken_at_once(b: Bench) -> None:
    (there,) = b.run(enqueue.enqueue_directly, [draft(unique="taken")])
    batch = [draft(unique="free"), draft(unique="taken"), draft(unique="free"), draft()]
    jobs = b.run(enqueue.enqueue_directly, batch)
    assert [job.id for job in jobs] == [batch[0].id, there.id, batch[0].id, batch[3].id]
    assert [job.existing for job in jobs] == [False, True, True, False]
    assert b.count("keys") == 2
