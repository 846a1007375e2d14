"""Work in the caller's transaction on a connection of Django, to a SQLite file and to PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, connection, connections, transaction
from django.db.transaction import TransactionManagementError

from relet import App, InvalidInput, JobNotFound
from relet._core.ids import make_id
from relet._tasks.task import PlainTask
from relet.errors import SchemaMismatch, StoreBusy
from tests.clocks import at
from tests.conftest import PG_KINDS
from tests.databases import Database, inventory, shared_schema
from tests.djangos import WAYS, Way, by_hand, configure, database_settings, known_as
from tests.harness import harness_of
from tests.store.test_callers import LONG_AGO, drafts_of_all_kinds
from tests.store.transactions import OWN
from tests.test_client import AWKWARD

configure()


class Undo(Exception):
    pass


@pytest.fixture(scope="module", params=["sqlite", *PG_KINDS])
def schema(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Database("sqlite", "", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture
def database(schema: Database, tmp_path: Path) -> Iterator[Database]:
    if schema.is_postgres:
        yield schema
        schema.empty()
    else:
        yield Database("sqlite", f"sqlite:///{tmp_path}/shop.db", "relet")


@pytest.fixture
def app(database: Database) -> Iterator[App]:
    app = with_work(database.app())
    app.client.migrate()
    yield app
    app.close()


def with_work(app: App) -> App:
    @app.task
    def work(value: Any = None) -> Any:
        return value

    return app


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    return app.lookup("work")  # type: ignore[return-value]


@pytest.fixture
def own(database: Database, app: App) -> Iterator[str]:
    """A table of the caller's own."""
    table = f"{database.schema}.{OWN}" if database.is_postgres else OWN
    with known_as("maker", database_settings(database.url)) as raw:
        run(raw, f"create table {table} (n integer)")
        yield table
        run(raw, f"drop table {table}")


@pytest.fixture
def django(database: Database, own: str) -> Iterator[Any]:
    """`django.db.connection` leads to where the jobs live."""
    with known_as("default", database_settings(database.url)):
        yield connection


def run(raw: Any, sql: str) -> None:
    with raw.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def test_jobs_of_a_committed_transaction_are_there(
    app: App, task: PlainTask[..., Any], way: Way, database: Database, own: str
) -> None:
    with way(database) as raw:
        run(raw, f"insert into {own} values (1)")
        jobs = app.client.enqueue_many(drafts_of_all_kinds(task), connection=raw)
        assert app.client.count() == 0, "no other connection sees them before the commit"
    assert [app.client.get(job) for job in jobs] == jobs
    assert [job.wait for job in jobs] == [None, "target", None, None, "jobs", "time"]
    counts = inventory(app._store())
    assert (counts["jobs"], counts["keys"], counts["dependencies"], counts[OWN]) == (6, 2, 1, 1)
    assert counts["nudges"] > 0
    payload = harness_of(app).claim(1)[0].payload_json
    assert repr(app.lookup("work").arguments(payload)) == repr(((AWKWARD,), {}))


def test_a_transaction_that_is_rolled_back_leaves_nothing(
    app: App, task: PlainTask[..., Any], way: Way, database: Database, own: str
) -> None:
    before = inventory(app._store())
    with pytest.raises(Undo), way(database) as raw:
        app.client.enqueue_many(drafts_of_all_kinds(task), connection=raw)
        run(raw, f"insert into {own} values (1)")
        raise Undo
    assert inventory(app._store()) == before


def test_the_clock_of_the_store_counts_in_the_callers_transaction(
    app: App, task: PlainTask[..., Any], way: Way, database: Database
) -> None:
    with at(app._store(), LONG_AGO), way(database) as raw:
        job = task.using(connection=raw).enqueue(1)
    assert job.created_at.timestamp() == LONG_AGO


