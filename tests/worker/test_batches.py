"""Batch tasks: one call for many jobs, each of which is leased and settled by itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from relet import App, Attempt, Backoff, Draft, Fail, InvalidInput, Retry, new_id
from relet._core.job import Policy
from relet._store.flows import lease
from relet.testing import harness
from relet.types import BatchItem
from tests.harness import harness_of
from tests.worker.programs import Shop
from tests.worker.working import until, working

SOON = Backoff(base=0.001, max=0.001)


def ends(app: App, task: Any, number: int) -> Any:
    until(lambda: app.client.count(task=task.name, state=["succeeded", "failed", "cancelled"]) == number)
    return app.client.jobs(task=task.name, limit=1000).jobs


@pytest.fixture(params=["thread", "loop"])
def sizes(app: App, request: pytest.FixtureRequest) -> list[list[int]]:
    """The batches that the task `collect` was called with."""
    calls: list[list[int]] = []

    def collect(items: list[BatchItem[int]]) -> None:
        calls.append([item.value for item in items])
        for item in items:
            if item.value < 0:
                item.fail(Fail(f"no {item.value}"))
            elif item.value % 10 == 7:
                item.succeed({"seven": item.value})

    async def acollect(items: list[BatchItem[int]]) -> None:
        collect(items)

    function = collect if request.param == "thread" else acollect
    app.batch_task(size=5, wait=0.2, name="collect")(function)
    app.client.migrate()
    return calls


def test_jobs_are_run_together_and_settled_singly(app: App, sizes: list[list[int]]) -> None:
    task = app.tasks["collect"]
    app.client.enqueue_many([task.draft(n) for n in (1, -2, 3, 7, 5, 6, 17)])
    with working(app, concurrency=20):
        jobs = ends(app, task, 7)
    assert [len(one) for one in sizes] == [5, 2]
    states = {job.payload["item"]: (job.state, job.result, job.error) for job in jobs}
    assert states[1] == ("succeeded", None, None)
    assert states[-2] == ("failed", None, "no -2")
    assert states[17] == ("succeeded", {"seven": 17}, None)


def test_no_call_gets_more_jobs_than_the_size(app: App, sizes: list[list[int]]) -> None:
    task = app.tasks["collect"]
    app.client.enqueue_many([task.draft(n) for n in range(1, 203, 10)])
    with working(app, concurrency=12):
        ends(app, task, 21)
    assert max(len(one) for one in sizes) == 5
    assert sorted(value for one in sizes for value in one) == list(range(1, 203, 10))


def test_a_batch_that_is_not_full_is_called_after_its_wait(app: App, sizes: list[list[int]]) -> None:
    task = app.tasks["collect"]
    with working(app, concurrency=20):
        task.enqueue(1)
        ends(app, task, 1)
    assert sizes == [[1]]


def test_a_batch_never_waits_for_slots(app: App, sizes: list[list[int]]) -> None:
    task = app.tasks["collect"]
    app.client.enqueue_many([task.draft(n) for n in range(8)])
    began = time.monotonic()
    with working(app, concurrency=2):
        ends(app, task, 8)
    assert [len(one) for one in sizes] == [2] * 4
    assert time.monotonic() - began < 20


def test_an_exception_fails_the_jobs_that_are_not_settled(app: App) -> None:
    @app.batch_task(size=10, wait=0.1, max_attempts=1)
    def half(items: list[BatchItem[int]]) -> None:
        items[0].succeed("first")
        items[1].fail(Retry("later", delay=3600))
        raise ValueError("no more")

    app.client.migrate()
    app.client.enqueue_many([half.using(max_attempts=2).draft(n) for n in range(2)] + [half.draft(2)])
    with working(app, concurrency=10):
        until(lambda: app.client.count(state=["pending", "failed", "succeeded"]) == 3)
    by_value = {job.payload["item"]: job for job in app.client.jobs().jobs}
    assert (by_value[0].state, by_value[0].result) == ("succeeded", "first")
    assert (by_value[1].state, by_value[1].error) == ("pending", "later")
    assert by_value[2].state == "failed"
    assert (by_value[2].error or "").startswith("ValueError: no more")


def test_a_job_whose_worker_was_lost_runs_singly(app: App, sizes: list[list[int]]) -> None:
    task = app.tasks["collect"]
    app.client.enqueue_many([task.draft(n) for n in range(3)])
    assert len(harness_of(app).claim(3, lease=0.001)) == 3
    changes: list[Any] = []
    while len(changes) < 3:
        harness_of(app).record_pulse()
        changes += app._store().run(lease.reap, lambda: 0.5)
    harness_of(app).promote_all()
    with working(app, concurrency=20):
        ends(app, task, 3)
    assert sorted(sizes) == [[0], [1], [2]]


def test_one_job_of_a_batch_is_cancelled_and_one_times_out(app: App) -> None:
    go_on = threading.Event()

    @app.batch_task(size=3, wait=0.2, max_attempts=1)
    def slow(items: list[BatchItem[int]]) -> None:
        while not go_on.wait(0.01):
            for item in items:
                if item.attempt.aborted and not item.is_settled:
                    item.succeed()  # the abort decides

    app.client.migrate()
    timed = slow.using(timeout=0.3).draft(1)
    cancelled, plain = slow.draft(2), slow.draft(3)
    app.client.enqueue_many([timed, cancelled, plain])
    with working(app, concurrency=5, lease=2.0):
        until(lambda: app.client.count(state="running") == 3)
        app.client.cancel(cancelled.id)
        until(lambda: app.client.get(timed.id).state == "failed")  # type: ignore[union-attr]
        until(lambda: app.client.get(cancelled.id).state == "cancelled")  # type: ignore[union-attr]
        assert app.client.get(plain.id).state == "running"  # type: ignore[union-attr]
        go_on.set()
        until(lambda: app.client.get(plain.id).state == "succeeded")  # type: ignore[union-attr]


def test_an_async_batch_is_cancelled_when_all_its_jobs_are(app: App) -> None:
    ended: list[str] = []
    started = threading.Event()

    @app.batch_task(size=2, wait=5)
    async def sleeps(items: list[BatchItem[int]]) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    app.client.migrate()
    jobs = app.client.enqueue_many([sleeps.draft(n) for n in range(2)])
    with working(app, concurrency=5, lease=2.0):
        assert started.wait(20)
        for job in jobs:
            app.client.cancel(job)
        until(lambda: app.client.count(state="cancelled") == 2)
    assert ended == ["cancelled"]


def test_a_stop_does_not_wait_for_a_batch_to_fill(app: App) -> None:
    @app.batch_task(size=5, wait=3000)
    def patient(items: list[BatchItem[int]]) -> None: ...

    app.client.migrate()
    job = patient.enqueue(1)
    with working(app, concurrency=5) as worker:
        until(lambda: app.client.count(state="running") == 1)
        worker.stop()
        until(lambda: app.client.get(job).state == "succeeded")  # type: ignore[union-attr]


def double(value: int) -> int:
    return value * 2


def test_the_attempts_of_a_batch_have_steps_transactions_and_progress(app: App) -> None:
    @app.batch_task(size=2, wait=5)
    def steps(items: list[BatchItem[int]]) -> None:
        for item in items:
            item.attempt.progress(1, 2)
            item.attempt.step("double", double, item.value)
            with item.attempt.transaction() as transaction:
                transaction.enqueue(other.draft(item.value))

    @app.task(queue="elsewhere")
    def other(number: int) -> None: ...

    app.client.migrate()
    jobs = app.client.enqueue_many([steps.draft(n) for n in range(2)])
    with working(app, concurrency=5, queues=["default"]):
        ends(app, steps, 2)
    assert sorted(app.client.steps(job)[0].result for job in jobs) == [0, 2]
    assert app.client.count(task="other") == 2


def test_middlewares_wrap_each_job(app: App) -> None:
    seen: list[int] = []

    @app.middleware
    def around(attempt: Attempt) -> Iterator[None]:
        seen.append(attempt.job.payload["item"])
        yield

    @app.batch_task(size=2, wait=5)
    def pair(items: list[BatchItem[int]]) -> None: ...

    app.client.migrate()
    app.client.enqueue_many([pair.draft(n) for n in range(2)])
    with working(app, concurrency=5):
        ends(app, pair, 2)
    assert sorted(seen) == [0, 1]


def test_in_tests_batches_have_one_job() -> None:
    app = App("sqlite:///:memory:")
    seen: list[int] = []

    @app.batch_task(size=2, wait=5)
    def collect(items: list[BatchItem[int]]) -> None:
        seen.append(len(items))
        items[0].succeed(items[0].value * 2)

    with harness(app) as relet:
        assert relet.perform(collect, 4) == 8
        collect.enqueue(5)
        assert len(relet.drain().succeeded) == 1
    assert seen == [1, 1]


def test_a_job_is_settled_once() -> None:
    app = App("sqlite:///:memory:")

    @app.batch_task(size=2)
    def twice(items: list[BatchItem[int]]) -> None:
        items[0].succeed()
        items[0].succeed()

    with harness(app) as relet, pytest.raises(InvalidInput, match="is settled already"):
        relet.perform(twice, 4)


def no_items(items: list[int]) -> None: ...


def two(items: list[BatchItem[int]], more: int) -> None: ...


def test_bad_batch_tasks_are_refused() -> None:
    app = App("sqlite:///:memory:")
    for function in (no_items, two):
        with pytest.raises(InvalidInput, match="a batch task takes one argument"):
            app.batch_task(size=2)(function)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="size"):
        app.batch_task(size=1)(no_items)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no option process"):
        app.batch_task(size=5, process=True)


CRASH = """
import os, signal
from shop import app, note
from relet.types import BatchItem

@app.batch_task(size=5, wait=0.2, lease=1, max_attempts=5)
def crash(items: list[BatchItem[int]]) -> None:
    note("batch", len(items))
    if len(items) > 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_jobs_of_a_batch_that_killed_its_worker_run_singly(shop: Shop) -> None:
    (shop.place / "crashing.py").write_text(CRASH)
    shop.client.migrate()
    drafts: list[Draft[Any]] = [
        Draft(new_id(), "crash", f'{{"item": {n}}}', policy=Policy(5, lease=1.0)) for n in range(5)
    ]
    jobs = shop.client.enqueue_many(drafts)
    worker = ("worker", "crashing:app", "--concurrency", "10", "--poll-interval", "0.1")
    assert shop.run(*worker).code() == -9
    shop.run(*worker)
    until(lambda: {shop.job(job).state for job in jobs} == {"succeeded"})
    assert [note[1] for note in shop.notes("batch")] == ["5", "1", "1", "1", "1", "1"]
