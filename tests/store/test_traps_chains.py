"""What is said to a whole chain reaches the job that it has come to, however it moves on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relet._core.job import State, Succeeded
from relet._store.flows import chains, control, enqueue, inspect, operations, settle
from relet._store.flows.operations import Operation
from relet._store.retry import RetryFor
from relet.errors import HasDependents, InvalidTransition, StoreBusy
from tests.store.interleave import Background, Bench, draft, half


def test_cancel_follows_a_chain_that_goes_on_at_that_moment(pg: Bench) -> None:
    job = pg.take()
    following = draft()
    owner = pg.session()
    owner.leave_open(settle.settle([(job.lease, Succeeded(None, following))], half))
    cancel = Background(lambda: pg.run(control.cancel, job.id, chain=True))
    assert cancel.blocked
    owner.commit()
    assert cancel.result().id == following.id
    assert pg.state(following.id) is State.CANCELLED


def test_complete_follows_a_chain_that_goes_on_at_that_moment(pg: Bench) -> None:
    job = pg.take()
    second, third = draft(), draft()
    owner = pg.session()
    owner.leave_open(settle.settle([(job.lease, Succeeded(None, second))], half))
    complete = Background(lambda: pg.run(control.complete, job.id, None, third, chain=True))
    assert complete.blocked
    owner.commit()
    assert complete.result().id == second.id
    assert [one.id for one in pg.run(inspect.chain, job.id)] == [job.id, second.id, third.id]


@pytest.mark.parametrize("ends", [True, False])
def test_cancel_of_a_chain_that_ends_at_that_moment_is_refused(pg: Bench, ends: bool) -> None:
    job = pg.take()
    owner = pg.session()
    owner.leave_open(settle.settle([(job.lease, Succeeded("1"))], half))
    cancel = Background(lambda: pg.run(control.cancel, job.id, chain=True))
    assert cancel.blocked
    if ends:
        owner.commit()
        with pytest.raises(InvalidTransition):
            cancel.result()
    else:
        owner.roll_back()
        assert cancel.result().request == "cancel"


def test_delete_takes_the_job_that_a_chain_goes_on_with_at_that_moment(pg: Bench) -> None:
    root, job = pg.take(), pg.take()
    later = draft(depends_on=(root.id,))
    pg.succeed(job, continue_with=later)
    end = pg.add(depends_on=(job.id,))
    following = draft()
    owner = pg.session()
    owner.leave_open(settle.settle([(root.lease, Succeeded(None, following))], half))
    delete = Background(lambda: pg.run(chains.delete_chain, root.id, dependents=True))
    assert delete.blocked
    owner.commit()
    assert sorted(delete.result()) == sorted([root.id, following.id, job.id, later.id, end])
    assert pg.count("jobs") == pg.count("finished") == pg.count("dependencies") == 0
    pg.settle_down()


def test_delete_of_a_chain_does_not_take_who_stops_waiting_at_that_moment(pg: Bench) -> None:
    blocker = pg.add()
    dependent = pg.add(depends_on=(blocker,))
    caller = pg.session()
    caller.leave_open(control.complete(dependent, '"by hand"'))
    delete = Background(lambda: pg.run(chains.delete_chain, blocker, dependents=True))
    assert delete.blocked
    caller.commit()
    assert delete.result() == [blocker]
    assert pg.state(dependent) is State.SUCCEEDED


def test_who_is_enqueued_behind_a_chain_while_it_is_deleted_learns_of_it(pg: Bench) -> None:
    blocker = pg.add()
    caller = pg.session()
    dependent = draft(depends_on=(blocker,), policy={"on_dependency_failure": "run"})
    caller.leave_open(enqueue.enqueue([dependent]))
    pg.run(chains.delete_chain, blocker)
    caller.commit()
    pg.settle_down()
    assert pg.state(dependent.id) is State.QUEUED


def test_a_chain_is_not_deleted_by_halves_when_a_dependent_is_locked_for_long(pg: Bench) -> None:
    blocker = pg.add()
    pg.add(depends_on=(blocker,))
    last = pg.add(depends_on=(blocker,))
    pg.settle_down()
    caller = pg.session()
    caller.leave_open(control.pause(last))
    with pytest.raises(StoreBusy):
        pg.store.run_with(RetryFor(0), chains.delete_chain, blocker, dependents=True)
    assert pg.count("jobs") == 3


def test_repeating_what_was_said_to_a_chain_changes_nothing_more(b: Bench) -> None:
    """The answer was lost, not the deed: the successor is not completed in its turn."""
    first, second, other = b.add(), draft(), b.add()

    def twice(flow: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        operation = Operation(draft().id, flow.__name__, "")
        both = [b.run(operations.once, operation, flow, *args, **kwargs) for _ in range(2)]
        return both[0], both[1]

    assert [job.id for job in twice(control.complete, first, None, second, chain=True)] == [first, first]
    assert b.state(second.id) is State.QUEUED
    assert [job.id for job in twice(control.complete, first, '"r"', chain=True)] == [second.id, second.id]
    assert [job.state for job in twice(control.cancel, other, chain=True)] == [State.CANCELLED, State.CANCELLED]
    assert twice(chains.delete_chain, other) == ([other], [other])


def test_a_failed_blocker_that_nobody_waits_for_any_more_can_be_deleted(b: Bench) -> None:
    blocker = b.take()
    bold = b.add(depends_on=(blocker.id,), policy={"on_dependency_failure": "run"})
    b.fail(blocker)
    b.run(chains.delete_chain, blocker.id)
    b.settle_down()
    assert b.state(bold) is State.QUEUED
    held = b.add(depends_on=(bold,))
    with pytest.raises(HasDependents):
        b.run(chains.delete_chain, bold)
    assert b.state(held) is State.PENDING
