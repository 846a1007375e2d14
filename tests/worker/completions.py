"""Handlers that complete their jobs in transactions, in every way there is, side by side in one worker.

A handler is written once, as a coroutine: `async with begin() as tx`, then `await tx.write(...)`, `await tx.succeed()`.
`CompletionRunner` runs it in a thread and on the event loop, in a transaction of the store and in one on the user's
connection. In a thread, the runner drives the coroutine by hand: nothing in it ever waits.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import IsolationLevel

from relet import App, Attempt, Backoff, Draft, Job
from relet._store.flows import lease
from relet._tasks.task import Task
from relet._worker import Worker
from tests.conftest import PG_KINDS
from tests.databases import Database
from tests.worker.working import TIMEOUT, connect, over, run_sql, until, working

OWN = "own_rows"
AT_ONCE = Backoff(base=0.001, max=0.001)

#: In a transaction of the store, and on a connection of the user's own; in a thread, and on the event loop.
WAYS = ("transaction", "atransaction", "own", "aown")
FENCED = ("transaction", "atransaction")

ON_POSTGRES = pytest.mark.parametrize("_one_of_two", PG_KINDS, indirect=True)


class Undo(Exception):
    """Raised to roll back."""


@dataclass
class Tx:
    """A transaction that is open."""

    runner: CompletionRunner
    attempt: Attempt
    connection: Any
    _succeed: Callable[[Any], Any]
    _enqueue: Callable[[Draft[Any]], Any]

    async def execute(self, sql: str, **params: Any) -> None:
        text: Any = sql
        if self.runner.database.is_postgres:
            text = sql.replace(":job", "%(job)s").replace(":word", "%(word)s").encode()
        await _awaited(self.connection.execute(text, params))

    async def write(self, word: str) -> None:
        """A write of the handler's own."""
        own = f"insert into {self.runner.table} (job, word) values (:job, :word)"
        await self.execute(own, job=self.attempt.job.id, word=word)

    async def succeed(self, result: Any) -> Any:
        return await _awaited(self._succeed(result))

    async def enqueue(self, draft: Draft[Any]) -> Job[Any]:
        return await _awaited(self._enqueue(draft))  # type: ignore[no-any-return]

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        await self.execute("savepoint inner_one")
        try:
            yield
        except BaseException:
            await self.execute("rollback to savepoint inner_one")
            raise
        await self.execute("release savepoint inner_one")


Begin = Callable[[], Any]  # an async context manager of a Tx
Handler = Callable[[Attempt, Begin], Coroutine[Any, Any, Any]]


class Ended(NamedTuple):
    """How a handler ended for one way."""

    way: str
    job: Job[Any]


