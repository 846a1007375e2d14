"""Through PgBouncer in transaction mode: no statement may count on the session that the last one had."""

# ruff: noqa: F811 (fixtures are imported, and asked for by their names)

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from leasehold import App, Job, State
from leasehold.core.ids import make_id
from leasehold.core.job import Draft
from leasehold.store.flows import enqueue, look
from leasehold.store.postgres import PostgresStore
from leasehold.store.query import as_json, read
from tests.homes import Home, claim, pg_home, pg_schema, promote_all, succeed  # noqa: F401

BOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(BOUNCER is None, reason="no pgbouncer here: install Debian's package of that name")

SERVER_CONNECTIONS = 2

CONFIG = """\
[databases]
* = host={host} port={server_port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
"""


@pytest.fixture(scope="module")
def bouncer(pg_schema: Home) -> Iterator[Home]:
    """The same store, as it is seen through a pooler."""
    assert BOUNCER is not None
    place = Path(parse_qs(urlsplit(pg_schema.url).query)["host"][0]).parent / f"bouncer-{uuid.uuid4().hex[:8]}"
    place.mkdir(mode=0o755)
    parts = urlsplit(pg_schema.url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    host = parse_qs(parts.query)["host"][0]
    config = place / "pgbouncer.ini"
    config.write_text(
        CONFIG.format(
            host=host, server_port=parts.port or 5432, user=parts.username, port=port, size=SERVER_CONNECTIONS
        )
    )
    who = ["-u", "postgres" if _has_user("postgres") else "nobody"] if os.geteuid() == 0 else []
    with (
        (place / "log").open("wb") as log,
        subprocess.Popen([BOUNCER, *who, str(config)], stdout=log, stderr=log) as process,
    ):
        url = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        try:
            _await(url, place / "log")
            yield replace(pg_schema, url=url)
        finally:
            process.terminate()
    shutil.rmtree(place, ignore_errors=True)


def _has_user(name: str) -> bool:
    return any(user.pw_name == name for user in pwd.getpwall())


def _await(url: str, log: Path) -> None:
    give_up = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError as error:
            if time.monotonic() > give_up:
                raise RuntimeError(log.read_text()) from error
            time.sleep(0.05)


@pytest.fixture
def app(bouncer: Home, pg_home: Home) -> Iterator[App]:
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
        second = work.using(target="t", after=[first], unique=f"k{n}").enqueue(n)
        (claimed,) = claim(app)
        assert claimed.id == first.id
        succeed(app, claimed, "1")
        assert promote_all(app) == [second.id]
        assert app.client.complete(second, n).state is State.SUCCEEDED
        assert app.client.result(second, timeout=5) == n
    assert app.client.count() == 24


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


def test_no_statement_of_another_is_ever_run_in_place_of_ones_own(bouncer: Home, pg_home: Home) -> None:
    """Prepared under one name on two server connections, by two clients who are then dealt the other's connection.

    A pooler that knows nothing of prepared statements makes no error of it: the name is there, and means something else.
    """  # noqa: E501
    with closing(one_connection(bouncer)) as ours, closing(one_connection(bouncer)) as theirs:
        found = swapped(bouncer, ours, theirs)
    assert found is not None
    assert found.task == "work"


def one_connection(home: Home) -> PostgresStore:
    return PostgresStore(home.url, schema=home.schema, connections=1)


def swapped(bouncer: Home, ours: PostgresStore, theirs: PostgresStore) -> Job[Any] | None:
    """What `get` answers on a connection where its name means `find_chains`."""
    draft = Draft(make_id(time.time(), b"0123456789"), "work", '{"value":1}')
    ours.run(enqueue.enqueue, [draft])
    theirs.run(look.queues)
    for store in (ours, theirs):
        store.close()  # counting begins anew
    first, second = (psycopg.connect(bouncer.url, prepare_threshold=None) for _ in range(2))
    with first, second:
        first.execute("select 1")  # holds one of the two server connections
        for _ in range(8):
            assert ours.run(look.get, draft.id) is not None  # ... so this is prepared on the other
        second.execute("select 1")  # holds the other
        first.commit()
        for _ in range(8):
            theirs.run(_chains, draft.id)  # prepared on the first, under the same name
        found = ours.run(look.get, draft.id)
        second.commit()
    return found


def _chains(job_id: str) -> Any:
    """A statement with the same parameters as `get`, and another meaning."""
    return (yield read("find_chains", ids=as_json([job_id])))
