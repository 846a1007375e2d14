"""Resources: made once in each process before its first claim, closed in reverse order after its last handler."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from relet import App, State, Worker, injected
from relet.errors import ResourceFailed
from tests import forks
from tests.worker import resource_tasks
from tests.worker.resource_tasks import Pool, Session
from tests.worker.working import error_of, over, until, until_state, working


class Notes:
    """Lines of words that processes have written; the last word is the id of the process."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def all(self) -> list[list[str]]:
        return [line.split() for line in self._file.read_text().splitlines()] if self._file.exists() else []

    def by(self, pid: int) -> list[str]:
        return [" ".join(words) for *words, by in self.all if by == str(pid)]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notes:
    file = tmp_path / "notes"
    monkeypatch.setenv("RELET_TEST_NOTES", str(file))
    return Notes(file)


@pytest.fixture
def shared_app(notes: Notes) -> Iterator[App]:
    """The app of `resource_tasks`, with an empty store."""
    app = resource_tasks.app
    app.client.migrate()
    yield app
    app.close()


def program(url: str, *options: str) -> subprocess.Popen[str]:
    """A worker of `resource_tasks`, as a user starts it."""
    return forks.Popen(
        [
            sys.executable,
            "-m",
            "relet",
            "worker",
            "tests.worker.resource_tasks:app",
            "--poll-interval",
            "0.1",
            *options,
        ],
        env=os.environ | {"RELET_TEST_URL": url},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


@pytest.fixture
def client_app(tmp_path: Path, notes: Notes) -> Iterator[App]:
    """An app with the tasks of `resource_tasks`, in a file that worker programs share."""
    app = App(f"sqlite:///{tmp_path / 'relet.db'}")
    for task in resource_tasks.app.tasks.values():
        app.task(name=task.name, process=task.process)(task.__wrapped__)
    app.client.migrate()
    yield app
    app.close()


def test_handlers_receive_them_by_annotation(shared_app: App, notes: Notes) -> None:
    with working(shared_app):
        jobs = [resource_tasks.plain.enqueue(1), resource_tasks.on_loop.enqueue(2), resource_tasks.plain.enqueue(3)]
        assert shared_app.client.results(jobs, timeout=20) == [1, 2, 3]
    assert notes.by(os.getpid()) == [
        "hook start", "pool start", "session start", "session stop", "pool stop", "hook stop",
    ]  # fmt: skip


def test_each_worker_of_a_program_has_its_own(memory_app: App) -> None:
    @memory_app.resource
    def pool() -> Pool:
        return Pool()

    seen: list[Pool] = []

    @memory_app.task
    def use(pool: Pool = injected) -> None:
        seen.append(pool)

    for _ in range(2):
        with working(memory_app):
            over(memory_app, use.enqueue(), use.enqueue())
    first, second, third, fourth = seen
    assert first is second
    assert third is fourth
    assert first is not third


def test_tenants_share_them(memory_app: App) -> None:
    @memory_app.resource
    def pool() -> Pool:
        return Pool()

    seen: set[Pool] = set()

    @memory_app.task
    def use(pool: Pool = injected) -> None:
        seen.add(pool)

    for tenant in ("acme", "emca"):
        memory_app.client.tenant(tenant).migrate()
    jobs = {tenant: use.using(tenant=tenant).enqueue() for tenant in ("acme", "emca")}
    with working(memory_app, tenants={"acme": 1, "emca": 1}):
        for tenant, job in jobs.items():
            memory_app.client.tenant(tenant).result(job, timeout=20)
    assert len(seen) == 1


@pytest.mark.long
def test_they_are_closed_after_the_last_handler_has_ended(shared_app: App, notes: Notes) -> None:
    with working(shared_app, shutdown_timeout=20) as worker:
        job = resource_tasks.slow.enqueue()
        until(lambda: ["slow", "start", str(os.getpid())] in notes.all)
        worker.stop()
        assert worker.finished.wait(20)
    assert shared_app.client.get(job).state is State.SUCCEEDED  # type: ignore[union-attr]
    lines = notes.by(os.getpid())
    assert lines.index("slow stop") < lines.index("pool stop")


def test_a_failure_at_the_start_claims_nothing_and_closes_the_resources_made_so_far(memory_app: App) -> None:
    events: list[str] = []

    @memory_app.resource
    def hook() -> Iterator[None]:
        yield
        events.append("closed")

    @memory_app.resource
    async def broken() -> AsyncIterator[Pool]:
        raise ConnectionError("no such host")
        yield

    @memory_app.task
    def use(pool: Pool = injected) -> None:
        events.append("ran")

    memory_app.client.migrate()
    job = use.enqueue()
    with pytest.raises(
        ResourceFailed, match=r"resource \S*broken .* could not be made: ConnectionError: no such host"
    ) as failed:
        Worker(memory_app).run_sync(until_idle=True)
    assert isinstance(failed.value.__cause__, ConnectionError)
    assert events == ["closed"]
    found = memory_app.client.get(job)
    assert found is not None
    assert (found.state, found.version) == (State.QUEUED, 0)


def test_an_error_while_one_is_closed_does_not_keep_the_others_open(
    memory_app: App, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[str] = []

    @memory_app.resource
    def outer() -> Iterator[None]:
        yield
        closed.append("outer")

    @memory_app.resource
    async def broken() -> AsyncIterator[None]:
        yield
        raise ValueError("no")

    @memory_app.resource
    def inner() -> Iterator[None]:
        yield
        closed.append("inner")

    @memory_app.task
    def nothing() -> None: ...

    with working(memory_app):
        over(memory_app, nothing.enqueue())
    assert closed == ["inner", "outer"]
    assert [r.getMessage() for r in caplog.records if "was not closed properly" in r.getMessage()]


def test_a_start_that_blocks_does_not_keep_a_worker_from_stopping_at_once(memory_app: App) -> None:
    entered, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    @memory_app.resource
    def pool() -> Iterator[Pool]:
        entered.set()
        go_on.wait(20)
        yield Pool()
        closed.set()

    @memory_app.task
    def use(pool: Pool = injected) -> None: ...

    worker = Worker(memory_app)
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()), daemon=True)
    thread.start()
    assert entered.wait(20)
    worker.stop()
    worker.stop()
    thread.join(20)
    assert not thread.is_alive()
    go_on.set()
    assert closed.wait(20), "it is closed as soon as it is made"


