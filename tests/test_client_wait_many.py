"""Waiting for many chains at once: one look for all of them."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest

from relet import App, InvalidInput, JobCancelled, JobFailed, JobNotFound, State, WaitTimeout, new_id
from relet._core.job import Succeeded
from relet._store.flows import settle
from relet._store.store import Store
from relet._tasks.task import PlainTask
from tests.databases import ids
from tests.harness import harness_of
from tests.plugin.apps import Later
from tests.worker.working import until


@pytest.fixture
def read_sizes(app: App, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many chains each look of a waiter asked for."""
    asked: list[int] = []
    run = Store.run

    def counted(store: Store, flow: Any, *args: Any, **options: Any) -> Any:
        found = run(store, flow, *args, **options)
        if flow.__name__ == "ends":
            asked.append(len(args[0]))
        return found

    monkeypatch.setattr(Store, "run", counted)
    return asked


def test_results_come_in_the_order_given_however_they_ended(
    app: App, task: PlainTask[..., Any], meanwhile: Later
) -> None:
    jobs = [task.enqueue(n) for n in range(4)]
    following = task.draft("goes on")
    app.client.complete(jobs[2], continue_with=following)
    for number, job in ((3, jobs[3]), (0, jobs[0]), (2, following.id), (1, jobs[1])):
        meanwhile(lambda job=job, number=number: app.client.complete(job, number))
    assert app.client.results(jobs, timeout=10) == [0, 1, 2, 3]
    assert ids(app.client.wait_many([jobs[3].id, jobs[2], jobs[3]])) == [jobs[3].id, following.id, jobs[3].id]
    assert app.client.results(iter(jobs)) == app.client.results([job.id for job in jobs]) == [0, 1, 2, 3]
    assert app.client.wait_many([]) == app.client.results([]) == []


def test_the_first_error_in_the_order_given_is_raised_or_stands_in_its_place(
    app: App, task: PlainTask[..., Any]
) -> None:
    fine, failed, cancelled = (task.enqueue(n) for n in range(3))
    for held in harness_of(app).claim(3):
        _ = (
            harness_of(app).succeed(held, '"fine"')
            if held.id == fine.id
            else harness_of(app).fail(held, "ValueError: no")
        )
    app.client.cancel(cancelled)
    with pytest.raises(JobCancelled, match=cancelled.id):
        app.client.results([fine, cancelled, failed])
    with pytest.raises(JobFailed, match=failed.id):
        app.client.results([fine, failed, cancelled])
    got = app.client.results([fine, cancelled, failed], return_exceptions=True)
    assert (got[0], type(got[1]), type(got[2])) == ("fine", JobCancelled, JobFailed)
    assert [job.state for job in app.client.wait_many([failed, fine])] == [State.FAILED, State.SUCCEEDED]


def test_those_that_are_missing_when_the_time_is_up_are_named(app: App, task: PlainTask[..., Any]) -> None:
    jobs = [task.enqueue(n) for n in range(6)]
    app.client.complete(jobs[0])
    with pytest.raises(WaitTimeout) as caught:
        app.client.wait_many(jobs, timeout=0.1)
    named = ", ".join(f"job {job.id} is queued" for job in jobs[1:4])
    assert str(caught.value) == f"5 of 6 jobs are not over after 0.1 s: {named}, and 2 more"
    assert caught.value.ids == tuple(ids(jobs[1:]))
    with pytest.raises(WaitTimeout, match=f"1 of 2 jobs are not over after 0 s: job {jobs[1].id} is queued$"):
        app.client.results(jobs[:2], timeout=0, return_exceptions=True)


def test_a_job_that_is_unknown_or_deleted_meanwhile_is_named(
    app: App, task: PlainTask[..., Any], meanwhile: Later
) -> None:
    jobs = [task.enqueue(n) for n in range(3)]
    unknown = new_id()
    with pytest.raises(JobNotFound, match=unknown):
        app.client.wait_many([*jobs, unknown])
    meanwhile(lambda: app.client.delete(jobs[1]))
    with pytest.raises(JobNotFound) as caught:
        app.client.wait_many(jobs, timeout=10)
    assert caught.value.ids == (jobs[1].id,)


@pytest.mark.parametrize("one", ["text", "job"])
def test_one_job_is_no_list(app: App, task: PlainTask[..., Any], one: str) -> None:
    job = task.enqueue()
    with pytest.raises(InvalidInput, match="take jobs in a list"):
        app.client.results(cast(Any, job if one == "job" else job.id))


def test_the_async_client_waits_for_many(app: App, task: PlainTask[..., Any], meanwhile: Later) -> None:
    jobs = [task.enqueue(n) for n in range(3)]
    for job in jobs:
        meanwhile(lambda job=job: app.client.complete(job, job.id))

    async def both() -> None:
        assert await app.aclient.results(jobs, timeout=10) == ids(jobs)
        assert ids(await app.aclient.wait_many(jobs)) == ids(jobs)

    asyncio.run(both())


@pytest.mark.long("memory")
def test_ten_thousand_are_waited_for_at_once(
    app: App, task: PlainTask[..., Any], meanwhile: Later, read_sizes: list[int]
) -> None:
    """Each look is one for all, and those that are known to be over are not asked for again."""
    jobs = app.client.enqueue_many([task.draft(n) for n in range(10_000)])
    held = harness_of(app).claim(10_000)
    outcomes = [(one.lease, Succeeded(one.payload_json)) for one in held]
    app._store().run(settle.settle, outcomes[:6000], lambda: 0.5)

    def end_the_others() -> None:
        until(lambda: read_sizes)
        app._store().run(settle.settle, outcomes[6000:], lambda: 0.5)

    meanwhile(end_the_others)
    assert app.client.results(jobs, timeout=60) == [{"value": n} for n in range(10_000)]
    assert read_sizes[:2] == [10_000, 4000]
    assert all(later <= sooner for sooner, later in pairwise(read_sizes))
    assert len(read_sizes) < 100
