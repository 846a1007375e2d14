"""A worker that runs inside a test, and functions that show its work."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg import IsolationLevel

from relet import App, Job, State
from relet._core.job import Claimed
from relet._store.sqlite import SQLiteStore
from relet._worker import Worker
from tests.databases import Database
from tests.harness import harness_of
from tests.waiting import Pause

TIMEOUT = 20.0  # seconds: long enough for a loaded machine, and never waited for in full by a test that passes
NEVER = 3600.0  # seconds until a worker looks again by itself: longer than any test
QUICK: dict[str, Any] = {"lease": 1.0, "poll_interval": 0.1, "shutdown_timeout": 1.0}


@contextmanager
def working(app: App, **options: Any) -> Iterator[Worker]:
    """A worker with a separate thread and event loop, which takes jobs when the block begins."""
    worker = Worker(app, **{**QUICK, **options})
    failures: list[BaseException] = []
    started = threading.Event()

    async def run() -> None:
        waiting = asyncio.ensure_future(worker.run())
        while not waiting.done() and not any(one.heartbeat for one in worker._sessions):
            await asyncio.sleep(0.001)
        started.set()
        await waiting

    def live() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failures.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=live, name="test-worker", daemon=True)
    thread.start()
    try:
        assert started.wait(TIMEOUT)
        yield worker
    finally:
        worker.stop()
        thread.join(TIMEOUT)
        worker.stop()
        thread.join(5.0)
        assert not thread.is_alive(), "the worker does not stop"
        assert not failures, failures


def until(condition: Callable[[], object], what: str = "", seconds: float = TIMEOUT) -> None:
    """Wait for something to become true."""
    give_up, pause = time.monotonic() + seconds, Pause()
    while not condition():
        assert time.monotonic() < give_up, what or "it did not become true in time"
        pause()


def state(app: App, job: Job[Any] | str) -> State | None:
    found = app.client.get(job)
    return found.state if found else None


class Blockade(NamedTuple):
    """A task that notes its number, and one that holds its slot until told to go on."""

    note: Any
    block: Any
    ran: list[int]
    running: threading.Event
    go_on: threading.Event


def blockade(app: App) -> Blockade:
    ran: list[int] = []
    running, go_on = threading.Event(), threading.Event()

    @app.task
    def note(number: int) -> None:
        ran.append(number)

    @app.task
    def block() -> None:
        running.set()
        go_on.wait(20)

    return Blockade(note, block, ran, running, go_on)


def until_state(app: App, job: Job[Any] | str, wanted: State | None) -> None:
    until(lambda: state(app, job) is wanted, f"the job is not {wanted}, but {app.client.get(job)!r}")


def over(app: App, *jobs: Job[Any] | str, timeout: float = TIMEOUT) -> list[Job[Any]]:
    """The jobs once they have ended, or have failed."""
    return [app.client.wait(job, timeout=timeout) for job in jobs]


def error_of(app: App, job: Job[Any]) -> str:
    """Why a job has failed."""
    (found,) = over(app, job)
    assert found.state is State.FAILED, found
    assert found.error is not None
    return found.error


def take(app: App, *, seconds: float, want: int = 1, queue: str = "default", alone: bool = False) -> list[Claimed]:
    """Claim jobs in the name of a worker that will never be heard of again."""
    harness = harness_of(app)
    return harness.claim(want, (queue,), worker="the-late-worker", lease=seconds, rescue=True, alone=alone)


class Crowd:
    """Counts how many are inside at once, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside = 0
        self.most = 0

    def __enter__(self) -> Crowd:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


def run_sql(database: Database, app: App, *statements: str) -> None:
    """Do something to the tables, `{t}` standing for the prefix of their names, on another connection."""
    with closing(connect(database, app)) as connection:
        for statement in statements:
            connection.execute(statement.replace("{t}", prefix(database, app)))
        connection.commit()


def prefix(database: Database, app: App) -> str:
    return f"{database.schema}." if database.is_postgres else f"{app._store().quoted}_"


def connect(database: Database, app: App, **options: Any) -> Any:
    """Another connection to the same place; `options` are for SQLite."""
    if database.is_postgres:
        connection = psycopg.connect(database.url)
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        return connection
    store = app._store()
    assert isinstance(store, SQLiteStore)
    return sqlite3.connect(store._memory or str(store.path), uri=bool(store._memory), timeout=TIMEOUT, **options)


def never_reap(database: Database, app: App) -> None:
    """Have the pulse say that no worker may reap for now."""
    app._store().ready()
    later = "now() + interval '1 hour'" if database.is_postgres else f"{time.time() + 3600}"
    now = "now()" if database.is_postgres else f"{time.time()}"
    run_sql(database, app, f"update {{t}}pulse set touched_at = {now}, grace_until = {later}")


@contextmanager
def writes_held_up(database: Database, app: App) -> Iterator[None]:
    """No other connection can change a job while this lasts: a lock on the table, or on the file."""
    with closing(connect(database, app)) as connection:
        if database.is_postgres:
            connection.execute(f"lock table {database.schema}.jobs in exclusive mode".encode())
        else:
            connection.execute("begin immediate")
        try:
            yield
        finally:
            connection.rollback()
