"""Two releases at one store: a copy of this one, and one more with another version and one more migration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relet import App, Client, Job
from relet._store import migrate
from tests.conftest import SERVERS
from tests.packages import copy_package
from tests.servers import local_names

TIMEOUT = 60.0
NEWEST = migrate.newest("sqlite")
MIGRATION = f"_store/migrations/{NEWEST + 1:04}.{{dialect}}.sql"
CHANGED = ("_version.py", "_core/worker.py", "_store/flows/mapping.py", MIGRATION)
SHOP = """
import time
from pathlib import Path
from relet import App, __version__

app = App({url!r}, schema={schema!r})


@app.task
def release() -> str:
    return __version__


@app.task
def hold(folder: str) -> str:
    Path(folder, "begun").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.01)
    return __version__
"""


class Release:
    """The package in a folder, by its version, with the changes of a later release."""

    def __init__(self, folder: Path, version: str, shop: Path) -> None:
        self.folder, self.version, self._shop = folder, version, shop
        self._package = copy_package(folder, CHANGED)
        (self._package / "_version.py").write_text(f'__version__ = "{version}"\n')
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_migration(self, oldest: int) -> None:
        """A column more, and a worker that says more of itself, and says other things of its jobs."""
        for dialect in ("postgres", "sqlite"):
            text = f"-- oldest: {oldest}\n" + "".join(
                f"alter table {{schema}}.{table} add column note text;\n" for table in ("jobs", "finished")
            )
            (self._package / MIGRATION.format(dialect=dialect)).write_text(text)
        self._change("_core/worker.py", "    every: float = 5.0\n", '    every: float = 5.0\n    zone: str = "north"\n')
        self._change(
            "_store/flows/mapping.py",
            "class _Stored(msgspec.Struct, omit_defaults=True):",
            "class _Stored(msgspec.Struct, omit_defaults=True):\n    zone: str | None = None",
        )

    def _change(self, file: str, old: str, new: str) -> None:
        path = self._package / file
        assert path.read_text().count(old) == 1, (file, old)
        path.write_text(path.read_text().replace(old, new))

    def run(self, command: str, *arguments: str, code: int = 0) -> str:
        """The output of a command."""
        done = subprocess.run(
            self._command(command, *arguments), cwd=self._shop, env=self._env(), capture_output=True, timeout=TIMEOUT
        )
        assert done.returncode == code, done
        return (done.stderr if code else done.stdout).decode()

    def start(self, *queues: str) -> subprocess.Popen[bytes]:
        """A worker of these queues."""
        options = [option for queue in queues for option in ("-q", queue)]
        with (self._shop / f"{self.version}.log").open("ab") as log:
            command = self._command("worker", *options)
            self.workers.append(subprocess.Popen(command, cwd=self._shop, env=self._env(), stdout=log, stderr=log))
        return self.workers[-1]

    def _command(self, command: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "relet", command, "shop:app", *arguments]

    def _env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder)}


class Upgrade:
    """A store, and two releases that work with it."""

    def __init__(self, url: str, schema: str, folder: Path) -> None:
        (folder / "shop").mkdir()
        (folder / "shop" / "shop.py").write_text(SHOP.format(url=url, schema=schema))
        self.old = Release(folder / "old", "1.0.0", folder / "shop")
        self.new = Release(folder / "new", "1.1.0", folder / "shop")
        namespace: dict[str, Any] = {"__name__": "shop"}
        exec(SHOP.format(url=url, schema=schema), namespace)
        self.app: App = namespace["app"]
        self.release, self.hold = namespace["release"], namespace["hold"]
        self.client: Client = self.app.client

    def result(self, job: Job[Any]) -> str:
        """Who ran it."""
        done = self.client.wait(job, timeout=TIMEOUT)
        assert done.result_json is not None
        return str(json.loads(done.result_json))

    def ran(self, queue: str) -> str:
        """Which release runs a job of this queue."""
        return self.result(self.release.using(queue=queue, target=queue, max_attempts=3, timeout=30.0).enqueue())

    def close(self) -> None:
        self.app.close()
        for worker in (*self.old.workers, *self.new.workers):
            worker.kill()
            worker.wait()


@pytest.fixture(params=["sqlite", *local_names()[:1]])
def upgrade(request: pytest.FixtureRequest, tmp_path: Path, schema: str) -> Iterator[Upgrade]:
    server = None if request.param == "sqlite" else request.config.stash[SERVERS].get(request.param)
    url = f"sqlite:///{tmp_path / 'jobs.db'}" if server is None else server.dsn
    made = Upgrade(url, schema, tmp_path)
    try:
        yield made
    finally:
        made.close()
        if server is not None:
            server.drop_schema(schema)


def stopped(worker: subprocess.Popen[bytes]) -> int:
    worker.terminate()
    return worker.wait(TIMEOUT)


def until(what: Callable[[], bool], seconds: float = TIMEOUT) -> None:
    give_up = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.mark.long("sqlite")
@pytest.mark.timeout(600)
def test_two_releases_work_side_by_side_while_the_store_is_migrated(upgrade: Upgrade, tmp_path: Path) -> None:
    old, new = upgrade.old, upgrade.new
    new.add_migration(oldest=NEWEST)
    assert "applied" in old.run("migrate")
    assert f"this release needs {NEWEST + 1}: run" in new.run("worker", "-q", "new", code=1)
    worker = old.start("old")
    assert upgrade.ran("old") == "1.0.0"

    held = upgrade.hold.using(queue="old").enqueue(str(tmp_path))
    until((tmp_path / "begun").exists)
    said = new.run("migrate")
    assert f"applied {NEWEST + 1}; programs of the release before work with it as well" in said
    (tmp_path / "go").touch()
    assert upgrade.result(held) == "1.0.0", "the attempt that ran is settled in the new schema"
    assert upgrade.ran("old") == "1.0.0", "the worker that runs goes on"

    assert stopped(worker) == 0
    old.start("old", "both")
    assert upgrade.ran("old") == "1.0.0", "a worker that is restarted works as well"
    new.start("new", "both")
    assert [upgrade.ran(queue) for queue in ("new", "old")] == ["1.1.0", "1.0.0"]
    both = [upgrade.release.using(queue="both").enqueue() for _ in range(20)]
    assert {upgrade.result(job) for job in both} <= {"1.0.0", "1.1.0"}
    for by, queue in ((old, "new"), (new, "old")):
        said = by.run("enqueue", "release", "--queue", queue, "--on-failure", "continue", "--json")
        job = upgrade.client.get(json.loads(said)["jobs"][0]["id"])
        assert job is not None
        assert upgrade.result(job) == {"new": "1.1.0", "old": "1.0.0"}[queue]

    for by in (old, new):
        seen = json.loads(by.run("workers", "--json"))["workers"]
        assert {one["version"] for one in seen} == {"1.0.0", "1.1.0"}
        findings = json.loads(by.run("doctor", "--json"))["findings"]
        assert [one["level"] for one in findings if one["check"] == "schema"] == ["info" if by is old else "ok"]
    assert f"is at version {NEWEST + 1}, newer than this release" in old.run("migrate")
    assert "is up to date" in new.run("migrate")


@pytest.mark.long("sqlite")
def test_a_release_that_a_migration_does_not_work_with_is_refused(upgrade: Upgrade) -> None:
    old, new = upgrade.old, upgrade.new
    new.add_migration(oldest=NEWEST + 1)
    old.run("migrate")
    said = new.run("migrate")
    assert f"do not know version {NEWEST + 1} cannot work with it: upgrade them now" in said
    for command in ("worker", "migrate"):
        said = old.run(command, code=1)
        assert f"is at version {NEWEST + 1} (by relet 1.1.0" in said
        assert f"this release knows {NEWEST}: upgrade relet" in said
    new.start("new")
    job = json.loads(new.run("enqueue", "release", "--queue", "new", "--json"))["jobs"][0]["id"]
    (done,) = json.loads(new.run("jobs", "wait", job, "--json"))["jobs"]
    assert "1.1.0" in str(done["result"])
