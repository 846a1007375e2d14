"""The checks of the doctor that all stores have: versions, upkeep, leases, workers, queues."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from relet import App
from relet._core.worker import WorkerFacts
from relet._store import migrate
from relet._store.flows import worker_reports
from relet._tasks.task import new_id
from relet.types import Finding
from tests.clocks import at
from tests.databases import Database
from tests.harness import harness_of
from tests.store.doctor_findings import found, make_app, the


def test_a_store_without_workers_says_so_once_there_is_work(database: Database) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        app.client.count()
        (finding,) = found(app, "pulse")
        assert (finding.level, finding.advice) == ("info", None)
        assert "no worker has ever done maintenance here" in finding.text
        app.lookup("work").enqueue()
        assert "start a worker" in str(the(app, "pulse", "warning").advice)
        harness_of(app).record_pulse()
        assert "a worker did maintenance" in the(app, "pulse", "ok").text


def test_leases_that_no_worker_reaps_are_counted(database: Database) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        for _ in range(3):
            app.lookup("work").enqueue()
        jobs = harness_of(app).claim(3)
        the(app, "leases", "ok")
        with at(app._store(), time.time() - 7230):
            harness_of(app).renew(*(job.lease for job in jobs))
        finding = the(app, "leases", "warning")
        assert "3 running jobs have expired leases" in finding.text
        assert "expired 2 h ago" in finding.text


WORKER = WorkerFacts("w1", "north", 42, None, 10, ("work",), 30.0, "1.0")


@contextmanager
def workers(app: App, *facts: WorkerFacts, now: float | None = None) -> Iterator[None]:
    """Workers that have reported to the store."""
    with at(app._store(), now):
        for one in facts:
            app._store().run(worker_reports.report, new_id(), one, 3, False)
    try:
        yield
    finally:
        for one in facts:
            app._store().run(worker_reports.forget, one.name)


def test_workers_that_fell_silent_are_named(database: Database) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        app.client.migrate()
        assert [(one.level, one.text) for one in found(app, "workers")] == [("info", "no worker is running")]
        with workers(app, WORKER):
            assert the(app, "workers", "ok").text == "workers running: 1; 3 of 10 slots in use"
        now = time.time()
        with workers(app, WORKER, now=now - 100), at(app._store(), now):
            lost, none = found(app, "workers")
            assert lost.level == "warning"
            assert "worker w1 (host north, pid 42) last reported 1 min 40 s ago" in lost.text
            assert "check on north" in str(lost.advice)
            assert none.text == "no worker is running"
        with workers(app, WORKER, now=now - 5000), at(app._store(), now):
            assert found(app, "workers")[0].level == "info", "nothing is left to do about it"
        with workers(app, WORKER, structs.replace(WORKER, name="w2", version="1.1")):
            assert "several releases of relet are running: 1.0, 1.1" in found(app, "workers")[0].text


@pytest.mark.long
def test_jobs_that_no_worker_can_run_are_named(database: Database) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        app.client.migrate()
        work = app.lookup("work")
        with workers(app, WORKER):
            for n in range(3):
                work.enqueue(n)
            the(app, "queues", "ok")
        the(app, "queues", "ok")  # they have just come
        now = datetime.now(UTC)
        late = now - timedelta(seconds=90)
        for queue in ("default", "mail", "paused"):
            work.using(queue=queue, run_at=late).enqueue()
        harness_of(app).promote_all()
        app.client.pause_queue("paused")
        with at(app._store(), now.timestamp()):
            finding = the(app, "queues", "warning")
        assert (
            "jobs are queued (in default, mail; the oldest has been due for 1 min 30 s), and no worker" in finding.text
        )
        with workers(app, WORKER):
            the(app, "queues", "ok")
        with workers(app, structs.replace(WORKER, queues=("default",))):
            finding = the(app, "queues", "warning")
            assert "1 jobs of task work are queued in mail" in finding.text
            assert "-q mail" in str(finding.advice)
        with workers(app, structs.replace(WORKER, tasks=("other",))):
            both = found(app, "queues")
            assert ["4 jobs of task work" in both[0].text, "1 jobs of task work" in both[1].text] == [True, True]
            assert "start workers of the program that has this task" in str(both[0].advice)


def change_version(app: App, to: int, oldest: int | None = None) -> None:
    """As if another release had migrated."""
    stamp = "0" if app._store().dialect == "sqlite" else "statement_timestamp()"
    name = f"{app._store().quoted}_migrations" if stamp == "0" else f"{app._store().quoted}.migrations"
    with app._store().begin() as opened:
        opened.raw.execute(f"delete from {name}")
        opened.raw.execute(
            f"insert into {name} (version, applied_at, oldest, release) values ({to}, {stamp}, {oldest or to}, '9.9.9')"
        )


def test_a_schema_of_another_release_is_checked_nevertheless(database: Database) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        app.client.migrate()
        newest = migrate.newest(app._store().dialect)
        change_version(app, newest + 1)
        try:
            app._store()._checked = False  # as in a program that starts now
            findings = app.client.doctor()
            (schema,) = [one for one in findings if one.check == "schema"]
            assert schema.level == "error"
            assert f"at version {newest + 1}, this release knows {newest}" in schema.text
            assert schema.advice is not None
            assert "upgrade relet" in schema.advice
            assert {"indexes", "pulse", "leases"} <= {one.check for one in findings}, "the rest is seen as well"
        finally:
            app._store()._checked = True
            change_version(app, newest)


def test_a_newer_schema_that_works_with_this_release_is_no_error(database: Database) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        app.client.migrate()
        newest = migrate.newest(app._store().dialect)
        change_version(app, newest + 1, oldest=newest)
        try:
            schema = the(app, "schema", "info")
            assert f"at version {newest + 1}, by relet 9.9.9; this release knows {newest}" in schema.text
            assert "upgrade relet" in str(schema.advice)
        finally:
            change_version(app, newest)


def test_an_older_schema_is_compared_with_the_objects_of_its_own_version(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        app.client.migrate()
        dialect = app._store().dialect
        newest = migrate.newest(dialect)
        later = {**migrate.migrations(dialect), newest + 1: "create table {schema}.more (n integer)"}
        monkeypatch.setattr(migrate, "migrations", lambda _: later)
        app._store()._checked = False
        findings = app.client.doctor()
        (schema,) = [one for one in findings if one.check == "schema"]
        assert (schema.level, f"at version {newest}, this release needs {newest + 1}" in schema.text) == ("error", True)
        assert "migrate" in str(schema.advice)
        assert [one.level for one in findings if one.check == "indexes"] == ["ok"]


async def from_async_code(app: App) -> list[Finding]:
    return await app.aclient.doctor()


def test_async_code_gets_the_same(database: Database) -> None:
    with closing(make_app(database.url, database.schema)) as app:
        app.client.migrate()
        there = [(one.check, one.level) for one in asyncio.run(from_async_code(app))]
        assert there == [(one.check, one.level) for one in app.client.doctor()]
