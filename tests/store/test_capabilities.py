"""The capabilities that a store finds in its server, and their effects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from relet import App
from relet._store import capabilities
from relet._store.capabilities import Capabilities
from relet._store.flows import lease
from relet._store.flows.claim import claim
from relet._store.flows.claim_scope import Scope
from relet._store.flows.enqueue import enqueue
from relet._store.migrate import newest
from relet._store.open import open_store
from relet._store.postgres import OwnConnection, PostgresStore
from relet._store.runner import drive
from relet.errors import StoreError
from tests import servers
from tests.conftest import SERVERS
from tests.harness import token
from tests.servers import Server, with_options
from tests.store.race_worker import TASK, draft

PROPER = servers.local_names()


@pytest.fixture
def store(pg_url: str, schema: str) -> Iterator[PostgresStore]:
    made = open_store(pg_url, schema=schema)
    assert isinstance(made, PostgresStore)
    yield made
    made.close()


@pytest.fixture(params=PROPER)
def proper(request: pytest.FixtureRequest) -> Server:
    """A PostgreSQL server without an extension that spreads schemas."""
    return request.config.stash[SERVERS].get(request.param)


def test_postgresql_has_everything(proper: Server) -> None:
    store = open_store(proper.dsn)
    assert isinstance(store, PostgresStore)
    found = store._server.capabilities
    assert found == Capabilities(isolation="read committed")
    assert (found.variant, found.generic_plans) == ("postgres", True)
    with store._pool.connection() as raw:
        assert capabilities.has_advisory_locks(raw)
        assert raw.execute("select count(*) from pg_listening_channels()").fetchone() == (0,)
    store.close()


def test_the_url_chooses_a_variant(proper: Server, schema: str) -> None:
    url = with_options(proper.dsn, "-c relet.variant=rows -c relet.clock_margin=0.25")
    store = open_store(url, schema=schema)
    assert isinstance(store, PostgresStore)
    assert store.migrate() == list(range(1, newest("rows") + 1))
    assert (store.statements, store._server.clock_margin) == ("postgres", 0.25)  # it is read at the first use
    store.ready()
    assert store.statements == "rows"
    store.close()
    proper.drop_schema(schema)


@pytest.mark.parametrize("setting", ["variant=columns", "clock_margin=2", "clock_margin=soon"])
def test_a_setting_in_the_url_that_makes_no_sense_is_refused(proper: Server, setting: str) -> None:
    store = open_store(with_options(proper.dsn, f"-c relet.{setting}"))
    with pytest.raises(StoreError, match=f"relet.{setting.partition('=')[0]} in the URL must be"):
        store.reach()
    store.close()


def test_the_caller_chooses_a_variant_and_the_schema_keeps_it(proper: Server, schema: str) -> None:
    app = App(proper.dsn, schema=schema)
    assert app.client.migrate(variant="rows")
    assert app.client.migrate() == app.client.migrate(variant="rows") == []
    with pytest.raises(StoreError, match="is of the variant rows, and keeps it"):
        app.client.migrate(variant="postgres")
    app.close()
    other = App(proper.dsn, schema=schema)  # finds out by itself
    other.client.prune()
    assert other._store().statements == "rows"
    other.close()
    proper.drop_schema(schema)


def test_the_server_is_asked_once_and_again_after_another_host_took_over(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    find = capabilities.find

    def counted(raw: Any, other: Any) -> tuple[bool, Capabilities]:
        asked.append(1)
        return find(raw, other)

    monkeypatch.setattr("relet._store.postgres_pool.find", counted)
    with store._pool.connection(), store._pool.connection() as raw:
        assert len(asked) == 1
        store._server.leave(raw)
    store._server.connect().close()
    assert len(asked) == 2


def test_no_thread_listens_where_notifications_do_not_arrive(store: PostgresStore) -> None:
    server = store._server
    server._capabilities = Capabilities(notifications=False)
    with store.notifier.subscribe("done") as subscription:
        assert not any(thread.name.endswith("listener") for thread in threading.enumerate())
        store.notifier.publish({"done"})  # of this process they arrive all the same
        assert subscription.wait(0)


def test_a_lease_is_expired_only_by_the_clock_of_every_node(proper: Server, schema: str) -> None:
    """One node grants the lease, another one reaps, and their clocks may be apart."""
    app = App(with_options(proper.dsn, "-c relet.variant=rows -c relet.clock_margin=1"), schema=schema)
    app.client.migrate()
    store = app._store()
    assert isinstance(store, PostgresStore)
    store.run(enqueue, [draft()])
    scope = [Scope("default", 1)]
    (job,) = store.run(claim, "w", token(), scope, [TASK], want=1, lease=30.0, random=lambda: 0.5).jobs
    with store._pool.connection() as raw:
        assert store._own(raw)._clock_margin == 1.0
        raw.execute(f"update {schema}.jobs set expires_at = statement_timestamp() - interval '1 minute'".encode())
        for margin, reaped in ((3600.0, []), (1.0, [job.id])):
            raw.execute(f"update {schema}.pulse set touched_at = now(), grace_until = '-infinity'".encode())
            connection = OwnConnection(raw, store.quoted, store._own(raw)._limits, None, "rows", margin)
            changes, _ = drive(lease.reap(lambda: 0.5), connection)
            connection.commit()
            assert [change.id for change in changes] == reaped
    app.close()
    proper.drop_schema(schema)
