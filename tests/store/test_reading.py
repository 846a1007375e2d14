"""The store itself ends a read that has a time limit; writes are not limited."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
import pytest

from relet import App, State
from relet._store import query
from relet._store.flows import inspect
from relet._store.query import Flow, read, read_only, snapshot
from relet._store.time_limit import reading_until
from relet.errors import JobNotFound, QueryTimeout
from tests.databases import Database

pytestmark = pytest.mark.every_server

SLOW = {
    "postgres": "select 'slow in {schema}', pg_sleep(600)",
    "sqlite": "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1e12) select count(*) from n;",
}


@read_only
def slow() -> Flow[int]:
    return len((yield read("slow")))


@read_only
def two_reads() -> Flow[int]:
    yield read("inspect/clock")
    return (yield from slow())


@pytest.fixture
def app(app: App, monkeypatch: pytest.MonkeyPatch) -> App:
    known = query.source
    monkeypatch.setattr(
        query,
        "source",
        lambda name, dialect: (
            SLOW["sqlite" if dialect == "sqlite" else "postgres"] if name == "slow" else known(name, dialect)
        ),
    )
    return app


def test_the_store_ends_a_read_that_takes_longer_than_allowed(app: App, database: Database) -> None:
    for flow in (slow, two_reads):
        began = time.monotonic()
        with reading_until(began + 0.3), pytest.raises(QueryTimeout, match="ask for less"):
            app._store().run(flow)
        assert time.monotonic() - began < 60
    if database.is_postgres:
        with psycopg.connect(database.url) as raw:
            text = f'slow in "{database.schema}"'
            left = "select count(*) from pg_stat_activity where state = 'active' and query like %s and pid <> %s"
            found = raw.execute(left, (f"%{text}%", raw.info.backend_pid)).fetchone()
            assert found == (0,), "the query goes on in the server"
    assert app.client.queues() == [], "the connection is as good as before"


def test_a_read_after_the_limit_is_not_even_begun(app: App) -> None:
    with reading_until(time.monotonic() - 1):
        with pytest.raises(QueryTimeout):
            app.client.queues()
        app.client.pause_queue("mail")  # a write has no time limit
    assert [one.paused for one in app.client.queues()] == [True]


@snapshot
def twice(job_id: str, between: Callable[[], object]) -> Flow[list[State]]:
    states = []
    for _ in range(2):
        job = yield from inspect.get(job_id)
        if job is None:
            raise JobNotFound(job_id)
        states.append(job.state)
        between()
    return states


def test_all_statements_of_a_snapshot_see_the_same_state(app: App, database: Database) -> None:
    if database.kind == "memory":
        pytest.skip("in memory, all flows share one connection: a change cannot come between two statements")

    @app.task
    def work() -> None: ...

    job = work.enqueue()
    changes = [app.client.pause, app.client.cancel]
    assert app._store().run(twice, job.id, lambda: changes.pop(0)(job)) == [State.QUEUED, State.QUEUED]
    assert app._store().run(twice, job.id, lambda: None) == [State.CANCELLED, State.CANCELLED]


def test_a_snapshot_that_fails_leaves_no_transaction_open(app: App) -> None:
    @app.task
    def work() -> None: ...

    def fail() -> None:
        raise ValueError("between two statements")

    job = work.enqueue()
    with pytest.raises(ValueError, match="between two"):
        app._store().run(twice, job.id, fail)
    app.client.cancel(job)
    found = app.client.get(job)
    assert found is not None
    assert found.state is State.CANCELLED, "the connection of the failed read still has its snapshot"


def test_a_snapshot_has_the_time_limit_of_a_read(app: App) -> None:
    @snapshot
    def slow_snapshot() -> Flow[int]:
        return (yield from slow())

    with reading_until(time.monotonic() + 0.3), pytest.raises(QueryTimeout):
        app._store().run(slow_snapshot)
    assert app.client.queues() == []