class CompletionRunner:
    """Runs handlers in every way, in an app whose user has a table in the same database."""

    def __init__(self, database: Database, app: App) -> None:
        self.database, self.app = database, app
        self.table = f"{database.schema}.{OWN}" if database.is_postgres else OWN

    def task(self, way: str, handler: Handler, **options: Any) -> Task[..., Any]:
        """A task that runs the handler this way."""
        options = {"name": f"{handler.__name__}-{way}", "backoff": AT_ONCE, **options}
        if way.startswith("a"):

            @self.app.task(**options)
            async def on_loop(attempt: Attempt) -> Any:
                return await handler(attempt, lambda: self.begin(way, attempt))

            return on_loop  # type: ignore[no-any-return]

        @self.app.task(**options)
        def in_thread(attempt: Attempt) -> Any:
            return by_hand(handler(attempt, lambda: self.begin(way, attempt)))

        return in_thread  # type: ignore[no-any-return]

    def run(self, handler: Handler, ways: Sequence[str] = WAYS, **options: Any) -> list[Ended]:
        """Run the handler every way at once, to its end."""
        with self.running(handler, ways, **options) as (_, jobs):
            return self.ends(ways, jobs)

    @contextmanager
    def running(
        self, handler: Handler, ways: Sequence[str] = WAYS, worker: dict[str, Any] | None = None, **options: Any
    ) -> Iterator[tuple[Worker, list[Job[Any]]]]:
        """The worker, and a job for each way."""
        tasks = [self.task(way, handler, **options) for way in ways]
        with working(self.app, **(worker or {"lease": 10.0})) as running:
            yield running, self.app.client.enqueue_many([task.draft() for task in tasks])

    def ends(self, ways: Sequence[str], jobs: Sequence[Job[Any]]) -> list[Ended]:
        return [Ended(way, done) for way, done in zip(ways, over(self.app, *jobs), strict=True)]

    def written(self, job: Job[Any]) -> list[str]:
        """The committed rows of a job."""
        with closing(connect(self.database, self.app)) as connection:
            mark = "%s" if self.database.is_postgres else "?"
            found = connection.execute(f"select word from {self.table} where job = {mark} order by word", (job.id,))
            return [word for (word,) in found.fetchall()]

    def outcomes(self, job: Job[Any]) -> list[str]:
        return [record.outcome for record in self.app.client.attempts(job)]

    def reasons(self, job: Job[Any]) -> list[str | None]:
        """Why attempts ended: the first line of each."""
        return [(record.error or "").partition("\n")[0] or None for record in self.app.client.attempts(job)]

    @asynccontextmanager
    async def begin(self, way: str, attempt: Attempt) -> AsyncIterator[Tx]:
        match way:
            case "transaction":
                with attempt.transaction() as tx:
                    yield Tx(self, attempt, tx.connection, tx.succeed, tx.enqueue)
            case "atransaction":
                async with attempt.transaction() as atx:
                    yield Tx(self, attempt, atx.connection, atx.succeed, atx.enqueue)
            case "aown" if self.database.is_postgres:
                async with await psycopg.AsyncConnection.connect(self.database.url) as raw:
                    await raw.set_isolation_level(IsolationLevel.READ_COMMITTED)
                    yield Tx(
                        self, attempt, raw, lambda result: attempt.asucceed(result, connection=raw),
                        lambda draft: self.app.aclient.enqueue(draft, connection=raw),
                    )  # fmt: skip
            case _:
                with self._own_connection() as plain:
                    yield Tx(
                        self, attempt, plain, lambda result: attempt.succeed(result, connection=plain),
                        lambda draft: self.app.client.enqueue(draft, connection=plain),
                    )  # fmt: skip

    @contextmanager
    def _own_connection(self) -> Iterator[Any]:
        if self.database.is_postgres:
            with psycopg.connect(self.database.url) as raw:
                raw.isolation_level = IsolationLevel.READ_COMMITTED
                yield raw
        else:
            path = self.database.url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(path, isolation_level=None, timeout=TIMEOUT)) as plain:
                plain.execute("begin immediate")
                with plain:
                    yield plain


def by_hand(handler: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits."""
    try:
        handler.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a handler in a thread must not wait")


async def _awaited(value: Any) -> Any:
    return await value if isinstance(value, Awaitable) else value


@contextmanager
def runner_at(database: Database, app: App) -> Iterator[CompletionRunner]:
    """With a table of the user's own, empty."""
    runner = CompletionRunner(database, app)
    app.client.migrate()
    _run(runner, f"create table {runner.table} (job text, word text)")
    try:
        yield runner
    finally:
        if database.is_postgres:
            _run(runner, f"drop table {runner.table}")


def _run(runner: CompletionRunner, sql: str) -> None:
    with closing(connect(runner.database, runner.app)) as connection:
        connection.execute(sql)
        connection.commit()


def reap(runner: CompletionRunner, attempt: Attempt) -> None:
    """Take the job away from its owner, who does not know. The maintenance of a worker may do it as well."""
    app, database = runner.app, runner.database
    past, now = ("now() - interval '1 hour'", "now()") if database.is_postgres else ("1", "unixepoch()")

    def taken() -> bool:
        return bool(app._store().run(lease.pending_requests, [attempt.job.lease]).lost)

    for _ in range(10):
        run_sql(
            # The store is new, or a loaded machine has missed some beats: no worker would reap yet.
            database, app, f"update {{t}}pulse set grace_until = {past}, touched_at = {now}",
            f"update {{t}}jobs set expires_at = {past} where id = '{attempt.job.id}' and token = '{attempt.job.token}'"
            " and state = 'running'",
        )  # fmt: skip
        app._store().run(lease.reap, random.random)
        with suppress(AssertionError):
            until(taken, seconds=2.0)
            return
    raise AssertionError("the job was not reaped")
