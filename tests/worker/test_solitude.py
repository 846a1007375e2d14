"""A job that must run alone: it gets its turn, and holds up as little as can be."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from relet import App, Job, State
from relet._store.flows.promote import promote
from relet._tasks.task import Task
from relet._worker import Worker
from relet._worker.quarantine import EMPTY_WITHIN, LONGEST_PAUSE, Quarantine
from tests.databases import Database
from tests.worker.working import Crowd, over, run_sql, state, until, working

SLACK = 1.5  # seconds that a loaded machine may add


def quarantine_of(worker: Worker) -> Quarantine:
    return worker._sessions[0].producers[0]._quarantine


def quarantined(database: Database, app: App, task: Task[..., Any]) -> Job[Any]:
    """A job that has lost two workers."""
    job = task.using(delay=60).enqueue()
    run_sql(database, app, f"update {{t}}jobs set losses = 2, suspect = 2 where id = '{job.id}'")
    app.client.run_now(job)
    return job


def window(quarantine: Quarantine) -> float:
    """How long free slots wait, the next time that they do."""
    until(lambda: quarantine.is_closed)
    begin = time.monotonic()
    until(lambda: not quarantine.is_closed)
    return time.monotonic() - begin


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def test_free_slots_never_wait_for_more_than_two_seconds(
    two_databases: Database, two_apps: App, stop: threading.Event
) -> None:
    app, crowd, beside = two_apps, Crowd(), []

    @app.task
    def long() -> None:
        with crowd:
            stop.wait(60)

    @app.task
    async def quick() -> None: ...

    @app.task
    async def suspect() -> None:
        with crowd:
            beside.append(crowd.inside)

    with working(app, concurrency=3, lease=30.0) as worker:
        quarantine = quarantine_of(worker)
        long.enqueue()
        until(lambda: crowd.inside == 1)
        job = quarantined(two_databases, app, suspect)
        assert window(quarantine) < EMPTY_WITHIN + SLACK
        over(app, quick.enqueue())
        quarantine._pause, quarantine._not_before = LONGEST_PAUSE, 0.0  # it has tried in vain for a long time
        assert window(quarantine) < EMPTY_WITHIN + SLACK
        over(app, *[quick.enqueue() for _ in range(5)])
        assert state(app, job) is State.QUEUED
        assert quarantine._not_before > time.monotonic() + LONGEST_PAUSE / 2, "and not soon again"
        stop.set()
        over(app, job)
    assert beside == [1], "it ran alone, as soon as nothing ran beside it"


def test_never_do_all_workers_wait_at_once(two_databases: Database, two_apps: App, stop: threading.Event) -> None:
    apps = [two_apps, two_databases.app()]
    crowd, both = Crowd(), []

    def long() -> None:
        with crowd:
            stop.wait(60)

    def suspect() -> None: ...

    for app in apps:
        app.task(name="long")(long)
        app.task(name="suspect")(suspect)
    client, draft = two_apps.client, two_apps.lookup("long")
    with (
        working(apps[0], concurrency=3, lease=30.0, queues=["default", "one"]) as one,
        working(apps[1], concurrency=3, lease=30.0, queues=["default", "two"]) as two,
    ):
        client.enqueue_many([draft.using(queue=queue).draft() for queue in ("one", "two")])
        until(lambda: crowd.inside == 2)
        job = quarantined(two_databases, two_apps, two_apps.lookup("suspect"))
        waits = [quarantine_of(one), quarantine_of(two)]
        seen: set[int] = set()

        def both_had_a_window() -> bool:
            wanted = [quarantine.is_closed for quarantine in waits]
            seen.update(place for place, one in enumerate(wanted) if one)
            if all(wanted):
                both.append(time.monotonic())
            return len(seen) == 2

        until(both_had_a_window)
        assert both == []
        stop.set()
        over(two_apps, job)
    apps[1].close()


def test_a_worker_that_starts_looks_for_it_before_all_else(two_databases: Database, two_apps: App) -> None:
    app, crowd, ran = two_apps, Crowd(), []

    @app.task
    async def innocent() -> None:
        with crowd:
            ran.append("innocent")
            await asyncio.sleep(0.02)

    @app.task
    async def suspect() -> None:
        with crowd:
            ran.append("suspect")
            await asyncio.sleep(0.1)
            assert crowd.inside == 1

    others = app.client.enqueue_many([innocent.draft() for _ in range(10)])
    job = quarantined(two_databases, app, suspect)
    app._store().run(promote)
    with working(app, concurrency=3):
        (found,) = over(app, job)
        over(app, *others)
    assert found.state is State.SUCCEEDED
    assert ran[0] == "suspect"


def test_between_two_jobs_of_a_single_slot_it_need_not_wait(two_databases: Database, two_apps: App) -> None:
    app = two_apps

    @app.task
    async def backlog() -> None:
        await asyncio.sleep(0.05)

    @app.task
    async def suspect() -> None: ...

    with working(app, concurrency=1) as worker:
        app.client.enqueue_many([backlog.draft() for _ in range(400)])
        until(lambda: app.client.count(state="succeeded", task="backlog") > 0)
        quarantine_of(worker)._not_before = float("inf")  # the running jobs take too long to wait for
        job = quarantined(two_databases, app, suspect)
        over(app, job)
        assert app.client.count(state="queued", task="backlog") > 0, "there was always something else to do"
        app.client.pause_queue("default")
