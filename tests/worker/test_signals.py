"""Sleeping, and waiting for a word from outside, without holding a slot; and no job sleeps for ever."""

from __future__ import annotations

import asyncio
import queue
import random
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from relet import App, Attempt, Backoff, JobNotFound, SignalTimeout, State
from relet._tasks.task import PlainTask
from relet.errors import InvalidTransition, Suspended
from tests.databases import Database
from tests.harness import harness_of
from tests.plugin.selection import rounds
from tests.worker.working import NEVER, TIMEOUT, connect, error_of, over, state, until, working

SOON = Backoff(base=0.001, max=0.001)
UNKNOWN = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"


@pytest.fixture
def app(two_apps: App) -> App:
    return two_apps


@dataclass
class Answer:
    yes: bool
    by: tuple[str, str] = ("another", "user")


def waiter(app: App, **options: Any) -> PlainTask[..., Any]:
    """A task that waits for a word and returns it."""

    @app.task(name="waiter", **options)
    def wait(attempt: Attempt) -> Any:
        return attempt.wait_for("word")

    task: PlainTask[..., Any] = wait
    return task


def until_asleep(app: App, *jobs: Any) -> None:
    for job in jobs:
        until(lambda job=job: state(app, job) is State.PENDING and app.client.get(job).version)  # type: ignore[misc,union-attr]


# Sleep


def test_a_sleeping_handler_holds_no_slot(app: App) -> None:
    woken: list[float] = []

    @app.task
    def sleeper(attempt: Attempt) -> None:
        attempt.sleep("nap", 3600)
        woken.append(time.monotonic())

    @app.task
    async def other() -> None: ...

    with working(app, concurrency=1):
        job = sleeper.enqueue()
        until_asleep(app, job)
        over(app, *[other.enqueue() for _ in range(3)])
        assert not woken


def test_a_sleeping_handler_wakes_not_too_early_and_does_not_sleep_twice(app: App) -> None:
    woken: list[float] = []

    @app.task(backoff=SOON)
    def sleeper(attempt: Attempt) -> int:
        attempt.sleep("nap", 0.5)
        woken.append(time.monotonic())
        if len(woken) == 1:
            raise ValueError("again, but without another nap")
        return attempt.job.attempt

    with working(app, concurrency=1):
        begin = time.monotonic()
        job = sleeper.enqueue()
        assert app.client.result(job) == 2, "the attempt that slept was given back"
    assert woken[0] - begin >= 0.5
    assert [record.outcome for record in app.client.attempts(job)] == ["snoozed", "retried", "succeeded"]


def test_an_async_handler_sleeps_and_waits_as_well(app: App) -> None:
    @app.task
    async def both(attempt: Attempt) -> list[Answer]:
        await attempt.asleep("nap", 0.05)
        try:
            return [await attempt.await_for("word", Answer)]
        except Exception:
            pytest.fail("a suspension is no Exception")

    with working(app):
        job = both.enqueue()
        until(lambda: "signal 'word'" in app.client.explain(job)[0])
        assert app.client.signal(job, "word", Answer(True))
        assert app.client.result(job) == [Answer(True)]


def test_who_sleeps_outlives_its_worker(two_apps: App) -> None:
    app, done = two_apps, []

    @app.task
    def sleeper(attempt: Attempt) -> int:
        attempt.step("before", lambda: done.append(attempt.version))
        attempt.sleep("nap", 0.6)
        return attempt.version

    with working(app):
        job = sleeper.enqueue()
        until_asleep(app, job)
    with working(app):
        assert app.client.result(job) == 2
    assert done == [1]


@pytest.mark.long
def test_a_nap_is_over_by_the_clock_though_the_handler_was_busy_since_it_looked(app: App) -> None:
    """Woken early, it reads the stored time, works for a while, and by then its time has come."""

    @app.task
    def early(attempt: Attempt) -> int:
        attempt.step("look", lambda: None)
        if attempt.version == 2:
            time.sleep(1.0)
        attempt.sleep("nap", 0.9)
        return attempt.version

    with working(app):
        job = early.enqueue()
        until_asleep(app, job)
        app.client.run_now(job)
        assert app.client.result(job) == 2


def test_except_exception_does_not_swallow_a_suspension(memory_app: App) -> None:
    caught: list[str] = []

    @memory_app.task
    def cautious(attempt: Attempt) -> str:
        try:
            attempt.sleep("nap", 0.05)
            return attempt.wait_for("word", str)
        except Exception as error:
            caught.append(repr(error))
            raise
        finally:
            caught.append("cleaned up")

    with working(memory_app):
        job = cautious.enqueue()
        until(lambda: "signal" in memory_app.client.explain(job)[0])
        memory_app.client.signal(job, "word", "hello")
        assert memory_app.client.result(job) == "hello"
    assert caught == ["cleaned up"] * 3


