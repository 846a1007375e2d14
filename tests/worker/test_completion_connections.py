"""Completion on each kind of connection that a user may have: committed, rolled back, by a zombie, with a successor."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from relet import Attempt, InvalidInput, Job, LeaseLost, State
from relet._store import postgres_pool
from relet._tasks.task import Task
from tests.djangos import WAYS as DJANGO_WAYS
from tests.djangos import configure
from tests.store.transactions import POSTGRES_WAYS, SQLITE_WAYS, Transaction, Way, alchemy_url
from tests.worker.completions import AT_ONCE, ON_POSTGRES, CompletionRunner, Undo, by_hand, reap
from tests.worker.working import over, until, until_state, working

pytestmark = pytest.mark.read_committed  # at which drivers begin, if nothing else is configured

configure()

ON_SQLITE = pytest.mark.parametrize("_one_of_two", ["sqlite"], indirect=True)

Handler = Callable[[Attempt, "Completing"], Awaitable[Any]]
Before = Callable[[Attempt], bool]


@asynccontextmanager
async def asyncpg_pool_with_codec(url: str) -> AsyncIterator[Transaction]:
    async def prepare(raw: Any) -> None:
        await raw.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)

    async with asyncpg.create_pool(url, min_size=1, max_size=1, init=prepare) as pool, pool.acquire() as raw:
        one = raw.transaction()
        await one.start()
        yield Transaction(raw, True, raw.execute, one.commit, one.rollback)


class Completing:
    """A transaction of the user's on a connection of some kind."""

    def __init__(self, runner: CompletionRunner, attempt: Attempt, caller: Transaction) -> None:
        self._stage, self._attempt, self._caller = runner, attempt, caller

    async def write(self, word: str) -> None:
        row = f"'{self._attempt.job.id}', '{word}'"
        await self._caller.do(f"insert into {self._stage.table} (job, word) values ({row})")

    async def succeed(self, result: Any) -> Any:
        if self._caller.is_async:
            return await self._attempt.asucceed(result, connection=self._caller.connection)
        return self._attempt.succeed(result, connection=self._caller.connection)

    async def end(self, *, commit: bool) -> None:
        await self._caller.end(commit=commit)


def ways_at(runner: CompletionRunner) -> dict[str, Way]:
    if runner.database.is_postgres:
        return {**POSTGRES_WAYS, "asyncpg-pool-codec": asyncpg_pool_with_codec}
    return SQLITE_WAYS


def on_connections(runner: CompletionRunner, handler: Handler, before: Before) -> list[Task[..., Any]]:
    """A task for each kind of connection. Async handlers may use plain connections as well."""

    def task_of(name: str, way: Way) -> Task[..., Any]:
        @runner.app.task(name=name, backoff=AT_ONCE)
        async def on_loop(attempt: Attempt) -> Any:
            if before(attempt):
                return "the new owner's"
            async with way(runner.database.url) as caller:
                return await handler(attempt, Completing(runner, attempt, caller))

        return on_loop  # type: ignore[no-any-return]

    return [task_of(name, way) for name, way in ways_at(runner).items()]


def on_django(runner: CompletionRunner, handler: Handler, before: Before) -> list[Task[..., Any]]:
    """The same for Django, whose connections belong to threads. A block is rolled back by an exception."""

    def task_of(name: str, way: Any) -> Task[..., Any]:
        @runner.app.task(name=f"django-{name}", backoff=AT_ONCE)
        def in_thread(attempt: Attempt) -> Any:
            if before(attempt):
                return "the new owner's"
            with way(runner.database) as raw:
                caller = Transaction(raw, False, lambda sql: _execute(raw, sql), lambda: None, _undo)
                return by_hand(handler(attempt, Completing(runner, attempt, caller)))  # type: ignore[arg-type]

        return in_thread  # type: ignore[no-any-return]

    return [task_of(name, way) for name, way in DJANGO_WAYS.items()]


def _execute(raw: Any, sql: str) -> None:
    with raw.cursor() as cursor:
        cursor.execute(sql)


def _undo() -> None:
    raise Undo


@contextmanager
def _each(
    runner: CompletionRunner, handler: Handler, before: Before = lambda attempt: False
) -> Iterator[list[Job[Any]]]:
    """Jobs that run it one after the other: on SQLite, transactions open on one event loop would wait for each other.

    `before` is done before there is a connection; when it says so, the rest is for others to do.
    """
    tasks = on_connections(runner, handler, before) + on_django(runner, handler, before)
    with working(runner.app, lease=30.0, concurrency=1) as worker:
        worker._sessions[0].heartbeat.stop()  # so that zombies do not hear of their loss
        yield runner.app.client.enqueue_many([task.draft() for task in tasks])


