"""Enqueue in the caller's transaction on PostgreSQL: there when the caller commits, and no trace of it otherwise."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from relet import App, Draft, InvalidInput, Job, JobNotFound, ReletError, State
from relet._core.ids import make_id
from relet._tasks.task import PlainTask
from relet.errors import InvalidTransition, SchemaMismatch
from tests.clocks import at
from tests.databases import Database, inventory
from tests.harness import harness_of
from tests.store.transactions import OWN, POSTGRES_WAYS, Way, alchemy_url
from tests.test_client import AWKWARD

pytestmark = pytest.mark.filterwarnings("error")

LONG_AGO = 1_700_000_000.0


@pytest.fixture(scope="module")
def own_table(pg_schema: Database) -> str:
    table = f"{pg_schema.schema}.{OWN}"
    with psycopg.connect(pg_schema.url) as connection:
        connection.execute(f"create table {table} (n integer)".encode())
    return table


@pytest.fixture
def app(pg_app: App, pg_database: Database, own_table: str) -> Iterator[App]:
    @pg_app.task
    def work(value: Any = None) -> Any:
        return value

    yield pg_app
    with psycopg.connect(pg_database.url) as connection:
        connection.execute(f"delete from {own_table}".encode())


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    return app.lookup("work")  # type: ignore[return-value]


@pytest.fixture(params=POSTGRES_WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return POSTGRES_WAYS[request.param]


def drafts_of_all_kinds(task: PlainTask[..., Any]) -> list[Draft[Any]]:
    """One draft for each table that enqueue writes: jobs, nudges, keys, dependencies."""
    first = task.draft(AWKWARD)
    return [
        first,
        task.using(target="t").draft(1),
        task.using(unique="k").draft(2),
        task.using(unique="w", unique_for=60).draft(3),
        task.using(depends_on=[first]).draft(4),
        task.using(delay=60, id=make_id(time.time(), b"0123456789")).draft(5),
    ]


def test_jobs_of_a_committed_transaction_are_there(
    app: App, task: PlainTask[..., Any], way: Way, pg_database: Database
) -> None:
    async def main() -> None:
        async with way(pg_database.url) as caller:
            await caller.do(f"insert into {pg_database.schema}.{OWN} values (1)")
            jobs = await caller.enqueue(app, *drafts_of_all_kinds(task))
            assert app.client.count() == 0, "no other connection sees them before the commit"
            await caller.end(commit=True)
        assert [app.client.get(job) for job in jobs] == jobs
        assert [job.wait for job in jobs] == [None, "target", None, None, "jobs", "time"]

    asyncio.run(main())
    counts = inventory(app._store())
    assert (counts["jobs"], counts["keys"], counts["dependencies"], counts[OWN]) == (6, 2, 1, 1)
    assert counts["nudges"] > 0
    payload = harness_of(app).claim(1)[0].payload_json
    assert repr(app.lookup("work").arguments(payload)) == repr(((AWKWARD,), {}))


def test_a_transaction_that_is_rolled_back_leaves_nothing(
    app: App, task: PlainTask[..., Any], way: Way, pg_database: Database
) -> None:
    before = inventory(app._store())

    async def main() -> None:
        async with way(pg_database.url) as caller:
            await caller.do(f"insert into {pg_database.schema}.{OWN} values (1)")
            await caller.enqueue(app, *drafts_of_all_kinds(task))
            await caller.end(commit=False)

    asyncio.run(main())
    assert inventory(app._store()) == before


def test_the_clock_of_the_store_counts_in_the_callers_transaction(
    app: App, task: PlainTask[..., Any], way: Way, pg_database: Database
) -> None:
    async def main() -> list[Job[Any]]:
        async with way(pg_database.url) as caller:
            drafts = task.draft(1), task.using(unique="w", unique_for=60).draft(2)
            jobs: list[Job[Any]] = await caller.enqueue(app, *drafts)
            await caller.end(commit=True)
            return jobs

    with at(app._store(), LONG_AGO):
        jobs = asyncio.run(main())
    assert [job.created_at.timestamp() for job in jobs] == [LONG_AGO, LONG_AGO]
    assert not task.using(unique="w", unique_for=60).enqueue(3).existing, "that window is over"


def test_jobs_that_are_there_already_are_found(
    app: App, task: PlainTask[..., Any], way: Way, pg_database: Database
) -> None:
    job_id = make_id(time.time(), b"0123456789")
    by_id = task.using(id=job_id).enqueue(AWKWARD)
    by_key = task.using(unique="k").enqueue(1)

    async def main() -> None:
        async with way(pg_database.url) as caller:
            found = await caller.enqueue(app, task.using(id=job_id).draft(2), task.using(unique="k").draft(3))
            assert [(job.id, job.existing, job.payload_json) for job in found] == [
                (by_id.id, True, by_id.payload_json),
                (by_key.id, True, by_key.payload_json),
            ]
            with pytest.raises(JobNotFound):
                await caller.enqueue(app, task.using(depends_on=[make_id(1_700_000_000.0, b"no such id")]).draft(4))
            (more,) = await caller.enqueue(app, task.draft("the transaction goes on"))
            await caller.end(commit=True)
            assert app.client.get(more) == more

    asyncio.run(main())
    assert app.client.count() == 3


def complete_from_outside(app: App, task: PlainTask[..., Any], way: Callable[[], Any], writes: str) -> None:
    """In a transaction that also writes something of the caller's: rolled back, and then committed."""

    async def main(*, commit: bool) -> None:
        async with way() as caller:
            await caller.do(writes)
            assert (await caller.complete(app, job, 5)).state is State.SUCCEEDED
            assert (await caller.complete(app, other, continue_with=task.draft(), chain=True)).continued
            with pytest.raises(InvalidTransition, match="it is running; in a transaction of yours"):
                await caller.complete(app, running.id, 7)
            assert [one.state for one in map(app.client.get, (job, other)) if one] == [State.QUEUED] * 2
            await caller.end(commit=commit)

    task.enqueue()
    (running,) = harness_of(app).claim(1)
    job, other = task.enqueue(), task.enqueue()
    before = inventory(app._store())
    asyncio.run(main(commit=False))
    assert inventory(app._store()) == before
    asyncio.run(main(commit=True))
    assert app.client.result(job, timeout=5) == 5
    assert [one.state for one in app.client.chain(other)] == [State.SUCCEEDED, State.QUEUED]
    assert app.client.get(running.id).state is State.RUNNING  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["psycopg-odd_types", "asyncpg", "sqlalchemy-session"])
