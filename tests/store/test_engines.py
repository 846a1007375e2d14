"""Engines that spread a schema over nodes: whether every statement plans there, and the effect of the loss of a node.

Citus runs where RELET_TEST_CITUS_URL names its coordinator. The loss of a node is tested if RELET_TEST_CITUS_STOP_NODE
and RELET_TEST_CITUS_START_NODE are shell commands that stop and start the node whose port they get as `$1`.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from relet import App, State
from relet._store.open import open_store
from relet._store.postgres import PostgresStore
from relet._store.query import texts
from relet._store.rows import rewritten
from relet.errors import StoreUnavailable
from tests import servers
from tests.conftest import SERVERS
from tests.harness import harness_of
from tests.store.statement_files import statement_files

STOP, START = (os.environ.get(f"RELET_TEST_CITUS_{verb}_NODE") for verb in ("STOP", "START"))

needs_nodes = pytest.mark.skipif(
    "citus" not in servers.variants() or not (STOP and START),
    reason="RELET_TEST_CITUS_URL, RELET_TEST_CITUS_STOP_NODE and RELET_TEST_CITUS_START_NODE are not all set",
)

#: They lack the right to read a table of one engine, or name objects of the variant postgres alone.
ONLY_ELSEWHERE = {"doctor/partitions"}


@pytest.mark.parametrize("kind", servers.variants())
def test_every_statement_plans(kind: str, pytestconfig: pytest.Config, schema: str, subtests: pytest.Subtests) -> None:
    server = pytestconfig.stash[SERVERS].get(kind)
    store = open_store(server.dsn, schema=schema)
    store.migrate()
    store.ready()
    assert store.statements == "rows"
    names = {file.removesuffix(".postgres.sql") for file in statement_files() if file.endswith(".postgres.sql")}
    with psycopg.connect(server.dsn, autocommit=True) as raw:
        for name in sorted(names - ONLY_ELSEWHERE):
            for text in texts(name, "rows", "dollar", store.quoted):
                with subtests.test(name):
                    raw.execute(f"explain {re.sub(r'[$][0-9]+', 'null', text.sql)}".encode())
    store.close()
    server.drop_schema(schema)


def test_a_schema_of_the_variant_has_the_tables_and_columns_of_the_other(
    pytestconfig: pytest.Config, schema: str
) -> None:
    server = pytestconfig.stash[SERVERS].get(next(iter(servers.local_names())))
    found = []
    for variant in ("postgres", "rows"):
        store = open_store(server.dsn, schema=schema)
        assert isinstance(store, PostgresStore)
        store.wanted_variant = variant
        store.migrate()
        store.close()
        found.append(_shape(server.dsn, schema))
        server.drop_schema(schema)
    assert found[0] == found[1]


def _shape(dsn: str, schema: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Columns, but for the type of JSON, and indexes, but for collations. Partitions belong to their table."""
    columns = """
        select c.relname, a.attname, replace(format_type(a.atttypid, a.atttypmod), 'json', 'text'), a.attnotnull::text
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = %s::regnamespace and a.attnum > 0 and not a.attisdropped and not c.relispartition
          and c.relkind in ('r', 'p', 'v')
        order by 1, 2
    """
    indexes = """
        select indexname, regexp_replace(replace(indexdef, ' ONLY', ''), ' COLLATE "[A-Za-z]+"', '', 'g')
        from pg_indexes where schemaname = %s and tablename !~ '_[0-9]{8}$' order by 1
    """
    with psycopg.connect(dsn) as raw:
        return raw.execute(columns, (schema,)).fetchall(), raw.execute(indexes, (schema,)).fetchall()


def test_the_rules_find_the_end_of_a_call() -> None:
    text = (
        "a + make_interval(secs => coalesce(b, (c)::float8)) and id < {schema}.first_id(d - make_interval(days => 1))"
    )
    assert rewritten(text) == (
        "a + ((coalesce(b, (c)::float8)) * interval '1 second') and id < (lpad(to_hex((extract(epoch from d - ((1) *"
        " interval '1 day')) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid"
    )


@contextmanager
def stopped(port: int) -> Iterator[None]:
    """A node that is away within the block."""
    assert STOP is not None
    assert START is not None
    subprocess.run(["sh", "-c", STOP, "sh", str(port)], check=True, timeout=60)
    try:
        yield
    finally:
        subprocess.run(["sh", "-c", START, "sh", str(port)], check=True, timeout=60)


@needs_nodes
@pytest.mark.timeout(300)
def test_the_loss_of_a_node_stops_its_tenants_alone_and_loses_nothing(pytestconfig: pytest.Config, schema: str) -> None:
    server = pytestconfig.stash[SERVERS].get("citus")
    apps = [App(server.dsn, schema=f"{schema}_{n}") for n in range(2)]
    for app in apps:
        app.client.migrate()
        app.task(name="t")(_nothing)
    here, there = apps
    ports = [_port_of(server.dsn, app._store().quoted.strip('"')) for app in apps]
    if ports[0] == ports[1]:
        _move(server.dsn, f"{schema}_1", ports[0])
        ports[1] = _port_of(server.dsn, f"{schema}_1")
    assert ports[0] != ports[1]
    acknowledged = [app.lookup("t").enqueue().id for app in apps]
    (running,) = harness_of(there).claim(1)
    with stopped(ports[1]):
        acknowledged[0:0] = [here.lookup("t").enqueue().id]
        assert here.client.get(acknowledged[0]).state is State.QUEUED  # type: ignore[union-attr]
        with pytest.raises(StoreUnavailable):
            there.lookup("t").enqueue()
    _until_up(there)
    assert there.client.get(running.id).state is State.RUNNING  # type: ignore[union-attr]
    harness_of(there).succeed(running, "null")
    assert there.client.get(acknowledged[-1]).state is State.SUCCEEDED  # type: ignore[union-attr]
    assert here.client.count() == 2
    for number, app in enumerate(apps):
        app.close()
        server.drop_schema(f"{schema}_{number}")


def _nothing() -> None: ...


def _port_of(dsn: str, schema: str) -> int:
    with psycopg.connect(dsn) as raw:
        query = "select distinct nodeport from citus_shards where table_name = to_regclass(%s)"
        ((port,),) = raw.execute(query, (f"{schema}.jobs",)).fetchall()
        return int(port)


def _move(dsn: str, schema: str, away_from: int) -> None:
    """To another worker node."""
    with closing(psycopg.connect(dsn, autocommit=True)) as raw:
        nodes = raw.execute("select node_name, node_port from citus_get_active_worker_nodes()").fetchall()
        host, port = next(node for node in nodes if node[1] != away_from)
        raw.execute("select citus_schema_move(%s::regnamespace, %s, %s, 'block_writes')", (schema, host, port))


def _until_up(app: App) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            return app._store().reach()
        except StoreUnavailable:
            assert time.monotonic() < deadline
