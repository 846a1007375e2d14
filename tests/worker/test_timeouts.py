"""The execution timeout (D6): the attempt is aborted and settled, wherever its handler runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from relet import Aborted, App, Attempt, Backoff, State, events
from tests.worker.working import error_of, over, until, until_state, working


@contextmanager
def set_at_the_end() -> Iterator[threading.Event]:
    """So that a handler which waits for it does not outlive a test that fails."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def test_a_coroutine_past_its_timeout_is_cancelled(app: App) -> None:
    seen = []

    @app.task(timeout=0.1, max_attempts=2, backoff=Backoff(base=0.001, max=0.001))
    async def sleep(attempt: Attempt) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(attempt.aborted)
            raise

    with working(app):
        job = sleep.enqueue()
        assert error_of(app, job) == "timed out after 0.1 s"
    assert seen == ["timeout", "timeout"], "it counts as an attempt that failed"


def test_a_thread_past_its_timeout_learns_of_it_when_it_checks(app: App) -> None:
    seen = []

    @app.task(timeout=0.1, max_attempts=1)
    def loop(attempt: Attempt) -> None:
        try:
            while True:
                attempt.check()
                time.sleep(0.005)
        except Aborted as aborted:
            seen.append(aborted.reason)
            raise

    with working(app):
        assert error_of(app, loop.enqueue()) == "timed out after 0.1 s"
    assert seen == ["timeout"]


def test_the_timeout_of_one_job_can_be_its_own(memory_app: App) -> None:
    @memory_app.task(timeout=0.05)
    async def nap(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    with working(memory_app):
        patient = nap.using(timeout=None).enqueue(0.3)
        assert error_of(memory_app, nap.using(max_attempts=1).enqueue(30)) == "timed out after 0.05 s"
        assert memory_app.client.result(patient, timeout=20) == "slept"


def test_a_thread_that_does_not_end_keeps_its_slot_and_its_result_is_dropped(two_apps: App) -> None:
    app = two_apps
    with set_at_the_end() as go_on:
        ended = []

        @app.task(timeout=0.1, max_attempts=1)
        def deaf() -> str:
            go_on.wait(60)
            ended.append(time.monotonic())
            return "too late"

        @app.task
        def following() -> float:
            return time.monotonic()

        with working(app, concurrency=1):
            job = deaf.enqueue()
            until_state(app, job, State.FAILED)  # settled without it
            assert not ended
            after = following.enqueue()
            time.sleep(0.3)
            found = app.client.get(after)
            assert found is not None
            assert found.state is not State.SUCCEEDED, "the thread that cannot be killed still has the slot"
            go_on.set()
            assert app.client.result(after, timeout=20) >= ended[0]
            (found,) = over(app, job)
            assert (found.state, found.error, found.result_json) == (State.FAILED, "timed out after 0.1 s", None)


def test_a_coroutine_that_swallows_its_cancellation_is_settled_without_it(memory_app: App) -> None:
    with set_at_the_end() as go_on:

        @memory_app.task(timeout=0.1, max_attempts=1)
        async def stubborn() -> str:
            while not go_on.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue
            return "too late"

        with working(memory_app):
            job = stubborn.enqueue()
            assert error_of(memory_app, job) == "timed out after 0.1 s"
            assert not go_on.is_set()
            go_on.set()
        (found,) = over(memory_app, job)
        assert (found.state, found.result_json) == (State.FAILED, None)


def test_a_handler_that_returns_after_its_timeout_has_failed(memory_app: App) -> None:
    @memory_app.task(timeout=0.05, max_attempts=1)
    def slow() -> str:
        time.sleep(0.2)
        return "too late"

    with working(memory_app):
        assert error_of(memory_app, slow.enqueue()) == "timed out after 0.05 s"


def test_a_handler_past_its_timeout_is_no_longer_renewed(memory_app: App) -> None:
    renewed: list[str | None] = []
    memory_app.on(events.Renewed)(lambda event: renewed.append(event.task))
    with set_at_the_end() as go_on:

        @memory_app.task(timeout=0.05, max_attempts=1)
        def deaf() -> None:
            go_on.wait(60)

        @memory_app.task
        async def patient() -> None:
            while not go_on.is_set():
                await asyncio.sleep(0.01)

        with working(memory_app, lease=2.4):  # a beat every 0.8 s, before which the time is up
            patient.enqueue()
            job = deaf.enqueue()
            until(lambda: len(renewed) >= 1)
            assert error_of(memory_app, job) == "timed out after 0.05 s"
            go_on.set()
    assert set(renewed) == {"patient"}


def test_a_handler_that_ends_in_time_hears_nothing_of_its_timeout(memory_app: App) -> None:
    @memory_app.task(timeout=0.3)
    async def quick(attempt: Attempt) -> str:
        return "in time"

    @memory_app.task
    async def look(attempt: Attempt) -> str | None:
        await asyncio.sleep(0.5)  # until the timers of the others would have rung
        return attempt.aborted

    with working(memory_app, concurrency=2):
        jobs = memory_app.client.enqueue_many([look.draft(), *(quick.draft() for _ in range(50))])
        assert [memory_app.client.result(job, timeout=20) for job in jobs] == [None, *["in time"] * 50]
