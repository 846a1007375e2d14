"""Databases that earlier releases have left: they are migrated, and their jobs run, while workers are at work."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from relet import App
from relet._store import migrate
from tests.conftest import SERVERS
from tests.schemas import SHAPE
from tests.servers import HOW_TO_GET_ONE, local_names
from tests.stored.loading import Stored, all_stored
from tests.worker.test_upgrade import Release, until

ROOT = Path(__file__).parents[2]
NEWEST = migrate.newest("sqlite")
STORED = all_stored()


def on(stored: Stored) -> list[Any]:
    """The stores to load a database into: a file, or every server, of which the fast tests use the first."""
    first, *others = ["sqlite"] if stored.dialect == "sqlite" else local_names() or ["pg"]
    marks: list[Any] = [pytest.mark.skip(reason=HOW_TO_GET_ONE)] if first == "pg" else []
    cases = [pytest.param(stored, first, id=f"{stored}-{first}", marks=marks)]
    for name in others:
        cases.append(pytest.param(stored, name, id=f"{stored}-{name}", marks=pytest.mark.other_server))
    return cases


@pytest.fixture
def new_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
    else:
        with request.config.stash[SERVERS].get(kind).fresh_database() as database:
            yield database


@pytest.fixture
def url(stored: Stored, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database that an earlier release has left."""
    if kind == "sqlite":
        stored.load(str(tmp_path / "jobs.db"))
        yield f"sqlite:///{tmp_path / 'jobs.db'}"
    else:
        with request.config.stash[SERVERS].get(kind).fresh_database() as database:
            stored.load(database)
            yield database


every_stored = pytest.mark.parametrize(("stored", "kind"), [case for stored in STORED for case in on(stored)])


def test_every_version_has_a_stored_database_of_each_kind() -> None:
    expected = {(version, dialect) for dialect in ("postgres", "sqlite") for version in migrate.migrations(dialect)}
    assert {(stored.version, stored.dialect) for stored in STORED} == expected, "run: python -m tests.stored"


@pytest.mark.parametrize("stored", STORED, ids=str)
def test_a_migration_that_was_applied_somewhere_is_never_edited(stored: Stored) -> None:
    text = migrate.migrations(stored.dialect)[stored.version]
    assert hashlib.sha256(text.encode()).hexdigest() == stored.facts["migration"], "add a new migration instead"


@pytest.mark.long(*(stored for stored in STORED if 1 < stored.version < max(one.version for one in STORED)))
@every_stored
def test_a_migrated_database_has_the_objects_of_a_new_one(url: str, new_url: str) -> None:
    assert _objects(url) == _objects(new_url)


def _objects(url: str) -> list[tuple[Any, ...]]:
    """Tables, columns, indexes, constraints and functions, after a migration. Partitions differ from day to day."""
    with App(url) as app:
        app.client.migrate()
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            rows = connection.execute("select type, name, sql from sqlite_master order by 1, 2").fetchall()
            return [(kind, name, " ".join((sql or "").split())) for kind, name, sql in rows]
    with psycopg.connect(url) as server:
        found = server.execute(SHAPE, {"schema": "relet"}).fetchall()
    return [row for row in found if not re.search(r"finished_\d", f"{row[1]} {row[2]}")]


@pytest.mark.long(*(stored for stored in STORED if stored.version > 1))  # the first goes through all migrations
@every_stored
def test_jobs_of_a_stored_database_end_while_it_is_migrated_under_running_workers(
    url: str, stored: Stored, tmp_path: Path
) -> None:
    jobs: dict[str, dict[str, Any]] = stored.facts["jobs"]
    new = Release(tmp_path / "new", "9.0.0", tmp_path)
    new.add_migration(oldest=NEWEST)
    with App(url) as app:
        client = app.client
        client.migrate()
        assert {id: _state(app, id) for id in jobs} == {id: job["now"] for id, job in jobs.items()}
        env = {**os.environ, "STORED_URL": url, "PYTHONPATH": str(ROOT)}
        workers = [_start(env)]
        try:
            until(lambda: client.count(state="succeeded", queue="waiting") >= 3)
            upgraded = {**env, "PYTHONPATH": f"{new.folder}{os.pathsep}{ROOT}"}
            command = [sys.executable, "-m", "relet", "migrate", "tests.stored.shop:app"]
            subprocess.run(command, env=upgraded, check=True, timeout=60)
            workers.append(_start(upgraded))
            _release_waiting(app, jobs)
            until(lambda: all(_state(app, id) == job["end"] for id, job in jobs.items()))
            assert client.schedules.get("report") is not None
            assert {entry.who for entry in client.audit().entries} >= {"ada"}
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def _start(env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.stored.shop"], env=env)


def _state(app: App, id: str) -> list[Any]:
    job = app.client.get(id)
    assert job is not None, id
    return [job.state, job.result]


def _release_waiting(app: App, jobs: dict[str, dict[str, Any]]) -> None:
    """Do what a person would: send the signal, resume, and cancel the job that has failed."""
    client = app.client
    for job in [client.get(id) for id in jobs]:
        assert job is not None
        if job.awaits is not None:
            client.signal(job, job.awaits, "yes")
        elif job.state == "paused":
            client.resume(job)
        elif job.state == "failed":
            client.cancel(job)
    client.resume_queue("paused")