# Signals


def test_a_signal_counts_whether_it_comes_before_the_wait_or_after(app: App) -> None:
    wait = waiter(app)
    before, after = wait.enqueue(), wait.enqueue()
    assert app.client.signal(before, "word", {"n": 1})
    with working(app, concurrency=1, poll_interval=NEVER):
        assert app.client.result(before) == {"n": 1}
        until_asleep(app, after)
        (reason,) = app.client.explain(after)
        assert reason.startswith("it sleeps until signal 'word' comes")
        assert app.client.signal(after, "word", [2])
        assert app.client.result(after, timeout=TIMEOUT) == [2]
    assert [one.outcome for one in app.client.attempts(after)] == ["snoozed", "succeeded"]


def test_the_first_of_a_name_counts(app: App) -> None:
    job = waiter(app).enqueue()
    assert app.client.signal(job, "word", 1) is True
    assert app.client.signal(job, "word", 2) is False
    assert app.client.signal(job, "other", None) is True
    assert asyncio.run(app.aclient.signal(job, "other", 3)) is False
    with working(app):
        assert app.client.result(job) == 1


def test_several_names_in_any_order_each_typed(app: App) -> None:
    @app.task
    def many(attempt: Attempt) -> list[Any]:
        words = [attempt.wait_for(name, int) for name in "abc"]
        answer = attempt.wait_for("answer", Answer)
        assert isinstance(answer, Answer)
        return [words, answer.by, attempt.wait_for("nothing")]

    with working(app):
        job = many.enqueue()
        for name in ("nothing", "c", "answer", "b"):
            app.client.signal(job, name, {"answer": {"yes": True, "by": ["a", "b"]}, "nothing": None}.get(name, 7))
        until_asleep(app, job)
        app.client.signal(job, "a", 1)
        assert app.client.result(job) == [[1, 7, 7], ["a", "b"], None]


def test_a_word_of_the_wrong_type_is_a_failure_that_says_so(memory_app: App) -> None:
    @memory_app.task(max_attempts=1)
    def typed(attempt: Attempt) -> int:
        return attempt.wait_for("number", int)

    with working(memory_app):
        job = typed.enqueue()
        memory_app.client.signal(job, "number", "seven")
        error = error_of(memory_app, job)
    assert f"signal 'number' of job {job.id}: does not fit int" in error


def test_who_was_told_nothing_in_time_stays_untold_in_every_attempt(app: App) -> None:
    seen: list[str] = []

    @app.task(backoff=SOON)
    def impatient(attempt: Attempt) -> Any:
        try:
            return attempt.wait_for("word", timeout=0.3)
        except SignalTimeout as error:
            seen.append(str(error))
        if len(seen) == 1:
            assert app.client.signal(attempt.job.id, "word", "too late")
            raise ValueError("again")
        return "untold"

    with working(app):
        begin = time.monotonic()
        job = impatient.enqueue()
        until_asleep(app, job)
        assert app.client.explain(job)[0].startswith("it sleeps until signal 'word' comes, or until")
        assert app.client.result(job) == "untold"
    assert time.monotonic() - begin >= 0.3
    assert seen == [f"job {job.id}: no signal 'word' within 0.3 s"] * 2


def test_a_timeout_that_the_handler_does_not_catch_fails_the_attempt(memory_app: App) -> None:
    @memory_app.task(max_attempts=1)
    def impatient(attempt: Attempt) -> Any:
        return attempt.wait_for("word", timeout=0.01)

    with working(memory_app):
        assert "SignalTimeout: " in error_of(memory_app, impatient.enqueue())


