"""Backups that are made while workers run. A restored store starts nothing until its queues are resumed."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from relet import App, Job
from tests import supervisor
from tests.plugin.command_line import CommandLine
from tests.servers import Server
from tests.worker.working import TIMEOUT, working

#: The queue "late" has jobs only once the schedule has caught up.
SHOP = """
from relet import App

app = App({url!r})


@app.task
def quick(number: int) -> int: ...


@app.task(queue="slow")
def hold(number: int) -> int: ...


@app.task(queue="late")
def nightly() -> None: ...
"""
QUICK, HELD = 30, 3


@dataclass
class Shop:
    """An app whose handlers note what they ran, and wait for `gate` in the queue slow."""

    url: str
    folder: Path
    ran: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        (self.folder / "shop.py").write_text(SHOP.format(url=self.url))
        self.app = app = App(self.url)

        @app.task
        def quick(number: int) -> int:
            self.ran.append(f"quick {number}")
            return number

        @app.task(queue="slow")
        def hold(number: int) -> int:
            self.ran.append(f"hold {number}")
            assert self.gate.wait(TIMEOUT)
            return number

        @app.task(queue="late")
        def nightly() -> None:
            self.ran.append("nightly")

        self.quick, self.hold, self.nightly = quick, hold, nightly


@contextmanager
def busy_shop(url: str, folder: Path) -> Iterator[Shop]:
    """While a worker runs: jobs that it holds, jobs in a paused queue, delayed ones, and a schedule that is late."""
    shop = Shop(url, folder)
    shop.app.client.migrate()
    shop.app.client.pause_queue("stopped-by-hand")
    shop.app.client.schedules.put("nightly", shop.nightly.draft(), every=0.5)
    shop.app.client.schedules.pause("nightly")
    held = [shop.hold.enqueue(number) for number in range(HELD)]
    with closing(shop.app), working(shop.app, queues=["slow"]):
        until(lambda: all(state(shop, job) == "running" for job in held), "the jobs run")
        for number in range(QUICK):
            shop.quick.using(delay=0.5 if number % 2 else None).enqueue(number)
        shop.app.client.schedules.resume("nightly")
        try:
            yield shop
        finally:
            shop.gate.set()


def state(shop: Shop, job: Job[int]) -> str | None:
    found = shop.app.client.get(job)
    return None if found is None else str(found.state)


def until(holds: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < give_up, f"waited until {what}"
        time.sleep(0.02)


def check_restored(shop: Shop, resume: Callable[[str], object]) -> None:
    """Workers start nothing of the backup, though leases expire, delays end and a schedule fires; then all of it."""
    shop.gate.set()
    client = shop.app.client
    with closing(shop.app), working(shop.app):
        until(lambda: client.count(state=["running"]) == 0, "the leases of the backup are reaped")
        until(lambda: client.count(queue="late", state=["queued"]) > 0, "the schedule has fired")
        until(lambda: client.count(state=["pending"]) == 0, "the delays are over")
        until(lambda: client.count(state=["queued"]) >= QUICK + HELD + 1, "all is queued")
        assert shop.ran == []
        client.schedules.remove("nightly")
        for queue in ("slow", "default", "late"):
            resume(queue)
        until(lambda: client.count(state=["queued", "pending", "running"]) == 0, "all has run")
    assert {*shop.ran} == {f"quick {n}" for n in range(QUICK)} | {f"hold {n}" for n in range(HELD)} | {"nightly"}


@pytest.mark.long
def test_a_copy_of_a_sqlite_file_starts_paused(typed: CommandLine, tmp_path: Path) -> None:
    path, copy = tmp_path / "jobs.db", tmp_path / "copy.db"
    with busy_shop(f"sqlite:///{path}", tmp_path / "shop") as shop:
        path.chmod(0o640)
        code, printed = typed(shop.folder, "backup", "shop:app", str(copy))
        assert (code, printed.splitlines()[-1].startswith(f"Wrote {copy}: {HELD} running, ")) == (0, True), printed
        assert sorted(one.name for one in tmp_path.iterdir() if "copy" in one.name) == ["copy.db"]
        assert stat.S_IMODE(copy.stat().st_mode) == 0o640
        before = copy.read_bytes()
        assert f"{copy} exists: a backup does not overwrite" in typed.refusal(
            shop.folder, "backup", "shop:app", str(copy)
        )
        assert copy.read_bytes() == before
        assert not any(one.paused for one in shop.app.client.queues() if one.queue in ("slow", "default"))
        assert shop.app.client.audit().entries[0].what == "backup"
    with closing(sqlite3.connect(copy)) as file:
        assert file.execute("pragma integrity_check").fetchone() == ("ok",)
    restored = Shop(f"sqlite:///{copy}", tmp_path / "restored")
    assert {one.queue for one in restored.app.client.queues() if one.paused} == {
        "default", "late", "slow", "stopped-by-hand"
    }  # fmt: skip
    assert restored.app.client.audit().entries[0].detail == {"paused": ["default", "late", "slow"]}
    code, printed = typed(restored.folder, "restored", "shop:app")
    assert (code, "Paused already: default, late, slow, stopped-by-hand\n" in printed) == (0, True), printed
    check_restored(restored, lambda queue: typed(restored.folder, "queues", "shop:app", "resume", queue))


def test_a_copy_that_fails_leaves_no_file(typed: CommandLine, tmp_path: Path) -> None:
    shop = Shop(f"sqlite:///{tmp_path / 'jobs.db'}", tmp_path / "shop")
    shop.quick.enqueue(1)
    shop.app.close()
    refused = typed.refusal(shop.folder, "backup", "shop:app", str(tmp_path / "nosuch" / "copy.db"))
    assert "cannot write" in refused
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as file:
        file.execute("pragma user_version")
        file.execute("drop table relet_queues")
    folder = tmp_path / "backups"
    folder.mkdir()
    typed.refusal(shop.folder, "backup", "shop:app", str(folder / "copy.db"))
    assert list(folder.iterdir()) == []


def test_a_store_in_memory_has_no_file_to_copy(typed: CommandLine, tmp_path: Path) -> None:
    shop = Shop("sqlite:///:memory:", tmp_path / "shop")
    assert "it has no file" in typed.refusal(shop.folder, "backup", "shop:app", "copy.db")


def run(server: Server, name: str, *arguments: str) -> None:
    """Run a program of the server's own release: an older server does not accept the dump of a newer one."""
    installs = supervisor.installs()
    programs = installs.get(server.name, next(iter(installs.values()))).bin
    subprocess.run([str(programs / name), *arguments], check=True)


