"""Deadlines and failover as a client meets them: connections that hang, hosts that vanish, servers that are demoted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest

from relet import App, Job
from relet._store.postgres import PostgresStore
from relet.errors import StoreError
from tests.databases import Database
from tests.faults import failing
from tests.store.proxy import Proxy, proxy_to

BOUNDS = "statement_timeout", "idle_in_transaction_session_timeout"
UNTIL_ANOTHER_HOST = 8.0  # seconds, from when a host vanished


@pytest.fixture
def proxy(pg_url: str) -> Iterator[Proxy]:
    with proxy_to(pg_url) as made:
        yield made


def work(key: object) -> None: ...


def app_at(url: str, schema: str) -> App:
    app = App(url, schema=schema)
    app.task(work)
    app.client.migrate()
    return app


def two_hosts(proxy: Proxy, dsn: str) -> str:
    """The proxy first, then the server itself: the first vanishes, and the second takes over."""
    at, direct = urlsplit(proxy.url), urlsplit(dsn)
    host = parse_qs(direct.query).get("host", [direct.hostname or ""])[0]
    return (
        f"postgresql://{at.username}@{at.hostname}:{at.port},{quote(host, safe='')}:{direct.port or 5432}{direct.path}"
    )


def warm_up(app: App, connections: int = 6) -> list[Job[Any]]:
    """Several connections, so that all of those that are kept have to be noticed."""
    with ThreadPoolExecutor(connections) as threads:
        return list(threads.map(app.tasks["work"].enqueue, range(8 * connections)))


def seconds_until_done(*works: Callable[[], object]) -> float:
    """How long it takes until all are done, at the same time."""
    begin = time.monotonic()
    with ThreadPoolExecutor(len(works)) as threads:
        for one in [threads.submit(work) for work in works]:
            one.result()
    return time.monotonic() - begin


def calls_of_all_kinds(app: App, job: Job[Any]) -> list[Callable[[], object]]:
    """A write that commits by itself, one in a transaction, a read, and a call of async code."""
    client, task = app.client, app.tasks["work"]
    return [
        lambda: task.enqueue("one"),
        lambda: client.pause(job),
        lambda: client.get(job),
        lambda: asyncio.run(app.aclient.enqueue(task.draft("another"))),
    ]


def test_a_vanished_host_costs_at_most_8_s(pg_url: str, proxy: Proxy, schema: str) -> None:
    app = app_at(two_hosts(proxy, pg_url), schema)
    jobs = warm_up(app)
    proxy.vanish()
    assert seconds_until_done(*calls_of_all_kinds(app, jobs[0])) < UNTIL_ANOTHER_HOST
    # The host that does not answer is not tried again before the other.
    app.close()
    assert seconds_until_done(lambda: app.client.get(jobs[0])) < 2.5
    app.close()


def test_calls_recover_from_connections_that_hang(pg_url: str, proxy: Proxy, schema: str) -> None:
    app = app_at(proxy.url, schema)
    jobs = warm_up(app)
    proxy.hang()
    assert seconds_until_done(*calls_of_all_kinds(app, jobs[0])) < 15
    assert app.client.get(jobs[0]).state == "paused"  # type: ignore[union-attr]
    app.close()


def test_a_listener_recovers_from_connections_that_hang(pg_url: str, proxy: Proxy, schema: str) -> None:
    app, other = app_at(proxy.url, schema), app_at(pg_url, schema)
    job = app.tasks["work"].enqueue("one")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(app.client.wait, job, timeout=30)
        assert not wait([waiting], timeout=1.5).done  # it listens by now
        proxy.hang()
        other.client.complete(job)
        begin = time.monotonic()
        waiting.result()
        assert time.monotonic() - begin < 15
    app.close()
    other.close()


def test_a_table_that_was_changed_under_prepared_statements_is_no_error(pg_url: str, schema: str) -> None:
    app = app_at(pg_url, schema)
    for _ in range(10):  # prepared by now
        app.client.workers()
    with psycopg.connect(pg_url, autocommit=True) as other:
        other.execute(f'alter table "{schema}".workers alter column running type bigint')
    assert app.client.workers() == []
    app.close()


def test_a_statement_that_the_server_does_not_support_is_not_tried_again(pg_database: Database) -> None:
    app = app_at(pg_database.url, pg_database.schema)
    begin = time.monotonic()
    with failing(pg_database.url, pg_database.schema, "jobs", "0A000"), pytest.raises(StoreError, match="not now"):
        app.tasks["work"].enqueue("one")
    assert time.monotonic() - begin < 5
    app.close()


@pytest.mark.parametrize("state", ["25P04", "57014", "53100", "XX000", "25006", "58030", "08006"])
def test_a_statement_whose_error_may_pass_is_tried_again(pg_database: Database, state: str) -> None:
    app = app_at(pg_database.url, pg_database.schema)
    with failing(pg_database.url, pg_database.schema, "jobs", state, times=2):
        job = app.tasks["work"].enqueue("one")
    assert app.client.get(job) == job
    app.close()


def test_sessions_are_bounded_on_the_server(pg_database: Database) -> None:
    app = app_at(pg_database.url, pg_database.schema)
    store = app._store()
    assert isinstance(store, PostgresStore)
    keepalives = "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"
    with store._pool.connection() as ours, store.begin() as handlers:
        for raw in (ours, handlers.raw):  # whatever the value: where there is no TCP it shows as 0
            assert {source_of(raw, name) for name in keepalives} == {"session"}
        bounds = {name: ours.execute(f"show {name}".encode()).fetchone() for name in BOUNDS}
        assert bounds == dict.fromkeys(BOUNDS, ("3s",))
        assert {source_of(handlers.raw, name) for name in BOUNDS} == {"default"}
        assert ours.execute("show jit").fetchone() == ("off",), "the server would compile for a second"
    app.close()


def source_of(raw: psycopg.Connection[Any], name: str) -> str:
    row = raw.execute("select source from pg_settings where name = %s", [name]).fetchone()
    assert row is not None
    return str(row[0])
