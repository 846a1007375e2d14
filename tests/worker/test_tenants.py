"""One worker for several tenants: each in a separate schema, or file, with separate slots."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from relet import App, Attempt, InvalidInput, State, events
from relet._store import tenants as tenants_of
from relet._store.flows import claim
from relet._store.flows.claim_scope import Scope
from relet._worker import Worker
from relet._worker import tenant as tenant_module
from relet.errors import SchemaMismatch
from tests.databases import Database
from tests.worker.working import Crowd, until, working

if TYPE_CHECKING:
    from relet._worker.tenants import Tenants

TENANTS = {"acme": 2, "globex": 1}


@pytest.fixture
def tenant_app(two_databases: Database) -> Iterator[App]:
    """An app whose tenants' stores are there."""
    app = two_databases.app()
    for tenant in TENANTS:
        app.client.tenant(tenant).migrate()
    yield app
    if two_databases.is_postgres:
        with psycopg.connect(two_databases.url) as connection:
            for tenant in app.client.tenants():
                connection.execute(f"drop schema {two_databases.schema}_{tenant} cascade".encode())
    app.close()


def all_of(worker: Worker) -> Tenants:
    assert worker._tenants is not None
    return worker._tenants


def until_asleep(worker: Worker, *names: str) -> None:
    """Wait until these tenants, or all, were visited and sleep."""
    known = all_of(worker)._tenants
    until(lambda: known and all(known[name].sleeps for name in names or known), "the tenants do not sleep")


def test_each_tenant_has_its_own_jobs_and_slots(tenant_app: App) -> None:
    app, told = tenant_app, []
    crowds = {tenant: Crowd() for tenant in TENANTS}
    app.on(events.Succeeded)(lambda event: told.append((event.job_id, event.tenant)))

    @app.task
    async def work(attempt: Attempt) -> str | None:
        with crowds[attempt.tenant or "no tenant"]:
            await asyncio.sleep(0.02)
        return attempt.tenant

    own = work.enqueue()  # of the app's own store, which this worker does not serve
    jobs = {tenant: [work.using(tenant=tenant).enqueue() for _ in range(8)] for tenant in TENANTS}
    with working(app, tenants=TENANTS) as worker:
        assert worker.tenants == ["acme", "globex"]
        for tenant, some in jobs.items():
            client = app.client.tenant(tenant)
            assert {client.result(job, timeout=20) for job in some} == {tenant}
        until(lambda: len(told) == 16)
    assert {tenant: crowd.most for tenant, crowd in crowds.items()} == TENANTS
    assert set(told) == {(job.id, tenant) for tenant, some in jobs.items() for job in some}
    assert app.client.get(own).state is State.QUEUED  # type: ignore[union-attr]
    assert app.client.tenant("globex").get(jobs["acme"][0]) is None


def test_requests_reach_the_jobs_of_tenants(tenant_app: App) -> None:
    app, running = tenant_app, []

    @app.task
    async def work(attempt: Attempt) -> None:
        running.append(attempt.tenant)
        await asyncio.sleep(60)

    with working(app, tenants=TENANTS, lease=30.0):
        jobs = {tenant: work.using(tenant=tenant).enqueue() for tenant in TENANTS}
        until(lambda: len(running) == 2)
        for tenant, job in jobs.items():
            client = app.client.tenant(tenant)
            client.cancel(job)
            assert client.wait(job, timeout=20).state is State.CANCELLED


@pytest.mark.parametrize("tenants", [{"No": 1}, {"acme": 0}, {"acme": None}, {"acme": "2"}, {}])
def test_tenants_that_make_no_sense_are_refused(memory_app: App, tenants: dict[str, int]) -> None:
    @memory_app.task
    def work() -> None: ...

    with pytest.raises(InvalidInput):
        Worker(memory_app, tenants=tenants)


def test_a_tenant_without_work_sleeps_and_wakes_for_a_job(tenant_app: App) -> None:
    app = tenant_app

    @app.task
    def work() -> str:
        return "done"

    with working(app, tenants=TENANTS) as worker:
        until_asleep(worker)
        assert worker._sessions == []
        for _ in range(3):
            job = work.using(tenant="acme").enqueue()
            assert app.client.tenant("acme").result(job, timeout=20) == "done"
        until_asleep(worker, "globex")
        until_asleep(worker, "acme")


def test_a_job_of_another_program_wakes_a_tenant(tenant_app: App, two_databases: Database) -> None:
    """The statement of another program sends no notification, and runs on another connection."""
    app = tenant_app

    @app.task
    def work() -> str:
        return "done"

    with working(app, tenants=TENANTS) as worker:
        until_asleep(worker)
        job = work.using(tenant="acme", delay=3600).enqueue()
        until_asleep(worker, "acme")
        store = app._store("acme")
        past = "now()" if two_databases.is_postgres else str(time.time())
        table = f"{two_databases.schema}_acme.jobs" if two_databases.is_postgres else f"{store.quoted}_jobs"
        change = f"update {table} set run_at = {past}"
        with closing(_connect(two_databases, app)) as connection:
            connection.execute(change)
            connection.commit()
        assert app.client.tenant("acme").result(job, timeout=20) == "done"


def _connect(database: Database, app: App) -> Any:
    if database.is_postgres:
        return psycopg.connect(database.url)
    return sqlite3.connect(str(app._store("acme").path))  # type: ignore[attr-defined]


def test_a_job_that_is_due_later_wakes_its_tenant(tenant_app: App) -> None:
    app = tenant_app

    @app.task
    def work() -> str:
        return "done"

    with working(app, tenants=TENANTS) as worker:
        until_asleep(worker)
        job = work.using(tenant="acme", delay=4.0).enqueue()
        until_asleep(worker, "acme")
        assert app.client.tenant("acme").result(job, timeout=20) == "done"