def test_jobs_are_completed_from_outside_when_the_caller_commits(
    app: App, task: PlainTask[..., Any], name: str, pg_database: Database
) -> None:
    """With their chains. Not jobs that run: the worker that has the lease would wait for the caller."""
    writes = f"insert into {pg_database.schema}.{OWN} values (1)"
    complete_from_outside(app, task, lambda: POSTGRES_WAYS[name](pg_database.url), writes)
    assert inventory(app._store())[OWN] == 1


# transactions within transactions


def test_a_savepoint_that_is_rolled_back_takes_its_jobs_along(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    with psycopg.connect(pg_database.url) as connection:
        kept = task.using(connection=connection).enqueue("kept")
        with connection.transaction():
            task.using(connection=connection, target="t", unique="k").enqueue("gone")
            raise psycopg.Rollback
        more = task.using(connection=connection, unique="k").enqueue("kept, the key is free again")
    assert {job.id for job in app.client.jobs().jobs} == {kept.id, more.id}
    assert inventory(app._store())["nudges"] == 0


def test_a_savepoint_of_asyncpg_and_of_a_session_too(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    class Undo(Exception):
        pass

    async def main() -> None:
        connection = await asyncpg.connect(pg_database.url)
        async with connection.transaction():
            with pytest.raises(Undo):
                async with connection.transaction():
                    await task.using(connection=connection, target="t").aenqueue("gone")
                    raise Undo
            await task.using(connection=connection).aenqueue("kept")
        await connection.close()

    asyncio.run(main())
    with Session(create_engine(alchemy_url(pg_database.url, "psycopg"), poolclass=NullPool)) as session:
        nested = session.begin_nested()
        task.using(connection=session, target="t").enqueue("gone")
        nested.rollback()
        task.using(connection=session).enqueue("kept")
        session.commit()
    assert [job.payload_json for job in app.client.jobs().jobs] == [task.draft("kept").payload_json] * 2
    assert inventory(app._store())["nudges"] == 0


# connections that would commit each statement are refused


def test_psycopg_with_autocommit_is_refused_outside_a_block(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    with psycopg.connect(pg_database.url, autocommit=True) as connection:
        with pytest.raises(InvalidInput, match=r"with connection\.transaction\(\)"):
            task.using(connection=connection).enqueue()
        with connection.transaction():
            task.using(connection=connection).enqueue()
    assert app.client.count() == 1


def test_async_psycopg_with_autocommit_is_refused_outside_a_block(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(pg_database.url, autocommit=True) as connection:
            with pytest.raises(InvalidInput, match=r"async with connection\.transaction\(\)"):
                await task.using(connection=connection).aenqueue()
            async with connection.transaction():
                await task.using(connection=connection).aenqueue()

    asyncio.run(main())
    assert app.client.count() == 1


def test_asyncpg_outside_a_transaction_is_refused(app: App, task: PlainTask[..., Any], pg_database: Database) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(pg_database.url)
        with pytest.raises(InvalidInput, match=r"async with connection\.transaction\(\)"):
            await task.using(connection=connection).aenqueue()
        await connection.close()

    asyncio.run(main())
    assert app.client.count() == 0


@pytest.mark.parametrize("where", ["engine", "engine options", "connection options"])
@pytest.mark.parametrize("what", ["connection", "session"])
def test_sqlalchemy_with_autocommit_is_refused(
    app: App, task: PlainTask[..., Any], pg_database: Database, where: str, what: str
) -> None:
    url = alchemy_url(pg_database.url, "psycopg")
    engine = create_engine(url, poolclass=NullPool, **({"isolation_level": "AUTOCOMMIT"} if where == "engine" else {}))
    if where == "engine options":
        engine = engine.execution_options(isolation_level="AUTOCOMMIT")
    raw: Any = engine.connect() if what == "connection" else Session(engine)
    if where == "connection options":
        raw.execution_options(isolation_level="AUTOCOMMIT") if what == "connection" else raw.connection(
            execution_options={"isolation_level": "AUTOCOMMIT"}
        )
    try:
        with pytest.raises(InvalidInput, match="AUTOCOMMIT"):
            task.using(connection=raw).enqueue()
    finally:
        raw.close()
    assert app.client.count() == 0


def test_async_sqlalchemy_with_autocommit_is_refused(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    async def main() -> None:
        for driver in ("psycopg", "asyncpg"):
            engine = create_async_engine(
                alchemy_url(pg_database.url, driver), poolclass=NullPool, isolation_level="AUTOCOMMIT"
            )
            async with engine.connect() as raw:
                with pytest.raises(InvalidInput, match="AUTOCOMMIT"):
                    await task.using(connection=raw).aenqueue()
            await engine.dispose()

    asyncio.run(main())
    assert app.client.count() == 0


# sync or async, and unsupported connections


def test_the_wrong_colour_names_its_twin(app: App, task: PlainTask[..., Any], pg_database: Database) -> None:
    async def main() -> None:
        plain = psycopg.connect(pg_database.url)
        with pytest.raises(TypeError, match=r"psycopg\.Connection.* sync method .*enqueue"):
            await task.using(connection=plain).aenqueue()
        plain.close()
        with create_engine(alchemy_url(pg_database.url, "psycopg"), poolclass=NullPool).connect() as alchemy:
            with pytest.raises(TypeError, match=r"sqlalchemy.*Connection.* sync method .*enqueue"):
                await app.aclient.enqueue(task.draft(), connection=alchemy)
        async with await psycopg.AsyncConnection.connect(pg_database.url) as coloured:
            with pytest.raises(TypeError, match=r"psycopg.*AsyncConnection.* async method .*aenqueue"):
                task.using(connection=coloured).enqueue()
        connection = await asyncpg.connect(pg_database.url)
        async with connection.transaction():
            with pytest.raises(TypeError, match=r"asyncpg.* async method .*aenqueue"):
                app.client.enqueue(task.draft(), connection=connection)
        await connection.close()

    asyncio.run(main())
    assert app.client.count() == 0


def test_an_object_that_is_no_connection_is_refused(app: App, task: PlainTask[..., Any], pg_database: Database) -> None:
    engine = create_engine(alchemy_url(pg_database.url, "psycopg"), poolclass=NullPool)
    with psycopg.connect(pg_database.url) as connection:
        for thing in (object(), "a string", engine, connection.cursor(), 0, psycopg):
            with pytest.raises(TypeError, match=r"cannot use .* as a connection; supported: .*psycopg\.Connection"):
                task.using(connection=thing).enqueue()
            with pytest.raises(TypeError, match=r"cannot use "):
                asyncio.run(task.using(connection=thing).aenqueue())
    assert app.client.count() == 0


def test_a_connection_to_postgres_does_not_fit_jobs_in_a_file(pg_database: Database) -> None:
    app = App("sqlite:///:memory:")

    @app.task
    def work() -> None: ...

    with psycopg.connect(pg_database.url) as connection:
        with pytest.raises(InvalidInput, match=r"PostgreSQL.*sqlite:///:memory:"):
            work.using(connection=connection).enqueue()
    with Session(create_engine(alchemy_url(pg_database.url, "psycopg"), poolclass=NullPool)) as session:
        with pytest.raises(InvalidInput, match=r"postgresql.*sqlite:///:memory:"):
            work.using(connection=session).enqueue()
    assert app.client.count() == 0
    app.close()


@pytest.mark.parametrize(
    "way_name", ["psycopg", "psycopg-async", "asyncpg", "sqlalchemy-session", "sqlalchemy-async-asyncpg"]
)
def test_the_error_for_a_database_without_the_schema_names_the_command(pg_database: Database, way_name: str) -> None:
    app = App(pg_database.url, schema="does_not_exist")

    @app.task
    def work() -> None: ...

    async def main() -> None:
        async with POSTGRES_WAYS[way_name](pg_database.url) as caller:
            with pytest.raises(SchemaMismatch, match="migrate"):
                await caller.enqueue(app, work.draft())
            await caller.end(commit=False)

    asyncio.run(main())
    app.close()


def test_a_transaction_that_has_failed_already_says_so(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    with psycopg.connect(pg_database.url) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select 1/0")
        with pytest.raises((psycopg.errors.InFailedSqlTransaction, ReletError)):
            task.using(connection=connection).enqueue()
        connection.rollback()
        task.using(connection=connection).enqueue()
    assert app.client.count() == 1


# others


def test_transactions_that_enqueue_for_the_same_targets_do_not_meet(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    """X, Y here and Y, X there, both open at once: neither waits for the other."""
    with psycopg.connect(pg_database.url) as here, psycopg.connect(pg_database.url) as there:
        for connection in (here, there):
            connection.execute("set local lock_timeout = '2s'")
        task.using(connection=here, target="X").enqueue()
        task.using(connection=there, target="Y").enqueue()
        task.using(connection=here, target="Y").enqueue()
        task.using(connection=there, target="X").enqueue()
        there.commit()
        here.commit()
    assert app.client.count(state=State.PENDING) == 4


@pytest.mark.read_committed
def test_an_open_transaction_that_enqueued_blocks_no_other(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    first = task.using(target="X").enqueue()
    with psycopg.connect(pg_database.url) as caller:
        task.using(connection=caller, target="X", depends_on=[first]).enqueue()
        done = threading.Event()

        def others() -> None:
            task.using(target="X").enqueue()
            app.client.cancel(first)
            task.enqueue()
            harness_of(app).claim(1)
            done.set()

        threading.Thread(target=others, daemon=True).start()
        assert done.wait(10), "another transaction waits for the caller's"


def test_two_transactions_that_want_one_key_wait_for_each_other_and_one_gets_it(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    with psycopg.connect(pg_database.url) as here:
        mine = task.using(connection=here, unique="k").enqueue("mine")
        theirs: list[Any] = []
        thread = threading.Thread(target=lambda: theirs.append(task.using(unique="k").enqueue("theirs")), daemon=True)
        thread.start()
        thread.join(0.3)
        assert theirs == [], "whether the key is free is not yet decided"
        here.commit()
        thread.join(10)
    assert [(job.id, job.existing) for job in theirs] == [(mine.id, True)]


def test_an_async_call_on_a_connection_runs_in_the_callers_loop(
    app: App, task: PlainTask[..., Any], pg_database: Database
) -> None:
    """It needs no separate connection: the store's pool stays empty."""

    fresh = App(pg_database.url, schema=pg_database.schema)

    @fresh.task(name="work")
    def again() -> None: ...

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(pg_database.url) as connection:
            await again.using(connection=connection).aenqueue()

    threads = set(threading.enumerate())
    asyncio.run(main())
    assert set(threading.enumerate()) <= threads, "an idle thread of an earlier test may end meanwhile"
    assert app.client.count() == 1
    fresh.close()
