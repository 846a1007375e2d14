"""Requests for jobs that a worker runs (P1) reach them at once, and decide how they end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from relet import Aborted, App, Attempt, Job, State
from relet._tasks.task import Task
from tests.worker import child_tasks
from tests.worker.working import over, state, until, until_state, working

AT_ONCE = 8.0  # seconds, on a loaded machine; below the next beat of a lease of 30 s, which comes after 10
REASONS = {"cancel": "cancelled", "pause": "paused", "complete": "completed", "delete": "deleted"}


def control(app: App, verb: str, job: Job[Any]) -> None:
    verbs: dict[str, Callable[[Job[Any]], object]] = {
        "cancel": app.client.cancel,
        "pause": app.client.pause,
        "complete": lambda job: app.client.complete(job, "from outside"),
        "delete": app.client.delete,
    }
    verbs[verb](job)


class Notes:
    """Notes of handlers to the test: in memory, or, from other processes, in files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> str | None:
        path = self.folder / name
        return path.read_text() if path.exists() and path.read_text() else None


def waiting_task(app: App, kind: str) -> Task[[str], str]:
    """A task that waits until it is told to stop, and notes why; if there is a note already, it returns at once."""
    if kind == "process":
        app.task(name="wait_for_abort", process=True)(child_tasks.wait_for_abort.__wrapped__)
        return app.lookup("wait_for_abort")

    if kind == "async":

        @app.task
        async def wait_on_loop(attempt: Attempt, place: str) -> str:
            if Path(f"{place}.why").exists():
                return "resumed"
            Path(place).write_text("started")
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                Path(f"{place}.why").write_text(str(attempt.aborted))
                raise
            return "not aborted"

        return wait_on_loop

    @app.task
    def wait_in_thread(attempt: Attempt, place: str) -> str:
        return child_tasks.wait_for_abort.__wrapped__(attempt, place)  # type: ignore[no-any-return]

    return wait_in_thread


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
@pytest.mark.partitioned  # in the variant rows workers poll
def test_a_request_reaches_a_running_handler_at_once_and_decides_its_end(app: App, kind: str, tmp_path: Path) -> None:
    task, notes = waiting_task(app, kind), Notes(tmp_path)
    with working(app, lease=30.0, poll_interval=1.0):
        jobs = {verb: task.enqueue(str(tmp_path / verb)) for verb in REASONS}
        until(lambda: all(notes.read(verb) for verb in REASONS), "all of them run")
        asked = time.monotonic()
        for verb, job in jobs.items():
            control(app, verb, job)
        for verb, reason in REASONS.items():
            until(partial(notes.read, f"{verb}.why"), f"{verb} does not reach its handler")
            assert notes.read(f"{verb}.why") == reason
        assert time.monotonic() - asked < AT_ONCE, "by notification, and not by the next beat"
        until_state(app, jobs["cancel"], State.CANCELLED)
        until_state(app, jobs["pause"], State.PAUSED)
        until_state(app, jobs["complete"], State.SUCCEEDED)
        until_state(app, jobs["delete"], None)
        assert app.client.result(jobs["complete"], timeout=20) == "from outside"
        app.client.resume(jobs["pause"])
        assert app.client.result(jobs["pause"], timeout=20) == "resumed"


def test_a_handler_that_returns_although_it_was_cancelled_ends_cancelled(app: App) -> None:
    running = threading.Event()

    @app.task
    async def polite(attempt: Attempt) -> str:
        running.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "what I had so far"
        return "all"

    with working(app, lease=30.0):
        job = polite.enqueue()
        assert running.wait(20)
        app.client.cancel(job)
        (found,) = over(app, job)
    assert (found.state, found.result_json) == (State.CANCELLED, None)


