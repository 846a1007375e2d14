"""A worker that starts: it waits for a database that is away, and is refused by one that will not have it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.plugin.command_line import CommandLine, command_line
from tests.servers import PrivateServer, Server
from tests.store.proxy import proxy_to, refusing
from tests.worker.programs import APP, Shop, a_shop

WAITS = "Cannot reach the database, waiting for it"
WORKERS = [("worker",), ("worker", "--processes", "2"), ("worker", "--until-idle")]
#: Root may write everywhere, unless it runs without its capabilities.
UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one", "two processes"])
def test_a_worker_that_starts_while_its_database_is_away_waits_for_it(
    fragile_shop: Shop, fragile_server: PrivateServer, options: tuple[str, ...]
) -> None:
    processes = 2 if options else 1
    job = fragile_shop.one("quick")
    fragile_server.stop()
    worker = fragile_shop.start(*options, ready=False).says(WAITS, times=processes)
    fragile_server.start()
    worker.says(" slots, ", times=processes)
    fragile_shop.started(job)
    fragile_shop.over("succeeded")
    assert worker.log.count(WAITS) == processes
    assert worker.log.count("Reached the database after") == processes
    assert worker.send(signal.SIGTERM).code() == 0
    assert "Traceback" not in worker.log


@pytest.mark.parametrize("options", [(), ("--processes", "2"), ("--until-idle",)], ids=" ".join)
def test_a_worker_that_waits_for_its_database_stops_when_told_to(
    fragile_shop: Shop, fragile_server: PrivateServer, options: tuple[str, ...]
) -> None:
    fragile_server.stop()
    worker = fragile_shop.start(*options, ready=False).says(WAITS, times=2 if "2" in options else 1)
    assert worker.send(signal.SIGTERM).code() == 0
    assert "Traceback" not in worker.log
    assert " slots, " not in worker.log


def test_a_worker_that_waits_for_a_host_that_does_not_answer_stops_when_told_to(
    pg_server: Server, tmp_path: Path
) -> None:
    with proxy_to(pg_server.dsn) as proxy:
        proxy.vanish()
        (tmp_path / "shop.py").write_text(APP.format(url=proxy.url, schema="relet"))
        shop = Shop(tmp_path, proxy.url)
        try:
            worker = shop.start(ready=False).says(WAITS)
            assert worker.send(signal.SIGTERM).code() == 0
        finally:
            shop.close()


# An error that would not pass by itself is refused, in one sentence.


@pytest.fixture(scope="module")
def typed_unprivileged() -> Iterator[CommandLine]:
    """Runs commands as a user whose permissions count."""
    if UNPRIVILEGED and (not shutil.which("setpriv") or subprocess.run([*UNPRIVILEGED, "true"]).returncode):
        pytest.skip("root may write everywhere, and cannot do without that here")
    with command_line(*UNPRIVILEGED) as made:
        yield made


def refusal(typed: CommandLine, place: Path, command: str, *options: str) -> str:
    """Its message before it exits with 1."""
    said = typed.refusal(place, command, "shop:app", *options, codes=(1,))
    assert "Traceback" not in (place / "said").read_text()
    return said


@pytest.mark.long(*WORKERS[1:])
@pytest.mark.parametrize("arguments", WORKERS, ids=" ".join)
def test_a_worker_that_the_database_refuses_says_so_and_exits(
    typed: CommandLine, pg_server: Server, tmp_path: Path, schema: str, arguments: tuple[str, ...]
) -> None:
    def said(url: str) -> str:
        (tmp_path / "shop.py").write_text(APP.format(url=url, schema=schema))
        return refusal(typed, tmp_path, *arguments)

    with refusing('password authentication failed for user "ada"') as port:
        wrong_password = said(f"postgresql://ada:swordfish@127.0.0.1:{port}/jobs")
    assert "password authentication failed" in wrong_password
    assert "swordfish" not in wrong_password
    nowhere = urlsplit(pg_server.dsn)._replace(path="/does_not_exist").geturl()
    assert 'database "does_not_exist" does not exist' in said(nowhere)
    assert "run relet migrate shop:app" in said(pg_server.dsn)


@contextmanager
def not_writable(place: Path, *, folder: bool) -> Iterator[str]:
    """A store in a file that may be read and not written, in a folder that may be written or not: a job in it."""
    inside = place / "data"
    inside.mkdir()
    with a_shop(place, f"sqlite:///{inside / 'relet.db'}") as shop:
        job = shop.one("quick")
    with closing(sqlite3.connect(inside / "relet.db")) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    for file in inside.iterdir():
        file.chmod(0o444)
    inside.chmod(0o777 if folder else 0o555)
    try:
        yield job.id
    finally:
        inside.chmod(0o755)


FOLDERS = pytest.mark.parametrize(
    "folder", [pytest.param(True, id="file"), pytest.param(False, id="file and folder", marks=pytest.mark.long)]
)


@FOLDERS
def test_a_file_that_may_not_be_written_is_refused_by_every_command_that_writes(
    typed_unprivileged: CommandLine, tmp_path: Path, folder: bool
) -> None:
    with not_writable(tmp_path, folder=folder) as job:
        writing = [("enqueue", "quick"), ("jobs", "pause", job), ("queues", "pause", "default"), ("prune",)]
        for arguments in [*WORKERS, *writing]:
            assert "relet.db" in refusal(typed_unprivileged, tmp_path, *arguments)


@FOLDERS
def test_commands_that_read_a_file_which_may_not_be_written_work_or_say_why_not(
    typed_unprivileged: CommandLine, tmp_path: Path, folder: bool
) -> None:
    reading = ["jobs", "queues", "workers", "targets", "schedules", "failures", "stats", "audit", "migrate"]
    with not_writable(tmp_path, folder=folder):
        for command in reading:
            if typed_unprivileged(tmp_path, command, "shop:app")[0] != 0:
                assert "relet.db" in refusal(typed_unprivileged, tmp_path, command)
        code, said = typed_unprivileged(tmp_path, "doctor", "shop:app")
        assert code == 1
        assert "Traceback" not in said
