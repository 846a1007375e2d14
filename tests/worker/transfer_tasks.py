"""Handlers that move money between two rows and complete their jobs in the same transaction.

`tests.worker.worker_group` runs them. A job may say at which point of its first attempt its process is to kill itself.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import IsolationLevel

from relet import App, Attempt, Backoff
from tests.worker.fault_tasks import note

POINTS = ("begun", "wrote", "completed", "committed")

_SCHEMA = os.environ.get("TASKS_SCHEMA", "relet")
_SOON = Backoff(base=0.01, max=0.1)

app = App(schema=_SCHEMA)


def is_postgres() -> bool:
    return os.environ["RELET_URL"].startswith("postgresql")


def table(name: str, schema: str | None = None) -> str:
    return f"{schema or _SCHEMA}.{name}" if is_postgres() else name


def _statements(attempt: Attempt, cents: int) -> list[Any]:
    """Out of one account, into the ledger, into the other account."""
    accounts, ledger = table("accounts"), table("ledger")
    return [
        f"update {accounts} set balance = balance - {cents} where name = 'here'",
        f"insert into {ledger} (job, cents) values ('{attempt.job.id}', {cents})",
        f"update {accounts} set balance = balance + {cents} where name = 'there'",
    ]


class Course:
    """The fate of an attempt: it dies at a point, or dawdles at any."""

    def __init__(self, attempt: Attempt, dies: str | None) -> None:
        self._attempt, self._dies = attempt, dies

    def at(self, point: str) -> float:
        """How long to stay here."""
        note(point, self._attempt.job.id, self._attempt.version)
        if self._dies is None:
            return random.random() * 0.004
        if self._dies == point and self._attempt.version == 1:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return 0.0


def _move(attempt: Attempt, course: Course, cents: int, connection: Any) -> None:
    time.sleep(course.at("begun"))
    first, *others = _statements(attempt, cents)
    connection.execute(first)
    time.sleep(course.at("wrote"))
    for statement in others:
        connection.execute(statement)


@app.task(backoff=_SOON, max_attempts=1000)
def transaction(attempt: Attempt, cents: int, dies: str | None = None) -> int:
    course = Course(attempt, dies)
    with attempt.transaction() as tx:
        _move(attempt, course, cents, tx.connection)
        tx.succeed(cents)
        time.sleep(course.at("completed"))
    time.sleep(course.at("committed"))
    return cents


@app.task(backoff=_SOON, max_attempts=1000)
async def atransaction(attempt: Attempt, cents: int, dies: str | None = None) -> int:
    course = Course(attempt, dies)
    async with attempt.transaction() as tx:
        await asyncio.sleep(course.at("begun"))
        first, *others = _statements(attempt, cents)
        await _awaited(tx.connection.execute(first))
        await asyncio.sleep(course.at("wrote"))
        for statement in others:
            await _awaited(tx.connection.execute(statement))
        await tx.succeed(cents)
        await asyncio.sleep(course.at("completed"))
    await asyncio.sleep(course.at("committed"))
    return cents


@app.task(backoff=_SOON, max_attempts=1000)
def own(attempt: Attempt, cents: int, dies: str | None = None) -> int:
    course = Course(attempt, dies)
    with _own_connection() as connection:
        _move(attempt, course, cents, connection)
        attempt.succeed(cents, connection=connection)
        time.sleep(course.at("completed"))
    time.sleep(course.at("committed"))
    return cents


@app.task(backoff=_SOON, max_attempts=1000, process=True)
def in_process(attempt: Attempt, cents: int, dies: str | None = None) -> int:
    return transaction(attempt, cents, dies)


@app.task(backoff=_SOON, max_attempts=1000, process=True)
def own_in_process(attempt: Attempt, cents: int, dies: str | None = None) -> int:
    return own(attempt, cents, dies)


@contextmanager
def _own_connection() -> Iterator[Any]:
    url = os.environ["RELET_URL"]
    if is_postgres():
        with psycopg.connect(url, application_name="the handler's own") as raw:
            raw.isolation_level = IsolationLevel.READ_COMMITTED
            yield raw
        return
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)) as connection:
        connection.execute("begin immediate")
        with connection:
            yield connection


async def _awaited(value: Any) -> Any:
    return await value if asyncio.iscoroutine(value) else value
