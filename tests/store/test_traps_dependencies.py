"""Whoever waits for another chain is let go when it ends, whatever else happens meanwhile."""

from __future__ import annotations

import pytest

from leasehold.core.errors import InvalidInput
from leasehold.core.job import State, Succeeded
from leasehold.store.flows import lease, look, steer
from tests.store.interleave import Bench, draft, half


@pytest.mark.parametrize("watched", [True, False])
def test_a_blocker_pruned_before_promote_looked_has_still_succeeded(b: Bench, watched: bool) -> None:
    blocker = b.take()
    dependent = b.add(after=(blocker.id,))
    if watched:
        b.settle_down()
    b.succeed(blocker, '"r"')
    b.later(60).prune()
    b.settle_down()
    assert b.state(dependent) is State.QUEUED
    assert [one.result for one in b.run(look.blockers, dependent)] == ['"r"']


def test_a_deleted_blocker_that_is_enqueued_again_frees_those_who_still_wait_for_it(b: Bench) -> None:
    blocker = b.add()
    dependent = b.add(after=(blocker,))
    b.settle_down()
    b.run(steer.delete, blocker)
    b.settle_down()
    b.enqueue(draft(id=blocker, fresh=False))
    b.settle_down()
    (job,) = b.claim()
    b.succeed(job, '"late"')
    b.settle_down()
    assert b.state(dependent) is State.QUEUED
    assert [one.result for one in b.run(look.blockers, dependent)] == ['"late"']


def test_a_blocker_deleted_after_it_succeeded_does_not_hold_its_dependents(b: Bench) -> None:
    blocker = b.take()
    dependent = b.add(after=(blocker.id,))
    b.settle_down()
    b.succeed(blocker, '"r"')
    b.run(steer.delete, blocker.id)
    b.settle_down()
    assert b.state(dependent) is State.QUEUED


def test_a_blocker_pruned_after_its_dependent_was_freed_leaves_its_result(b: Bench) -> None:
    blocker = b.take()
    dependent = b.add(after=(blocker.id,), delay=3600.0)
    b.settle_down()
    b.succeed(blocker, '"r"')
    b.settle_down()
    b.later(60).prune()
    assert b.state(blocker.id) is None
    assert [(one.state, one.result) for one in b.run(look.blockers, dependent)] == [("succeeded", '"r"')]


def test_a_failed_blocker_that_is_resumed_and_succeeds_frees_its_dependents(b: Bench) -> None:
    blocker = b.take()
    dependent = b.add(after=(blocker.id,), queue="elsewhere")
    b.fail(blocker)
    b.settle_down()
    assert b.state(dependent) is State.PENDING
    b.run(steer.resume, blocker.id, now=b.now)
    b.settle_down()
    (job,) = b.claim()
    b.succeed(job)
    b.settle_down()
    assert b.state(dependent) is State.QUEUED


@pytest.mark.parametrize(("wish", "end"), [("hold", State.PENDING), ("cancel", State.CANCELLED), ("run", State.QUEUED)])
@pytest.mark.parametrize("how", ["fail", "cancel", "delete", "prune", "reap"])
def test_a_blocker_that_does_not_succeed_means_what_the_dependent_wished(
    b: Bench, wish: str, end: State, how: str
) -> None:
    blocker = b.take(policy={"on_expired": "fail"})
    dependent = b.add(after=(blocker.id,), policy={"on_blocker_failure": wish}, unique="k", target="x")
    further = b.add(after=(dependent,), policy={"on_blocker_failure": "cancel"}, queue="elsewhere")
    b.settle_down()
    if how == "reap":
        b.later(60).reap()
    elif how in ("fail", "prune"):
        b.fail(blocker)
        _ = b.later(60).prune() if how == "prune" else None
    else:
        b.release(blocker)
        b.run(getattr(steer, how), blocker.id, now=b.now)
    b.settle_down()
    assert b.state(dependent) is end
    assert b.state(further) is (State.CANCELLED if end is State.CANCELLED else State.PENDING)
    assert b.count("keys") == (0 if end is State.CANCELLED else 1)


def test_a_paused_dependent_hears_of_its_blockers_while_it_is_paused(b: Bench) -> None:
    blocker = b.take()
    dependent = b.add(after=(blocker.id,))
    b.run(steer.pause, dependent, now=b.now)
    b.succeed(blocker)
    b.settle_down()
    assert b.state(dependent) is State.PAUSED
    b.run(steer.resume, dependent, now=b.now)
    b.settle_down()
    assert b.state(dependent) is State.QUEUED


def test_a_successor_that_waits_for_its_own_chain_is_refused(b: Bench) -> None:
    """It would wait for itself, for ever."""
    job = b.take()
    following = draft(after=(job.id,))
    try:
        state = b.succeed(job, continue_with=following)
    except InvalidInput:
        return
    assert state is not State.SUCCEEDED


def test_promote_does_not_ask_to_come_again_at_once_when_it_could_move_nothing(pg: Bench) -> None:
    """A thousand that wait for one blocker whose completion stays open: upkeep must not spin on them."""
    blocker = pg.take()
    pg.enqueue(*(draft(after=(blocker.id,)) for _ in range(10)))
    handler = pg.session()
    handler.leave_open(lease.settle([(blocker.lease, Succeeded("1"))], half))
    assert not any(pg.promote(most=10).more for _ in range(3))
    handler.commit()
    pg.settle_down()
    assert pg.count("jobs", "state = 'queued'") == 10


def test_a_due_job_that_somebody_has_locked_does_not_make_promote_come_again_at_once(pg: Bench) -> None:
    id = pg.add(delay=5.0)
    caller = pg.session()
    caller.leave_open(steer.complete(id, None, now=pg.now))
    done = pg.later(10).promote()
    assert done.promoted == []
    assert done.next_due is None or done.next_due > 0 or not done.more


def test_a_nudge_that_cannot_be_followed_does_not_keep_others_from_being_followed(pg: Bench) -> None:
    head = pg.add(target="x")
    caller = pg.session()
    caller.leave_open(steer.complete(head, None, now=pg.now))
    pg.promote(most=1)
    other = pg.add(target="y")
    promoted = [id for _ in range(3) for id in pg.promote(most=1).promoted]
    assert promoted == [other]
