"""Runs of `relet torture`: no invariant is broken, and every kind of fault strikes."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from relet._torture.faults import rates
from relet._torture.run import Report, planned, torture
from relet._torture.settings import Settings
from tests.servers import PrivateServer

MINUTE = 60.0


def settings_of(url: str, folder: Path, seconds: float, seed: int) -> Settings:
    return Settings(url, url, f"torture_{uuid.uuid4().hex[:8]}", str(folder), seed, seconds)


def check(report: Report, kinds: set[str]) -> None:
    assert report.violations == [], f"the plan and the history are in {report.folder}"
    assert kinds <= report.faults.keys(), report
    assert report.jobs > 10 * report.seconds


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_few_seconds_of_torture_on_a_sqlite_file(tmp_path: Path) -> None:
    settings = settings_of(f"sqlite:///{tmp_path}/jobs.db", tmp_path, 4.0, 11)
    check(torture(settings, planned(settings)), set(rates(settings, None)))


@pytest.mark.timeout(180)
def test_a_few_seconds_of_torture_on_postgres(pg_url: str, tmp_path: Path) -> None:
    settings = settings_of(pg_url, tmp_path, 4.0, 12)
    check(torture(settings, planned(settings)), set(rates(settings, None)) - {"lock table"})


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_torture_on_a_sqlite_file(tmp_path: Path) -> None:
    settings = settings_of(f"sqlite:///{tmp_path}/jobs.db", tmp_path, MINUTE, 1)
    check(torture(settings, planned(settings)), set(rates(settings, None)))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_torture_on_postgres_with_crashes_of_the_server(
    private_server: PrivateServer, tmp_path: Path
) -> None:
    def restart(size: float) -> None:
        """In an orderly way, at once, or by the death of all its processes."""
        if size < 0.4:
            private_server.crash()
            private_server.stop("SIGKILL")
        else:
            private_server.stop("SIGQUIT" if size < 0.8 else "SIGINT")
        private_server.start()

    settings = settings_of(private_server.dsn, tmp_path, MINUTE, 2)
    report = torture(settings, planned(settings, restart), restart=restart)
    check(report, set(rates(settings, restart)))