@pytest.mark.long
def test_a_committed_transaction_has_completed_the_job(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, mine: Completing) -> str:
        await mine.write("a")
        await mine.succeed({"a": ["result"]})
        await mine.end(commit=True)
        return "something else"

    with _each(runner, handler) as jobs:
        for job in over(runner.app, *jobs):
            assert (job.task, job.state, job.attempt) == (job.task, State.SUCCEEDED, 1)
            assert runner.app.client.result(job) == {"a": ["result"]}
            assert runner.written(job) == ["a"]


@pytest.mark.long
def test_a_transaction_that_is_rolled_back_leaves_nothing_and_is_tried_again(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, mine: Completing) -> str:
        await mine.write(f"attempt {attempt.job.attempt}")
        await mine.succeed("done")
        await mine.end(commit=attempt.job.attempt == 2)
        return "done"

    with _each(runner, handler) as jobs:
        for job in over(runner.app, *jobs):
            assert (job.task, job.state, job.attempt) == (job.task, State.SUCCEEDED, 2)
            assert runner.written(job) == ["attempt 2"]
            reason = runner.reasons(job)[0] or ""
            assert reason.endswith("Undo" if job.task.startswith("django") else "completion rolled back")


@pytest.mark.long
def test_a_zombie_is_told_in_its_transaction(runner: CompletionRunner) -> None:
    told: list[str] = []

    def robbed(attempt: Attempt) -> bool:
        """By attempts, not by versions: a job claimed in advance may have been released before it ran."""
        if attempt.job.attempt == 1:
            reap(runner, attempt)
        return attempt.job.attempt > 1

    async def handler(attempt: Attempt, mine: Completing) -> str:
        await mine.write("of a zombie")
        with pytest.raises(LeaseLost):
            await mine.succeed("a zombie's")
        told.append(attempt.job.id)
        await mine.end(commit=False)
        return "a zombie's"

    with _each(runner, handler, robbed) as jobs:
        for job in over(runner.app, *jobs):
            assert (job.task, job.state, job.losses) == (job.task, State.SUCCEEDED, 1), runner.reasons(job)
            assert runner.app.client.result(job) == "the new owner's"
            assert runner.written(job) == []
    assert sorted(told) == sorted(job.id for job in jobs)


@pytest.mark.long
def test_a_chain_goes_on_with_the_commit(runner: CompletionRunner) -> None:
    @runner.app.task
    def end(word: str) -> str:
        return word

    async def handler(attempt: Attempt, mine: Completing) -> None:
        successor = end.using(unique=attempt.job.id, target="t").draft("the end")
        await mine.succeed(attempt.continue_with(successor))
        await mine.end(commit=True)

    with _each(runner, handler) as jobs:
        for job in jobs:
            assert runner.app.client.result(job, timeout=30) == "the end"
            assert len(runner.app.client.chain(job)) == 2


@ON_POSTGRES
def test_the_wrong_colour_names_its_twin_and_the_job_can_still_be_completed(runner: CompletionRunner) -> None:
    url = runner.database.url

    @runner.app.task
    async def work(attempt: Attempt) -> str:
        engine, aengine = create_engine(alchemy_url(url, "psycopg")), create_async_engine(alchemy_url(url, "asyncpg"))
        raw = await asyncpg.connect(url)
        async with await psycopg.AsyncConnection.connect(url) as aplain, aengine.connect() as aalchemy:
            for coloured in (aplain, aalchemy, raw):
                with pytest.raises(TypeError, match=r"is async: use the async method \(.*asucceed"):
                    attempt.succeed("done", connection=coloured)
        with psycopg.connect(url) as plain, engine.connect() as alchemy:
            for uncoloured in (plain, alchemy):
                with pytest.raises(TypeError, match=r"is not async: use the sync method \(.*succeed"):
                    await attempt.asucceed("done", connection=uncoloured)
            with pytest.raises(TypeError, match="cannot use"):
                attempt.succeed("done", connection=object())
            with pytest.raises(InvalidInput, match="is in no transaction"):
                await attempt.asucceed("done", connection=raw)
        async with raw.transaction():
            await attempt.asucceed("done", connection=raw)
        await raw.close()
        await aengine.dispose()
        engine.dispose()
        return "done"

    with working(runner.app):
        (job,) = over(runner.app, work.enqueue())
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)


