"""Tasks of Django for tests. Import it after `tests.djangos.configure()`."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.db import connection

from relet.contrib.django import TaskContext, task
from relet.contrib.django.framework import PACKAGE

django_task: Callable[..., Callable[[Callable[..., Any]], Any]] = import_module(PACKAGE).task
go_on = threading.Event()


@task
def add(left: int, right: int = 1) -> int:
    return left + right


@task
async def add_later(left: int, right: int = 1) -> int:
    await asyncio.sleep(0)
    return left + right


@task(takes_context=True)
def describe(context: TaskContext, note: str = "") -> dict[str, Any]:
    result = context.task_result
    context.relet.progress(1, 2, note or None)
    return {"attempt": context.attempt, "id": result.id, "status": str(result.status), "errors": len(result.errors)}


@task(takes_context=True)
async def describe_later(context: TaskContext) -> int:
    return context.attempt


@task
def fail(message: str = "no") -> None:
    raise ValueError(message)


@task(max_attempts=3)
def fail_thrice() -> None:
    raise KeyError("again")


@task(takes_context=True, max_attempts=3)
def succeed_at(context: TaskContext, attempt: int) -> int:
    if context.attempt < attempt:
        raise LookupError(f"attempt {context.attempt}")
    return context.attempt


@task
def leave() -> None:
    sys.exit(3)


@task
def unstorable() -> Any:
    return object()


@task(timeout=0.2)
def hang() -> None:
    go_on.wait(30)


@task(atomic=True)
def book(account: str, refuse: bool = False) -> str:
    with connection.cursor() as cursor:
        cursor.execute("insert into bookings values (%s)", [account])
    if refuse:
        raise ValueError("refused")
    return account


def isolation_level() -> str:
    """That of the open transaction of this thread."""
    with connection.cursor() as cursor:
        cursor.execute("show transaction_isolation")
        (level,) = cursor.fetchone()
    return str(level)


@task(atomic=True)
def isolation() -> str:
    return isolation_level()


@django_task(max_attempts=2)
def plain(value: int) -> int:
    return value
