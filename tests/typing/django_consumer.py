"""Tasks of Django as users write them. Type checkers find nothing wrong here; nothing imports it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import assert_type

from relet import Backoff, Job
from relet.contrib.django import DjangoApp, TaskContext, TaskResult, get_app, task


@task
def add(left: int, right: int = 1) -> int:
    return left + right


@task(queue_name="mail", max_attempts=5, backoff=Backoff(base=1, max=60), fail_on=(ValueError, KeyError))
async def mail(to: str) -> str:
    return to


@task(takes_context=True, atomic=True, timeout=timedelta(seconds=9))
def book(context: TaskContext, account: str) -> str:
    context.relet.progress(context.attempt, 2)
    return f"{account} {context.task_result.id}"


@task(takes_context=True)
async def book_later(context: TaskContext, account: str) -> None: ...


async def enqueue() -> None:
    assert_type(add.enqueue(1, right=2), TaskResult[int])
    assert_type(await mail.using(run_after=datetime.now(UTC), unique="x").aenqueue("ada"), TaskResult[str])
    assert_type(book.enqueue("acct-7"), TaskResult[str])
    assert_type(await book_later.aenqueue(account="acct-7"), TaskResult[None])
    first = add.enqueue(1)
    assert_type(add.using(depends_on=[first, first.id], tags=["a"]).enqueue(2).return_value, int)
    assert_type((await mail.aget_result(first.id)).errors[0].exception_class, type[BaseException])
    assert_type(add.call(1), int)


def operate() -> None:
    app = get_app()
    assert_type(app, DjangoApp)
    job: Job[object] | None = app.client.get(add.enqueue(1).id)
    assert job is None or job.attempt == 0
