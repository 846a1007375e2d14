"""Enqueue in the caller's transaction on the very file that the jobs live in."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from relet import App, InvalidInput, Job
from relet._core.ids import make_id
from relet._tasks.task import PlainTask
from relet.errors import SchemaMismatch, StoreBusy, StoreError
from tests.clocks import at
from tests.databases import inventory
from tests.harness import harness_of
from tests.store.test_callers import LONG_AGO, complete_from_outside, drafts_of_all_kinds
from tests.store.transactions import OWN, SQLITE_WAYS, Way, alchemy_url
from tests.test_client import AWKWARD


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def app(path: Path) -> Iterator[App]:
    app = make_app(path)
    app.client.migrate()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create table {OWN} (n integer)")
    yield app
    app.close()


def make_app(path: Path) -> App:
    app = App(f"sqlite:///{path}")

    @app.task
    def work(value: Any = None) -> Any:
        return value

    return app


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    return app.lookup("work")  # type: ignore[return-value]


@pytest.fixture(params=SQLITE_WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return SQLITE_WAYS[request.param]


def test_jobs_of_a_committed_transaction_are_there(app: App, task: PlainTask[..., Any], way: Way, path: Path) -> None:
    async def main() -> None:
        async with way(f"sqlite:///{path}") as caller:
            await caller.do(f"insert into {OWN} values (1)")
            jobs = await caller.enqueue(app, *drafts_of_all_kinds(task))
            assert app.client.count() == 0, "no other connection sees them before the commit"
            await caller.end(commit=True)
        assert [app.client.get(job) for job in jobs] == jobs

    asyncio.run(main())
    counts = inventory(app._store())
    assert (counts["jobs"], counts["keys"], counts["dependencies"], counts[OWN]) == (6, 2, 1, 1)
    assert counts["nudges"] > 0
    payload = harness_of(app).claim(1)[0].payload_json
    assert repr(app.lookup("work").arguments(payload)) == repr(((AWKWARD,), {}))


def test_a_transaction_that_is_rolled_back_leaves_nothing(
    app: App, task: PlainTask[..., Any], way: Way, path: Path
) -> None:
    before = inventory(app._store())

    async def main() -> None:
        async with way(f"sqlite:///{path}") as caller:
            await caller.enqueue(app, *drafts_of_all_kinds(task))
            await caller.do(f"insert into {OWN} values (1)")
            await caller.end(commit=False)

    asyncio.run(main())
    assert inventory(app._store()) == before


def test_the_clock_of_the_store_counts_in_the_callers_transaction(
    app: App, task: PlainTask[..., Any], way: Way, path: Path
) -> None:
    async def main() -> list[Job[Any]]:
        async with way(f"sqlite:///{path}") as caller:
            jobs: list[Job[Any]] = await caller.enqueue(app, task.draft(1))
            await caller.end(commit=True)
            return jobs

    with at(app._store(), LONG_AGO):
        jobs = asyncio.run(main())
    assert [job.created_at.timestamp() for job in jobs] == [LONG_AGO]


def test_jobs_that_are_there_already_are_found(app: App, task: PlainTask[..., Any], way: Way, path: Path) -> None:
    job_id = make_id(time.time(), b"0123456789")
    by_id = task.using(id=job_id).enqueue(AWKWARD)
    by_key = task.using(unique="k").enqueue(1)

    async def main() -> None:
        async with way(f"sqlite:///{path}") as caller:
            found = await caller.enqueue(app, task.using(id=job_id).draft(2), task.using(unique="k").draft(3))
            assert [(job.id, job.payload_json) for job in found] == [
                (by_id.id, by_id.payload_json),
                (by_key.id, by_key.payload_json),
            ]
            await caller.end(commit=True)

    asyncio.run(main())
    assert app.client.count() == 2


@pytest.mark.parametrize("name", ["sqlite3-row", "sqlalchemy-aiosqlite-session"])
def test_jobs_are_completed_from_outside_when_the_caller_commits(
    app: App, task: PlainTask[..., Any], name: str, path: Path
) -> None:
    """With their chains. Not jobs that run: the worker that has the lease would wait for the caller."""
    writes = f"insert into {OWN} values (1)"
    complete_from_outside(app, task, lambda: SQLITE_WAYS[name](f"sqlite:///{path}"), writes)
    assert inventory(app._store())[OWN] == 1


def test_the_callers_factories_are_as_they_were(app: App, task: PlainTask[..., Any], path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory, connection.text_factory = sqlite3.Row, bytes
        task.using(connection=connection).enqueue()
        assert (connection.row_factory, connection.text_factory) == (sqlite3.Row, bytes)
        assert connection.in_transaction, "it is the caller's to end"


def test_a_savepoint_that_is_rolled_back_takes_its_jobs_along(app: App, task: PlainTask[..., Any], path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        kept = task.using(connection=connection).enqueue("kept")
        connection.execute("savepoint s")
        task.using(connection=connection, target="t", unique="k").enqueue("gone")
        connection.execute("rollback to s")
        more = task.using(connection=connection, unique="k").enqueue("kept")
        connection.execute("commit")
    assert {job.id for job in app.client.jobs().jobs} == {kept.id, more.id}
    assert inventory(app._store())["nudges"] == 0
    assert [job.id for job in harness_of(app).claim(5)] == [kept.id, more.id], "in order"


def test_a_file_reached_by_another_path_is_the_same_file(
    app: App, task: PlainTask[..., Any], path: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    (tmp_path / "sub").mkdir()
    with closing(sqlite3.connect(tmp_path / "sub" / ".." / "link.db")) as connection:
        task.using(connection=connection).enqueue()
        connection.commit()
    assert app.client.count() == 1


# refused


def test_without_a_transaction_it_would_commit_by_itself(app: App, task: PlainTask[..., Any], path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(InvalidInput, match=r'transaction.*connection\.execute\("begin immediate"\)'):
            task.using(connection=connection).enqueue()
        connection.execute("begin")
        task.using(connection=connection).enqueue()
        connection.execute("commit")
    assert app.client.count() == 1


def test_sqlalchemy_with_autocommit_is_refused(app: App, task: PlainTask[..., Any], path: Path) -> None:
    engine = create_engine(
        alchemy_url(f"sqlite:///{path}", "pysqlite"), poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection, pytest.raises(InvalidInput, match="AUTOCOMMIT"):
        task.using(connection=connection).enqueue()
    assert app.client.count() == 0


def other_file(tmp_path: Path) -> Path:
    """A file with tables of the same names, as a second shop would have."""
    other = make_app(tmp_path / "other.db")
    other.client.migrate()
    other.close()
    return tmp_path / "other.db"


@pytest.mark.parametrize("kind", ["sqlite3", "memory", "sqlalchemy", "session", "aiosqlite"])
def test_a_connection_to_another_file_is_refused(
    app: App, task: PlainTask[..., Any], tmp_path: Path, path: Path, kind: str
) -> None:
    other = other_file(tmp_path)

    async def main() -> None:
        if kind == "aiosqlite":
            async_engine = create_async_engine(alchemy_url(f"sqlite:///{other}", "aiosqlite"), poolclass=NullPool)
            async with async_engine.connect() as raw:
                with pytest.raises(InvalidInput, match=f"other.db.*but the jobs live in sqlite:///{path}"):
                    await task.using(connection=raw).aenqueue()
            await async_engine.dispose()
            return
        if kind in ("sqlite3", "memory"):
            connection: Any = sqlite3.connect(other if kind == "sqlite3" else ":memory:")
        else:
            engine = create_engine(alchemy_url(f"sqlite:///{other}", "pysqlite"), poolclass=NullPool)
            connection = engine.connect() if kind == "sqlalchemy" else Session(engine)
        with closing(connection):
            database = "memory" if kind == "memory" else "other.db"
            with pytest.raises(InvalidInput, match=f"{database}.*but the jobs live in sqlite:///{path}"):
                task.using(connection=connection).enqueue()

    asyncio.run(main())
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("select count(*) from relet_jobs").fetchone() == (0,)


def test_jobs_in_memory_belong_to_one_app(path: Path) -> None:
    app = App("sqlite:///:memory:")

    @app.task
    def work() -> None: ...

    with closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(InvalidInput, match="the jobs live in sqlite:///:memory:"):
            work.using(connection=connection).enqueue()
    with (
        create_engine("sqlite://", poolclass=NullPool).connect() as alchemy,
        pytest.raises(InvalidInput, match="the jobs live in sqlite:///:memory:"),
    ):
        work.using(connection=alchemy).enqueue()
    app.close()


def test_a_sqlite_connection_does_not_fit_jobs_in_postgres(tmp_path: Path) -> None:
    app = App("postgresql://user@nowhere.invalid/shop")

    @app.task
    def work() -> None: ...

    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        with pytest.raises(InvalidInput, match=r"postgresql://user@nowhere\.invalid/shop"):
            work.using(connection=connection).enqueue()


def test_the_wrong_colour_names_its_twin(app: App, task: PlainTask[..., Any], path: Path) -> None:
    async def main() -> None:
        with closing(sqlite3.connect(path)) as connection, pytest.raises(TypeError, match=r"sync method .*enqueue"):
            await task.using(connection=connection).aenqueue()
        async with create_async_engine(
            alchemy_url(f"sqlite:///{path}", "aiosqlite"), poolclass=NullPool
        ).connect() as raw:
            with pytest.raises(TypeError, match=r"async method .*aenqueue"):
                task.using(connection=raw).enqueue()
        async with aiosqlite.connect(path) as bare:
            with pytest.raises(TypeError, match="cannot use aiosqlite"):
                await task.using(connection=bare).aenqueue()

    asyncio.run(main())
    assert app.client.count() == 0


# busy


@pytest.mark.parametrize("kind", ["sqlite3", "sqlalchemy", "aiosqlite"])
def test_a_transaction_that_has_read_cannot_write_after_another_did_and_says_so(
    app: App, task: PlainTask[..., Any], path: Path, kind: str
) -> None:
    """SQLite refuses at once, whatever the busy timeout is."""
    says = 'begin transactions that will write with "begin immediate"'

    async def main() -> None:
        if kind == "aiosqlite":
            async with SQLITE_WAYS["sqlalchemy-aiosqlite-connection"](f"sqlite:///{path}") as caller:
                await caller.do("begin")
                await caller.do(f"select count(*) from {OWN}")
                task.enqueue("another writes")
                with pytest.raises(StoreBusy, match=says):
                    await caller.enqueue(app, task.draft())
                await caller.end(commit=False)
            return
        name = {"sqlite3": "sqlite3", "sqlalchemy": "sqlalchemy-pysqlite-connection"}[kind]
        async with SQLITE_WAYS[name](f"sqlite:///{path}") as caller:
            await caller.do("begin")
            cursor = caller.execute(f"select count(*) from {OWN}")
            assert cursor.fetchone()[0] == 0
            task.enqueue("another writes")
            with pytest.raises(StoreBusy, match=says):
                await caller.enqueue(app, task.draft())
            await caller.end(commit=False)
            await caller.enqueue(app, task.draft("in a new transaction"))
            await caller.end(commit=True)

    asyncio.run(main())
    assert app.client.count() == (1 if kind == "aiosqlite" else 2)


def test_another_writer_makes_it_busy_after_the_callers_own_timeout(
    app: App, task: PlainTask[..., Any], path: Path
) -> None:
    with closing(sqlite3.connect(path)) as writer, closing(sqlite3.connect(path, timeout=0.1)) as connection:
        writer.execute("begin immediate")
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="another connection holds the lock"):
            task.using(connection=connection).enqueue()
        assert time.monotonic() - began < 5
        writer.rollback()


def test_the_first_use_within_a_transaction_that_writes_does_not_wait_for_itself(path: Path) -> None:
    """The file holds no schema yet and the caller has the write lock: only the caller could make one."""
    app = make_app(path)
    app._store()._busy_for = 1.0  # type: ignore[attr-defined]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute(f"create table {OWN} (n integer)")
        connection.execute(f"insert into {OWN} values (1)")
        began = time.monotonic()
        try:
            app.lookup("work").using(connection=connection).enqueue()
        except StoreError as error:
            assert isinstance(error, SchemaMismatch | StoreBusy), error
            assert "migrate" in str(error)
        assert time.monotonic() - began < 5
        connection.rollback()
    app.close()


def test_a_transaction_that_has_made_the_schema_can_go_on(path: Path) -> None:
    app = make_app(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        for _ in range(2):
            app.lookup("work").using(connection=connection).enqueue()
        connection.execute("commit")
    assert app.client.count() == 2
    app.close()


def test_a_transaction_that_enqueues_first_waits_for_another_writer(
    app: App, task: PlainTask[..., Any], path: Path
) -> None:
    """Even if it was begun so that SQLite would allow a read first, and then refuse the write."""
    began = threading.Event()

    def caller() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin")
            began.set()
            task.using(connection=connection, unique="k").enqueue()
            connection.execute("commit")

    with closing(sqlite3.connect(path, isolation_level=None)) as writer, ThreadPoolExecutor() as pool:
        writer.execute("begin immediate")
        writer.execute(f"insert into {OWN} values (1)")
        waiting = pool.submit(caller)
        assert began.wait(10)
        time.sleep(0.1)
        writer.execute("commit")
        waiting.result(10)
    assert app.client.count() == 1


def test_reads_belong_to_the_transaction(app: App, task: PlainTask[..., Any], path: Path) -> None:
    """Python begins a transaction with the first write only; existing rows are read before that."""
    known = task.enqueue()
    with closing(sqlite3.connect(path)) as connection:
        assert task.using(connection=connection, id=known.id).enqueue().existing
        assert connection.in_transaction


def test_an_app_that_enqueues_for_the_first_time_in_a_transaction_finds_its_schema(app: App, path: Path) -> None:
    fresh = make_app(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"insert into {OWN} values (1)")
        fresh.lookup("work").using(connection=connection).enqueue()
        connection.commit()
    assert app.client.count() == 1
    fresh.close()


def test_sqlalchemy_on_a_file_without_a_schema_makes_one_or_names_the_command(path: Path) -> None:
    app = make_app(path)
    with create_engine(alchemy_url(f"sqlite:///{path}", "pysqlite"), poolclass=NullPool).connect() as connection:
        try:
            job = app.lookup("work").using(connection=connection).enqueue()
        except SchemaMismatch as error:
            assert "migrate" in str(error)
        else:
            connection.commit()
            assert app.client.get(job) == job
    app.close()
