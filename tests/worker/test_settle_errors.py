"""Errors of a settle: a success stays a success, whatever error the database raises, until the lease is lost."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import psycopg
import pytest

from relet import App
from relet._store.sqlite import SQLiteStore
from tests.databases import Database
from tests.faults import failing, failures
from tests.servers import Server
from tests.store.proxy import proxy_to
from tests.worker.programs import Shop, a_shop, until
from tests.worker.working import working

WITHIN = 15.0  # seconds: an outcome is settled, though connections hang
LIVE = ("pending", "queued", "running")
STATES = ["25P04", "57014", "53100", "XX000", "25006", "40P01", "57P01"]


def greet(name: str) -> str:
    return f"hello {name}"


def over(app: App, within: float = 20.0) -> list[tuple[str, str, int]]:
    """Wait until all jobs are: task, state and attempts of each, in order."""
    until(lambda: not app.client.count(state=LIVE), lambda: str(app.client.jobs().jobs), within)
    return sorted((job.task, str(job.state), job.attempt) for job in app.client.jobs().jobs)


@pytest.mark.parametrize("state", STATES)
def test_a_success_survives_errors_that_may_pass(pg_database: Database, pg_app: App, state: str) -> None:
    task = pg_app.task(greet)
    with failing(pg_database.url, pg_database.schema, "finished", state, times=3), working(pg_app):
        job = task.enqueue("ada")
        assert over(pg_app) == [("greet", "succeeded", 1)]
        assert pg_app.client.result(job) == "hello ada"
        assert failures(pg_database.url, pg_database.schema) > 3


@pytest.mark.parametrize("state", ["22001", "23514"])
def test_a_value_that_the_database_rejects_fails_its_job_and_not_its_neighbours(
    pg_database: Database, pg_app: App, state: str
) -> None:
    good, bad = pg_app.task(greet), pg_app.task(name="bad", max_attempts=3)(greet)
    drafts = [(bad if number == 7 else good).draft(str(number)) for number in range(20)]
    when = "new.task = 'bad' and new.state = 'succeeded'"
    with failing(pg_database.url, pg_database.schema, "finished", state, when=when):
        jobs = pg_app.client.enqueue_many(drafts)
        with working(pg_app, concurrency=20):
            until(lambda: not pg_app.client.count(state=LIVE), lambda: str(pg_app.client.jobs().jobs))
        ended = [pg_app.client.get(job) for job in jobs]
    assert [job.state for job in ended if job] == ["failed" if number == 7 else "succeeded" for number in range(20)]
    assert {job.attempt for job in ended if job} == {1}
    assert "the database rejected the outcome" in str(ended[7] and ended[7].error)


def test_an_error_that_says_nothing_of_the_outcome_does_not_change_it(
    pg_database: Database, pg_app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """It is known to come again, and yet it is no fault of the value: the job has succeeded all the same."""
    task = pg_app.task(greet)
    with failing(pg_database.url, pg_database.schema, "finished", "0A000", times=2), working(pg_app):
        task.enqueue("ada")
        assert over(pg_app) == [("greet", "succeeded", 1)]
    assert "could not store its outcome, trying again" in caplog.text


def test_an_outcome_waits_for_a_privilege_that_was_revoked(pg_server: Server, tmp_path: Path, schema: str) -> None:
    role = f"r_{schema}"
    pg_server.execute(f"create role {role} login")
    try:
        with a_shop(tmp_path, pg_server.dsn, schema) as direct:
            pg_server.execute(
                f"grant usage on schema {schema} to {role}",
                f"grant all on all tables in schema {schema} to {role}",
                f"grant all on all sequences in schema {schema} to {role}",
            )
            shop = Shop(tmp_path, pg_server.dsn.replace("postgres@", f"{role}@", 1), schema)
            worker = shop.start("--lease", "2")
            job = direct.one("hold")
            shop.started(job)
            pg_server.execute(f"revoke insert on all tables in schema {schema} from {role}")
            shop.go()
            worker.says("permission denied")
            pg_server.execute(f"grant all on all tables in schema {schema} to {role}")
            direct.over("succeeded")
            assert (direct.job(job).attempt, direct.job(job).losses) == (1, 0)
            assert worker.send(signal.SIGTERM).code() == 0
            shop.close()
    finally:
        pg_server.drop_schema(schema)
        pg_server.execute(f"drop owned by {role}; drop role {role}")


def test_outcomes_that_wait_for_longer_than_a_lease_are_told_of(
    pg_database: Database, pg_app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """Renewals get through, settles do not: another connection has locked the table of finished jobs."""
    task = pg_app.task(greet)
    with working(pg_app, lease=1.0), psycopg.connect(pg_database.url) as other:
        other.execute(f'lock table "{pg_database.schema}".finished in share mode'.encode())
        task.enqueue("ada")
        until(lambda: "1 outcomes have been waiting to be stored" in caplog.text, lambda: caplog.text)
        other.rollback()
        assert over(pg_app) == [("greet", "succeeded", 1)]


# connections that hang: open, and silent


def test_a_worker_whose_connections_hang_settles_its_outcomes_and_goes_on(
    pg_server: Server, tmp_path: Path, schema: str
) -> None:
    places = [tmp_path / "hanging", tmp_path / "direct"]
    for place in places:
        place.mkdir()
    try:
        with (
            proxy_to(pg_server.dsn) as proxy,
            a_shop(places[0], proxy.url, schema) as hanging,
            a_shop(places[1], pg_server.dsn, schema) as direct,
        ):
            worker = hanging.start("--lease", "2")
            jobs = direct.enqueue("hold", number=4)
            hanging.started(*jobs)
            proxy.hang()
            hanging.go()
            direct.over("succeeded", within=WITHIN)
            more = direct.enqueue("quick", number=3)
            direct.over("succeeded", within=WITHIN)
            assert {(direct.job(job).attempt, direct.job(job).losses) for job in jobs + more} == {(1, 0)}
            proxy.hang()
            assert worker.send(signal.SIGTERM).code(WITHIN) == 0
            assert "Traceback" not in worker.log
    finally:
        pg_server.drop_schema(schema)


# SQLite


def test_a_success_survives_a_full_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = App(f"sqlite:///{tmp_path / 'relet.db'}")
    store = app._store()
    assert isinstance(store, SQLiteStore)

    def limit_pages(more: int) -> None:
        with store._writing:
            assert store._writer is not None
            (pages,) = store._writer.execute("pragma page_count").fetchone()
            store._writer.execute(f"pragma max_page_count = {pages + more}")

    @app.task
    def fill() -> str:
        limit_pages(4)
        return "x" * 200_000

    with working(app):
        job = fill.enqueue()
        until(lambda: "is full" in caplog.text, lambda: caplog.text)
        limit_pages(100_000)
        assert over(app) == [("fill", "succeeded", 1)]
        assert len(app.client.result(job)) == 200_000
    app.close()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the system cannot limit another process")
def test_a_success_survives_input_output_errors(shop: Shop) -> None:
    """The system refuses to write beyond a size, which is an I/O error to SQLite."""
    worker = shop.start("--lease", "30")
    job = shop.one("hold")
    shop.started(job)
    before = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (8192, before[1]))
    shop.go()
    worker.says("disk I/O error")
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, before)
    shop.over("succeeded")
    assert (shop.job(job).attempt, shop.job(job).losses) == (1, 0)
    assert worker.send(signal.SIGTERM).code() == 0
    assert "Traceback" not in worker.log