@pytest.mark.long
def test_a_restored_schema_of_postgres_starts_nothing(typed: CommandLine, pg_server: Server, tmp_path: Path) -> None:
    dump = tmp_path / "jobs.dump"
    with pg_server.fresh_database() as url, pg_server.fresh_database() as other:
        with busy_shop(url, tmp_path / "shop") as shop:
            assert "use pg_dump" in typed.refusal(shop.folder, "backup", "shop:app", "copy.db")
            run(pg_server, "pg_dump", "--format=custom", "--schema=relet", f"--file={dump}", f"--dbname={url}")
        run(pg_server, "pg_restore", "--no-owner", "--single-transaction", f"--dbname={other}", str(dump))
        restored = Shop(other, tmp_path / "restored")
        code, printed = typed(restored.folder, "restored", "shop:app")
        assert code == 0
        lines = [line.strip() for line in printed.splitlines()]
        assert "Paused now: default, late, slow" in lines
        assert "Paused already: stopped-by-hand" in lines
        assert f"{HELD} running: an attempt had begun; it counts as lost, and the job runs again" in lines
        check_restored(restored, lambda queue: typed(restored.folder, "queues", "shop:app", "resume", queue))


def test_a_worker_recognises_a_restored_schema(
    pg_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first worker pauses all queues, before any job starts. Once they are resumed they stay so."""
    dump = tmp_path / "jobs.dump"
    with pg_server.fresh_database() as url, pg_server.fresh_database() as other:
        with busy_shop(url, tmp_path / "shop"):
            run(pg_server, "pg_dump", "--format=custom", "--schema=relet", f"--file={dump}", f"--dbname={url}")
        assert "restored" not in caplog.text
        run(pg_server, "pg_restore", "--no-owner", "--single-transaction", f"--dbname={other}", str(dump))
        restored = Shop(other, tmp_path / "restored")
        check_restored(restored, restored.app.client.resume_queue)
        assert "was restored from a dump. All its queues are paused" in caplog.text
        assert f"since the dump was made: {HELD} running" in caplog.text
        again = Shop(other, tmp_path / "again")
        again.quick.enqueue(QUICK)
        with closing(again.app), working(again.app):
            until(lambda: again.ran == [f"quick {QUICK}"], "a second worker runs jobs")
            (entry,) = [one for one in again.app.client.audit().entries if one.what == "restored"]
            assert entry.who.startswith("worker ")
