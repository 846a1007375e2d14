"""In doubt (O6): the deadline has passed without a renewal, and the worker cannot tell whether it has the lease."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import Any

from relet import Aborted, App, Attempt, Job, State
from relet._store.flows import lease
from tests.databases import Database
from tests.worker.working import never_reap, over, run_sql, until, working, writes_held_up


def have_it_reaped(database: Database, app: App, job: Job[Any]) -> None:
    """As if its owner had been held up for long: the lease runs out, and a reaper is quicker than the next renewal."""
    run_out = "update {t}jobs set expires_at = created_at where state = 'running' and version = 1"
    run_sql(database, app, "update {t}pulse set grace_until = touched_at")

    def lost() -> bool:
        run_sql(database, app, run_out)
        app._store().run(lease.reap, random.random)
        found = app.client.get(job)
        return found is not None and found.losses == 1

    until(lost)


def test_an_attempt_whose_renewals_do_not_get_through_is_in_doubt_and_still_ours(
    two_databases: Database, two_apps: App
) -> None:
    app, running, seen, go_on = two_apps, threading.Event(), [], threading.Event()

    @app.task
    def work(attempt: Attempt) -> str:
        running.set()
        try:
            while True:
                attempt.check()
                time.sleep(0.005)
        except Aborted as aborted:
            seen.append((aborted.reason, attempt.aborted, time.monotonic() >= attempt.deadline))
        go_on.wait(20)
        attempt.check()  # Reached the database again: no doubt is left
        return "ours all the time"

    never_reap(two_databases, app)
    with working(app, lease=0.6):
        job = work.enqueue()
        assert running.wait(20)
        with writes_held_up(two_databases, app):
            until(lambda: seen)
            time.sleep(0.3)
        before = app.client.get(job)
        until(lambda: app.client.get(job).expires_at > before.expires_at)  # type: ignore[union-attr, operator]
        time.sleep(0.3)
        go_on.set()
        (found,) = over(app, job)
    assert seen == [("in_doubt", None, True)], "the attempt was not aborted: its writes are fenced"
    assert (found.state, found.result_json, found.version, found.losses) == (
        State.SUCCEEDED,
        '"ours all the time"',
        1,
        0,
    )


def test_an_owner_past_expiry_may_settle_a_job_that_was_not_reaped(two_databases: Database, two_apps: App) -> None:
    app, running, go_on = two_apps, threading.Event(), threading.Event()

    @app.task
    async def work() -> str:
        running.set()
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return "late, and ours"

    never_reap(two_databases, app)
    with working(app, lease=0.4):
        job = work.enqueue()
        assert running.wait(20)
        with writes_held_up(two_databases, app):
            go_on.set()  # it has ended, and cannot be settled for longer than its lease
            time.sleep(0.8)
        assert app.client.result(job, timeout=20) == "late, and ours"
        assert app.client.get(job).version == 1  # type: ignore[union-attr]


def test_a_task_may_want_to_be_aborted_in_doubt(two_databases: Database, two_apps: App) -> None:
    app, running, seen = two_apps, threading.Event(), []

    @app.task(on_doubt="abort")
    async def work(attempt: Attempt) -> str:
        if attempt.version > 1:
            return "second time"
        running.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(attempt.aborted)
            raise
        return "not aborted"

    never_reap(two_databases, app)
    with working(app, lease=0.6):
        job = work.enqueue()
        assert running.wait(20)
        time.sleep(0.9)  # renewals get through: no doubt, for longer than the lease
        assert not seen
        with writes_held_up(two_databases, app):
            until(lambda: seen)
        (found,) = over(app, job)
    assert seen == ["in_doubt"]
    assert (found.result_json, found.version, found.attempt) == ('"second time"', 2, 1), "it cost no attempt"


def test_a_lease_that_another_worker_reaped_is_lost_and_its_handler_told(
    two_databases: Database, two_apps: App
) -> None:
    app, running, seen = two_apps, threading.Event(), []

    @app.task
    async def work(attempt: Attempt) -> str:
        if attempt.version > 1:
            return "second owner"
        running.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(attempt.aborted)
        return "zombie"

    never_reap(two_databases, app)
    with working(app, lease=0.9):
        job = work.enqueue()
        assert running.wait(20)
        have_it_reaped(two_databases, app, job)
        (found,) = over(app, job)
        until(lambda: seen)
    assert (found.result_json, found.version, found.losses) == ('"second owner"', 2, 1)
    assert seen == ["lease_lost"]