@pytest.mark.parametrize(("verb", "end"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_a_thread_that_does_not_check_ends_as_asked_when_it_ends(memory_app: App, verb: str, end: State) -> None:
    running, go_on = threading.Event(), threading.Event()

    @memory_app.task
    def deaf() -> str:
        running.set()
        go_on.wait(20)
        return "done all the same"

    with working(memory_app):
        job = deaf.enqueue()
        assert running.wait(20)
        control(memory_app, verb, job)
        time.sleep(0.2)
        assert state(memory_app, job) is State.RUNNING, "it has its lease for as long as it runs"
        go_on.set()
        until_state(memory_app, job, end)
        assert memory_app.client.get(job).result_json is None  # type: ignore[union-attr]


@pytest.mark.parametrize("error", [ValueError, Aborted])
def test_the_exception_of_an_aborted_handler_is_ignored(memory_app: App, error: Callable[[str], BaseException]) -> None:
    running = threading.Event()

    @memory_app.task
    def loud(attempt: Attempt) -> None:
        running.set()
        until(lambda: attempt.aborted)
        raise error("deleted")

    with working(memory_app):
        job = loud.enqueue()
        assert running.wait(20)
        memory_app.client.pause(job)
        until_state(memory_app, job, State.PAUSED)
        assert memory_app.client.get(job).attempt == 0, "the attempt is given back"  # type: ignore[union-attr]


def test_a_request_comes_with_the_beat_if_no_notification_does(memory_app: App) -> None:
    seen = []

    @memory_app.task
    async def wait(attempt: Attempt) -> None:
        seen.append("started")
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(str(attempt.aborted))

    with working(memory_app, lease=0.6) as worker:
        job = wait.enqueue()
        until(lambda: seen)
        worker._sessions[0].heartbeat.check_requests = lambda: None  # type: ignore[method-assign]
        memory_app.client.cancel(job)
        until_state(memory_app, job, State.CANCELLED)
    assert seen == ["started", "cancelled"]


def test_requests_reach_jobs_that_were_taken_in_advance(app: App) -> None:
    running, go_on, ran = threading.Event(), threading.Event(), []

    @app.task
    def note(number: int) -> str:
        ran.append(number)
        return "ran"

    @app.task
    def block() -> None:
        running.set()
        go_on.wait(20)

    quick = [note.draft(n) for n in range(5)]
    waiting = {verb: note.draft(100 + n) for n, verb in enumerate(REASONS)}
    app.client.enqueue_many([*quick, block.draft(), *waiting.values(), note.draft(999)])
    with working(app, concurrency=1, lease=30.0) as worker:
        assert running.wait(20)
        for verb, draft in waiting.items():
            found = app.client.get(draft.id)
            assert found is not None
            control(app, verb, found)
        told = {draft.id for draft in waiting.values()}
        session = worker._sessions[0]
        until(lambda: not [run for run in session.executions() if run.job.id in told and run.attempt.aborted is None])
        go_on.set()
        until(lambda: 999 in ran)
        until_state(app, waiting["cancel"].id, State.CANCELLED)
        until_state(app, waiting["pause"].id, State.PAUSED)
        assert state(app, waiting["complete"].id) is State.SUCCEEDED
        assert state(app, waiting["delete"].id) is None
        assert sorted(ran) == [0, 1, 2, 3, 4, 999], "none of them ever ran"
        paused = app.client.get(waiting["pause"].id)
        assert paused is not None
        assert paused.attempt == 0, "nor did it cost an attempt"
        app.client.resume(paused)
        until(lambda: 101 in ran)


@pytest.mark.long
def test_cancelling_a_job_claimed_in_advance_does_not_wait_for_a_slot(two_apps: App) -> None:
    app = two_apps
    running, go_on = threading.Event(), threading.Event()

    @app.task
    def quick() -> None: ...

    @app.task
    def block() -> None:
        running.set()
        go_on.wait(30)

    last = quick.draft()
    app.client.enqueue_many([*(quick.draft() for _ in range(5)), block.draft(), last])
    with working(app, concurrency=1, lease=30.0):
        try:
            assert running.wait(20)
            app.client.cancel(last.id)
            until(lambda: state(app, last.id) is State.CANCELLED, "it waits for the job before it", 6.0)
        finally:
            go_on.set()