def test_jobs_that_are_there_already_are_found(app: App, task: PlainTask[..., Any], django: Any) -> None:
    job_id = make_id(time.time(), b"0123456789")
    by_id = task.using(id=job_id).enqueue(AWKWARD)
    by_key = task.using(unique="k").enqueue(1)
    with transaction.atomic():
        again = task.using(id=job_id, connection=django).enqueue(2)
        assert (again.id, again.existing, again.payload_json) == (by_id.id, True, by_id.payload_json)
        again = task.using(unique="k", connection=django).enqueue(3)
        assert (again.id, again.existing, again.payload_json) == (by_key.id, True, by_key.payload_json)
        with pytest.raises(JobNotFound):
            task.using(depends_on=[make_id(1_700_000_000.0, b"no such id")], connection=django).enqueue(4)
        more = task.using(connection=django).enqueue("the transaction goes on")
    assert app.client.get(more) == more
    assert app.client.count() == 3


# blocks within blocks


def test_an_inner_block_that_is_rolled_back_takes_its_jobs_along(
    app: App, task: PlainTask[..., Any], django: Any
) -> None:
    with transaction.atomic():
        kept = task.using(connection=django).enqueue("kept")
        with pytest.raises(Undo), transaction.atomic():
            task.using(connection=django, target="t", unique="k", depends_on=[kept]).enqueue("gone")
            raise Undo
        with transaction.atomic():
            more = task.using(connection=django, unique="k").enqueue("kept, the key is free again")
    assert {job.id for job in app.client.jobs().jobs} == {kept.id, more.id}
    assert inventory(app._store())["nudges"] == 0
    assert [job.id for job in harness_of(app).claim(5)] == [kept.id, more.id], "in order"


def test_djangos_own_test_cases_are_a_transaction(app: App, task: PlainTask[..., Any], django: Any) -> None:
    from django.test import TestCase

    class Shop(TestCase):  # type: ignore[misc]  # Django has no types here
        def test_enqueue(self) -> None:
            job = task.using(connection=connection, unique="k").enqueue()
            with pytest.raises(Undo), transaction.atomic():
                task.using(connection=connection).enqueue()
                raise Undo
            with transaction.atomic():
                assert task.using(connection=connection, unique="k").enqueue().id == job.id

        def test_enqueue_again(self) -> None:
            self.test_enqueue()

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Shop).run(result)
    assert (result.testsRun, result.errors, result.failures) == (2, [], [])
    assert app.client.count() == 0


# errors


def test_an_enqueue_that_fails_in_the_middle_is_not_committed_by_half(
    app: App, task: PlainTask[..., Any], django: Any, own: str, database: Database
) -> None:
    nudges = f"{database.schema}.nudges" if database.is_postgres else "relet_nudges"
    before = inventory(app._store())
    with transaction.atomic():
        run(django, f"insert into {own} values (1)")
        run(django, f"drop table {nudges}")
        with pytest.raises(SchemaMismatch, match="migrate"):
            task.using(connection=django, target="t").enqueue()
        with pytest.raises(TransactionManagementError, match="until the end of the 'atomic' block"):
            task.using(connection=django).enqueue()
    assert inventory(app._store()) == before

    with transaction.atomic():
        run(django, f"insert into {own} values (1)")
        with pytest.raises(SchemaMismatch), transaction.atomic():
            run(django, f"drop table {nudges}")
            task.using(connection=django, target="t").enqueue()
        task.using(connection=django, target="t").enqueue()
    counts = inventory(app._store())
    assert (counts["jobs"], counts[OWN]) == (1, 1), "an inner block is undone alone, as always"


def test_errors_are_djangos(app: App, task: PlainTask[..., Any], django: Any) -> None:
    def refuse(execute: Any, *_: Any) -> None:
        raise Undo

    with transaction.atomic(), pytest.raises(Undo), django.execute_wrapper(refuse):
        task.using(connection=django).enqueue()
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            task.using(connection=django).enqueue()
    with pytest.raises(DatabaseError), transaction.atomic():
        django.close()
        task.using(connection=django).enqueue()
    assert app.client.count() == 0


def test_hooks_see_the_statements_that_run_and_no_others(task: PlainTask[..., Any], django: Any) -> None:
    seen: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with transaction.atomic(), django.execute_wrapper(note):
        task.using(connection=django).enqueue()
    assert seen
    assert not [sql for sql in seen if "relet" not in sql and "t_" not in sql and "notify" not in sql]


