"""Maintenance reaps jobs of dead workers, promotes jobs that wait and prunes old ones, even in a busy worker."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import pytest

from relet import App, Attempt, Backoff, State, events
from relet._store.flows import lease
from tests.harness import harness_of
from tests.worker.working import Crowd, over, state, take, until, until_state, working


def test_jobs_of_a_dead_worker_are_taken_over_while_a_backlog_keeps_us_busy(two_apps: App) -> None:
    app = two_apps

    @app.task
    async def backlog() -> None:
        await asyncio.sleep(0.01)

    @app.task
    async def precious(attempt: Attempt) -> list[int]:
        return [attempt.job.attempt, attempt.job.losses, attempt.version]

    harness_of(app).record_pulse()
    jobs = [precious.enqueue() for _ in range(3)]
    assert len(take(app, seconds=0.3, want=3)) == 3
    app.client.enqueue_many([backlog.draft() for _ in range(3000)])
    with working(app, concurrency=2):
        found = over(app, *jobs)
        assert app.client.count(state="queued", task="backlog") > 0, "the backlog is still there"
    assert [app.client.result(one) for one in found] == [[2, 1, 2]] * 3
    for job in jobs:
        assert [one.outcome for one in app.client.attempts(job)] == ["lost", "succeeded"]


def test_a_job_that_lost_its_attempts_with_its_workers_fails(two_apps: App) -> None:
    app = two_apps

    @app.task(on_expired="fail")
    def once() -> None: ...

    reaped: list[events.Reaped] = []
    app.on(events.Reaped)(reaped.append)
    harness_of(app).record_pulse()
    job = once.enqueue()
    take(app, seconds=0.1)
    with working(app):
        until_state(app, job, State.FAILED)
        found = app.client.get(job)
        assert found is not None
        assert found.error is not None
        assert found.error.startswith("worker lost")
        until(lambda: reaped)
    assert [(one.job_id, one.state) for one in reaped] == [(job.id, State.FAILED)]


def lose(app: App, times: int) -> None:
    """Have the one job there is lose so many workers."""
    for number in range(times):
        harness_of(app).promote_all()
        (claimed,) = take(app, seconds=0.05, alone=number >= 2)
        assert claimed.losses == number
        until(lambda: app._store().run(lease.reap, random.random))


def test_a_job_that_lost_two_workers_runs_alone(app: App) -> None:
    crowd, seen = Crowd(), []

    @app.task
    async def innocent() -> None:
        with crowd:
            await asyncio.sleep(0.02)

    @app.task(backoff=Backoff(base=0.001, max=0.001))
    async def suspect() -> None:
        with crowd:
            seen.append(crowd.inside)
            await asyncio.sleep(0.1)
            seen.append(crowd.inside)

    harness_of(app).record_pulse()
    job = suspect.enqueue()
    lose(app, 2)
    with working(app, concurrency=5):
        others = app.client.enqueue_many([innocent.draft() for _ in range(60)])
        (found,) = over(app, job)
        over(app, *others)
    assert (found.state, found.losses, found.attempt) == (State.SUCCEEDED, 2, 3)
    assert seen == [1, 1], "nothing ran beside it"
    assert crowd.most > 1, "the others are not held up by that any more"


def test_jobs_that_wait_for_their_time_are_promoted_behind_a_backlog(memory_app: App) -> None:
    @memory_app.task
    async def backlog() -> None:
        await asyncio.sleep(0.01)

    @memory_app.task(priority=5)
    async def due() -> str:
        return "on time"

    memory_app.client.enqueue_many([backlog.draft() for _ in range(2000)])
    with working(memory_app, concurrency=2):
        job = due.using(delay=0.3).enqueue()
        assert memory_app.client.result(job, timeout=20) == "on time"
        assert memory_app.client.count(state="queued", task="backlog") > 0


def test_pruning_removes_jobs_that_ended_long_enough_ago(app: App) -> None:
    @app.task
    def fine() -> None: ...

    @app.task(max_attempts=1)
    def bad() -> None:
        raise ValueError("no")

    with working(app, keep_finished=0.0, keep_failed=0.0) as worker:
        jobs = [fine.enqueue() for _ in range(3)] + [bad.enqueue()]
        over(app, *jobs)
        keep = fine.using(delay=600).enqueue()
        time.sleep(0.01)
        worker._sessions[0].maintenance.pruner.prune()
        assert [app.client.get(job) for job in jobs] == [None] * 4
        assert state(app, keep) is State.PENDING


def test_pruning_leaves_young_jobs(memory_app: App) -> None:
    @memory_app.task
    def fine() -> None: ...

    with working(memory_app) as worker:
        job = fine.enqueue()
        over(memory_app, job)
        worker._sessions[0].maintenance.pruner.prune()
        assert state(memory_app, job) is State.SUCCEEDED


@pytest.mark.long
def test_upkeep_that_fails_is_logged_and_the_rest_goes_on(memory_app: App, caplog: pytest.LogCaptureFixture) -> None:
    @memory_app.task
    async def work() -> None: ...

    called = threading.Event()
    with working(memory_app) as worker:
        upkeep = worker._sessions[0].maintenance
        until(lambda: min(upkeep._due.values()) > 0.0)

        def fail() -> float:
            called.set()
            raise RuntimeError("for once")

        upkeep._due[fail] = 0.0
        upkeep.loop.wake()
        assert called.wait(20)
        over(memory_app, work.using(delay=0.05).enqueue())
        until(lambda: "for once" in caplog.text)
