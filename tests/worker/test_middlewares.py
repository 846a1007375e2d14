"""Middlewares: around each attempt, the first one outermost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from relet import App, Attempt, InvalidInput, State
from relet._attempts.attempt import current
from tests.worker.working import error_of, over, working

both_kinds = pytest.mark.parametrize("kind", ["async", "thread"])


def define(app: App, kind: str, log: list[str], fails: bool = False) -> Any:
    def body() -> str:
        log.append("handler")
        if fails:
            raise ValueError("no")
        return "done"

    if kind == "async":

        @app.task(max_attempts=1)
        async def on_loop() -> str:
            return body()

        return on_loop

    @app.task(max_attempts=1)
    def in_thread() -> str:
        return body()

    return in_thread


@both_kinds
def test_they_wrap_each_attempt_in_order(memory_app: App, kind: str) -> None:
    log: list[str] = []

    @memory_app.middleware
    def outer(attempt: Attempt) -> Iterator[None]:
        log.append(f"outer in, attempt {attempt.job.attempt}")
        yield
        log.append("outer out")

    @memory_app.middleware
    def inner(attempt: Attempt) -> Iterator[None]:
        assert current.get() is attempt
        log.append("inner in")
        yield
        log.append("inner out")

    task = define(memory_app, kind, log)
    with working(memory_app):
        assert memory_app.client.result(task.enqueue(), timeout=20) == "done"
    assert log == ["outer in, attempt 1", "inner in", "handler", "inner out", "outer out"]


@both_kinds
def test_the_exception_of_the_handler_is_raised_at_the_yield(memory_app: App, kind: str) -> None:
    log: list[str] = []

    @memory_app.middleware
    def watch(attempt: Attempt) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            log.append(f"saw {error}")
            raise

    task = define(memory_app, kind, log, fails=True)
    with working(memory_app):
        error = error_of(memory_app, task.enqueue())
    assert error.startswith("ValueError: no\n")
    assert "relet/_worker" not in error
    assert log == ["handler", "saw no"]


@both_kinds
def test_one_may_raise_something_else_or_nothing(memory_app: App, kind: str) -> None:
    @memory_app.middleware
    def translate(attempt: Attempt) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            if attempt.job.queue == "lenient":
                return
            raise LookupError("translated") from error

    task = define(memory_app, kind, [], fails=True)
    with working(memory_app):
        error = error_of(memory_app, task.enqueue())
        (lenient,) = over(memory_app, task.using(queue="lenient").enqueue())
    assert error.startswith("LookupError: translated\n")
    assert "ValueError: no" in error
    assert (lenient.state, lenient.result_json) == (State.SUCCEEDED, "null")


@both_kinds
def test_one_that_fails_before_the_handler_fails_the_attempt(memory_app: App, kind: str) -> None:
    log: list[str] = []

    @memory_app.middleware
    def outer(attempt: Attempt) -> Iterator[None]:
        try:
            yield
        finally:
            log.append("outer out")

    @memory_app.middleware
    def broken(attempt: Attempt) -> Iterator[None]:
        raise PermissionError("not today")
        yield

    task = define(memory_app, kind, log)
    with working(memory_app):
        assert error_of(memory_app, task.enqueue()).startswith("PermissionError: not today\n")
    assert log == ["outer out"], "the handler never ran"


@both_kinds
def test_one_that_yields_twice_fails_the_attempt(memory_app: App, kind: str) -> None:
    @memory_app.middleware
    def twice(attempt: Attempt) -> Iterator[None]:
        yield
        yield

    task = define(memory_app, kind, [])
    with working(memory_app):
        assert "didn't stop" in error_of(memory_app, task.enqueue())


def test_async_ones_wrap_async_tasks_among_the_others_and_threads_not_at_all(memory_app: App) -> None:
    log: list[str] = []

    @memory_app.middleware
    def first(attempt: Attempt) -> Iterator[None]:
        log.append("first")
        yield

    @memory_app.middleware
    async def second(attempt: Attempt) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        log.append("second")
        yield
        await asyncio.sleep(0)
        log.append("second out")

    @memory_app.middleware
    def third(attempt: Attempt) -> Iterator[None]:
        log.append("third")
        yield

    tasks = define(memory_app, "async", log), define(memory_app, "thread", log)
    with working(memory_app):
        over(memory_app, tasks[0].enqueue())
        over(memory_app, tasks[1].enqueue())
    assert log == ["first", "second", "third", "handler", "second out", "first", "third", "handler"]


def test_a_middleware_that_does_not_yield_is_refused(memory_app: App) -> None:
    def plain(attempt: Attempt) -> None: ...

    async def coroutine(attempt: Attempt) -> None: ...

    for function in (plain, coroutine):
        with pytest.raises(InvalidInput, match="yields once"):
            memory_app.middleware(function)  # type: ignore[type-var]
