"""The outcomes of an attempt: results and exceptions of handlers, and the states of their jobs."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from relet import App, Attempt, Backoff, Fail, JobFailed, Retry, Snooze, State
from relet._tasks.task import Task
from tests.conftest import PG_KINDS
from tests.databases import Database
from tests.worker.working import error_of, over, state, working

pytestmark = pytest.mark.every_store

AT_ONCE = Backoff(base=0.001, max=0.001)

Body = Callable[[Attempt], Any]


def define(app: App, kind: str, body: Body, **options: Any) -> Task[..., Any]:
    """A task whose handler, of either kind, does this."""
    options = {"name": "work", "backoff": AT_ONCE, **options}
    if kind == "async":

        @app.task(**options)
        async def on_loop(attempt: Attempt) -> Any:
            return body(attempt)

        return app.lookup(on_loop.name)

    @app.task(**options)
    def in_thread(attempt: Attempt) -> Any:
        return body(attempt)

    return app.lookup(in_thread.name)


both_kinds = pytest.mark.parametrize("kind", ["async", "thread"])


@pytest.fixture
def kind(database: Database) -> str:
    """Either kind of handler on half of the stores: how one is called has nothing to do with where its job is."""
    return "async" if database.kind in ("memory", *PG_KINDS[:1]) else "thread"


def test_the_value_that_a_handler_returns_is_the_result(app: App) -> None:
    @app.task
    async def greet(name: str) -> str:
        await asyncio.sleep(0)
        return f"Hello, {name}"

    @app.task
    def add(a: int, b: int = 2) -> dict[str, int]:
        return {"sum": a + b}

    @app.task
    def nothing() -> None:
        pass

    with working(app):
        jobs = greet.enqueue("Ada"), add.enqueue(1), add.enqueue(1, b=5), nothing.enqueue()
        assert app.client.result(jobs[0], timeout=20) == "Hello, Ada"
        assert app.client.result(jobs[1], timeout=20) == {"sum": 3}
        assert app.client.result(jobs[2], timeout=20) == {"sum": 6}
        assert app.client.result(jobs[3], timeout=20) is None


def test_an_attempt_that_raises_is_repeated_until_attempts_are_spent(app: App, kind: str) -> None:
    seen = []

    def body(attempt: Attempt) -> None:
        seen.append((attempt.job.attempt, attempt.version))
        raise ValueError("no")

    task = define(app, kind, body, max_attempts=3)
    with working(app):
        job = task.enqueue()
        error = error_of(app, job)
    assert seen == [(1, 1), (2, 2), (3, 3)]
    assert error.splitlines()[0] == "ValueError: no"
    assert "in body" in error, "where it was raised"
    assert "relet/_worker" not in error, "the worker's own frames tell the user nothing"
    assert [one.outcome for one in app.client.attempts(job)] == ["retried", "retried", "failed"]
    assert all(one.error and one.error.startswith("ValueError: no\n") for one in app.client.attempts(job))


def test_a_job_that_fails_at_first_may_still_succeed(memory_app: App) -> None:
    def body(attempt: Attempt) -> int:
        if attempt.job.attempt < 3:
            raise ValueError("not yet")
        return attempt.job.attempt

    task = define(memory_app, "thread", body)
    with working(memory_app):
        assert memory_app.client.result(task.enqueue(), timeout=20) == 3


def test_a_snoozed_attempt_is_given_back(app: App, kind: str) -> None:
    seen = []

    def body(attempt: Attempt) -> str:
        seen.append((attempt.job.attempt, attempt.version, time.monotonic()))
        if len(seen) < 3:
            raise Snooze(0.1)
        return "at last"

    task = define(app, kind, body, max_attempts=1)
    with working(app):
        (job,) = over(app, task.enqueue())
    assert (job.state, job.attempt, job.version) == (State.SUCCEEDED, 1, 3)
    assert [one[:2] for one in seen] == [(1, 1), (1, 2), (1, 3)]
    assert all(later[2] - sooner[2] >= 0.1 for sooner, later in pairwise(seen)), "not before"


def test_retry_says_when_and_fail_says_never(app: App, kind: str) -> None:
    def retry(attempt: Attempt) -> str:
        if attempt.job.attempt == 1:
            raise Retry("the other side is busy", delay=0.05)
        return "done"

    def fail(attempt: Attempt) -> None:
        raise Fail("no such account")

    retried = define(app, kind, retry, name="retried", backoff=Backoff(base=600, max=600, jitter=False))
    failed = define(app, kind, fail, name="failed", max_attempts=5)
    with working(app):
        first, second = over(app, retried.enqueue(), failed.enqueue())
    assert (first.state, first.attempt, first.result_json) == (State.SUCCEEDED, 2, '"done"')
    assert app.client.attempts(first)[0].error == "the other side is busy"
    assert (second.state, second.attempt) == (State.FAILED, 1)
    assert second.error is not None
    assert "no such account" in second.error.splitlines()[0]


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, 1e15, True])
@pytest.mark.parametrize("word", [Snooze, lambda delay: Retry(delay=delay)])
def test_a_delay_that_is_none_fails_the_attempt(memory_app: App, word: Callable[[Any], Exception], delay: Any) -> None:
    def body(attempt: Attempt) -> None:
        raise word(delay)

    task = define(memory_app, "async", body, max_attempts=1)
    with working(memory_app):
        error = error_of(memory_app, task.enqueue())
    assert "must be seconds from 0" in error.splitlines()[0]
    assert "in body" in error


UNSTORABLE: dict[str, Callable[[], Any]] = {
    "nan": lambda: {"a": [math.nan]},
    "nul": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "object": object,
    "large": lambda: "x" * 300_000,
    "generator": lambda: iter([]),
}


def returning(make: Callable[[], Any]) -> Body:
    return lambda attempt: make()


def test_results_that_cannot_be_stored_fail_their_jobs_and_not_the_worker(app: App, kind: str) -> None:
    tasks = [define(app, kind, returning(make), name=name) for name, make in UNSTORABLE.items()]
    fine = define(app, kind, lambda _: "fine", name="fine")
    with working(app):
        jobs = [task.enqueue() for task in tasks]
        for job in jobs:
            error = error_of(app, job)
            assert "returned what cannot be stored" in error
            assert app.client.get(job).attempt == 1, "it would be no better the next time"  # type: ignore[union-attr]
        assert app.client.result(fine.enqueue(), timeout=20) == "fine"


@both_kinds
def test_a_payload_that_no_longer_fits_fails_with_the_difference(memory_app: App, kind: str) -> None:
    yesterday = App("sqlite:///:memory:")

    @yesterday.task
    def charge(account: str, pence: int) -> None: ...

    if kind == "async":

        @memory_app.task(name="charge")
        async def charge_now(account: str, cents: int) -> None: ...

    else:

        @memory_app.task(name="charge")
        def charge_now_plain(account: str, cents: int) -> None: ...

    with working(memory_app):
        error = error_of(memory_app, memory_app.client.enqueue(charge.draft("acct-7", 500)))
    assert "was enqueued with other arguments than it takes now" in error
    assert "cents" in error or "pence" in error


class Odd(BaseException):
    """Not an Exception."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")

    __repr__ = __str__


