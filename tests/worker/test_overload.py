"""A store or a machine that is slow for a while: the worker does not make it worse, and overlooks nothing."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from relet import App, State
from relet._core.job import Released
from relet._store.flows import settle
from tests.databases import Database
from tests.worker.proxy import CLAIM, proxy_to
from tests.worker.working import blockade, connect, over, prefix, state, take, until, working, writes_held_up

SLOW = 1.3  # seconds that a claim takes: longer than jobs claimed in advance may wait


def outcomes(database: Database, app: App) -> list[str]:
    """How attempts have ended, those that succeeded apart."""
    with closing(connect(database, app)) as connection:
        return [row[0] for row in connection.execute(f"select outcome from {prefix(database, app)}attempts").fetchall()]


@pytest.mark.long
def test_a_claim_that_takes_long_gives_nothing_back(two_databases: Database, two_apps: App) -> None:
    with ExitStack() as stack:
        proxy = stack.enter_context(proxy_to(two_databases.url)) if two_databases.is_postgres else None
        app = replace(two_databases, url=proxy.url).app() if proxy else two_databases.app()
        stack.callback(app.close)
        ran: list[int] = []

        @app.task
        async def note(number: int) -> None:
            ran.append(number)

        worker = stack.enter_context(working(app, concurrency=2, lease=30.0))
        (producer,) = worker._sessions[0].producers
        over(two_apps, *two_apps.client.enqueue_many([note.draft(n) for n in range(100)]))  # it learns: they are quick
        two_apps.client.pause_queue("default")
        two_apps.client.enqueue_many([note.draft(n) for n in range(100, 400)])
        if proxy:
            hold = proxy.hold(CLAIM)
            two_apps.client.resume_queue("default")
            time.sleep(SLOW)
            hold.over.set()
        else:
            with closing(connect(two_databases, app)) as other:
                other.execute("begin immediate")
                other.execute(f"update {prefix(two_databases, app)}queues set paused = 0")
                until(lambda: producer.is_claiming)
                time.sleep(SLOW)
                other.commit()
        until(lambda: len(ran) == 400)
        assert sorted(ran) == list(range(400))
    assert outcomes(two_databases, two_apps) == []


@pytest.mark.long
def test_jobs_that_would_wait_behind_a_long_job_are_released_and_stay_queued(two_apps: App) -> None:
    app = two_apps
    note, block, ran, running, go_on = blockade(app)
    waiting = [note.draft(n) for n in range(5, 10)]
    app.client.enqueue_many([*(note.draft(n) for n in range(5)), block.draft(), *waiting])
    with working(app, concurrency=1, lease=30.0) as worker:
        (producer,) = worker._sessions[0].producers
        assert running.wait(20)
        until(lambda: all(state(app, one.id) is State.QUEUED for one in waiting))
        claims = producer.last_empty_claim
        versions = [app.client.get(one.id).version for one in waiting]  # type: ignore[union-attr]
        time.sleep(1.2)
        assert [app.client.get(one.id).version for one in waiting] == versions, "not taken in advance again"  # type: ignore[union-attr]
        assert producer.last_empty_claim == claims, "there is no room to claim for"
        go_on.set()
        until(lambda: len(ran) == 10)
    assert ran == list(range(10))


@pytest.mark.long
def test_a_slow_job_in_one_slot_leaves_the_others_the_jobs_claimed_in_advance(
    two_databases: Database, two_apps: App
) -> None:
    app = two_apps
    note, block, ran, running, go_on = blockade(app)
    with working(app, concurrency=2, lease=30.0) as worker:
        (producer,) = worker._sessions[0].producers
        block.enqueue()
        assert running.wait(20)
        for begin in range(0, 500, 100):
            app.client.enqueue_many([note.draft(n) for n in range(begin, begin + 100)])
            until(lambda: len(ran) == begin + 100)  # noqa: B023
        until(lambda: producer.slots._stuck == 1)
        assert producer.slots._ahead() > 0, "the other slot is quick"
        go_on.set()
    assert outcomes(two_databases, app) == []


@pytest.mark.long
def test_a_short_outage_of_the_store_does_not_hide_released_jobs(pg_database: Database, pg_app: App) -> None:
    app, ran = pg_app, []

    @app.task
    def note(number: int) -> None:
        ran.append(number)

    first = note.enqueue(0)
    (taken,) = take(app, seconds=60.0)
    with working(app, concurrency=2, lease=30.0) as worker:
        (producer,) = worker._sessions[0].producers
        over(app, *[note.enqueue(n) for n in range(1, 6)])

        def hiccup(seconds: float) -> None:
            """One that falls into a look through everything. Any other claim that waits for the lock is let go."""
            for _ in range(50):
                with writes_held_up(pg_database, app):
                    until(lambda: producer.is_claiming)
                    time.sleep(0.05)  # it has decided by now where to look
                    if producer.is_claiming and producer._claimer.cursor._queues["default"].is_full_scan:
                        time.sleep(seconds)
                        return
            pytest.fail("no claim looked through everything")

        until(lambda: hiccup(0.1) or producer._claimer.cursor._queues["default"].slow)  # type: ignore[func-returns-value]
        hiccup(3.0)
        begin = time.monotonic()
        app._store().run(settle.settle, [(taken.lease, Released("for another worker"))], random.random)
        until(lambda: 0 in ran)
        assert time.monotonic() - begin < 6.0, "a second, and what a loaded machine adds"
    assert state(app, first) is State.SUCCEEDED
