"""Lists and figures from a streaming standby: its lag, a user's own changes, and the primary in its place."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from relet import App, Job
from relet._store import replica as replicas
from relet._web import create_app
from relet.errors import InvalidInput
from tests.conftest import SERVERS
from tests.schemas import emptying
from tests.servers import PrivateServer, Server
from tests.supervisor import installs

OPERATE, READ = "o" * 32, "r" * 32
REPLAYED = "select pg_last_wal_replay_lsn() >= %s::pg_lsn"


class Pair:
    """A primary and its standby, and an app that knows both."""

    def __init__(self, primary: PrivateServer, standby: PrivateServer) -> None:
        self.primary, self.standby = primary, standby
        self.app = App(primary.dsn, replica=standby.dsn)
        self.app.task(name="charge")(charge)

    def enqueue(self) -> Job[Any]:
        return self.app.lookup("charge").enqueue(7)

    def pause(self) -> None:
        self.catch_up()
        self.standby.execute("select pg_wal_replay_pause()")

    def resume(self) -> None:
        self.standby.execute("select pg_wal_replay_resume()")
        self.catch_up()

    def catch_up(self) -> None:
        """Wait until the standby has replayed the writes of the primary."""
        with psycopg.connect(self.primary.dsn) as db:
            (written,) = db.execute("select pg_current_wal_flush_lsn()::text").fetchone() or ("",)
        await_true(lambda: self._is_at(written))

    def _is_at(self, written: str) -> bool:
        with psycopg.connect(self.standby.dsn) as db:
            return db.execute(REPLAYED, (written,)).fetchone() == (True,)


def charge(cents: int) -> None: ...


def await_true(condition: Callable[[], bool], within: float = 30.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[PrivateServer, PrivateServer]]:
    """A primary that does not wait for its standby, whose replay a test may pause."""
    kinds = list(installs())
    if not kinds:
        pytest.skip("no PostgreSQL that a test may stop")
    with request.config.stash[SERVERS].private(kinds[0]) as primary, primary.standby() as standby:
        primary.execute("alter system set synchronous_standby_names = ''", "select pg_reload_conf()")
        yield primary, standby


@pytest.fixture
def pair(servers: tuple[PrivateServer, PrivateServer], monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """An empty store, of which the standby has the tables. The state of the standby is checked for every read."""
    monkeypatch.setattr(replicas, "CHECK_EVERY", 0.0)
    monkeypatch.setattr(replicas, "AGAIN_AFTER", 0.0)
    made = Pair(*servers)
    made.app.client.migrate()
    made.catch_up()
    yield made
    made.resume()
    made.app.close()
    made.primary.execute(*emptying("relet"))


class Browser:
    """A client of the dashboard that keeps its cookies, as one of several users or processes."""

    def __init__(self, app: App, token: str = OPERATE, web: Any = None) -> None:
        self.web = web or create_app(app, operate=OPERATE, read=READ)
        self._headers, self.cookies = {"authorization": f"Bearer {token}"}, httpx.Cookies()

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.web)
            share = {"base_url": "http://localhost", "headers": self._headers, "cookies": self.cookies}
            async with httpx.AsyncClient(transport=transport, **share) as client:  # type: ignore[arg-type]
                answer = await client.request(method, path, **more)
                self.cookies = client.cookies
                return answer

        answer = asyncio.run(ask())
        assert answer.status_code < 400, answer.text
        return answer

    def jobs(self) -> int:
        return int(self("GET", "/api/jobs/count").json()["count"])


def test_lists_and_figures_come_from_the_standby_and_single_jobs_do_not(pair: Pair) -> None:
    replica = pair.app.client.replica()
    first = pair.enqueue()
    pair.pause()
    second = pair.enqueue()
    assert [job.id for job in replica.jobs().jobs] == [first.id]
    assert (replica.count(), pair.app.client.count()) == (1, 2)
    assert [one.queued for one in replica.queues()] == [1]
    assert replica.get(second) is not None
    assert replica.explain(second)
    assert replica.describe(second).job.id == second.id
    assert replica.cancel(second).state == "cancelled"
    assert asyncio.run(pair.app.aclient.replica().count()) == 1
    pair.resume()
    assert replica.count() == 2


def test_every_verb_decides_on_the_primary(pair: Pair) -> None:
    """A bulk action and an erasure find the jobs that the standby does not have yet."""
    pair.pause()
    replica = pair.app.client.replica()
    for _ in range(3):
        pair.enqueue()
    assert replica.bulk("pause", queue="default").done == 3
    assert replica.count() == 0
    assert replica.idempotent("one").rerun(pair.app.client.jobs(limit=1).jobs[0]).id
    assert replica.acting_as("ann").bulk("cancel", queue="default").done == 4


def test_a_lagging_standby_is_named_and_too_old_a_one_is_not_read(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, replica = Browser(pair.app, READ), pair.app.client.replica()
    assert "come from a replica, less than a second behind" in browser("GET", "/queues").text
    pair.pause()
    pair.enqueue()
    await_true(lambda: replica.count() == 0 and (status_of(replica).lag or 0) > 1.5)
    assert " s behind" in browser("GET", "/queues").text
    assert browser.jobs() == 0
    monkeypatch.setattr(replicas, "MAX_LAG", 0.5)
    page = browser("GET", "/jobs").text
    assert "come from the primary: the replica is" in page
    assert "charge" in page
    assert browser.jobs() == 1


def status_of(client: Any) -> Any:
    return client._replica_status()


def test_a_user_sees_the_effect_of_an_action_at_once_and_others_see_it_when_it_is_replayed(pair: Pair) -> None:
    job = pair.enqueue()
    pair.pause()
    mine = Browser(pair.app)
    other, elsewhere = Browser(pair.app, READ, mine.web), Browser(pair.app)
    assert mine("POST", "/act/cancel", data={"job": job.id}).status_code == 303
    page = mine("GET", "/jobs?state=queued").text
    assert "the replica does not have your last change yet" in page
    assert job.id not in page
    assert job.id in other("GET", "/jobs?state=queued").text
    elsewhere.cookies = mine.cookies  # the same browser, at another process
    assert "your last change" in elsewhere("GET", "/jobs").text
    pair.resume()
    assert "come from a replica" in mine("GET", "/jobs").text


def test_a_change_by_the_api_is_in_the_lists_that_follow(pair: Pair) -> None:
    browser = Browser(pair.app)
    assert browser.jobs() == 0
    pair.pause()
    browser("POST", "/api/jobs", json={"task": "charge", "payload": {"cents": 7}})
    assert browser.jobs() == 1
    assert Browser(pair.app, READ, browser.web).jobs() == 0


def test_confirmations_read_the_primary(pair: Pair) -> None:
    pair.pause()
    pair.enqueue()
    page = Browser(pair.app)("GET", "/confirm/bulk?action=cancel&queue=default").text
    assert "1 job" in page
    assert "replica" not in page


def test_a_standby_that_is_away_fails_no_page_and_comes_back(pair: Pair) -> None:
    pair.enqueue()
    pair.catch_up()
    browser = Browser(pair.app, READ)
    assert browser.jobs() == 1
    pair.standby.stop("SIGQUIT")
    try:
        assert browser.jobs() == 1
        assert "come from the primary: the replica cannot be read" in browser("GET", "/").text
        assert browser("GET", "/health").text == "ok\nreplica: the replica cannot be read\n"
        assert "relet_replica_serving 0.0" in browser("GET", "/metrics").text
        (finding,) = [one for one in pair.app.client.doctor() if one.check == "replica"]
        assert finding.level == "warning"
    finally:
        pair.standby.start()
    pair.catch_up()
    await_true(lambda: "come from a replica" in browser("GET", "/jobs").text)


def test_the_lag_is_told_to_machines(pair: Pair) -> None:
    browser = Browser(pair.app, READ)
    await_true(lambda: browser("GET", "/health").text == "ok\nreplica: less than a second behind\n")
    text = browser("GET", "/metrics").text
    assert "relet_replica_serving 1.0" in text
    assert "relet_replica_lag_seconds" in text
    (finding,) = [one for one in pair.app.client.doctor() if one.check == "replica"]
    assert (finding.level, "the replica serves lists and figures" in finding.text) == ("ok", True)


def test_a_server_that_is_no_standby_is_not_read(pair: Pair) -> None:
    with App(pair.primary.dsn, replica=pair.primary.dsn) as app:
        assert "is no standby" in status_of(app.client).problem
        assert app.client.replica().count() == 0


def test_the_standby_of_another_primary_is_not_read(pair: Pair, pg_servers: list[Server]) -> None:
    others = [one for one in pg_servers if cluster_of(one) != cluster_of(pair.primary)]
    if not others:
        pytest.skip("all servers are copies of one cluster")
    pair.enqueue()
    pair.catch_up()
    with others[0].fresh_database() as elsewhere, App(elsewhere, replica=pair.standby.dsn) as app:
        app.client.migrate()
        assert "a standby of another primary" in status_of(app.client).problem
        assert app.client.replica().count() == 0


def cluster_of(server: Server) -> Any:
    with psycopg.connect(server.dsn) as db:
        return db.execute("select system_identifier from pg_control_system()").fetchone()


def test_a_tenant_has_a_replica_too(pair: Pair) -> None:
    tenant = pair.app.client.tenant("acme")
    tenant.migrate()
    try:
        pair.catch_up()
        pair.pause()
        pair.app.lookup("charge").using(tenant="acme").enqueue(7)
        assert (tenant.replica().count(), tenant.count()) == (0, 1)
    finally:
        pair.resume()
        pair.primary.drop_schema("relet_acme")


@contextmanager
def environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def test_without_a_replica_the_same_program_reads_its_database() -> None:
    with App("sqlite:///:memory:") as app:
        app.client.migrate()
        assert app.client.replica().count() == 0
        assert status_of(app.client) is None


def test_a_sqlite_file_and_a_wrong_url_are_refused() -> None:
    with pytest.raises(InvalidInput, match="a SQLite file has no replica: every program that uses it reads the file"):
        App("sqlite:///:memory:", replica="postgresql://reader@db2/shop")
    with (
        environment(RELET_REPLICA_URL="postgresql://reader@db2/shop"),
        pytest.raises(InvalidInput, match="RELET_REPLICA_URL"),
    ):
        App("sqlite:///:memory:")
    with pytest.raises(InvalidInput, match="the URL of a replica is that of a standby"):
        App("postgresql://shop@db1/shop", replica="sqlite:///copy.db")
    with environment(RELET_REPLICA_URL="postgresql://reader@db2/shop"):
        assert App("postgresql://shop@db1/shop")._store().replica is not None
        assert App("postgresql://shop@db1/shop", replica="")._store().replica is None