@pytest.mark.long
@both_kinds
@pytest.mark.parametrize(
    "error",
    [
        Odd("odd"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError("mine"),
        StopIteration(), StopAsyncIteration(), RecursionError(), MemoryError(),
        ExceptionGroup("many", [ValueError("a"), OSError("b")]),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_whatever_a_handler_raises_is_an_attempt_that_failed(memory_app: App, kind: str, error: BaseException) -> None:
    def body(attempt: Attempt) -> None:
        raise error

    task = define(memory_app, kind, body, max_attempts=2)
    fine = define(memory_app, kind, lambda _: "fine", name="fine")
    with working(memory_app):
        job = task.enqueue()
        text = error_of(memory_app, job)
        assert memory_app.client.result(fine.enqueue(), timeout=20) == "fine", "the worker goes on"
    found = memory_app.client.get(job)
    assert found is not None
    assert found.attempt == 2
    assert type(error).__name__ in text


def test_errors_that_no_store_would_hold_are_stored_all_the_same(app: App, kind: str) -> None:
    def unprintable(attempt: Attempt) -> None:
        raise Unprintable

    def huge(attempt: Attempt) -> None:
        raise ValueError("begin" + "x" * 3_000_000)

    def nul(attempt: Attempt) -> None:
        raise ValueError("a\0b\ud800c")

    bodies = (unprintable, huge, nul)
    tasks = [define(app, kind, body, name=body.__name__, max_attempts=1) for body in bodies]
    with working(app):
        errors = [error_of(app, job) for job in [task.enqueue() for task in tasks]]
    assert "Unprintable" in errors[0].splitlines()[0]
    assert errors[1].startswith("ValueError: beginxxx")
    assert len(errors[1]) < 20_000
    assert errors[2].startswith("ValueError: a\ufffdb?c")


def test_an_attempt_can_go_on_with_another_job(app: App) -> None:
    @app.task
    def last(n: int) -> str:
        return f"the end of {n}"

    @app.task
    async def first(attempt: Attempt, n: int) -> str:
        return attempt.continue_with(last.draft(n))

    @app.task(max_attempts=1)
    def taken(attempt: Attempt) -> str:
        return attempt.continue_with(last.using(unique="key").draft(0))

    with working(app):
        job = first.enqueue(7)
        assert app.client.result(job, timeout=20) == "the end of 7"
        assert [one.task for one in app.client.chain(job)] == ["first", "last"]
        last.using(unique="key", delay=600).enqueue(1)
        with pytest.raises(JobFailed, match="unique key 'key' is held by"):  # and not a chain that ends in silence
            app.client.result(taken.enqueue(), timeout=20)


def test_a_worker_claims_only_jobs_of_its_tasks(app: App) -> None:
    elsewhere = App("sqlite:///:memory:")
    foreign = define(elsewhere, "thread", lambda _: None, name="foreign")
    known = define(app, "thread", lambda _: "known", name="known")
    with working(app, concurrency=1):
        unknown = app.client.enqueue(foreign.using(priority=100).draft())
        jobs = app.client.enqueue_many([known.draft() for _ in range(5)])
        assert {app.client.result(job, timeout=20) for job in jobs} == {"known"}
        assert state(app, unknown) is State.QUEUED
        assert app.client.get(unknown).attempt == 0  # type: ignore[union-attr]


def test_an_error_in_a_task_group_fails_the_attempt(app: App) -> None:
    """A task group cancels the handler's task on its way, which is none of the worker's business."""

    async def wrong() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("no")

    @app.task(max_attempts=1)
    async def grouped() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wrong())
            group.create_task(asyncio.sleep(5))

    job = grouped.enqueue()
    with working(app):
        over(app, job)
    assert state(app, job) is State.FAILED
    assert "ValueError: no" in (app.client.get(job).error or "")  # type: ignore[union-attr]


def test_a_payload_that_is_nested_too_deep_to_be_read_fails_its_job_at_once(
    two_databases: Database, two_apps: App
) -> None:
    if not two_databases.is_postgres:
        pytest.skip("SQLite stores no JSON that is so deep")

    @two_apps.task
    def work(value: Any) -> None: ...

    deep = structs.replace(work.draft(1), payload_json='{"value":' + "[" * 3000 + "]" * 3000 + "}")
    with working(two_apps):
        (found,) = over(two_apps, two_apps.client.enqueue(deep))
    assert found.attempt == 1, "it would be no better the next time"
    if found.state is not State.SUCCEEDED:  # later releases of Python read deeper
        assert "nested too deep" in (found.error or "")
