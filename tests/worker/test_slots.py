"""How many run at once, in which order, and when: slots, queues, limits, targets, time."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from relet import App, Attempt, InvalidInput, State
from relet._worker import Worker
from tests.databases import Database
from tests.harness import harness_of
from tests.worker.working import Crowd, blockade, over, state, until, working, writes_held_up


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_never_more_run_at_once_than_there_are_slots(app: App, kind: str) -> None:
    crowd = Crowd()

    @app.task
    def in_thread() -> None:
        with crowd:
            time.sleep(0.01)

    @app.task
    async def on_loop() -> None:
        with crowd:
            await asyncio.sleep(0.01)

    task = on_loop if kind == "async" else in_thread
    with working(app, concurrency=3):
        over(app, *app.client.enqueue_many([task.draft() for _ in range(30)]))
    assert crowd.most == 3, "all of them are used, and no more"


def test_queues_can_have_slots_of_their_own(app: App) -> None:
    crowds = {"billing": Crowd(), "mail": Crowd(), "post": Crowd()}

    @app.task
    async def work(attempt: Attempt) -> None:
        with crowds[attempt.job.queue]:
            await asyncio.sleep(0.02)

    other = work.using(queue="elsewhere").enqueue()
    with working(app, queues={"billing": 2, "mail": None, "post": 1}, concurrency=3):
        over(app, *app.client.enqueue_many([work.using(queue=queue).draft() for queue in crowds for _ in range(10)]))
        assert state(app, other) is State.QUEUED, "that queue is not ours"
    assert {queue: crowd.most for queue, crowd in crowds.items()} == {"billing": 2, "mail": 3, "post": 1}


@pytest.mark.parametrize("queues", ["billing", [], {}, {"billing": 0}, {"billing": "2"}, ["no blanks"], {"a": True}, 7])
def test_queues_that_make_no_sense_are_refused(memory_app: App, queues: Any) -> None:
    @memory_app.task
    def work() -> None: ...

    with pytest.raises(InvalidInput):
        asyncio.run(Worker(memory_app, queues=queues).run())


def test_every_queue_is_served_by_default_even_one_that_appears_later(app: App) -> None:
    @app.task(queue="known")
    def work(attempt: Attempt) -> str:
        return attempt.job.queue

    with working(app):
        first = work.enqueue()
        assert app.client.result(first, timeout=20) == "known"
        later = work.using(queue="brand/new").enqueue()
        assert app.client.result(later, timeout=20) == "brand/new"


def test_within_a_queue_priority_goes_first_then_the_order_of_enqueue(app: App) -> None:
    ran: list[int] = []

    @app.task
    async def note(number: int) -> None:
        ran.append(number)

    drafts = [note.using(priority=priority).draft(n) for n, priority in enumerate([0, -5, 7, 0, 7, -5, 100, -100] * 5)]
    jobs = app.client.enqueue_many(drafts)
    with working(app, concurrency=1):
        over(app, *jobs)
    wanted = sorted(range(len(drafts)), key=lambda n: (-drafts[n].priority, n))
    assert ran == wanted


@pytest.mark.parametrize("scope", ["queue", "all"])
def test_a_limit_holds_across_workers(app: App, scope: str) -> None:
    crowd = Crowd()

    @app.task(queue="narrow")
    async def work() -> None:
        with crowd:
            await asyncio.sleep(0.02)

    app.client.limit_queue("narrow" if scope == "queue" else None, max_running=2)
    with working(app, concurrency=5), working(app, concurrency=5):
        over(app, *app.client.enqueue_many([work.draft() for _ in range(16)]))
    assert crowd.most == 2


def test_jobs_claimed_in_advance_are_released_when_their_queue_is_paused(app: App) -> None:
    note, block, ran, running, go_on = blockade(app)
    quick, waiting = [note.draft(n) for n in range(5)], [note.draft(n) for n in range(10, 15)]
    app.client.enqueue_many([*quick, block.draft(), *waiting])
    with working(app, concurrency=1, lease=30.0):
        assert running.wait(20)
        app.client.pause_queue("default")
        until(lambda: all(state(app, one.id) is State.QUEUED for one in waiting))
        assert {app.client.get(one.id).attempt for one in waiting} == {0}  # type: ignore[union-attr]
        in_line = harness_of(app).query("select id from {s}jobs where state = 'queued' order by rank, seq")
        assert [str(id) for (id,) in in_line] == [one.id for one in waiting], "in their old order"
        go_on.set()
        time.sleep(0.3)
        assert ran == [0, 1, 2, 3, 4], "a paused queue is not claimed from"
        app.client.resume_queue("default")
        until(lambda: len(ran) == 10)  # not for each: a claim passes over jobs that are marked at that moment
        assert sorted(ran) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]


def test_jobs_of_one_target_run_one_at_a_time_and_in_order_across_workers(app: App) -> None:
    crowds = {"a": Crowd(), "b": Crowd()}
    ran: dict[str, list[int]] = {"a": [], "b": []}

    @app.task
    async def work(attempt: Attempt, target: str, number: int) -> None:
        with crowds[target]:
            ran[target].append(number)
            await asyncio.sleep(0.005)

    drafts = [
        work.using(target=target, queue=f"q{n % 3}", priority=n % 5).draft(target, n)
        for n in range(8)
        for target in crowds
    ]
    with working(app), working(app):
        over(app, *app.client.enqueue_many(drafts))
    assert [crowd.most for crowd in crowds.values()] == [1, 1]
    assert ran == {"a": list(range(8)), "b": list(range(8))}


def test_a_slot_rests_between_two_jobs_if_told_to(app: App) -> None:
    times = []

    @app.task
    async def work() -> None:
        times.append(time.monotonic())

    with working(app, concurrency=1, rest=0.1):
        over(app, *app.client.enqueue_many([work.draft() for _ in range(4)]))
    assert all(later - sooner >= 0.099 for sooner, later in pairwise(times))


@pytest.mark.long
def test_jobs_that_wait_behind_slow_jobs_are_released_unrun(two_apps: App) -> None:
    app, running, go_on = two_apps, threading.Event(), threading.Event()

    @app.task
    def quick() -> None: ...

    @app.task
    def slow() -> None:
        running.set()
        go_on.wait(30)

    waiting = [quick.draft() for _ in range(20)]
    app.client.enqueue_many([*(quick.draft() for _ in range(10)), slow.draft(), *waiting])
    with working(app, concurrency=1, lease=30.0):
        try:
            assert running.wait(20)

            def given_back() -> bool:
                found = [app.client.get(one.id) for one in waiting]
                return {(one.state, one.attempt) for one in found if one} == {(State.QUEUED, 0)}

            until(given_back, "what could run elsewhere is kept waiting", 6.0)
            assert app.client.count(state="running") == 1
        finally:
            go_on.set()
        assert {one.attempt for one in over(app, *[one.id for one in waiting])} == {1}


@pytest.mark.partitioned  # in the variant rows workers poll
def test_an_idle_worker_runs_a_job_on_time_and_never_early(app: App) -> None:
    @app.task
    async def now() -> float:
        return time.time()

    with working(app, poll_interval=1.0, lease=30.0):
        app.client.result(now.enqueue(), timeout=20)
        late = []
        for delay in (0.15, 0.31, 0.47):
            run_at = datetime.now(UTC) + timedelta(seconds=delay)
            job = now.using(run_at=run_at).enqueue()
            late.append(app.client.result(job, timeout=20) - run_at.timestamp())
    assert min(late) >= 0, "never early"
    assert sorted(late)[1] < 0.1 + 0.1, f"late by at most 100 ms, give or take a busy machine: {late}"


def test_a_job_runs_after_those_that_it_waits_for(app: App) -> None:
    ran = []

    @app.task
    async def note(word: str) -> None:
        ran.append(word)

    first, second = note.using(delay=0.2).draft("first"), note.using(delay=0.1).draft("second")
    last = note.using(depends_on=[first, second]).draft("last")
    with working(app):
        jobs = app.client.enqueue_many([first, second, last])
        over(app, *jobs)
    assert ran == ["second", "first", "last"]


def test_a_lone_job_is_settled_at_once(memory_app: App) -> None:
    @memory_app.task
    async def work() -> None: ...

    with working(memory_app, lease=30.0, poll_interval=1.0):
        over(memory_app, work.enqueue())
        begin = time.monotonic()
        for _ in range(20):
            over(memory_app, work.enqueue())
    assert time.monotonic() - begin < 2.0, "about a millisecond each, and not a wait for company"


@pytest.mark.long
def test_released_jobs_are_found_soon_although_a_claim_was_delayed_before(
    two_databases: Database, two_apps: App
) -> None:
    """A claim that waits for a lock, or for a store that is away, says nothing of how long it takes to look."""
    app, running = two_apps, threading.Event()

    @app.task
    async def work(attempt: Attempt) -> str:
        if attempt.version == 1:
            running.set()
            await asyncio.sleep(60)
        return "second time"

    @app.task(queue="default")
    async def later() -> None: ...

    with working(app, lease=30.0, concurrency=1) as first:
        job = work.enqueue()
        assert running.wait(20)
        with working(app, lease=30.0):
            over(app, later.enqueue())  # the second worker has seen the jobs behind this one
            time.sleep(1.2)
            with writes_held_up(two_databases, app):
                time.sleep(1.2)
            first.stop()
            first.stop()  # gives the job up
            begin = time.monotonic()
            assert app.client.result(job, timeout=20) == "second time"
            assert time.monotonic() - begin < 5.0
