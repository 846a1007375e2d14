"""Worker processes that tests start, stop, kill and outlive: real ones, run by `python -m relet worker`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from relet import App, Client, Job
from relet._core.job import Draft
from tests import forks
from tests.conftest import PG_KINDS, SERVERS
from tests.schemas import schemas_of
from tests.waiting import Pause

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
TIMEOUT = 30.0
LEASE = 1.0


class Note(NamedTuple):
    """A note of a handler."""

    what: str
    key: str
    pid: int
    detail: Any
    moment: float


class WorkerProcess:
    """A worker, as its parent sees it."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(TIMEOUT)

    def terminate(self) -> int:
        """In good order."""
        self._process.terminate()
        return self._process.wait(TIMEOUT)

    def wait_for_death(self) -> int:
        return self._process.wait(TIMEOUT)


class WorkerProcesses:
    """A store, an app that enqueues into it, the workers of one test, and the notes of their handlers."""

    def __init__(self, kind: str, url: str, schema: str, folder: Path) -> None:
        self.kind, self.url, self.schema, self.folder = kind, url, schema, folder
        self.app = App(url, schema=schema)
        self.client: Client = self.app.client
        self._notes = folder / "notes"
        self._started: list[WorkerProcess] = []

    def worker(self, *options: str, url: str | None = None, **environment: str) -> WorkerProcess:
        """Start one, with a short lease unless told otherwise. `environment`: what else its process shall have."""
        command = [
            "relet",
            "worker",
            "tests.worker.fault_tasks:app",
            "--lease",
            str(LEASE),
            "--poll-interval",
            "0.2",
            *options,
        ]
        return self.program(*command, url=url, **environment)

    def program(self, *command: str, url: str | None = None, **environment: str) -> WorkerProcess:
        """Start another module than the worker's as a program."""
        log = self.folder / f"worker-{len(self._started) + 1}.log"
        defaults = {
            "RELET_URL": url or self.url,
            "TASKS_SCHEMA": self.schema,
            "TASKS_NOTES": str(self._notes),
        }
        with log.open("wb") as said:
            process = forks.Popen(
                [sys.executable, "-m", *command], cwd=ROOT, env={**os.environ, **defaults, **environment},
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip
        self._started.append(WorkerProcess(process, log))
        return self._started[-1]

    def enqueue(self, *drafts: Draft[Any]) -> list[Job[Any]]:
        return self.client.enqueue_many(list(drafts))

    def job(self, job: Job[Any]) -> Job[Any]:
        """As it is now."""
        found = self.client.get(job)
        assert found is not None
        return found

    def wait(self, job: Job[Any], timeout: float = TIMEOUT) -> Job[Any]:
        """Until it is over, or has failed."""
        return self.client.wait(job, timeout=timeout)

    def outcomes(self, job: Job[Any]) -> list[str]:
        """How each of its attempts ended."""
        return [record.outcome for record in self.client.attempts(job)]

    def notes(self, what: str | None = None, key: str | None = None) -> list[Note]:
        lines = self._notes.read_text().splitlines() if self._notes.exists() else []
        every = [Note(*json.loads(line)) for line in lines]
        return [one for one in every if what in (None, one.what) and key in (None, one.key)]

    def starts(self, key: str) -> int:
        return len(self.notes("start", key))

    def wait_for_note(self, what: str, key: str, number: int = 1) -> Note:
        """The note, as soon as it has been made so often."""
        return wait_until(lambda: self.notes(what, key)[number - 1 : number], f"{what} of {key}")[0]

    def close(self) -> None:
        """Kill all processes that this test or its workers have started, and print the workers' logs."""
        mark = f"TASKS_NOTES={self._notes}".encode()
        for pid in processes_of({worker.pid for worker in self._started}, mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for worker in self._started:
            worker.kill()
            print(f"--- worker {worker.pid}\n{worker.log}")
        self.app.close()


def wait_until(condition: Callable[[], T], what: str, seconds: float = TIMEOUT) -> T:
    """Wait until the result is true, and return it."""
    give_up, pause = time.monotonic() + seconds, Pause()
    while not (found := condition()):
        if time.monotonic() > give_up:
            pytest.fail(f"waited for {seconds:g} s in vain: {what}")
        pause()
    return found


def lives(pid: int) -> bool:
    """Whether a process runs; one that is dead and not buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def processes_of(sessions: set[int], mark: bytes) -> list[int]:
    """All that belong to one of these sessions, or that were started with this in their environment."""
    found = []
    for pid in [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()]:
        with suppress(OSError):
            if os.getsid(pid) in sessions or mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


@pytest.fixture(params=["sqlite", *PG_KINDS])
def processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkerProcesses]:
    """A SQLite file, and a PostgreSQL."""
    if request.param == "sqlite":
        yield from _migrated(WorkerProcesses("sqlite", f"sqlite:///{tmp_path / 'relet.db'}", "relet", tmp_path))
    else:
        yield from _on_postgres(request, tmp_path)


@pytest.fixture(params=PG_KINDS)
def pg_processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkerProcesses]:
    """A PostgreSQL."""
    yield from _on_postgres(request, tmp_path)


def _on_postgres(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkerProcesses]:
    server = request.config.stash[SERVERS].get(request.param)
    with schemas_of(request.config).one_of(server) as shared:
        yield from _migrated(WorkerProcesses(request.param, server.dsn, shared.name, tmp_path))


def _migrated(processes: WorkerProcesses) -> Iterator[WorkerProcesses]:
    processes.client.migrate()
    try:
        yield processes
    finally:
        processes.close()
