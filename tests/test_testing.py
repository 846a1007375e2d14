"""`relet.testing`: the tools for a program's own tests."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from relet import App, Attempt, Backoff, InvalidInput, JobFailed, State, injected
from relet._store.flows import claim as claim_flows
from relet._store.flows.claim_scope import Scope
from relet.errors import ResourceFailed
from relet.testing import Harness, harness
from tests.conftest import PG_KINDS, SERVERS


@pytest.fixture(params=["memory", *PG_KINDS])
def url(request: pytest.FixtureRequest) -> str:
    """Where the jobs of a test live."""
    if request.param == "memory":
        return "sqlite:///:memory:"
    return str(request.config.stash[SERVERS].get(request.param).dsn)


@pytest.fixture
def app(tmp_path: Path) -> App:
    """A program's app, whose own database must not be touched."""
    return App(f"sqlite:///{tmp_path / 'production.db'}")


@pytest.fixture
def relet(app: App, url: str) -> Iterator[Harness]:
    with harness(app, url) as testing:
        yield testing


@pytest.mark.every_store
def test_drain_runs_due_jobs_and_those_that_they_enqueue(relet: Harness) -> None:
    ran: list[Any] = []

    @relet.app.task
    def first(number: int) -> None:
        ran.append(number)
        second.enqueue(number + 1)

    @relet.app.task
    async def second(number: int) -> int:
        await asyncio.sleep(0)
        ran.append(number)
        return number

    first.enqueue(1)
    first.using(delay=60).enqueue(10)
    drained = relet.drain()
    assert ran == [1, 2]
    assert [event.task for event in drained.succeeded] == ["first", "second"]
    assert len(drained) == 2
    assert len(relet.drain()) == 0
    assert len(relet.advance(minutes=1)) == 2
    assert ran == [1, 2, 10, 11]


def test_the_database_of_the_program_is_not_touched(app: App, tmp_path: Path) -> None:
    @app.task
    def work() -> None: ...

    client, where = app.client, app.client.where
    with harness(app) as testing:
        job = work.enqueue()
        assert client.get(job) == testing.client.get(job), "also a client that was kept before"
        assert not (tmp_path / "production.db").exists()
    assert app.client.where == where
    assert app.client.get(job) is None


@pytest.mark.long
@pytest.mark.every_store
def test_each_harness_begins_empty(app: App, url: str) -> None:
    @app.task
    def work() -> None: ...

    for _ in range(2):
        with harness(app, url) as testing:
            assert testing.enqueued() == []
            work.enqueue()


@pytest.mark.long("postgres")
def test_only_one_queue_is_drained(relet: Harness) -> None:
    @relet.app.task
    def work() -> None: ...

    work.enqueue()
    work.using(queue="other").enqueue()
    assert [event.queue for event in relet.drain(queue="other").attempts] == ["other"]
    assert [job.queue for job in relet.enqueued()] == ["default"]


@pytest.mark.long("postgres")
def test_retries_follow_the_clock_until_the_job_fails(relet: Harness) -> None:
    @relet.app.task(max_attempts=3, backoff=Backoff(base=600, max=600, jitter=False))
    def refuse() -> None:
        raise ValueError("card declined")

    job = refuse.enqueue()
    assert len(relet.drain().retried) == 1
    assert len(relet.advance(minutes=9)) == 0
    assert len(relet.advance(minutes=1).retried) == 1
    assert len(relet.advance(minutes=10).failed) == 1
    found = relet.client.get(job)
    assert found is not None
    assert found.state is State.FAILED


@pytest.mark.long("postgres")
def test_an_exception_of_a_handler_is_raised_on_request(relet: Harness) -> None:
    @relet.app.task
    def refuse() -> None:
        raise ValueError("card declined")

    job = refuse.enqueue()
    with pytest.raises(ValueError, match="card declined"):
        relet.drain(raise_errors=True)
    assert [record.outcome for record in relet.client.attempts(job)] == ["retried"]


@pytest.mark.every_store
def test_schedules_tick_at_their_times(relet: Harness) -> None:
    ticks: list[datetime] = []

    @relet.app.schedule("0 * * * *")
    @relet.app.task
    def hourly() -> None:
        ticks.append(relet.now)

    begin = relet.now
    relet.advance(hours=5)
    assert len(ticks) == 5
    assert [(tick.minute, tick.second) for tick in ticks] == [(0, 0)] * 5
    assert relet.now == begin + timedelta(hours=5)


@pytest.mark.long("postgres")
def test_sleeps_and_signals_of_a_handler(relet: Harness) -> None:
    charged: list[int] = []

    @relet.app.task
    def order(attempt: Attempt, amount: int) -> str:
        attempt.step("charge", charged.append, amount)
        attempt.sleep("cool off", 3600)
        answer: str = attempt.wait_for("approval")
        return answer

    job = order.enqueue(7)
    relet.drain()
    relet.advance(minutes=59)
    found = relet.client.get(job)
    assert found is not None
    assert found.awaits is None
    relet.advance(minutes=1)
    relet.client.signal(job, "approval", "yes")
    relet.drain()
    assert relet.client.result(job, timeout=0) == "yes"
    assert charged == [7]