# refused


def test_without_a_transaction_each_statement_would_commit_alone(
    app: App, task: PlainTask[..., Any], django: Any, database: Database
) -> None:
    says = r"Django's connection 'default' is in no transaction: .* use with transaction\.atomic\(\):"
    with pytest.raises(InvalidInput, match=says):
        task.using(connection=django).enqueue()
    with known_as("other", database_settings(database.url)) as raw, transaction.atomic():  # of the wrong one
        with pytest.raises(InvalidInput, match=r"'other' is in no .* transaction\.atomic\(using='other'\):"):
            task.using(connection=raw).enqueue()
        task.using(connection=django).enqueue()
    assert app.client.count() == 1


def test_another_kind_of_database_is_refused(
    app: App, task: PlainTask[..., Any], database: Database, tmp_path: Path
) -> None:
    with (
        known_as("other", database_settings(f"sqlite:///{tmp_path}/other.db")) as raw,
        transaction.atomic(using="other"),
    ):
        says = "is a connection to sqlite, but" if database.is_postgres else "other.db, but"
        with pytest.raises(
            InvalidInput, match=f"Django's connection 'other' .*{says} the jobs live in {database.url[:9]}"
        ):
            task.using(connection=raw).enqueue()
    with known_as("other", database_settings(database.url)) as raw, transaction.atomic(using="other"):
        elsewhere = with_work(App("sqlite:///:memory:"))
        with pytest.raises(InvalidInput, match="but the jobs live in sqlite:///:memory:"):
            elsewhere.lookup("work").using(connection=raw).enqueue()
        elsewhere.close()
    with pytest.raises(InvalidInput, match="'default' is a connection to unknown"):  # no database is set up
        task.using(connection=connection).enqueue()
    assert app.client.count() == 0


@pytest.mark.parametrize("jobs_in", ["shop.db", ":memory:"])
def test_a_database_in_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs_in: str) -> None:
    """Django makes such a connection for tests by default."""
    monkeypatch.chdir(tmp_path)
    app = with_work(App(f"sqlite:///{jobs_in}"))
    for name in (":memory:", "file:memorydb_default?mode=memory&cache=shared"):
        with known_as("default", database_settings(f"sqlite:///{name}")), transaction.atomic():
            with pytest.raises(InvalidInput, match=r'open on memory.*jobs live in .*DATABASES\["default"\]\["TEST"\]'):
                app.lookup("work").using(connection=connection).enqueue()
    app.close()


def test_the_wrong_colour_names_its_twin(app: App, task: PlainTask[..., Any], django: Any, database: Database) -> None:
    async def main() -> None:
        for raw in (django, connections["default"]):
            with pytest.raises(TypeError, match=r"django\..* is not async: use the sync method .*enqueue"):
                await task.using(connection=raw).aenqueue()
        with pytest.raises(SynchronousOnlyOperation):
            task.using(connection=django).enqueue()
        await sync_to_async(in_a_block)()

    def in_a_block() -> None:
        with known_as("default", database_settings(database.url)), transaction.atomic():
            task.using(connection=connection).enqueue()

    asyncio.run(main())
    assert app.client.count() == 1


def test_a_cache_is_no_database(task: PlainTask[..., Any]) -> None:
    from django.core.cache import cache

    with pytest.raises(TypeError, match=r"cannot use .*ConnectionProxy: it is not a database connection"):
        task.using(connection=cache).enqueue()


# threads