@ON_SQLITE
@pytest.mark.parametrize("driver", ["pysqlite", "aiosqlite"])
def test_on_sqlalchemys_sqlite_the_first_look_is_in_the_transaction(runner: CompletionRunner, driver: str) -> None:
    """The driver would begin with the first write: whatever was looked at before could have changed by then."""
    url = alchemy_url(runner.database.url, driver)
    open_to_others: list[bool] = []

    def looked(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "pragma" not in statement and "begin" not in statement:
            open_to_others.append(_can_be_written(runner))

    @runner.app.task
    async def work(attempt: Attempt) -> None:
        successor = end.using(unique="a key").draft()
        if driver == "pysqlite":
            engine = create_engine(url, poolclass=NullPool)
            event.listen(engine, "after_cursor_execute", looked)
            with engine.begin() as connection:
                attempt.succeed(attempt.continue_with(successor), connection=connection)
        else:
            aengine = create_async_engine(url, poolclass=NullPool)
            event.listen(aengine.sync_engine, "after_cursor_execute", looked)
            async with aengine.begin() as aconnection:
                await attempt.asucceed(attempt.continue_with(successor), connection=aconnection)

    @runner.app.task
    async def end() -> None: ...

    with working(runner.app, lease=30.0):
        job = work.enqueue()
        until_state(runner.app, job, State.SUCCEEDED)
    assert open_to_others
    assert not any(open_to_others)


def _can_be_written(runner: CompletionRunner) -> bool:
    path = runner.database.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
        try:
            other.execute("begin immediate")
        except sqlite3.OperationalError:
            return False
        return True


# Connections of the store's own, on the event loop


@pytest.mark.long
@ON_POSTGRES
def test_two_hundred_async_transactions_share_a_few_connections(
    runner: CompletionRunner, connections: Callable[[], int]
) -> None:
    most: list[int] = []

    @runner.app.task
    async def work(attempt: Attempt) -> None:
        async with attempt.transaction() as tx:
            await tx.connection.execute("select pg_sleep(0.005)")
            if len(most) % 10 == 0:
                most.append(connections())
            await tx.succeed(None)

    with working(runner.app, lease=30.0, concurrency=200):
        jobs = runner.app.client.enqueue_many([work.draft() for _ in range(200)])
        assert {job.attempt for job in over(runner.app, *jobs)} == {1}
        # 10 of the client, 10 of handlers on the event loop, and those of the worker itself
        assert 1 < max(most) <= 35
    runner.app.close()
    until(lambda: connections() == 0)  # the server takes a moment to notice


@pytest.mark.long
@ON_POSTGRES
def test_a_cancel_in_the_middle_of_an_async_transaction_leaks_nothing(
    runner: CompletionRunner, connections: Callable[[], int]
) -> None:
    """At each of its awaits, one after the other, and twice at once. A connection that is forgotten is a warning."""
    outcomes: list[str] = []

    @runner.app.task
    async def work(attempt: Attempt) -> None:
        for ticks in range(60):
            inner = asyncio.ensure_future(_transact(attempt))
            for _ in range(ticks):
                await asyncio.sleep(0 if ticks % 2 else 0.0002)
            inner.cancel()
            await asyncio.sleep(0)
            if ticks % 3 == 0:
                inner.cancel()
            try:
                await inner
                outcomes.append("done")
            except asyncio.CancelledError:
                outcomes.append("cancelled")

    async def _transact(attempt: Attempt) -> None:
        async with attempt.transaction() as tx:
            await tx.connection.execute("select 1")
            await tx.connection.execute("select pg_sleep(0.001)")

    with working(runner.app, lease=30.0):
        (job,) = over(runner.app, work.enqueue())
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
    runner.app.close()
    assert set(outcomes) == {"cancelled", "done"}
    until(lambda: connections() == 0)  # the server takes a moment to notice


@pytest.mark.long
@ON_POSTGRES
def test_two_workers_on_two_event_loops_do_not_share_async_connections(
    runner: CompletionRunner, connections: Callable[[], int]
) -> None:
    @runner.app.task
    async def work(attempt: Attempt) -> str:
        async with attempt.transaction() as tx:
            await tx.connection.execute("select pg_sleep(0.002)")
            await tx.succeed("done")
        return "done"

    with working(runner.app, lease=30.0, concurrency=5), working(runner.app, lease=30.0, concurrency=5):
        jobs = runner.app.client.enqueue_many([work.draft() for _ in range(100)])
        done = over(runner.app, *jobs)
        assert {(job.state, job.attempt) for job in done} == {(State.SUCCEEDED, 1)}
        assert len({job.worker for job in done}) == 2
    runner.app.close()
    until(lambda: connections() == 0)  # the server takes a moment to notice


@pytest.fixture
def connections(runner: CompletionRunner, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many of this test's connections are open at this moment; other tests have theirs at the same server."""
    monkeypatch.setitem(postgres_pool.DEFAULTS, "application_name", runner.database.schema)

    def count() -> int:
        with psycopg.connect(runner.database.url) as connection:
            asked = "select count(*) from pg_stat_activity where application_name = %s"
            found = connection.execute(asked, (runner.database.schema,)).fetchone()
            return int(found[0]) if found else 0

    return count
