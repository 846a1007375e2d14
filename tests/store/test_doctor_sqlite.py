"""The doctor finds real faults in SQLite files."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from relet import App
from relet._store import migrate
from relet._store import sqlite as store_sqlite
from relet._store.doctor import judge_file
from relet._store.doctor import sqlite as doctor_sqlite
from relet._store.sqlite_library import has_wal_reset_bug
from relet.types import Finding
from tests.harness import harness_of

ALL_CHECKS = {
    "sqlite", "file_system", "writable", "disk", "file", "journal", "durability", "space", "wal", "integrity", "schema",
    "indexes", "pulse", "leases", "workers", "queues",
}  # fmt: skip
HAS_BUG = has_wal_reset_bug()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def checked_app(path: Path) -> Iterator[App]:
    with closing(App(f"sqlite:///{path}")) as app:

        @app.task
        def work(value: Any = None) -> Any:
            return value

        app.client.migrate()
        yield app


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def the(app: App, check: str, level: str) -> Finding:
    """The one finding of a check, which has advice."""
    (finding,) = [one for one in app.client.doctor() if one.check == check]
    assert finding.level == level, finding
    assert finding.advice or level == "ok"
    return finding


def test_a_healthy_file_has_no_complaints(checked_app: App) -> None:
    harness_of(checked_app).record_pulse()
    findings = checked_app.client.doctor()
    assert {one.check for one in findings} == ALL_CHECKS
    bad = {one.check for one in findings if one.level in ("warning", "error") or "could not be checked" in one.text}
    assert bad == ({"sqlite"} if HAS_BUG else set())
    assert all(one.advice is None for one in findings if one.level == "ok")


def test_a_file_that_is_not_there_is_not_made(path: Path) -> None:
    with closing(App(f"sqlite:///{path}")) as app:
        (finding,) = [one for one in app.client.doctor() if one.check == "file"]
        assert (finding.level, "does not exist yet" in finding.text) == ("info", True)
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    with closing(App(f"sqlite:///{tmp_path}/no/where.db")) as app:
        the(app, "writable", "error")


def test_a_file_that_is_no_database_is_a_finding(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)
    with closing(App(f"sqlite:///{path}")) as app:
        assert "file is not a database" in the(app, "file", "error").text


def test_a_missing_index_comes_with_the_statement_that_makes_it(checked_app: App, path: Path) -> None:
    execute(path, "drop index relet_jobs_claim")
    finding = the(checked_app, "indexes", "error")
    assert "index relet_jobs_claim is missing" in finding.text
    execute(path, str(finding.advice).removeprefix("make it again: "))
    the(checked_app, "indexes", "ok")
    execute(path, "create index mine on relet_jobs (created_at)")
    assert "not Relet's: mine" in the(checked_app, "indexes", "info").text


def test_a_missing_table_is_not_taken_for_health(checked_app: App, path: Path) -> None:
    execute(path, "drop table relet_steps")
    version, missing = [one for one in checked_app.client.doctor() if one.check == "schema"]
    assert (version.level, missing.level, missing.text) == (
        "ok", "error", "table relet_steps is missing, although the schema's version has it",
    )  # fmt: skip


def test_another_journal_mode_is_seen_and_not_changed(checked_app: App, path: Path) -> None:
    checked_app.close()
    execute(path, "pragma journal_mode = delete")
    for _ in range(2):
        assert "the journal mode is delete, not wal" in the(checked_app, "journal", "warning").text
    checked_app.client.count()
    the(checked_app, "journal", "ok")


def test_a_reader_that_lets_the_log_grow(checked_app: App, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_file, "WAL_GROWN", 8_000_000)
    monkeypatch.setattr(doctor_sqlite, "A_WHILE", 0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader, closing(sqlite3.connect(path)) as writer:
        reader.execute("begin")
        reader.execute("select count(*) from relet_jobs").fetchone()
        writer.execute("pragma synchronous = off")
        writer.execute("create table filler (data blob)")
        for _ in range(3):
            writer.execute("insert into filler values (zeroblob(4000000))")
            writer.commit()
        assert "no program writes" in the(checked_app, "wal", "info").text
        with writing(path):
            finding = wal_while_written(checked_app, "warning")
        assert finding.text.startswith("12.")
        reader.execute("rollback")
        with writing(path):
            finding = wal_while_written(checked_app, "ok")
        assert "MB, of which " in finding.text, "the file is as long as it was"


def wal_while_written(app: App, level: str) -> Finding:
    """The finding about the log, once it has this level: on a busy machine a commit, or a checkpoint, may be late."""
    for _ in range(100):
        (finding,) = [one for one in app.client.doctor() if one.check == "wal"]
        if finding.level == level:
            return finding
    pytest.fail(f"not {level}: {finding}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A process that commits again and again."""
    over = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            while not over.wait(0.02):
                connection.execute("insert into filler values (1)")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_damaged_page_is_found(checked_app: App, path: Path) -> None:
    checked_app.client.enqueue_many([checked_app.lookup("work").draft("x" * 200) for _ in range(200)])
    checked_app.close()
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("select rootpage from sqlite_master where name = 'relet_jobs'").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096 + 8)
        file.write(b"\xff" * 64)
    assert "the file is damaged" in the(checked_app, "integrity", "error").text


def test_a_large_file_is_not_checked_through(checked_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_file, "MAX_CHECKED", 1000)
    assert "take too long" in the(checked_app, "integrity", "info").text


@pytest.mark.parametrize(("kind", "level"), [("nfs4", "error"), ("fuse.mergerfs", "warning"), ("unknown", "info")])
def test_where_the_file_lies(checked_app: App, monkeypatch: pytest.MonkeyPatch, kind: str, level: str) -> None:
    monkeypatch.setattr(store_sqlite, "file_system", lambda path: kind)
    the(checked_app, "file_system", level)
    was_opened = "file" in {one.check for one in checked_app.client.doctor()}
    assert was_opened == (level != "error"), "opening the file there is as dangerous as using it"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(checked_app: App, path: Path) -> None:
    checked_app.close()
    path.parent.chmod(0o555)
    the(checked_app, "writable", "error")
    path.parent.chmod(0o755)


def test_another_writer_is_not_waited_for(checked_app: App, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("begin immediate")
        assert "could not be checked" not in repr(checked_app.client.doctor())
        writer.execute("rollback")


def test_the_tables_of_another_are_not_ours(path: Path) -> None:
    execute(path, "create table relet_migrations (id integer primary key, name text)")
    with closing(App(f"sqlite:///{path}")) as app:
        (finding,) = [one for one in app.client.doctor() if one.check == "schema"]
        assert finding.text == "could not be checked: no such column: version"


def test_a_file_without_a_schema_is_not_migrated_by_a_check(path: Path) -> None:
    execute(path, "create table mine (n integer)")
    with closing(App(f"sqlite:///{path}")) as app:
        finding = the(app, "schema", "error")
        assert f"this release makes version {migrate.newest('sqlite')}" in finding.text
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("mine",)]


def test_normal_synchronous_is_worth_a_word(path: Path) -> None:
    with closing(App(f"sqlite:///{path}?synchronous=normal")) as app:
        app.client.count()
        the(app, "durability", "info")
