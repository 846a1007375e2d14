"""Chains: how they are read, and verbs that act on a whole chain."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from relet import App, InvalidInput, JobNotFound, State, events
from relet._store.flows import lease
from relet._tasks.task import PlainTask
from relet.errors import HasDependents, InvalidPayload, InvalidTransition
from relet.types import Chain
from tests.databases import ids, inventory
from tests.harness import harness_of
from tests.schemas import EMPTIED


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    @app.task
    def work(value: Any = None) -> Any:
        return value

    task: PlainTask[..., Any] = work
    return task


def grow(app: App, task: PlainTask[..., Any], length: int) -> list[str]:
    """A chain of so many jobs, the last of them queued; their ids."""
    grown = [task.enqueue(0).id]
    for number in range(1, length):
        draft = task.draft(number)
        app.client.complete(grown[-1], f"step {number}", continue_with=draft)
        grown.append(draft.id)
    return grown


def test_a_chain_is_a_sequence_of_its_jobs_with_a_state_and_a_result(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 3)
    chain = app.client.chain(grown[1])
    assert isinstance(chain, Chain)
    assert isinstance(chain, Sequence)
    assert [job.id for job in chain] == ids(list(chain[0:3])) == grown
    assert (len(chain), chain.id, chain[-1], chain.last.id) == (3, grown[0], chain.last, grown[2])
    assert (chain.state, chain.result_json) == (State.QUEUED, None)
    assert repr(chain) == f"<chain {grown[0]} queued: work -> work -> work>"
    harness_of(app).succeed(harness_of(app).claim(1)[0], '"end"')
    over = app.client.chain(grown[2])
    assert (over.state, over.result_json) == (State.SUCCEEDED, '"end"')
    assert over == app.client.chain(grown[0])
    assert over != chain


def test_a_chain_that_failed_or_lost_its_end_has_no_result(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    harness_of(app).fail(harness_of(app).claim(1)[0])
    assert (app.client.chain(grown[0]).state, app.client.chain(grown[0]).result_json) == (State.FAILED, None)
    app.client.delete(grown[1])
    assert app.client.chain(grown[0]).result_json is None


def states(app: App, *jobs: Any) -> list[str | None]:
    found = [app.client.get(job) for job in jobs]
    return [None if job is None else str(job.state) for job in found]


@pytest.mark.parametrize("named", [0, 1, 2])
def test_a_chain_is_cancelled_by_the_name_of_any_of_its_jobs(app: App, task: PlainTask[..., Any], named: int) -> None:
    grown = grow(app, task, 3)
    assert app.client.cancel(grown[named], chain=True).id == grown[2]
    assert states(app, *grown) == ["succeeded", "succeeded", "cancelled"]
    with pytest.raises(InvalidTransition, match=f"cannot cancel job {grown[2]}: it is cancelled"):
        app.client.cancel(grown[named], chain=True)


def test_the_running_job_of_a_chain_is_asked_to_end(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    (held,) = harness_of(app).claim(1)
    asked = app.client.cancel(grown[0], chain=True)
    assert (asked.id, asked.state, asked.request) == (held.id, State.RUNNING, "cancel")


def test_without_a_word_of_the_chain_the_job_itself_is_meant(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    for verb in (app.client.cancel, app.client.complete):
        with pytest.raises(InvalidTransition, match=grown[0]):
            verb(grown[0])
    app.client.delete(grown[0])
    assert states(app, *grown) == [None, "queued"]


def test_a_chain_is_completed_by_the_name_of_any_of_its_jobs(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    further = task.draft("further")
    assert app.client.complete(grown[0], continue_with=further, chain=True).id == grown[1]
    done = app.client.complete(grown[1], "end", chain=True)
    assert (done.id, done.state, done.result_json) == (further.id, State.SUCCEEDED, '"end"')
    with pytest.raises(InvalidTransition, match=f"cannot complete job {further.id}: it is succeeded"):
        app.client.complete(grown[0], "again", chain=True)


def test_a_chain_goes_by_its_id_though_its_first_jobs_are_gone(app: App, task: PlainTask[..., Any]) -> None:
    """They are pruned after a week; a chain may go on for longer."""
    grown = grow(app, task, 4)
    for id in grown[:2]:
        app.client.delete(id)
    assert (app.client.get(grown[0]), app.client.chain(grown[0]).id) == (None, grown[0])
    assert ids(list(app.client.chain(grown[0]))) == grown[2:]
    waiting = task.using(depends_on=[grown[0]]).enqueue()
    assert ids(app.client.dependents(grown[0])) == [waiting.id]
    with pytest.raises(HasDependents):
        app.client.delete(grown[0], chain=True)
    assert app.client.complete(grown[0], "end", chain=True).id == grown[3]
    assert app.client.result(grown[0], timeout=5) == "end"
    assert harness_of(app).promote_all() == [waiting.id]
    app.client.delete(grown[0], chain=True)
    for verb in (app.client.chain, app.client.wait, app.client.dependents):
        with pytest.raises(JobNotFound):
            verb(grown[0])


def test_the_result_must_fit_the_task_of_the_last_job_of_the_chain(app: App, task: PlainTask[..., Any]) -> None:
    @app.task
    def count() -> int:
        return 1

    first = task.enqueue()
    app.client.complete(first, continue_with=count.draft())
    with pytest.raises(InvalidPayload, match="does not fit its annotation"):
        app.client.complete(first, "not a number", chain=True)
    assert app.client.complete(first, 7, chain=True).result_json == "7"


def test_a_chain_is_deleted_with_all_its_history(app: App, task: PlainTask[..., Any]) -> None:
    bystander = task.enqueue()
    app.client.pause(bystander)
    before = inventory(app._store())
    grown = grow(app, task, 3)
    harness_of(app).fail(harness_of(app).claim(1)[0])
    app.client.resume(grown[2])
    deleted: list[str] = []
    app.on(events.Deleted)(lambda event: deleted.append(event.job_id))
    app.client.delete(grown[1], chain=True)
    assert sorted(deleted) == sorted(grown)
    after = inventory(app._store())
    kept = {"nudges", "operations"}  # the answers to what was said hold nothing of the jobs but their names
    assert {name: after.get(name) for name in EMPTIED if name not in kept} == {
        name: before.get(name) for name in EMPTIED if name not in kept
    }
    with pytest.raises(JobNotFound):
        app.client.delete(grown[1], chain=True)


def test_a_chain_that_others_wait_for_is_not_deleted(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    waiting = sorted(task.using(depends_on=[grown[0]]).enqueue(n).id for n in range(5))
    everything = inventory(app._store())
    with pytest.raises(HasDependents, match=f"{waiting[2]} and 2 more; .* pass dependents=True") as caught:
        app.client.delete(grown[1], chain=True)
    assert (caught.value.chain, set(caught.value.ids)) == (grown[0], set(waiting))
    assert inventory(app._store()) == everything
    for one in waiting:
        app.client.cancel(one)
    app.client.delete(grown[1], chain=True)
    assert states(app, *grown, *waiting) == [None] * 2 + ["cancelled"] * 5


def test_a_chain_is_deleted_with_the_chains_of_all_that_wait_for_it(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    other = task.enqueue("other")
    middle = task.enqueue("middle")
    later = task.using(depends_on=[grown[0], other]).draft("goes on, and waits")
    app.client.complete(middle, continue_with=later)
    end = task.using(depends_on=[middle, grown[0]]).enqueue("end")
    free = task.using(depends_on=[other]).enqueue("waits for another")
    with pytest.raises(InvalidInput, match="call delete"):
        app.client.delete(grown[0], dependents=True)
    app.client.delete(grown[0], chain=True, dependents=True)
    assert states(app, *grown, middle, later.id, end) == [None] * 5
    assert states(app, other, free) == ["queued", "pending"]
    app.client.complete(other)
    assert harness_of(app).promote_all() == [free.id]


def test_a_chain_that_has_succeeded_leaves_its_result_to_those_who_waited(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    waiting = task.using(depends_on=[grown[0]]).enqueue()
    app.client.complete(grown[1], "end")
    app.client.delete(grown[0], chain=True, dependents=True)
    harness_of(app).promote_all()
    assert states(app, *grown, waiting) == [None, None, "queued"]
    assert [(one.state, one.result_json) for one in app.client.dependencies(waiting)] == [("succeeded", '"end"')]


def test_the_owner_of_a_job_in_a_deleted_chain_loses_its_lease(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    (held,) = harness_of(app).claim(1)
    with app._store().notifier.subscribe("request") as sleeper:
        app.client.delete(grown[0], chain=True)
        assert sleeper.wait(5)
    assert app._store().run(lease.pending_requests, [held.lease]).lost == [held.lease]


def test_the_async_client_means_chains_as_well(app: App, task: PlainTask[..., Any]) -> None:
    async def day() -> None:
        first, second = task.enqueue(1), task.enqueue(2)
        await app.aclient.complete(first, continue_with=task.draft(), chain=True)
        assert (await app.aclient.cancel(first, chain=True)).position == 1
        assert (await app.aclient.chain(first)).state is State.CANCELLED
        await task.using(depends_on=[second]).aenqueue()
        await app.aclient.delete(second, chain=True, dependents=True)
        await app.aclient.delete(first, chain=True)
        assert await app.aclient.count() == 0

    asyncio.run(day())