def test_an_end_that_blocks_is_given_up(
    memory_app: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("relet._worker.worker.CLOSE_TIMEOUT", 0.1)
    go_on = threading.Event()

    @memory_app.resource
    def pool() -> Iterator[Pool]:
        yield Pool()
        go_on.wait(20)

    @memory_app.task
    def use(pool: Pool = injected) -> None: ...

    with working(memory_app):
        over(memory_app, use.enqueue())
    assert "Resources were not closed in time: stopping without waiting for them" in caplog.text
    go_on.set()


@pytest.mark.long
def test_a_handler_that_blocks_the_loop_does_not_keep_a_worker_from_ending(
    memory_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relet._worker.worker.CLOSE_TIMEOUT", 0.1)
    go_on, started = threading.Event(), threading.Event()

    @memory_app.resource
    async def session() -> AsyncIterator[Session]:
        yield Session(Pool())

    @memory_app.task
    async def block(session: Session = injected) -> None:
        started.set()
        go_on.wait(20)

    memory_app.client.migrate()
    block.enqueue()
    worker = Worker(memory_app, shutdown_timeout=0.1)
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()), daemon=True)
    thread.start()
    assert started.wait(20)
    worker.stop()
    assert worker.finished.wait(20)
    go_on.set()
    thread.join(20)


@pytest.mark.long
def test_children_make_their_own_when_a_handler_takes_them(shared_app: App, notes: Notes) -> None:
    with working(shared_app, concurrency=1):
        bare = shared_app.client.result(resource_tasks.bare_in_child.enqueue(), timeout=20)
        assert notes.by(bare) == ["hook start"]
        assert shared_app.client.result(resource_tasks.in_child.enqueue(), timeout=20) == bare
        assert shared_app.client.result(resource_tasks.in_child.enqueue(), timeout=20) == bare
        assert shared_app.client.result(resource_tasks.on_loop_of_child.enqueue(1), timeout=20) == [1, bare]
        assert shared_app.client.result(resource_tasks.on_loop_of_child.enqueue(2), timeout=20) == [2, bare]
    assert notes.by(bare) == [
        "hook start", "model start", "pool start", "session start", "session stop", "pool stop", "hook stop",
    ]  # fmt: skip
    assert "model start" not in notes.by(os.getpid()), "only children need it"


