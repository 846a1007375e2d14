"""Runs of `relet torture`: no invariant is broken, and every kind of fault strikes."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from relet._torture.faults import Hook, rates
from relet._torture.run import planned, torture
from relet._torture.settings import Settings
from tests.conftest import SERVERS
from tests.servers import PrivateServer
from tests.worker.programs import until

MINUTE = 60.0


def run(url: str, folder: Path, seconds: float, seed: int, hooks: Mapping[str, Hook] | None = None) -> None:
    settings = Settings(url, url, f"torture_{uuid.uuid4().hex[:8]}", str(folder), seed, seconds)
    report = torture(settings, planned(settings, hooks), hooks=hooks)
    assert report.violations == [], f"the plan and the history are in {report.folder}"
    rare = {"lock table", "migrate"} if seconds < MINUTE else set()  # a lock may not be had in time
    assert set(rates(settings, hooks or {})) - rare <= report.faults.keys(), report


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_few_seconds_of_torture_on_a_sqlite_file(tmp_path: Path) -> None:
    run(f"sqlite:///{tmp_path}/jobs.db", tmp_path, 4.0, 11)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_few_seconds_of_torture_on_postgres(pg_url: str, tmp_path: Path) -> None:
    run(pg_url, tmp_path, 4.0, 12)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_torture_on_a_sqlite_file(tmp_path: Path) -> None:
    run(f"sqlite:///{tmp_path}/jobs.db", tmp_path, MINUTE, 1)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_torture_on_postgres_with_crashes_of_the_server(
    private_server: PrivateServer, tmp_path: Path
) -> None:
    run(private_server.dsn, tmp_path, MINUTE, 2, {"restart": restart_of(private_server)})


def restart_of(server: PrivateServer) -> Hook:
    def restart(size: float) -> None:
        """In an orderly way, at once, or by the death of all its processes."""
        if size < 0.4:
            server.crash()
            server.stop("SIGKILL")
        else:
            server.stop("SIGQUIT" if size < 0.8 else "SIGINT")
        server.start()

    return restart


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_torture_on_postgres_with_a_failover(
    private_server: PrivateServer, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with private_server.standby() as standby:

        def fail_over(size: float) -> None:
            private_server.stop("SIGQUIT")
            time.sleep(size)
            standby.execute("select pg_promote()")

        until(lambda: is_synchronous(private_server), lambda: "the standby does not follow")
        url = pytestconfig.stash[SERVERS].dsn_of(private_server.name, standby.name)
        run(url, tmp_path, MINUTE, 3, {"fail over": fail_over})


def is_synchronous(server: PrivateServer) -> bool:
    with psycopg.connect(server.dsn) as connection:
        return connection.execute("select sync_state from pg_stat_replication").fetchall() == [("sync",)]


@pytest.fixture
def small_disk(pytestconfig: pytest.Config) -> Iterator[Path]:
    """A folder on a separate disk, which has room for a GiB: a long read keeps SQLite's log from being reused.

    Not below pytest's folder: each session of pytest on this machine closes that one to other users, such as that of
    the server.
    """
    folder = pytestconfig.stash[SERVERS].home / f"disk-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk, and not in every container")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def filling(folder: Path) -> Hook:
    def fill(size: float) -> None:
        """For a second or two there is no room for another block."""
        ballast = folder / f"ballast-{uuid.uuid4().hex}"
        try:
            with ballast.open("wb", buffering=0) as file:
                for block in (2**20, 4096):
                    with suppress(OSError):
                        while True:
                            file.write(bytes(block))
                time.sleep(0.5 + 1.5 * size)
        finally:
            ballast.unlink()

    return fill


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_torture_on_a_sqlite_file_whose_disk_fills_up(small_disk: Path, tmp_path: Path) -> None:
    run(f"sqlite:///{small_disk}/jobs.db", tmp_path, MINUTE, 4, {"fill the disk": filling(small_disk)})


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_torture_on_postgres_whose_disk_fills_up(
    private_server: PrivateServer, small_disk: Path, tmp_path: Path
) -> None:
    with database_on(private_server, small_disk) as url:
        run(url, tmp_path, MINUTE, 5, {"fill the disk": filling(small_disk)})


@contextmanager
def database_on(server: PrivateServer, disk: Path) -> Iterator[str]:
    """A database whose tables are on another disk than the log of the server."""
    folder = disk / "tablespace"
    folder.mkdir()
    owner = server.home.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    server.execute(f"create tablespace small location '{folder}'", "create database small tablespace small")
    yield urlsplit(server.dsn)._replace(path="/small").geturl()
    server.execute("drop database small with (force)", "drop tablespace small")
