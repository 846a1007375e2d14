"""`async with app.worker():` and `with app.worker():`, a worker inside another program."""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from relet import App, Attempt, InvalidInput, State, Worker
from relet._worker.embedded import WorkerOptions
from relet.errors import SchemaMismatch
from tests.conftest import PG_KINDS, SERVERS
from tests.databases import Database
from tests.worker.programs import TIMEOUT, until


def broken(*_: object) -> None:
    raise RuntimeError("the worker is broken")


def test_jobs_run_while_an_async_block_runs_and_end_before_it_is_left(app: App) -> None:
    started = threading.Event()

    @app.task
    async def greet(name: str) -> str:
        return f"Hello, {name}"

    @app.task
    def slow() -> str:
        started.set()
        threading.Event().wait(0.3)
        return "done"

    async def main() -> None:
        async with app.worker(concurrency=4, poll_interval=0.1) as worker:
            assert isinstance(worker, Worker)
            assert await app.aclient.result(await greet.aenqueue("Ada"), timeout=TIMEOUT) == "Hello, Ada"
            job = await slow.aenqueue()
            await asyncio.to_thread(started.wait, TIMEOUT)
        found = await app.aclient.get(job)
        assert found is not None
        assert found.state is State.SUCCEEDED, "the drain has waited for it"

    asyncio.run(main())


def test_jobs_run_while_a_sync_block_runs_and_end_before_it_is_left(app: App) -> None:
    started = threading.Event()

    @app.task
    async def greet(name: str) -> str:
        return f"Hello, {name}"

    @app.task
    def slow() -> str:
        started.set()
        threading.Event().wait(0.3)
        return "done"

    with app.worker(poll_interval=0.1) as worker:
        assert isinstance(worker, Worker)
        assert app.client.result(greet.enqueue("Ada"), timeout=TIMEOUT) == "Hello, Ada"
        job = slow.enqueue()
        assert started.wait(TIMEOUT)
    found = app.client.get(job)
    assert found is not None
    assert found.state is State.SUCCEEDED, "the drain has waited for it"
    assert worker.finished.is_set()


def test_jobs_that_outlast_the_shutdown_timeout_are_released(app: App) -> None:
    started = threading.Event()

    @app.task
    def endless(attempt: Attempt) -> None:
        started.set()
        while True:
            attempt.check()
            threading.Event().wait(0.01)

    with app.worker(poll_interval=0.1, shutdown_timeout=0.1):
        job = endless.enqueue()
        assert started.wait(TIMEOUT)
    found = app.client.get(job)
    assert found is not None
    assert found.state is State.QUEUED


def test_an_error_of_the_block_is_raised_after_the_worker_has_stopped(app: App, task: Any) -> None:
    async def main() -> None:
        async with app.worker() as worker:
            workers.append(worker)
            raise LookupError("of the block")

    workers: list[Worker] = []
    with pytest.raises(LookupError, match="of the block"):
        asyncio.run(main())
    assert workers[0].finished.is_set()


def test_a_cancelled_block_stops_its_worker_and_stays_cancelled(app: App, task: Any) -> None:
    async def main() -> None:
        workers = []

        async def block() -> None:
            async with app.worker() as worker:
                workers.append(worker)
                entered.set()
                await asyncio.Event().wait()

        entered = asyncio.Event()
        running = asyncio.create_task(block())
        await asyncio.wait_for(entered.wait(), TIMEOUT)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert workers[0].finished.is_set()

    asyncio.run(main())


# A worker that cannot start, or ends by an error


def mismatch(path: Path) -> None:
    """Make a SQLite file that a much later release has migrated."""
    App(f"sqlite:///{path}").client.migrate()
    with sqlite3.connect(path) as connection:
        (highest,) = connection.execute("select max(version) from relet_migrations").fetchone()
        connection.execute(
            "insert into relet_migrations (version, applied_at, oldest, release) "
            "select version + 1000, applied_at, version + 1000, '99.0' from relet_migrations where version = ?",
            [highest],
        )
    connection.close()


def other_release(path: Path) -> App:
    mismatch(path)
    app = App(f"sqlite:///{path}")

    @app.task
    def work() -> None: ...

    return app


def test_a_worker_that_cannot_start_raises_at_the_start_of_the_block(tmp_path: Path) -> None:
    async def main() -> None:
        async with app.worker():
            pytest.fail("the block must not run")

    with other_release(tmp_path / "later.db") as app:
        with pytest.raises(SchemaMismatch):
            asyncio.run(main())
        with pytest.raises(SchemaMismatch), app.worker():
            pytest.fail("the block must not run")


