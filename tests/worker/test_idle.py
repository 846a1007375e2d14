"""A worker without jobs: what it costs the database, and how it finds a job of which no notification told it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from relet import App
from relet._store.flows import maintenance
from tests.conftest import LOCAL_PG_KINDS, SERVERS
from tests.databases import Database
from tests.notifications import Ear
from tests.plugin.selection import rounds
from tests.servers import PrivateServer
from tests.worker.programs import a_shop, until
from tests.worker.working import over, run_sql, working
from tests.worker.working import until as until_true

CONNECTIONS = 2
STATEMENTS = 2.0  # a second
WATCHED = 60.0  # seconds: some statements come once a minute
WORKERS, JOBS = 8, rounds(12, all=25)
BACKLOG = 3000
SESSIONS = "select count(*) from pg_stat_activity where application_name = 'relet'"


def note() -> None: ...


@pytest.fixture(params=LOCAL_PG_KINDS[:1])
def counting_server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server that counts statements."""
    with request.config.stash[SERVERS].private(request.param) as server:
        server.execute("alter system set shared_preload_libraries = 'pg_stat_statements'")
        server.stop()
        server.start()
        server.execute("create extension pg_stat_statements")
        yield server


@pytest.mark.long
def test_an_idle_worker_has_two_connections_and_sends_two_statements_a_second(
    counting_server: PrivateServer, tmp_path: Path
) -> None:
    with a_shop(tmp_path, counting_server.dsn) as shop, psycopg.connect(counting_server.dsn, autocommit=True) as db:
        worker = shop.run("worker", "shop:app")
        shop.one("quick")
        shop.over("succeeded")
        shop.app.close()
        until(lambda: db.execute(SESSIONS).fetchone() == (CONNECTIONS,), lambda: worker.log, 120.0)
        time.sleep(30.0)  # it is not idle until it asks seldom for notifications
        db.execute("select pg_stat_statements_reset()")
        began, most = time.monotonic(), 0
        while time.monotonic() - began < WATCHED:
            most = max(most, *(db.execute(SESSIONS).fetchone() or (0,)))
            time.sleep(0.1)
        rows = db.execute(
            "select calls, query from pg_stat_statements where query not like '%pg_stat_%' order by calls desc"
        ).fetchall()
        assert most <= CONNECTIONS
        assert sum(calls for calls, _ in rows) <= STATEMENTS * (time.monotonic() - began), rows


def test_a_job_that_no_notification_announced_is_found(two_databases: Database, two_apps: App) -> None:
    """Claims of an idle worker are rare. The check of its maintenance finds that jobs are queued."""

    @two_apps.task
    def note() -> None: ...

    with working(two_apps, poll_interval=0.2) as worker:
        (producer,) = worker._sessions[0].producers
        job = note.using(delay=3600).enqueue()
        calm = time.monotonic() + 1.0  # the notifications of the enqueue have arrived
        until_true(lambda: producer.last_empty_claim > calm and producer._claim_at - time.monotonic() > 5.0)
        next_claim = producer._claim_at
        run_sql(two_databases, two_apps, "update {t}jobs set state = 'queued', wait = null")
        over(two_apps, job)
        assert time.monotonic() < next_claim, "only the next claim has found it"


@pytest.mark.partitioned  # in the variant rows workers poll
def test_a_job_wakes_one_of_many_idle_workers(pg_database: Database) -> None:
    apps = [App(pg_database.url, schema=pg_database.schema) for _ in range(WORKERS)]
    apps[0].client.migrate()
    for app in apps:
        app.task(note)
    with ExitStack() as stack, psycopg.connect(pg_database.url, autocommit=True) as db:
        for app in apps:
            stack.callback(app.close)
        workers = [stack.enter_context(working(app, concurrency=2)) for app in apps]
        producers = [session.producers[0] for worker in workers for session in worker._sessions]
        until_true(lambda: all(one._claim_at - time.monotonic() > 1.0 for one in producers), "all are idle")
        ear = Ear(db)
        for number, one in enumerate(producers):
            ear.listen(f"{pg_database.schema}.queued.{one.notifications.key:x}", f"worker {number}")
        for number in range(1, JOBS + 1):
            db.execute(f"select {pg_database.schema}.enqueue('note')".encode())
            until_true(lambda: apps[0].client.count(state="succeeded") == number)  # noqa: B023
        heard = ear.heard()
        assert JOBS <= heard.total() <= JOBS + 2, heard
        assert len(heard) > 2, "not always the same worker"


@pytest.mark.partitioned  # in the variant rows workers poll
def test_a_worker_with_a_backlog_wakes_one_that_fell_asleep_after_the_enqueue(pg_database: Database) -> None:
    key = 7
    app = App(pg_database.url, schema=pg_database.schema)
    app.client.migrate()
    task = app.task(note)
    with ExitStack() as stack, psycopg.connect(pg_database.url, autocommit=True) as db:
        stack.callback(app.close)
        app.client.enqueue_many([task.draft() for _ in range(BACKLOG)])
        ear = Ear(db)
        ear.listen(f"{pg_database.schema}.queued.{key:x}", "asleep")
        app._store().run(maintenance.request_notifications, 600.0, key, None, list(app.tasks))
        stack.enter_context(working(app, concurrency=1))
        until_true(lambda: app.client.count(state="succeeded") == BACKLOG)
        assert ear.heard()["asleep"] > 0
