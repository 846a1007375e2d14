"""An interrupt at any point of a write leaves a usable store, and is raised only in the thread it was meant for."""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from relet import App
from relet._store.pool import Pool
from relet._store.sqlite import SQLiteStore
from tests import forks
from tests.databases import Database
from tests.plugin.selection import rounds
from tests.store.test_connections import refuse_threads

pytestmark = pytest.mark.every_store

ROOT = Path(__file__).parents[2]


def test_after_an_interrupt_this_thread_others_and_other_processes_write(database: Database) -> None:
    if database.kind == "memory":
        pytest.skip("memory is not shared")
    url = database.url if database.is_postgres else f"{database.url}?synchronous=normal"
    app = database.app()
    app.client.migrate()
    app.close()
    command = [
        sys.executable,
        "-m",
        "tests.store.interrupted",
        url,
        database.schema,
        str(rounds(50, all=150)),
        str(random.randrange(10**6)),
    ]
    run = forks.run(command, timeout=300, cwd=ROOT)
    assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"


def busy_store(path: Path, busy_for: float = 30.0) -> tuple[App, SQLiteStore]:
    app = App(f"sqlite:///{path}/relet.db")
    app.client.migrate()
    store = app._store()
    assert isinstance(store, SQLiteStore)
    store._busy_for = busy_for
    return app, store


def enqueue_while_the_writer_is_busy(app: App, store: SQLiteStore, number: int) -> None:
    @app.task
    def work() -> None: ...

    threads = [threading.Thread(target=work.enqueue, daemon=True) for _ in range(number)]
    with store._writing:
        for thread in threads:
            thread.start()
        assert all(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.join(30)
    assert app.client.count() == number


def test_who_finds_the_writer_busy_has_it_written_by_a_thread_that_signals_do_not_reach(tmp_path: Path) -> None:
    app, store = busy_store(tmp_path)
    enqueue_while_the_writer_is_busy(app, store, 5)


def test_a_thread_that_cannot_be_started_blocks_no_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, store = busy_store(tmp_path)
    refuse_threads(monkeypatch, "relet-writer")
    enqueue_while_the_writer_is_busy(app, store, 4)


class Line:
    """The part of a connection that a pool uses."""

    closed = False

    def close(self) -> None:
        self.closed = True


def test_a_slot_whose_release_was_interrupted_is_freed() -> None:
    made: list[Line] = []

    def connect() -> Line:
        made.append(Line())
        return made[-1]

    lines = Pool(connect, lambda line: True, limit=1, timeout=0.05)
    lent = lines.connection()
    lent.__enter__()
    around = [lent]
    around.append(around)  # type: ignore[arg-type]  # a cycle, as a traceback that refers to its frame
    del lent, around  # __exit__ is never reached
    with lines.connection() as line:
        assert line is made[0]
    assert len(made) == 1


def test_a_connection_that_a_closed_pool_has_lent_is_closed_when_it_is_returned() -> None:
    lines = Pool(Line, lambda line: True, limit=1, timeout=0.05)
    with lines.connection() as line:
        lines.close()
    assert line.closed


def test_an_interrupt_that_psycopg_replaces_by_an_error_is_raised(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(Exception): ...

    def read_timeout(params: object) -> int:
        try:
            raise Interrupted
        except Exception:
            raise psycopg.ProgrammingError("bad value for connect_timeout: '3'") from None

    monkeypatch.setattr("psycopg.connection.timeout_from_conninfo", read_timeout)
    with pytest.raises(Interrupted):
        pg_database.app().client.count()
