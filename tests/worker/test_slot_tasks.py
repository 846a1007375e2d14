"""A slot runs async jobs one after another in one task: no handler sees the changes of the one before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import anyio
import pytest
import structlog
from opentelemetry import baggage, context

from relet import App
from relet._attempts.attempt import current
from tests.worker.working import over, until, working

number: ContextVar[int] = ContextVar("number", default=0)

WARM = 3  # jobs after which a worker knows that it can claim some in advance
Seen = list[Any]


def one_after_another(app: App, *handlers: Callable[[Seen], Any]) -> Seen:
    """The notes of the handlers, run in one slot one after another; and the tasks that ran them."""
    seen: Seen = []
    handlers = (*[nothing] * WARM, *handlers)

    @app.task
    async def work(which: int) -> None:
        seen.append(asyncio.current_task())
        await handlers[which](seen)

    jobs = app.client.enqueue_many([work.using(max_attempts=1).draft(which) for which in range(len(handlers))])
    with working(app, concurrency=1):
        over(app, *jobs)
    return seen[WARM:]


async def nothing(seen: Seen) -> None: ...


async def within_a_timeout(seen: Seen) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.sleep(10)


async def with_a_group(seen: Seen) -> None:
    with pytest.raises(ExceptionGroup):
        await run_a_group()


async def run_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(10))
        group.create_task(fails())


async def fails() -> None:
    raise ValueError


async def with_a_scope(seen: Seen) -> None:
    with anyio.move_on_after(0.001):
        await anyio.sleep(10)
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 10)
        group.cancel_scope.cancel()


@pytest.mark.parametrize("handler", [nothing, within_a_timeout, with_a_group, with_a_scope])
def test_a_handler_that_leaves_its_task_as_it_was_passes_it_on(memory_app: App, handler: Any) -> None:
    """To a job that was claimed in advance. On a slow machine not each one is, but one of ten."""

    async def look(seen: Seen) -> None:
        seen.append(seen[-1].cancelling())
        await asyncio.sleep(0)  # raises if the task was cancelled

    seen = one_after_another(memory_app, *[handler, look] * 10)
    first, second, cancelling = seen[::3], seen[1::3], seen[2::3]
    # Python 3.11 leaves a mark where a group has failed.
    marked = handler is with_a_group and any(task.cancelling() for task in first)
    assert any(one is other for one, other in zip(first, second, strict=True)) is not marked
    assert cancelling == [0] * 10


async def cancels_itself(seen: Seen) -> None:
    seen[-1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(10)


async def sets_a_variable(seen: Seen) -> None:
    number.set(7)


async def binds_for_the_log(seen: Seen) -> None:
    structlog.contextvars.bind_contextvars(request="r7")


async def attaches_baggage(seen: Seen) -> None:
    context.attach(baggage.set_baggage("request", "r7"))


@pytest.mark.parametrize("handler", [cancels_itself, sets_a_variable, binds_for_the_log, attaches_baggage])
def test_after_a_handler_that_changed_its_task_the_next_has_a_new_one(memory_app: App, handler: Any) -> None:
    async def look(seen: Seen) -> None:
        seen.append((seen[-1].cancelling(), number.get(), structlog.contextvars.get_contextvars(), baggage.get_all()))
        await asyncio.sleep(0)

    first, second, found = one_after_another(memory_app, handler, look)
    assert second is not first
    assert found == (0, 0, {}, {})


def test_after_an_abort_the_next_has_a_new_task(memory_app: App) -> None:
    app, tasks = memory_app, list[Any]()

    @app.task
    async def stubborn() -> None:
        tasks.append(asyncio.current_task())
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            tasks[-1].uncancel()

    @app.task
    async def work() -> None:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)

    with working(app, concurrency=1):
        aborted, following = app.client.enqueue_many([stubborn.draft(), work.draft()])
        until(lambda: len(tasks) == 1)
        app.client.cancel(aborted)
        (done,) = over(app, following)
    assert done.state == "succeeded"
    assert tasks[0] is not tasks[1]


def test_a_task_that_outlives_its_handler_still_belongs_to_its_own_job(memory_app: App) -> None:
    left: list[asyncio.Task[Any]] = []
    go_on = asyncio.Event()

    async def leave_behind(seen: Seen) -> None:
        async def remember() -> Any:
            await go_on.wait()
            return current.get().job.id  # type: ignore[union-attr]

        left.append(asyncio.create_task(remember()))
        seen.append(current.get().job.id)  # type: ignore[union-attr]
        await asyncio.sleep(0)

    async def collect(seen: Seen) -> None:
        go_on.set()
        seen.append(await left[0])

    first, mine, second, found = one_after_another(memory_app, leave_behind, collect)
    assert second is first
    assert found == mine


@pytest.mark.long
def test_handlers_that_never_wait_do_not_keep_the_loop_from_others(memory_app: App) -> None:
    app, ran, turns = memory_app, [0], list[int]()

    @app.task
    async def quick() -> None:
        ran[0] += 1

    @app.task
    async def patient() -> None:
        while ran[0] < 3000:
            turns.append(ran[0])
            await asyncio.sleep(0)

    jobs = app.client.enqueue_many([patient.draft(), *(quick.draft() for _ in range(3000))])
    with working(app, concurrency=2):
        over(app, *jobs)
    between = [later - earlier for earlier, later in pairwise(turns)]
    assert max(between) < 300, "a claim brings 500, and all of them could run before the other slot has a turn"
