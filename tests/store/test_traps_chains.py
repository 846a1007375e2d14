"""A verb for a whole chain reaches the last job of the chain, however the chain continues meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relet._core.job import State, Succeeded
from relet._store.flows import chains, control, enqueue, inspect, operations, settle
from relet._store.flows.operations import Operation
from relet._store.retry import RetryFor
from relet.errors import HasDependents, InvalidTransition, StoreBusy
from tests.harness import StoreHarness, draft, half
from tests.store.interleave import Background


def test_cancel_follows_a_chain_that_goes_on_at_that_moment(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    following = draft()
    owner = pg_harness.session()
    owner.leave_open(settle.settle([(job.lease, Succeeded(None, following))], half))
    cancel = Background(lambda: pg_harness.run(control.cancel, job.id, chain=True))
    assert cancel.blocked
    owner.commit()
    assert cancel.result().id == following.id
    assert pg_harness.state(following.id) is State.CANCELLED


def test_complete_follows_a_chain_that_goes_on_at_that_moment(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    second, third = draft(), draft()
    owner = pg_harness.session()
    owner.leave_open(settle.settle([(job.lease, Succeeded(None, second))], half))
    complete = Background(lambda: pg_harness.run(control.complete, job.id, None, third, chain=True))
    assert complete.blocked
    owner.commit()
    assert complete.result().id == second.id
    assert [one.id for one in pg_harness.run(inspect.chain, job.id)] == [job.id, second.id, third.id]


@pytest.mark.parametrize("ends", [True, False])
def test_cancel_of_a_chain_that_ends_at_that_moment_is_refused(pg_harness: StoreHarness, ends: bool) -> None:
    job = pg_harness.claim_new()
    owner = pg_harness.session()
    owner.leave_open(settle.settle([(job.lease, Succeeded("1"))], half))
    cancel = Background(lambda: pg_harness.run(control.cancel, job.id, chain=True))
    assert cancel.blocked
    if ends:
        owner.commit()
        with pytest.raises(InvalidTransition):
            cancel.result()
    else:
        owner.roll_back()
        assert cancel.result().request == "cancel"


def test_delete_takes_the_job_that_a_chain_goes_on_with_at_that_moment(pg_harness: StoreHarness) -> None:
    root, job = pg_harness.claim_new(), pg_harness.claim_new()
    later = draft(depends_on=(root.id,))
    pg_harness.succeed(job, continue_with=later)
    end = pg_harness.add(depends_on=(job.id,))
    following = draft()
    owner = pg_harness.session()
    owner.leave_open(settle.settle([(root.lease, Succeeded(None, following))], half))
    delete = Background(lambda: pg_harness.run(chains.delete_chain, root.id, dependents=True))
    assert delete.blocked
    owner.commit()
    assert sorted(delete.result()) == sorted([root.id, following.id, job.id, later.id, end])
    assert pg_harness.count("jobs") == pg_harness.count("finished") == pg_harness.count("dependencies") == 0
    pg_harness.promote_until_idle()


def test_delete_of_a_chain_does_not_take_who_stops_waiting_at_that_moment(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.add()
    dependent = pg_harness.add(depends_on=(blocker,))
    caller = pg_harness.session()
    caller.leave_open(control.complete(dependent, '"by hand"'))
    delete = Background(lambda: pg_harness.run(chains.delete_chain, blocker, dependents=True))
    assert delete.blocked
    caller.commit()
    assert delete.result() == [blocker]
    assert pg_harness.state(dependent) is State.SUCCEEDED


def test_who_is_enqueued_behind_a_chain_while_it_is_deleted_learns_of_it(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.add()
    caller = pg_harness.session()
    dependent = draft(depends_on=(blocker,), policy={"on_dependency_failure": "run"})
    caller.leave_open(enqueue.enqueue([dependent]))
    pg_harness.run(chains.delete_chain, blocker)
    caller.commit()
    pg_harness.promote_until_idle()
    assert pg_harness.state(dependent.id) is State.QUEUED


@pytest.mark.long
def test_a_chain_is_not_deleted_by_halves_when_a_dependent_is_locked_for_long(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.add()
    pg_harness.add(depends_on=(blocker,))
    last = pg_harness.add(depends_on=(blocker,))
    pg_harness.promote_until_idle()
    caller = pg_harness.session()
    caller.leave_open(control.pause(last))
    with pytest.raises(StoreBusy):
        pg_harness.store.run_with(RetryFor(0), chains.delete_chain, blocker, dependents=True)
    assert pg_harness.count("jobs") == 3


def test_repeating_a_verb_on_a_chain_changes_nothing_more(harness: StoreHarness) -> None:
    """The answer was lost, not the deed: the successor is not completed in its turn."""
    first, second, other = harness.add(), draft(), harness.add()

    def twice(flow: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        operation = Operation(draft().id, flow.__name__, "")
        both = [harness.run(operations.once, operation, flow, *args, **kwargs) for _ in range(2)]
        return both[0], both[1]

    assert [job.id for job in twice(control.complete, first, None, second, chain=True)] == [first, first]
    assert harness.state(second.id) is State.QUEUED
    assert [job.id for job in twice(control.complete, first, '"r"', chain=True)] == [second.id, second.id]
    assert [job.state for job in twice(control.cancel, other, chain=True)] == [State.CANCELLED, State.CANCELLED]
    assert twice(chains.delete_chain, other) == ([other], [other])


def test_a_failed_blocker_that_no_job_waits_for_any_more_can_be_deleted(harness: StoreHarness) -> None:
    blocker = harness.claim_new()
    bold = harness.add(depends_on=(blocker.id,), policy={"on_dependency_failure": "run"})
    harness.fail(blocker)
    harness.run(chains.delete_chain, blocker.id)
    harness.promote_until_idle()
    assert harness.state(bold) is State.QUEUED
    held = harness.add(depends_on=(bold,))
    with pytest.raises(HasDependents):
        harness.run(chains.delete_chain, bold)
    assert harness.state(held) is State.PENDING
