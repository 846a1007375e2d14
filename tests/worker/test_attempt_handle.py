"""The handle that a handler has on its attempt: its job, its deadline, how far it is, and a separate context."""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from contextlib import closing
from typing import Any

import psycopg
import pytest

from relet import App, Attempt, State
from relet._core.job import Progress
from relet._worker.maintenance import PROGRESS_EVERY
from tests.databases import Database
from tests.worker.test_attempts import both_kinds, define
from tests.worker.working import error_of, over, until, until_state, working


@both_kinds
def test_an_attempt_knows_its_job_and_how_long_the_lease_is_certainly_ours(memory_app: App, kind: str) -> None:
    app = memory_app
    deadlines: list[float] = []
    ours = []
    done = threading.Event()

    def look(attempt: Attempt) -> None:
        if not deadlines or deadlines[-1] != attempt.deadline:
            deadlines.append(attempt.deadline)
        ours.append(time.monotonic() < attempt.deadline)
        attempt.check()

    def facts(attempt: Attempt) -> list[Any]:
        done.set()
        return [attempt.job.task, attempt.job.queue, attempt.version, attempt.tenant, attempt.aborted]

    if kind == "async":

        @app.task(name="look", lease=0.9)
        async def look_on_loop(attempt: Attempt) -> list[Any]:
            while len(deadlines) < 4:
                look(attempt)
                await asyncio.sleep(0.02)
            return facts(attempt)

        draft = look_on_loop.draft()
    else:

        @app.task(name="look", lease=0.9)
        def look_in_thread(attempt: Attempt) -> list[Any]:
            while len(deadlines) < 4:
                look(attempt)
                time.sleep(0.02)
            return facts(attempt)

        draft = look_in_thread.draft()
    sent = time.monotonic()
    with working(app, lease=30.0):  # the task's own is shorter, and counts
        job = app.client.enqueue(draft)
        assert app.client.result(job, timeout=20) == ["look", "default", 1, None, None]
    assert deadlines == sorted(deadlines), "every renewal moves it on"
    assert sent < deadlines[0] < sent + 0.9 + 5
    assert all(ours)


@pytest.mark.long
def test_progress_that_was_said_while_the_row_was_locked_shows_later(pg_database: Database, pg_app: App) -> None:
    report, go_on = threading.Event(), threading.Event()

    @pg_app.task
    def work(attempt: Attempt) -> None:
        report.wait(20)
        attempt.progress(3, 10)
        go_on.wait(20)

    with working(pg_app), closing(psycopg.connect(pg_database.url)) as other:
        job = work.enqueue()
        until_state(pg_app, job, State.RUNNING)
        other.execute(f"select from {pg_database.schema}.jobs for update".encode())
        report.set()
        time.sleep(2 * PROGRESS_EVERY)
        other.rollback()
        until(lambda: pg_app.client.get(job).progress == Progress(3, 10))  # type: ignore[union-attr]
        go_on.set()
        over(pg_app, job)


@pytest.mark.long
def test_progress_shows_while_the_job_runs(two_apps: App) -> None:
    app, go_on = two_apps, threading.Event()

    def report(attempt: Attempt) -> None:
        attempt.progress(1, 10)
        attempt.progress(3, 10, "three of ten")

    @app.task
    async def on_loop(attempt: Attempt) -> None:
        report(attempt)
        while not go_on.is_set():
            await asyncio.sleep(0.01)

    @app.task
    def in_thread(attempt: Attempt) -> None:
        report(attempt)
        go_on.wait(20)

    with working(app):
        jobs = on_loop.enqueue(), in_thread.enqueue()
        for job in jobs:
            until(lambda job=job: app.client.get(job).progress == Progress(3, 10, "three of ten"))  # type: ignore[misc, union-attr]
        go_on.set()
        over(app, *jobs)


@pytest.mark.parametrize("done", ["three", math.nan, math.inf, None])
def test_progress_that_is_no_number_is_refused_where_it_is_said(memory_app: App, done: Any) -> None:
    task = define(memory_app, "thread", lambda attempt: attempt.progress(done), max_attempts=1)
    with working(memory_app):
        assert "InvalidInput: progress takes numbers" in error_of(memory_app, task.enqueue()).splitlines()[0]


@both_kinds
def test_values_that_a_handler_puts_into_its_context_are_not_seen_by_the_next(memory_app: App, kind: str) -> None:
    who = contextvars.ContextVar("who", default="not set")

    def body(attempt: Attempt) -> str:
        before = who.get()
        who.set(attempt.job.id)
        return before

    task = define(memory_app, kind, body)
    with working(memory_app, concurrency=1):  # one slot, one thread
        jobs = memory_app.client.enqueue_many([task.draft() for _ in range(20)])
        assert {memory_app.client.result(job, timeout=20) for job in jobs} == {"not set"}