def test_a_signal_at_the_very_moment_of_falling_asleep_wakes(two_apps: App) -> None:
    """Hundreds of rounds, each aimed at the gap between the look and the snooze."""
    app, number, took = two_apps, rounds(100, all=300), 0.02
    awake: queue.SimpleQueue[str] = queue.SimpleQueue()
    runs: Counter[str] = Counter()  # a version would also count jobs that were claimed in advance and released

    @app.task
    def racer(attempt: Attempt) -> int:
        runs[attempt.job.id] += 1
        if runs[attempt.job.id] == 1:
            awake.put(attempt.job.id)
            time.sleep(random.uniform(0, 2 * took))
        attempt.wait_for("go")
        return runs[attempt.job.id]

    def signaller() -> None:
        nonlocal took
        for _ in range(number // 10):
            id = awake.get(timeout=TIMEOUT)
            begin = time.monotonic()
            time.sleep(random.uniform(0, 0.006))
            app.client.signal(id, "go")
            took = min(time.monotonic() - begin, 0.2)  # as long as it takes on this machine just now

    with working(app, concurrency=8, poll_interval=5.0):
        threads = [threading.Thread(target=signaller) for _ in range(10)]
        for thread in threads:
            thread.start()
        jobs = app.client.enqueue_many([racer.draft() for _ in range(number)])
        ran = app.client.results(jobs, timeout=TIMEOUT)
        for thread in threads:
            thread.join()
    assert set(ran) == {1, 2}, "some were told before they looked, some after: the race was one"


def test_a_signal_in_the_callers_transaction_happens_when_it_is_committed(two_databases: Database) -> None:
    app = two_databases.app()
    wait = waiter(app)
    with closing(app), working(app):
        job = wait.enqueue()
        until_asleep(app, job)
        with closing(connect(two_databases, app)) as connection:
            if not two_databases.is_postgres:
                connection.execute("begin immediate")
            assert app.client.signal(job, "word", "rolled back", connection=connection)
            connection.rollback()
            assert harness_of(app).promote_all() == []
            if not two_databases.is_postgres:
                connection.execute("begin immediate")
            assert app.client.signal(job, "word", "committed", connection=connection)
            connection.commit()
        assert app.client.result(job) == "committed"


def test_a_job_that_does_not_exist_or_is_over_gets_no_signal(app: App) -> None:
    job = waiter(app).enqueue()
    app.client.cancel(job)
    with pytest.raises(JobNotFound, match=UNKNOWN):
        app.client.signal(UNKNOWN, "word")
    with pytest.raises(InvalidTransition, match=f"cannot signal job {job.id}: it is cancelled"):
        app.client.signal(job, "word")


# Verbs on a sleeper


def test_a_paused_sleeper_that_is_told_runs_when_it_is_resumed(app: App) -> None:
    wait = waiter(app)
    with working(app):
        told, untold = wait.enqueue(), wait.enqueue()
        until_asleep(app, told, untold)
        app.client.pause(told)
        app.client.pause(untold)
        app.client.signal(told, "word", 1)
        harness_of(app).promote_all()
        assert state(app, told) is State.PAUSED
        app.client.resume(told)
        app.client.resume(untold)
        assert app.client.result(told) == 1
        assert state(app, untold) is State.PENDING
        assert "signal 'word'" in app.client.explain(untold)[0]
        app.client.signal(untold, "word", 2)
        assert app.client.result(untold) == 2


def test_a_sleeper_is_cancelled_at_once_and_run_early_without_harm(app: App) -> None:
    wait = waiter(app)

    @app.task
    def napper(attempt: Attempt) -> int:
        attempt.sleep("nap", 600)
        return attempt.version

    with working(app):
        waiting, napping, gone = wait.enqueue(), napper.enqueue(), wait.enqueue()
        until_asleep(app, waiting, napping, gone)
        assert app.client.cancel(gone).state is State.CANCELLED
        for job in (waiting, napping):
            app.client.run_now(job)
            until(lambda job=job: app.client.get(job).version == 2)  # type: ignore[misc,union-attr]
            until_asleep(app, job)
        nap = app.client.get(napping)
        assert nap is not None
        assert 500 < (nap.run_at - datetime.now(UTC)).total_seconds() < 600
        app.client.signal(waiting, "word", "hello")
        assert app.client.result(waiting) == "hello"


def test_a_suspension_names_itself_to_a_handler_that_catches_everything() -> None:
    assert not issubclass(Suspended, Exception)
    assert str(Suspended(1.5)) == "suspended for 1.5 s"


@pytest.mark.long
def test_a_suspension_in_a_task_group_is_one(app: App) -> None:
    """The group wraps the exceptions of its tasks."""

    @app.task
    async def grouped(attempt: Attempt) -> str:
        async with asyncio.TaskGroup() as group:
            told = group.create_task(attempt.await_for("go", str))
            group.create_task(attempt.asleep("nap", 0.05))
        return told.result()

    job = grouped.enqueue()
    with working(app):
        until(lambda: state(app, job) is State.PENDING)
        app.client.signal(job, "go", "now")
        assert app.client.result(job, timeout=20) == "now"
    assert app.client.attempts(job)[-1].attempt == 1, "no attempt has failed"


def test_a_handler_may_wait_again_after_a_time_that_was_missed(app: App) -> None:
    """Wait, remind, wait again: each wait is its own, and every attempt sees the same."""
    reminded: list[Any] = []

    @app.task
    def approval(attempt: Attempt) -> str:
        for round_ in range(20):
            try:
                return f"{attempt.wait_for('approved', str, timeout=0.2)} after {round_}"
            except SignalTimeout:
                attempt.step(f"remind {round_}", reminded.append, round_)
        return "never"

    with working(app):
        job = approval.enqueue()
        until(lambda: len(reminded) >= 2)
        app.client.signal(job, "approved", "yes")
        assert app.client.result(job, timeout=20).startswith("yes after ")
    assert reminded == list(range(len(reminded))), "each reminder once"
    assert len(reminded) < 15
