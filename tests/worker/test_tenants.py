"""One worker for several tenants: each in a separate schema, or file, with separate slots."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from relet import App, Attempt, InvalidInput, State, events
from relet._worker import Worker
from tests.databases import Database
from tests.worker.working import Crowd, until, working

TENANTS = {"acme": 2, "globex": 1}


@pytest.fixture
def tenant_app(database: Database) -> Iterator[App]:
    """An app whose tenants' stores are there."""
    app = database.app()
    for tenant in TENANTS:
        app.client.tenant(tenant).migrate()
    yield app
    app.close()
    if database.is_postgres:
        with psycopg.connect(database.url) as connection:
            for tenant in TENANTS:
                connection.execute(f"drop schema {database.schema}_{tenant} cascade".encode())


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
