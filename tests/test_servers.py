"""The servers that the other tests rely on."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.conftest import LOCAL_PG_KINDS, SERVERS
from tests.schemas import Schemas
from tests.servers import PrivateServer, Server, local_names

pytestmark = pytest.mark.every_server


def test_every_server_answers(pg_servers: list[Server]) -> None:
    for server in pg_servers:
        with psycopg.connect(server.dsn) as connection:
            (version,) = connection.execute("select version()").fetchone() or ("nothing",)
        assert version.startswith(f"PostgreSQL {server.version}")


def test_a_store_starts_empty(store_url: str, schema: str) -> None:
    if store_url.startswith("sqlite:///"):
        path = store_url.removeprefix("sqlite:///")
        assert path == ":memory:" or (Path(path).is_absolute() and not Path(path).exists())
        sqlite3.connect(path).close()
        return
    with psycopg.connect(store_url) as connection:
        connection.execute(f"create schema {schema}")
        connection.execute(f"create table {schema}.jobs as select 1")


@pytest.mark.long
@pytest.mark.parametrize("kind", LOCAL_PG_KINDS)
def test_postgres_is_far_from_utc_and_syncs_files_unless_all_tests_share_it(
    pytestconfig: pytest.Config, kind: str
) -> None:
    servers = pytestconfig.stash[SERVERS]
    with servers.private(kind) as private:
        assert _settings(private) == [("on",), ("Asia/Kolkata",)]
    assert _settings(servers.durable(kind)) == [("on",), ("Asia/Kolkata",)]
    assert _settings(servers.get(kind)) == [("off",), ("Asia/Kolkata",)]


def _settings(server: Server) -> list[tuple[str]]:
    with psycopg.connect(server.dsn) as connection:
        return [connection.execute(f"show {name}").fetchone() or ("",) for name in ("fsync", "timezone")]


@pytest.mark.long
def test_a_shared_schema_is_used_again_unless_more_than_rows_was_left_in_it(pg_servers: list[Server]) -> None:
    server, schemas = pg_servers[0], Schemas()
    with schemas.one_of(server) as first, schemas.one_of(server) as second:
        server.execute(f"insert into {first.name}.queues (queue) values ('left')")
        server.execute(f"create index mine on {second.name}.jobs (queue)")
        first.empty()
    with schemas.one_of(server) as again, schemas.one_of(server) as another:
        assert again.name == first.name
        assert another.name not in (first.name, second.name)
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute(f"select count(*) from {again.name}.queues").fetchone() == (0,)
            assert connection.execute("select to_regnamespace(%s)", [second.name]).fetchone() == (None,)
    schemas.close()


def test_a_fresh_database_is_gone_afterwards(pg_servers: list[Server]) -> None:
    server = pg_servers[0]
    with server.fresh_database() as dsn:
        left_open = psycopg.connect(dsn)
        left_open.execute("create table jobs ()")
    left_open.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(dsn)


def test_a_private_server_survives_a_crash(private_server: PrivateServer) -> None:
    with psycopg.connect(private_server.dsn) as connection:
        connection.execute("create table kept as select 1 as n")
    private_server.stop("SIGKILL")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(private_server.dsn)
    private_server.start()
    with psycopg.connect(private_server.dsn) as connection:
        assert connection.execute("select n from kept").fetchall() == [(1,)]


@pytest.mark.long
@pytest.mark.skipif(not local_names(), reason="no server to start")
def test_nothing_is_left_of_a_run_that_was_killed() -> None:
    code = f"""
import time
from tests.servers import running
with running() as servers:
    servers.get({local_names()[0]!r})
    print(servers.home, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        home = Path(run.stdout.readline().strip())
        assert (home / "control").is_socket()
        run.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while home.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not home.exists()
    in_there = f"{home}/".encode()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if in_there in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
