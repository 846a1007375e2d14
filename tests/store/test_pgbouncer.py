"""Through PgBouncer in transaction mode: no statement may rely on the session of the previous one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from relet import App, Job, State
from relet._core.ids import make_id
from relet._core.job import Draft
from relet._store.flows import enqueue, inspect
from relet._store.postgres import Limits, OwnConnection, PostgresStore
from relet._store.query import as_json, read
from tests.databases import Database
from tests.harness import harness_of
from tests.store.bouncers import bouncing, needs_bouncer

pytestmark = needs_bouncer

SERVER_CONNECTIONS = 2


@pytest.fixture(scope="module")
def bouncer(pg_schema: Database) -> Iterator[Database]:
    """The same store, as it is seen through a pooler."""
    with bouncing(pg_schema.url, "transaction", SERVER_CONNECTIONS) as url:
        yield replace(pg_schema, url=url)


@pytest.fixture
def app(bouncer: Database, pg_database: Database) -> Iterator[App]:
    app = App(bouncer.url, schema=bouncer.schema)

    @app.task
    def work(value: Any = None) -> Any:
        return value

    yield app
    app.close()


def test_a_life_through_the_pooler(app: App) -> None:
    assert app.client.migrate() == []
    work = app.lookup("work")
    for n in range(12):  # often enough for statements to be prepared
        first = work.enqueue(n)
        second = work.using(target="t", depends_on=[first], unique=f"k{n}").enqueue(n)
        (claimed,) = harness_of(app).claim(1)
        assert claimed.id == first.id
        harness_of(app).succeed(claimed, "1")
        assert harness_of(app).promote_all() == [second.id]
        assert app.client.complete(second, n).state is State.SUCCEEDED
        assert app.client.result(second, timeout=5) == n
    assert app.client.count() == 24


def test_no_statement_is_compiled_behind_the_pooler(bouncer: Database, pg_database: Database) -> None:
    with closing(one_connection(bouncer)) as store, store._server.pool.connection() as raw:
        own = OwnConnection(raw, store.quoted, Limits(3.0, 0, 3.0, None))
        own.begin()
        assert raw.execute("show jit").fetchone() == ("off",)
        raw.rollback()


@pytest.mark.long
def test_many_clients_share_few_connections(app: App) -> None:
    work = app.lookup("work")

    def life(n: int) -> list[str]:
        jobs = [work.enqueue(n), work.using(unique=f"u{n}", target=f"t{n % 4}").enqueue(n)]
        assert app.client.get(jobs[0]) is not None
        app.client.complete(jobs[0], n)
        assert app.client.result(jobs[0], timeout=20) == n
        app.client.pause(jobs[1])
        return [job.id for job in jobs]

    with ThreadPoolExecutor(8) as threads:
        stored = [id for ids in threads.map(life, range(48)) for id in ids]
    assert len(set(stored)) == 96
    assert (app.client.count(state="succeeded"), app.client.count(state="paused")) == (48, 48)


def test_a_prepared_statement_of_another_client_is_never_run(bouncer: Database, pg_database: Database) -> None:
    """Prepared under one name on two server connections, by two clients who are then dealt the other's connection.

    A pooler that does not track prepared statements raises no error: the name exists, and means another statement.
    """
    with closing(one_connection(bouncer)) as ours, closing(one_connection(bouncer)) as theirs:
        found = swapped(bouncer, ours, theirs)
    assert found is not None
    assert found.task == "work"


def one_connection(database: Database) -> PostgresStore:
    return PostgresStore(database.url, schema=database.schema, connections=1)


def swapped(bouncer: Database, ours: PostgresStore, theirs: PostgresStore) -> Job[Any] | None:
    """The result of `get` on a connection where its name means `find_chains`."""
    draft: Draft[Any] = Draft(make_id(time.time(), b"0123456789"), "work", '{"value":1}')
    ours.run(enqueue.enqueue, [draft])
    theirs.run(inspect.queues)
    for store in (ours, theirs):
        store.close()  # counting begins anew
    first, second = (psycopg.connect(bouncer.url, prepare_threshold=None) for _ in range(2))
    with first, second:
        first.execute("select 1")  # holds one of the two server connections
        for _ in range(8):
            assert ours.run(inspect.get, draft.id) is not None  # ... so this is prepared on the other
        second.execute("select 1")  # holds the other
        first.commit()
        for _ in range(8):
            theirs.run(_chains, draft.id)  # prepared on the first, under the same name
        found = ours.run(inspect.get, draft.id)
        second.commit()
    return found


def _chains(job_id: str) -> Any:
    """A statement with the same parameters as `get`, and another meaning."""
    return (yield read("inspect/chains_of", ids=as_json([job_id])))