@pytest.mark.every_store
def test_rates_follow_the_clock(relet: Harness) -> None:
    @relet.app.task
    def call() -> None: ...

    relet.client.limit_queue("default", rate=2, per=60)
    for _ in range(6):
        call.enqueue()
    assert len(relet.drain()) == 2
    assert len(relet.advance(minutes=1)) == 2
    assert len(relet.advance(minutes=1)) == 2


@pytest.mark.long("postgres")
def test_an_expired_lease_is_reaped(relet: Harness) -> None:
    @relet.app.task
    def work() -> None: ...

    job = work.enqueue()
    token = "0b5c7a53-3a90-4c14-8d39-3a4f0f4a7f6f"
    arguments = ("dead", token, [Scope("default", 1)], relet.app.tasks)
    relet.app._store().run(claim_flows.claim_plain, *arguments, want=1, lease=30.0)
    assert len(relet.advance(seconds=29)) == 0
    relet.advance(seconds=2)
    assert [record.outcome for record in relet.client.attempts(job)] == ["lost", "succeeded"]


@pytest.mark.long("postgres")
def test_perform_returns_the_result_or_raises(relet: Harness) -> None:
    @relet.app.task
    def double(attempt: Attempt, number: int) -> int:
        attempt.progress(1, 2)
        return attempt.step("double", lambda: 2 * number)

    @relet.app.task
    async def refuse() -> None:
        raise ValueError("card declined")

    @relet.app.task
    def wait(attempt: Attempt) -> None:
        attempt.sleep("long", 60)

    assert relet.perform(double, 4) == 8
    with pytest.raises(ValueError, match="card declined"):
        relet.perform(refuse)
    with pytest.raises(JobFailed, match="did not end"):
        relet.perform(wait)


@pytest.mark.long("postgres")
def test_perform_leaves_other_jobs_alone(relet: Harness) -> None:
    ran: list[int] = []

    @relet.app.task
    def work(number: int) -> None:
        ran.append(number)

    work.enqueue(1)
    relet.perform(work, 2)
    assert ran == [2]


@pytest.mark.long("postgres")
def test_expectations_compare_the_arguments_that_are_passed(relet: Harness) -> None:
    @relet.app.task
    def mail(to: str, subject: str = "Hello", when: datetime | None = None) -> None: ...

    moment = datetime(2026, 1, 2, tzinfo=UTC)
    job = mail.using(queue="bulk", priority=3).enqueue("ada@example.org", when=moment)
    assert relet.assert_enqueued(mail) == relet.client.get(job)
    assert relet.assert_enqueued(mail, "ada@example.org", when=moment).id == job.id
    assert relet.assert_enqueued(mail.using(queue="bulk"), to="ada@example.org").id == job.id
    relet.refute_enqueued(mail, to="bob@example.org")
    with pytest.raises(AssertionError, match="is enqueued"):
        relet.refute_enqueued(mail, to="ada@example.org")
    with pytest.raises(AssertionError) as raised:
        relet.assert_enqueued(mail.using(priority=5), to="bob@example.org")
    assert str(raised.value) == (
        "mail(to='bob@example.org') with priority=5 is not enqueued. Jobs of mail that are:\n"
        f"  {job.id}: to is 'ada@example.org', not 'bob@example.org'; priority is 3, not 5"
    )
    with pytest.raises(InvalidInput, match="unexpected keyword"):
        relet.assert_enqueued(mail, too="ada@example.org")
    relet.drain()
    with pytest.raises(AssertionError, match="nor is any other job of mail"):
        relet.assert_enqueued(mail)


@pytest.mark.long("postgres")
def test_inline_mode_runs_jobs_within_enqueue(relet: Harness) -> None:
    ran: list[int] = []

    @relet.app.task
    def work(number: int) -> None:
        ran.append(number)
        if number == 1:
            work.enqueue(2)

    @relet.app.task
    def refuse() -> None:
        raise ValueError("card declined")

    with relet.inline():
        work.enqueue(1)
        assert ran == [1, 2]
        asyncio.run(work.aenqueue(3))
        assert ran == [1, 2, 3]
        with pytest.raises(ValueError, match="card declined"):
            refuse.enqueue()
    work.enqueue(4)
    assert ran == [1, 2, 3]


async def _drain_on_loop(relet: Harness, ran: list[Any]) -> None:
    loop = asyncio.get_running_loop()

    @relet.app.task
    async def on_loop() -> None:
        ran.append(asyncio.get_running_loop() is loop)

    @relet.app.task
    def in_thread() -> None:
        ran.append("plain")

    @relet.app.task
    async def refuse() -> None:
        raise ValueError("card declined")

    await on_loop.aenqueue()
    await in_thread.aenqueue()
    assert len((await relet.adrain()).succeeded) == 2
    await refuse.aenqueue()
    with pytest.raises(ValueError, match="card declined"):
        await relet.adrain(raise_errors=True)


@pytest.mark.long("postgres")
def test_async_tests_drain_on_their_loop(relet: Harness) -> None:
    ran: list[Any] = []
    asyncio.run(_drain_on_loop(relet, ran))
    assert ran == [True, "plain"]