def test_the_job_of_a_dead_worker_wakes_its_tenant(tenant_app: App) -> None:
    app = tenant_app

    @app.task
    def work() -> str:
        return "done"

    with working(app, tenants=TENANTS) as worker:
        until_asleep(worker)
        worker.remove_tenant("acme")
        until(lambda: worker.tenants == ["globex"])
        job = work.using(tenant="acme").enqueue()
        _claim(app, "acme", lease=1.5)
        worker.add_tenant("acme", 1)
        assert app.client.tenant("acme").result(job, timeout=20) == "done"
        found = app.client.tenant("acme").get(job)
        assert found is not None
        assert found.losses == 1


def _claim(app: App, tenant: str, *, lease: float) -> None:
    """Claim the queued job in the name of a worker that does nothing with it."""
    scopes = [Scope("default", 1)]
    how = {"want": 1, "lease": lease, "random": lambda: 0.5}
    (job,) = app._store(tenant).run(claim.claim, "dead", str(uuid.uuid4()), scopes, list(app.tasks), **how).jobs
    assert job.attempt == 1


def test_schedules_and_limits_of_the_code_reach_tenants_that_sleep(tenant_app: App) -> None:
    app = tenant_app

    @app.schedule(every=3.0)
    @app.limit(max_running=3)
    @app.task(queue="ticks")
    def tick() -> None: ...

    with working(app, tenants=TENANTS):
        client = app.client.tenant("globex")
        until(lambda: [one.max_running for one in client.queues() if one.queue == "ticks"] == [3])
        until(lambda: client.count(state="succeeded") >= 2, "the schedule fires")


def test_all_tenants_are_served_also_those_that_are_added_and_removed(tenant_app: App, two_databases: Database) -> None:
    app = tenant_app

    @app.task
    def work() -> str:
        return "done"

    with working(app, tenants="all", concurrency=2) as worker:
        until(lambda: worker.tenants == ["acme", "globex"])
        client = app.client.tenant("initech")
        client.migrate()
        job = work.using(tenant="initech").enqueue()
        assert client.result(job, timeout=20) == "done"
        if two_databases.is_postgres:
            until_asleep(worker)
            with psycopg.connect(two_databases.url) as connection:
                connection.execute(f"drop schema {two_databases.schema}_globex cascade".encode())
            until(lambda: worker.tenants == ["acme", "initech"], "a tenant that was dropped is served no longer")
            app.client.tenant("globex").migrate()
            until(lambda: "globex" in worker.tenants)


def test_a_tenant_that_cannot_be_served_does_not_keep_others_waiting(
    tenant_app: App, two_databases: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_module, "AGAIN", 0.5)
    app = tenant_app

    @app.task
    def work() -> str:
        return "done"

    broken = _spoil(two_databases, app)
    with working(app, tenants={**TENANTS, broken: 1}) as worker:
        for tenant in TENANTS:
            job = work.using(tenant=tenant).enqueue()
            assert app.client.tenant(tenant).result(job, timeout=20) == "done"
        until(lambda: f"Cannot serve tenant {broken}" in caplog.text)
        assert caplog.text.count("Cannot serve tenant") == 1
        _mend(two_databases, app, broken)
        job = work.using(tenant=broken).enqueue()
        assert app.client.tenant(broken).result(job, timeout=20) == "done"
        with caplog.at_level(logging.INFO, "relet.worker"):
            until(lambda: all_of(worker)._tenants[broken].is_ready)


def _spoil(database: Database, app: App) -> str:
    """A tenant whose store is there, but cannot be used."""
    if not database.is_postgres:
        Path(tenants_of.file_of(str(app._store().path), "broken")).write_text("no database")  # type: ignore[attr-defined]
    return "broken"


def _mend(database: Database, app: App, tenant: str) -> None:
    if not database.is_postgres:
        Path(tenants_of.file_of(str(app._store().path), tenant)).unlink()  # type: ignore[attr-defined]
    app.client.tenant(tenant).migrate()


def test_a_worker_none_of_whose_tenants_can_be_served_does_not_start(two_databases: Database) -> None:
    if not two_databases.is_postgres:
        pytest.skip("a new SQLite file needs no migration")
    with two_databases.app() as app:

        @app.task
        def work() -> None: ...

        with pytest.raises(SchemaMismatch, match="migrate"):
            Worker(app, tenants={"missing": 1}).run_sync()


def test_a_worker_of_tenants_stops_once_nothing_is_left(tenant_app: App) -> None:
    app = tenant_app

    @app.task
    def work() -> str:
        return "done"

    jobs = {tenant: work.using(tenant=tenant).enqueue() for tenant in TENANTS}
    Worker(app, tenants="all", lease=1.0).run_sync(until_idle=True)
    assert {app.client.tenant(tenant).get(job).state for tenant, job in jobs.items()} == {State.SUCCEEDED}  # type: ignore[union-attr]
    assert [app.client.tenant(tenant).workers() for tenant in TENANTS] == [[], []]


def test_a_worker_reports_for_tenants_that_sleep(tenant_app: App) -> None:
    app = tenant_app

    @app.task
    def work() -> None: ...

    with working(app, tenants=TENANTS) as worker:
        until_asleep(worker)
        for tenant in TENANTS:
            (row,) = app.client.tenant(tenant).workers()
            assert (row.name, row.lost, row.running) == (worker.id, False, 0)
    assert [app.client.tenant(tenant).workers() for tenant in TENANTS] == [[], []]


def test_tenants_are_added_only_to_a_running_worker_of_tenants(memory_app: App) -> None:
    @memory_app.task
    def work() -> None: ...

    with pytest.raises(InvalidInput, match="serves no tenants"):
        Worker(memory_app).add_tenant("acme", 1)