def test_two_threads_have_a_connection_each(app: App, task: PlainTask[..., Any], django: Any) -> None:
    """The proxy leads each to its own; on SQLite one waits for the other to be done."""
    met, errors = threading.Barrier(2), []

    def caller(commit: bool) -> None:
        try:
            met.wait(10)
            with transaction.atomic():
                task.using(connection=django, target="X").enqueue(commit)
                if not commit:
                    raise Undo
        except Undo:
            pass
        except BaseException as error:
            errors.append(error)
        finally:
            django.close()

    threads = [threading.Thread(target=caller, args=(commit,)) for commit in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert [job.payload_json for job in app.client.jobs().jobs] == [task.draft(True).payload_json]


def test_a_connection_of_another_thread_is_refused_by_django(app: App, task: PlainTask[..., Any], django: Any) -> None:
    raised: list[BaseException] = []

    def stranger(raw: Any) -> None:
        with pytest.raises(DatabaseError, match="can only be used in that same thread") as caught:
            task.using(connection=raw).enqueue()
        raised.append(caught.value)

    with transaction.atomic():
        thread = threading.Thread(target=stranger, args=(connections["default"],))
        thread.start()
        thread.join(10)
        assert len(raised) == 1
        task.using(connection=django).enqueue()
    assert app.client.count() == 1


# first use, and busy


def test_a_database_without_the_schema(database: Database, tmp_path: Path) -> None:
    """A file gets one with the caller's transaction, if that commits; the error of PostgreSQL names the command."""
    url = database.url if database.is_postgres else f"sqlite:///{tmp_path}/fresh.db"
    fresh = with_work(App(url, schema="does_not_exist"))
    work = fresh.lookup("work")
    with known_as("default", database_settings(url)):
        if database.is_postgres:
            with pytest.raises(SchemaMismatch, match="migrate"), transaction.atomic():
                work.using(connection=connection).enqueue()
            return
        for commit in (False, True):
            with transaction.atomic():
                run(connection, "create table if not exists own (n integer)")
                work.using(connection=connection).enqueue()
                work.using(connection=connection).enqueue()
                transaction.set_rollback(not commit)
            assert ("jobs" in inventory(fresh._store())) is commit
    assert fresh.client.count() == 2
    fresh.close()


def test_reads_belong_to_the_transaction(task: PlainTask[..., Any], database: Database) -> None:
    """With autocommit off, Python opens a transaction of SQLite with the first write only."""
    known = task.enqueue()
    with by_hand(database) as raw:
        assert task.using(connection=raw, id=known.id).enqueue().existing
        assert database.is_postgres or raw.connection.in_transaction


@pytest.fixture
def file(tmp_path: Path) -> Iterator[App]:
    app = with_work(App(f"sqlite:///{tmp_path}/shop.db"))
    app.client.migrate()
    yield app
    app.close()


def test_a_transaction_that_has_read_cannot_write_after_another_did_and_says_so(file: App) -> None:
    work = file.lookup("work")
    where = file._store().where
    with known_as("default", database_settings(where)), transaction.atomic():
        run(connection, "select count(*) from relet_jobs")
        connection.connection.execute("select count(*) from relet_jobs").fetchall()
        work.enqueue("another writes")
        with pytest.raises(StoreBusy, match='with the option "transaction_mode": "IMMEDIATE" of the database'):
            work.using(connection=connection).enqueue()
    with known_as("default", database_settings(where, transaction_mode="IMMEDIATE")), transaction.atomic():
        run(connection, "select count(*) from relet_jobs")
        work.using(connection=connection).enqueue()
    assert file.client.count() == 2


def test_another_writer_makes_it_busy_after_the_callers_own_timeout(file: App) -> None:
    where = file._store().where
    with known_as("writer", database_settings(where, transaction_mode="IMMEDIATE")), transaction.atomic(using="writer"):
        with (
            known_as("default", database_settings(where, timeout=0.1)),
            pytest.raises(StoreBusy, match="holds the lock"),
        ):
            with transaction.atomic():
                file.lookup("work").using(connection=connection).enqueue()
    assert file.client.count() == 0


def test_a_name_with_percent_signs_and_colons_survives_every_rendering(tmp_path: Path) -> None:
    """Django renders texts for SQLite once more than for PostgreSQL."""
    app = with_work(App(f"sqlite:///{tmp_path}/100%s :now %(x)s.db"))
    app.client.migrate()
    with known_as("default", database_settings(app._store().where)), transaction.atomic():
        job = app.lookup("work").using(connection=connection, unique="%s :now %(x)s %%").enqueue("%s :now %(x)s %% ''")
    assert app.client.get(job) == job
    app.close()