@pytest.mark.long("postgres")
def test_the_clock_does_not_go_back(relet: Harness) -> None:
    with pytest.raises(InvalidInput, match="forward only"):
        relet.advance(-1)


SHOP = """
from relet import App

app = App("sqlite:///production.db")


@app.task
def double(number: int) -> int:
    return 2 * number
"""

TESTS = """
import shop


def test_shop(relet_app):
    job = shop.double.enqueue(4)
    relet_app.assert_enqueued(shop.double, 4)
    assert len(relet_app.drain()) == 1
    assert relet_app.client.result(job) == 8


def test_empty(relet_app):
    relet_app.refute_enqueued(shop.double)
"""


def _pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.mark.long("postgres")
def test_the_plugin_offers_the_app_of_the_configuration(tmp_path: Path, url: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nrelet_app = shop:app\n")
    done = _pytest(tmp_path, "--relet-url", url)
    assert "2 passed" in done.stdout, done
    assert not (tmp_path / "production.db").exists()


@pytest.mark.long
def test_the_plugin_names_the_error_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text("def test_shop(relet_app): ...\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nrelet_app = shoop:app\n")
    done = _pytest(tmp_path)
    assert "relet_app = 'shoop:app' in pytest's configuration: Cannot find module 'shoop'." in done.stdout, done


class Pool:
    """The value of a resource of the program."""

    def __init__(self, name: str = "real") -> None:
        self.name = name
        self.is_open = True


class Session:
    """Of an async resource: it works only on the loop that made it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.loop = asyncio.get_running_loop()


class Missing:
    """No resource makes it."""


@pytest.fixture
def log(app: App) -> list[str]:
    """The calls of the app's resources; handlers may add to it."""
    done: list[str] = []

    @app.resource
    def hook() -> Iterator[None]:
        done.append("hook")
        yield

    @app.resource
    def pool() -> Iterator[Pool]:
        done.append("open pool")
        made = Pool()
        yield made
        made.is_open = False
        done.append("close pool")

    @app.resource
    async def session(pool: Pool) -> AsyncIterator[Session]:
        done.append("open session")
        yield Session(pool)
        assert pool.is_open
        done.append("close session")

    return done


@pytest.mark.long("postgres")
def test_a_drain_makes_the_resources_that_its_handlers_take(relet: Harness, log: list[str]) -> None:
    @relet.app.task
    def plain(pool: Pool = injected) -> str:
        assert pool.is_open
        return pool.name

    @relet.app.task
    async def on_loop(number: int, session: Session = injected) -> int:
        assert session.loop is asyncio.get_running_loop()
        return number

    assert relet.perform(plain) == "real"
    assert log == ["open pool", "close pool"]
    log.clear()
    on_loop.enqueue(1)
    on_loop.enqueue(2)
    plain.enqueue()
    assert len(relet.drain(raise_errors=True).succeeded) == 3
    assert log == ["open pool", "open session", "close session", "close pool"]
    with relet.inline():
        assert relet.client.result(on_loop.enqueue(3)) == 3


@pytest.mark.long("postgres")
def test_an_async_drain_makes_async_resources_on_its_loop(relet: Harness, log: list[str]) -> None:
    @relet.app.task
    async def on_loop(session: Session = injected) -> bool:
        return session.loop is asyncio.get_running_loop()

    @relet.app.task
    def plain(pool: Pool = injected) -> bool:
        return pool.is_open

    jobs = [on_loop.enqueue(), plain.enqueue(), on_loop.enqueue()]
    asyncio.run(relet.adrain(raise_errors=True))
    assert relet.client.results(jobs, timeout=0) == [True, True, True]
    assert log == ["open pool", "open session", "close session", "close pool"]


@pytest.mark.long("postgres")
def test_a_test_overrides_a_resource(relet: Harness, log: list[str]) -> None:
    @relet.app.task
    async def on_loop(session: Session = injected, pool: Pool = injected) -> list[str]:
        return [session.pool.name, pool.name]

    @relet.app.task
    def lacking(missing: Missing = injected) -> None: ...

    with relet.override(Pool, Pool("fake")):
        assert relet.perform(on_loop) == ["fake", "fake"]
        with relet.override(Pool, Pool("inner")):
            assert relet.perform(on_loop) == ["inner", "inner"]
        assert relet.perform(on_loop) == ["fake", "fake"]
    assert "open pool" not in log
    assert relet.perform(on_loop) == ["real", "real"]
    with relet.override(Missing, Missing()):
        relet.perform(lacking)
    with pytest.raises(InvalidInput, match=r"task lacking takes missing: \S*Missing, but no resource has this type"):
        relet.perform(lacking)


@pytest.mark.long("postgres")
def test_a_resource_that_fails_fails_the_drain(relet: Harness) -> None:
    @relet.app.resource
    def broken() -> Pool:
        raise ConnectionError("no such host")

    @relet.app.task
    def plain(pool: Pool = injected) -> None: ...

    plain.enqueue()
    with pytest.raises(ResourceFailed, match="ConnectionError: no such host"):
        relet.drain()