@pytest.mark.long
@pytest.mark.parametrize("is_hurried", [False, True])
def test_a_child_that_does_not_close_its_resources_in_time_is_killed(
    shared_app: App, notes: Notes, monkeypatch: pytest.MonkeyPatch, *, is_hurried: bool
) -> None:
    monkeypatch.setattr("relet._worker.processes.CLOSE_TIMEOUT", 600.0 if is_hurried else 0.5)
    with working(shared_app, concurrency=1) as worker:
        pid = shared_app.client.result(resource_tasks.stubborn_in_child.enqueue(), timeout=20)
        worker.stop()
        until(lambda: "stubborn stop" in notes.by(pid))
        if is_hurried:
            worker.stop()
        assert worker.finished.wait(20)
    assert notes.by(pid) == ["hook start", "stubborn stop"]
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.long
def test_a_child_that_cannot_make_one_fails_the_attempt(
    shared_app: App, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with working(shared_app, concurrency=1):
        until(lambda: "session start" in notes.by(os.getpid()))
        monkeypatch.setenv("RELET_TEST_BREAK", "1")
        job = resource_tasks.on_loop_of_child.using(max_attempts=1).enqueue(1)
        error = error_of(shared_app, job)
    assert "ResourceFailed: resource session" in error
    assert "ConnectionError: no such host" in error


@pytest.mark.long
def test_an_aborted_child_is_killed_and_the_next_one_starts_anew(shared_app: App, notes: Notes, tmp_path: Path) -> None:
    with working(shared_app, concurrency=1):
        job = resource_tasks.wait_in_child.enqueue(str(tmp_path / "started"))
        until((tmp_path / "started").exists)
        shared_app.client.cancel(job)
        until_state(shared_app, job, State.CANCELLED)
        _, pid = shared_app.client.result(resource_tasks.on_loop_of_child.enqueue(1), timeout=20)
    children = {int(by) for *_, by in notes.all} - {os.getpid()}
    (aborted,) = children - {pid}
    assert notes.by(aborted) == ["hook start", "pool start"]
    assert notes.by(pid)[-1] == "hook stop"


def test_a_program_that_cannot_make_one_says_so_and_claims_nothing(
    client_app: App, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELET_TEST_BREAK", "1")
    job = client_app.lookup("plain").enqueue(1)
    worker = program(client_app._url)
    _, errors = worker.communicate(timeout=30)
    assert worker.returncode == 1
    assert "relet: resource session (" in errors
    assert "could not be made: ConnectionError: no such host" in errors
    assert "no such host" in errors.splitlines()[-1]
    assert notes.by(worker.pid) == ["hook start", "pool start", "pool stop", "hook stop"]
    found = client_app.client.get(job)
    assert found is not None
    assert (found.state, found.version) == (State.QUEUED, 0)


@pytest.mark.long
def test_each_process_of_a_program_has_its_own(client_app: App, notes: Notes) -> None:
    worker = program(client_app._url, "--processes", "2")
    try:
        until(lambda: sum(words[:2] == ["session", "start"] for words in notes.all) == 2)
        jobs = client_app.client.enqueue_many([client_app.lookup("plain").draft(one) for one in range(20)])
        assert client_app.client.results(jobs, timeout=30) == list(range(20))
        worker.send_signal(signal.SIGTERM)
        _, errors = worker.communicate(timeout=30)
    finally:
        worker.kill()
    assert worker.returncode == 0, errors
    pids = {int(words[-1]) for words in notes.all}
    assert len(pids) == 2
    for pid in pids:
        assert notes.by(pid) == [
            "hook start", "pool start", "session start", "session stop", "pool stop", "hook stop",
        ]  # fmt: skip


@pytest.mark.long
def test_a_killed_worker_runs_no_stop_part_and_the_next_one_starts_anew(client_app: App, notes: Notes) -> None:
    killed = program(client_app._url)
    until(lambda: "session start" in notes.by(killed.pid))
    killed.kill()
    killed.communicate(timeout=20)
    job = client_app.lookup("on_loop").enqueue(5)
    following = program(client_app._url, "--until-idle")
    _, errors = following.communicate(timeout=30)
    assert following.returncode == 0, errors
    assert client_app.client.result(job, timeout=0) == 5
    assert notes.by(killed.pid) == ["hook start", "pool start", "session start"]
    assert notes.by(following.pid)[-3:] == ["session stop", "pool stop", "hook stop"]


def test_a_program_with_a_missing_resource_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from relet import App, injected\n"
        "app = App('sqlite:///:memory:')\n"
        "class Pool: ...\n"
        "@app.task\n"
        "def send(pool: Pool = injected) -> None: ...\n"
    )
    for options in ([], ["--processes", "2"]):
        command = [sys.executable, "-m", "relet", "worker", "shop:app", *options]
        ended = forks.run(command, cwd=tmp_path, timeout=30)
        assert ended.returncode == 2
        assert ended.stderr.startswith("relet: task send takes pool: shop.Pool, but no resource has this type")