def test_a_worker_that_ends_by_an_error_cancels_its_block_and_raises_the_error(
    app: App, task: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[str] = []

    async def main() -> None:
        try:
            async with app.worker():
                monkeypatch.setattr(Worker, "_check_memory", broken)  # which the worker calls every second
                try:
                    await asyncio.wait_for(asyncio.Event().wait(), TIMEOUT)
                except asyncio.CancelledError:
                    ended.append("cancelled")
                    raise
        except RuntimeError as error:
            ended.append(str(error))
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
        await asyncio.sleep(0)  # the task is not cancelled any more

    asyncio.run(main())
    assert ended == ["cancelled", "the worker is broken"]
    assert [record.levelno for record in caplog.records if "ended by an error" in record.message] == [logging.CRITICAL]


def test_a_program_that_handles_sigterm_gets_it_when_the_worker_ends_by_an_error(
    app: App, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[int] = []

    def block(stop_program: bool) -> None:
        with app.worker(stop_program=stop_program) as worker:
            monkeypatch.setattr(Worker, "_check_memory", broken)
            until(worker.returned.is_set, lambda: "the worker goes on")
            if stop_program:
                until(lambda: bool(received), lambda: "no SIGTERM has come")

    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        for stop_program in (True, False):
            with pytest.raises(RuntimeError, match="the worker is broken"):
                block(stop_program)
            monkeypatch.undo()
            assert received == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_sync_block_is_interrupted_when_the_worker_ends_by_an_error(
    app: App, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = False

    def block() -> None:
        nonlocal interrupted
        with app.worker():
            monkeypatch.setattr(Worker, "_check_memory", broken)
            try:
                until(lambda: False, lambda: "no interrupt has come")
            except KeyboardInterrupt:
                interrupted = True

    with pytest.raises(RuntimeError, match="the worker is broken"):
        block()
    assert interrupted


def test_a_worker_that_the_program_stops_is_no_error(app: App, task: Any) -> None:
    async def main() -> None:
        async with app.worker() as worker:
            worker.stop()
            await asyncio.to_thread(worker.finished.wait, TIMEOUT)

    asyncio.run(main())
    with app.worker() as worker:
        worker.stop()
        assert worker.finished.wait(TIMEOUT)


def test_signal_handlers_stay_as_they_were(app: App, task: Any) -> None:
    def handlers() -> list[Any]:
        return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    async def main() -> None:
        before = handlers()
        async with app.worker():
            assert handlers() == before
        assert handlers() == before

    asyncio.run(main())
    before = handlers()
    with app.worker():
        assert handlers() == before
    assert handlers() == before


def test_options_are_those_of_a_worker_but_for_its_limits(app: App, task: Any) -> None:
    options = set(inspect.signature(Worker).parameters) - {"app"}
    assert set(WorkerOptions.__annotations__) == options - {"max_jobs", "max_rss"}
    with pytest.raises(InvalidInput, match="concurrency"):
        app.worker(concurrency=0)
    with pytest.raises(InvalidInput, match="takes no max_jobs: it would leave the program without a worker"):
        app.worker(max_jobs=5)  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="no tasks"):
        App("sqlite:///:memory:").worker()


def test_a_worker_is_started_once(app: App, task: Any) -> None:
    refusal = pytest.raises(InvalidInput, match=r"started before; app\.worker\(\) makes another")
    embedded = app.worker()
    embedded.start()
    with refusal:
        embedded.start()
    embedded.stop()
    embedded.stop()

    async def main() -> None:
        embedded = app.worker()
        async with embedded:
            with refusal:
                async with embedded:
                    pytest.fail("the block must not run")

    asyncio.run(main())


def test_a_sync_block_is_refused_on_an_event_loop_which_it_would_block(app: App, task: Any) -> None:
    async def main() -> None:
        embedded = app.worker()
        with pytest.raises(InvalidInput, match=r"block the event loop; in async code write: async with app\.worker"):
            embedded.start()
        async with embedded:
            pass

    asyncio.run(main())


def test_without_stop_program_a_sync_block_goes_on_until_its_end(
    app: App, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = False

    def block() -> None:
        nonlocal ended
        with app.worker(stop_program=False) as worker:
            monkeypatch.setattr(Worker, "_check_memory", broken)
            until(worker.returned.is_set, lambda: "the worker goes on")
            ended = True

    with pytest.raises(RuntimeError, match="the worker is broken"):
        block()
    assert ended


def test_a_fork_does_not_stop_the_worker_of_its_parent(tmp_path: Path) -> None:
    """As gunicorn with --preload forks: a child inherits the exit functions of the parent."""
    program = f"""
import os, sys
from relet import App
app = App("sqlite:///{tmp_path}/jobs.db")
@app.task
def greet(name: str) -> str:
    return name
app.worker(poll_interval=0.1).start()
child = os.fork()
if not child:
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
print(app.client.result(greet.enqueue("Ada"), timeout=60))
"""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (ran.stdout, ran.returncode) == ("Ada\n", 0), ran.stderr


@pytest.fixture(params=["sqlite", *PG_KINDS])
def shared_database(request: pytest.FixtureRequest, tmp_path: Path, schema: str) -> Iterator[Database]:
    """A database that another process can open."""
    if request.param == "sqlite":
        yield Database("sqlite", f"sqlite:///{tmp_path}/jobs.db", "relet")
    else:
        server = request.config.stash[SERVERS].get(request.param)
        yield Database(request.param, server.dsn, schema)
        server.drop_schema(schema)


@pytest.mark.every_store
def test_the_end_of_the_program_stops_its_worker_although_no_thread_can_be_started(
    shared_database: Database,
) -> None:
    """As from Python 3.12 on. Earlier versions refuse threads only later, so that the program refuses them."""
    program = f"""
import atexit, threading
from relet import App
app = App({shared_database.url!r}, schema={shared_database.schema!r})
started = threading.Event()
@app.task
def slow() -> str:
    started.set()
    threading.Event().wait(1.0)
    return "done"
def refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")
app.worker(poll_interval=0.1).start()
atexit.register(setattr, threading.Thread, "start", refuse)  # called before the worker is stopped
print(slow.enqueue().id)
started.wait(60)
"""
    with closing(shared_database.app()) as app:
        app.client.migrate()
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT)
        assert ran.returncode == 0, ran.stderr
        assert "Traceback" not in ran.stderr
        job = app.client.get(ran.stdout.strip())
        assert job is not None
        assert job.state is State.SUCCEEDED
        assert app.client.workers() == []
