"""One statement for the schemas of many tenants, and how many statements a connection keeps prepared for them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from relet import App
from relet._store import libpq
from relet._store.flows import maintenance, worker_reports
from relet._store.postgres import PostgresStore
from relet._store.retry import RetryFor
from relet._store.store import Store
from relet.errors import SchemaMismatch

NAMES = ["north", "south", "west"]
ONCE = RetryFor(0.0)


@pytest.fixture
def app(pg_url: str, schema: str) -> Iterator[App]:
    with App(pg_url, schema=schema) as app:
        for name in NAMES:
            app.client.tenant(name).migrate()
        yield app
        with psycopg.connect(pg_url) as connection:
            for name in NAMES:
                connection.execute(f"drop schema if exists {schema}_{name} cascade".encode())


def stores(app: App) -> list[Store]:
    return [app._store(name) for name in NAMES]


def test_each_schema_has_its_own_answer(app: App) -> None:
    @app.task
    def work() -> None: ...

    work.using(tenant="south").enqueue()
    found = app._store("north").run_each(ONCE, stores(app), maintenance.work_ahead, ["work"], queued=True)
    assert [one.queued for one in found] == [False, True, False]


def test_statements_that_write_write_in_each_schema(app: App) -> None:
    app._store("north").run_each(ONCE, stores(app), worker_reports.forget, "no such worker")
    app._store("north").run_each(ONCE, stores(app), maintenance.sleep, 60.0, 7, None, ["work"])
    with psycopg.connect(app._url) as connection:
        for name in NAMES:
            rows = connection.execute(f"select key, tasks from {app._schema}_{name}.sleepers".encode()).fetchall()
            assert rows == [(7, ["work"])]


def test_a_flow_of_several_statements_is_refused(app: App) -> None:
    with pytest.raises(TypeError, match="several statements"):
        app._store("north").run_each(ONCE, stores(app), maintenance.request_notifications, 5.0, 7, None, ["work"])


def test_a_schema_that_is_missing_fails_the_statement(app: App) -> None:
    others = [*stores(app), app._store("missing")]
    with pytest.raises(SchemaMismatch):
        app._store("north").run_each(ONCE, others, maintenance.work_ahead, ["work"])


def test_a_connection_keeps_a_bounded_number_of_statements_prepared(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libpq, "MAX_PREPARED", 4)
    monkeypatch.setattr(libpq, "OFTEN", 0)
    store = app._store("north")
    assert isinstance(store, PostgresStore)
    for _ in range(3):
        for one in stores(app):
            one.run(maintenance.work_ahead)
            one.run(maintenance.probe)
    with store._pool.connection() as raw:
        (number,) = raw.execute("select count(*) from pg_prepared_statements", prepare=False).fetchone() or (0,)
    assert 0 < number <= 4
