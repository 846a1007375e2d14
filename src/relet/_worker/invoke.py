"""Calls a handler: decodes its arguments, enters the middlewares, and turns its end into an outcome."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from .._attempts.attempt import Attempt, current
from .._core.job import Outcome
from .._system import SYSTEM
from .._tasks.task import Middleware, Task
from .._threads import DaemonThreadPool
from . import outcome as outcomes

_call = DaemonThreadPool("relet-dependencies").call


def call_plain(
    task: Task[..., Any], attempt: Attempt, middlewares: Sequence[Middleware], within: str | None = None
) -> Outcome:
    """Call a plain function in a copy of the context, so that context variables it sets do not reach the next handler.

    `within`: in a child process, the trace context of the attempt in the worker.
    """
    return contextvars.copy_context().run(_call_plain, task, attempt, middlewares, within)


def _call_plain(
    task: Task[..., Any], attempt: Attempt, middlewares: Sequence[Middleware], within: str | None
) -> Outcome:
    current.set(attempt)
    telemetry = task.app.telemetry
    if telemetry is None:
        return _plain(task, attempt, middlewares)
    with telemetry.running(attempt, within) as watch:
        outcome = _plain(task, attempt, middlewares)
        watch.ended(outcome)
    return outcome


def _plain(task: Task[..., Any], attempt: Attempt, middlewares: Sequence[Middleware]) -> Outcome:
    value: object = outcomes.SWALLOWED  # stays if a middleware swallows what the handler raised
    try:
        args, kwargs = outcomes.arguments_of(task, attempt)
        if attempt.job.dependency_count and task.takes_attempt:
            attempt._runtime.load_dependencies()
        if not middlewares:
            check_deadline(attempt)
            value = task.__wrapped__(*args, **kwargs)
        else:
            with ExitStack() as stack:
                for middleware in middlewares:
                    if not middleware.is_async:
                        stack.enter_context(middleware.around(attempt))
                check_deadline(attempt)
                value = task.__wrapped__(*args, **kwargs)
    except BaseException as error:  # SystemExit too: it ends the handler, not the worker
        return _ended_by(error, task, attempt)
    finally:
        attempt._runtime.leave_transactions()
    return outcomes.of_value(task, attempt, value)


async def call_async(
    task: Task[..., Any], attempt: Attempt, middlewares: Sequence[Middleware], within: str | None = None
) -> Outcome:
    """Await a coroutine function, in a task whose context nothing else uses meanwhile."""
    before = current.set(attempt)
    if middlewares or attempt.job.dependency_count or task.app.telemetry is not None:
        outcome = await _observed(task, attempt, middlewares, within)
        current.reset(before)
        return outcome
    # The usual case, inlined: another coroutine in between would double the cost of the call.
    try:
        args, kwargs = outcomes.arguments_of(task, attempt)
        if SYSTEM.monotonic() >= attempt.deadline:
            raise outcomes.StartedTooLate
        value = await task.__wrapped__(*args, **kwargs)
    except BaseException as error:
        attempt._cancelled = isinstance(error, asyncio.CancelledError)
        outcome = _ended_by(error, task, attempt)
    else:
        outcome = outcomes.of_value(task, attempt, value)
    current.reset(before)
    return outcome


async def _observed(
    task: Task[..., Any], attempt: Attempt, middlewares: Sequence[Middleware], within: str | None
) -> Outcome:
    telemetry = task.app.telemetry
    if telemetry is None:
        return await _async(task, attempt, middlewares)
    with telemetry.running(attempt, within) as watch:
        outcome = await _async(task, attempt, middlewares)
        watch.ended(outcome)
    return outcome


async def _async(task: Task[..., Any], attempt: Attempt, middlewares: Sequence[Middleware]) -> Outcome:
    value: object = outcomes.SWALLOWED  # stays if a middleware swallows what the handler raised
    try:
        args, kwargs = outcomes.arguments_of(task, attempt)
        if attempt.job.dependency_count and task.takes_attempt:
            await _call(attempt._runtime.load_dependencies)
        if not middlewares:
            check_deadline(attempt)
            value = await task.__wrapped__(*args, **kwargs)
        else:
            async with AsyncExitStack() as stack:
                for middleware in middlewares:
                    if middleware.is_async:
                        await stack.enter_async_context(middleware.around(attempt))
                    else:
                        stack.enter_context(middleware.around(attempt))
                check_deadline(attempt)
                value = await task.__wrapped__(*args, **kwargs)
    except BaseException as error:
        attempt._cancelled = isinstance(error, asyncio.CancelledError)
        return _ended_by(error, task, attempt)
    return outcomes.of_value(task, attempt, value)


def check_deadline(attempt: Attempt) -> None:
    """Do not start a handler on a lease that may have expired: another worker may be running the job."""
    if SYSTEM.monotonic() >= attempt.deadline:
        raise outcomes.StartedTooLate


def _ended_by(error: BaseException, task: Task[..., Any], attempt: Attempt) -> Outcome:
    if task.app.telemetry is not None:  # only telemetry reads it, and clears it: a traceback keeps all its frames alive
        attempt._error = error
    return outcomes.of_error(error, task, attempt)
