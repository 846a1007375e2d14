"""A job that waits for another chain is let go when the chain ends, whatever else happens meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from relet._core.job import Claimed, Draft, State, Succeeded
from relet._store.flows import control, inspect, settle
from relet.errors import InvalidInput
from tests.harness import StoreHarness, draft, half


@pytest.mark.parametrize("watched", [True, False])
def test_a_blocker_pruned_before_promote_looked_has_still_succeeded(harness: StoreHarness, watched: bool) -> None:
    blocker = harness.claim_new()
    dependent = harness.add(depends_on=(blocker.id,))
    if watched:
        harness.promote_until_idle()
    harness.succeed(blocker, '"r"')
    harness.later(60).prune()
    harness.promote_until_idle()
    assert harness.state(dependent) is State.QUEUED
    assert [one.result_json for one in harness.run(inspect.dependencies, dependent)] == ['"r"']


def test_who_waits_only_for_new_jobs_of_its_batch_leaves_nothing_to_decide_before_they_end(
    harness: StoreHarness,
) -> None:
    first, second = draft(), draft()
    last = draft(depends_on=(first.id, second.id))
    harness.enqueue(last, first, second)
    assert harness.count("nudges") == 0
    jobs = harness.claim()
    harness.succeed(jobs[0])
    harness.promote_until_idle()
    assert harness.state(last.id) is State.PENDING
    harness.succeed(jobs[1])
    harness.promote_until_idle()
    assert harness.state(last.id) is State.QUEUED


def test_a_new_job_of_the_batch_that_is_deleted_holds_who_waits_for_it(harness: StoreHarness) -> None:
    first = draft()
    held, runs = draft(depends_on=(first.id,)), draft(depends_on=(first.id,), policy={"on_dependency_failure": "run"})
    harness.enqueue(first, held, runs)
    harness.run(control.delete, first.id)
    harness.promote_until_idle()
    assert (harness.state(held.id), harness.state(runs.id)) == (State.PENDING, State.QUEUED)


@pytest.mark.parametrize("kind", ["old", "key taken", "id of the caller"])
def test_who_waits_for_a_job_that_may_be_over_is_decided_at_once(harness: StoreHarness, kind: str) -> None:
    old = harness.claim_new(unique="k")
    named = {
        "old": lambda: [draft(depends_on=(old.id,))],
        "key taken": lambda: [twin := draft(unique="k"), draft(depends_on=(twin.id,))],
        "id of the caller": lambda: [draft(id=old.id, fresh=False), draft(depends_on=(old.id,))],
    }
    drafts = named[kind]()
    if kind != "key taken":
        harness.succeed(old)
    harness.enqueue(*drafts)
    assert harness.count("nudges") == 1
    if kind == "key taken":
        harness.succeed(old)
    harness.promote_until_idle()
    assert harness.state(drafts[-1].id) is State.QUEUED


def test_a_deleted_blocker_that_is_enqueued_again_frees_those_who_still_wait_for_it(harness: StoreHarness) -> None:
    blocker = harness.add()
    dependent = harness.add(depends_on=(blocker,))
    harness.promote_until_idle()
    harness.run(control.delete, blocker)
    harness.promote_until_idle()
    harness.enqueue(draft(id=blocker, fresh=False))
    harness.promote_until_idle()
    (job,) = harness.claim()
    harness.succeed(job, '"late"')
    harness.promote_until_idle()
    assert harness.state(dependent) is State.QUEUED
    assert [one.result_json for one in harness.run(inspect.dependencies, dependent)] == ['"late"']


def test_a_blocker_deleted_after_it_succeeded_does_not_hold_its_dependents(harness: StoreHarness) -> None:
    blocker = harness.claim_new()
    dependent = harness.add(depends_on=(blocker.id,))
    harness.promote_until_idle()
    harness.succeed(blocker, '"r"')
    harness.run(control.delete, blocker.id)
    harness.promote_until_idle()
    assert harness.state(dependent) is State.QUEUED


def test_a_blocker_pruned_after_its_dependent_was_freed_leaves_its_result(harness: StoreHarness) -> None:
    blocker = harness.claim_new()
    dependent = harness.add(depends_on=(blocker.id,), delay=3600.0)
    harness.promote_until_idle()
    harness.succeed(blocker, '"r"')
    harness.promote_until_idle()
    harness.later(60).prune()
    assert harness.state(blocker.id) is None
    assert [(one.state, one.result_json) for one in harness.run(inspect.dependencies, dependent)] == [
        ("succeeded", '"r"')
    ]


def test_the_task_of_a_blockers_first_job_is_kept_with_its_result(harness: StoreHarness) -> None:
    blocker = harness.claim_new(task="t")
    dependent = harness.add(depends_on=(blocker.id,), delay=3600.0)
    harness.promote_until_idle()
    assert [one.task for one in harness.run(inspect.dependencies, dependent)] == [None]
    following = draft("u")
    harness.succeed(blocker, continue_with=following)
    harness.run(control.complete, following.id, '"r"')
    harness.promote_until_idle()
    harness.later(60).prune()
    (found,) = harness.run(inspect.dependencies, dependent)
    assert (found.chain, found.state, found.result_json, found.task) == (blocker.id, "succeeded", '"r"', "t")


def test_a_blocker_that_was_deleted_has_no_task(harness: StoreHarness) -> None:
    blocker = harness.add()
    dependent = harness.add(depends_on=(blocker,), policy={"on_dependency_failure": "run"})
    harness.run(control.delete, blocker)
    harness.promote_until_idle()
    assert [(one.state, one.task) for one in harness.run(inspect.dependencies, dependent)] == [("deleted", None)]


def test_a_failed_blocker_that_is_resumed_and_succeeds_frees_its_dependents(harness: StoreHarness) -> None:
    blocker = harness.claim_new()
    dependent = harness.add(depends_on=(blocker.id,), queue="elsewhere")
    harness.fail(blocker)
    harness.promote_until_idle()
    assert harness.state(dependent) is State.PENDING
    harness.run(control.resume, blocker.id)
    harness.promote_until_idle()
    (job,) = harness.claim()
    harness.succeed(job)
    harness.promote_until_idle()
    assert harness.state(dependent) is State.QUEUED


@pytest.mark.parametrize(
    ("choice", "end"), [("hold", State.PENDING), ("cancel", State.CANCELLED), ("run", State.QUEUED)]
)
@pytest.mark.parametrize("how", ["fail", "cancel", "delete", "prune", "reap"])
def test_a_dependent_follows_its_own_policy_when_its_blocker_does_not_succeed(
    harness: StoreHarness, choice: str, end: State, how: str
) -> None:
    blocker = harness.claim_new(policy={"on_expired": "fail"})
    dependent = harness.add(depends_on=(blocker.id,), policy={"on_dependency_failure": choice}, unique="k", target="x")
    further = harness.add(depends_on=(dependent,), policy={"on_dependency_failure": "cancel"}, queue="elsewhere")
    harness.promote_until_idle()
    if how == "reap":
        harness.later(60).reap()
    elif how in ("fail", "prune"):
        harness.fail(blocker)
        _ = harness.later(60).prune() if how == "prune" else None
    else:
        harness.release(blocker)
        harness.run(getattr(control, how), blocker.id)
    harness.promote_until_idle()
    assert harness.state(dependent) is end
    assert harness.state(further) is (State.CANCELLED if end is State.CANCELLED else State.PENDING)
    assert harness.count("keys") == (0 if end is State.CANCELLED else 1)


def test_a_paused_dependent_hears_of_its_blockers_while_it_is_paused(harness: StoreHarness) -> None:
    blocker = harness.claim_new()
    dependent = harness.add(depends_on=(blocker.id,))
    harness.run(control.pause, dependent)
    harness.succeed(blocker)
    harness.promote_until_idle()
    assert harness.state(dependent) is State.PAUSED
    harness.run(control.resume, dependent)
    harness.promote_until_idle()
    assert harness.state(dependent) is State.QUEUED


def goes_on(harness: StoreHarness, how: str, job: Claimed, following: Draft[Any]) -> bool:
    """Whether a chain may go on with this draft, by its owner or by another client."""
    if how == "settled":
        return harness.succeed(job, continue_with=following) is State.SUCCEEDED
    try:
        harness.run(control.complete, job.id, None, following)
    except InvalidInput:
        return False
    return True


@pytest.mark.parametrize("how", ["settled", "completed"])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_successor_that_would_wait_for_itself_is_refused(harness: StoreHarness, how: str, steps: int) -> None:
    """Its own chain directly, or one that waits for it in so many steps."""
    job = harness.claim_new()
    last = job.id
    for _ in range(steps):
        last = harness.add(depends_on=(last,), queue="waiting")
    other = harness.add(queue="waiting")
    assert not goes_on(harness, how, job, draft(depends_on=(other, last)))
    assert harness.count("dependencies") == steps
    again = harness.claim_new()
    assert goes_on(harness, how, again, draft(depends_on=(other, last), queue="waiting"))


@pytest.mark.parametrize("how", ["settled", "completed"])
def test_a_circle_through_a_chain_that_went_on_is_found(harness: StoreHarness, how: str) -> None:
    first, second = harness.claim_new(), harness.claim_new()
    assert goes_on(harness, how, first, draft(depends_on=(second.id,), queue="waiting"))
    third = harness.add(depends_on=(first.id,), queue="waiting")
    assert not goes_on(harness, how, second, draft(depends_on=(third,), queue="waiting"))


def test_two_of_one_batch_that_close_a_circle_together_do_not_both_go_on(harness: StoreHarness) -> None:
    one, two = harness.claim_new(), harness.claim_new()
    states = harness.settle(
        (one.lease, Succeeded(None, draft(depends_on=(two.id,), queue="waiting"))),
        (two.lease, Succeeded(None, draft(depends_on=(one.id,), queue="waiting"))),
    )
    assert Counter(states) == {State.PENDING: 1, State.SUCCEEDED: 1}


@pytest.mark.parametrize("between", [0, 1])
def test_two_that_close_a_circle_at_the_same_moment_do_not_wait_for_ever(
    pg_harness: StoreHarness, between: int
) -> None:
    """Neither sees the other: promote sees both. One of them is cancelled, and says why."""
    one, two = pg_harness.claim_new(), pg_harness.claim_new()
    end = pg_harness.add(depends_on=(one.id,), queue="waiting") if between else one.id
    mine, theirs = draft(depends_on=(two.id,), queue="waiting"), draft(depends_on=(end,), queue="waiting")
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(one.lease, Succeeded(None, mine))], half))
    assert pg_harness.succeed(two, continue_with=theirs) is State.SUCCEEDED
    pg_harness.promote()
    handler.commit()
    pg_harness.promote_until_idle()
    states = {job.id: pg_harness.state(job.id) for job in (mine, theirs)}
    assert sorted(map(str, states.values())) == ["cancelled", "pending"]
    cancelled = pg_harness.get(next(id for id, state in states.items() if state is State.CANCELLED))
    assert cancelled is not None
    assert "it waited for its own chain" in (cancelled.error or "")


def test_two_circles_that_share_a_chain_are_both_broken(pg_harness: StoreHarness) -> None:
    jobs = one, two, three = pg_harness.claim_new(), pg_harness.claim_new(), pg_harness.claim_new()
    after = ((two.id, three.id), (one.id,), (one.id,))
    following = [draft(depends_on=ids, queue="waiting") for ids in after]
    sessions = [pg_harness.session() for _ in jobs]
    for session, job, next_one in zip(sessions, jobs, following, strict=True):
        session.leave_open(settle.settle([(job.lease, Succeeded(None, next_one))], half))
    for session in sessions:
        session.commit()
    pg_harness.promote_until_idle()
    first, *others = (pg_harness.state(job.id) for job in following)
    assert first is State.CANCELLED or others == [State.CANCELLED] * 2
    assert State.PENDING in (first, *others), "no more are cancelled than must be"


def test_a_dependency_that_was_decided_long_ago_closes_no_circle(harness: StoreHarness) -> None:
    """A job that has been freed does not wait any more."""
    first, second = harness.claim_new(), harness.claim_new()
    dependent = harness.add(depends_on=(first.id, second.id), policy={"on_dependency_failure": "run"}, queue="waiting")
    harness.fail(first)
    harness.fail(second)
    harness.promote_until_idle()
    assert harness.state(dependent) is State.QUEUED
    assert goes_on(harness, "completed", first, draft(depends_on=(dependent,), queue="waiting"))


def test_a_deleted_blocker_cannot_come_back_to_wait_for_those_who_wait_for_it(harness: StoreHarness) -> None:
    blocker = harness.add()
    dependent = harness.add(depends_on=(blocker,))
    harness.run(control.delete, blocker)
    for batch in (
        [draft(id=blocker, fresh=False, depends_on=(dependent,))],
        [middle := draft(depends_on=(dependent,)), draft(id=blocker, fresh=False, depends_on=(middle.id,))],
    ):
        with pytest.raises(InvalidInput, match="wait for ever"):
            harness.enqueue(*batch)
    assert harness.count("jobs") == 1
    harness.enqueue(draft(id=blocker, fresh=False, depends_on=(harness.add(),)))


def test_promote_does_not_ask_to_come_again_at_once_when_it_could_move_nothing(pg_harness: StoreHarness) -> None:
    """A thousand that wait for one blocker whose completion stays open: upkeep must not spin on them."""
    blocker = pg_harness.claim_new()
    pg_harness.enqueue(*(draft(depends_on=(blocker.id,)) for _ in range(10)))
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(blocker.lease, Succeeded("1"))], half))
    assert not any(pg_harness.promote(limit=10).more for _ in range(3))
    handler.commit()
    pg_harness.promote_until_idle()
    assert pg_harness.count("jobs", "state = 'queued'") == 10


def test_a_due_job_that_is_locked_does_not_make_promote_run_again_at_once(pg_harness: StoreHarness) -> None:
    id = pg_harness.add(delay=5.0)
    caller = pg_harness.session()
    caller.leave_open(control.complete(id, None))
    done = pg_harness.later(10).promote()
    assert done.promoted == []
    assert done.next_due is None or done.next_due > 0 or not done.more


def test_a_nudge_that_cannot_be_followed_does_not_keep_others_from_being_followed(pg_harness: StoreHarness) -> None:
    head = pg_harness.add(target="x")
    caller = pg_harness.session()
    caller.leave_open(control.complete(head, None))
    pg_harness.promote(limit=1)
    other = pg_harness.add(target="y")
    promoted = [id for _ in range(3) for id in pg_harness.promote(limit=1).promoted]
    assert promoted == [other]
