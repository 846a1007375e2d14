"""A server, a proxy for each worker, and worker processes, for one scenario with one peer."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from bench.environments import CACHE, NODE, ROOT
from bench.peer_faults.history import History
from bench.peer_faults.peers import Peer
from relet._torture.proxy import Proxies, Proxy
from tests.servers import PrivateServer

WORKERS = 3
SLOTS = 4
RESTART_AFTER = 1.0  # seconds until a worker that ended is started again
START_WITHIN = 60.0
RUN_WITHIN = 15.0  # seconds until a worker that was started again has claimed a job
PROBES, PROBE_SECONDS, PROBE_WITHIN = 48, 0.3, 20.0
Seconds = float


class Stuck(Exception):
    """A peer did not start, or refused jobs."""


class Worker:
    """One worker process after another, behind one proxy."""

    def __init__(self, number: int, proxy: Proxy, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.number, self.proxy = number, proxy
        self._command, self._env, self._log = command, {**env, "FAULTS_URL": proxy.url}, log
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env, cwd=ROOT
            )
        return self.process

    @property
    def pid(self) -> int:
        return self.process.pid


class Testbed:
    """`kills`: when the harness killed a process. `exits`: when a process ended by itself."""

    def __init__(self, peer: Peer, server: PrivateServer, name: str) -> None:
        self.peer, self.server = peer, server
        self.folder = CACHE / "peer_faults" / f"{peer.name}-{name}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.kills: dict[int, float] = {}
        self.exits: dict[int, float] = {}
        self._ended: dict[int, float] = {}
        self._locked: list[int] = []  # processes that ended, and whose jobs are still to be unlocked
        self.numbers = itertools.count(1)
        self.proxies = Proxies(server.dsn)
        self.proxies.loop.set_exception_handler(lambda loop, context: None)  # connections that end with the proxies
        self._direct = self.proxies.add().url
        self._is_over = threading.Event()
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        try:
            self._run("setup")
            for number in range(WORKERS):
                log = self.folder / f"worker{number}.log"
                command = self.peer.command("worker")
                self.workers.append(Worker(number, self.proxies.add(), command, self._env, log))
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
            self._warm_up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._is_over.set()
        if self.workers:
            self._watcher.join()
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.process.kill()
            worker.process.wait()
            self.proxies.call(worker.proxy.cut())
        time.sleep(0.5)  # connections end on the event loop of the proxies, which must still run
        self.proxies.close()

    # Processes

    @property
    def _env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RELET_", "PG", "FAULTS_"))}
        own = {
            "FAULTS_URL": self._direct, "FAULTS_EVENTS": str(self.events), "FAULTS_SLOTS": str(SLOTS),
            "FAULTS_NODE_MODULES": str(NODE.folder), "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        return {**kept, **own}

    def _run(self, role: str, text: str = "") -> None:
        done = subprocess.run(
            self.peer.command(role), input=text, env=self._env, cwd=ROOT, capture_output=True, text=True, check=False,
            timeout=START_WITHIN,
        )  # fmt: skip
        if done.returncode != 0:
            raise Stuck(f"{self.peer.name}, {role}: {(done.stderr + done.stdout).strip()[-1000:]}")

    def _watch(self) -> None:
        """Start workers again a while after they ended. If the peer needs it, unlock their jobs."""
        while not self._is_over.wait(0.05):
            for worker in self.workers:
                if worker.process.poll() is not None:
                    self._revive(worker)
            self._unlock()

    def _revive(self, worker: Worker) -> None:
        ended_at = self._ended.setdefault(worker.pid, time.time())
        if worker.pid not in self.kills:
            self.exits.setdefault(worker.pid, ended_at)
        if time.time() - ended_at >= RESTART_AFTER:
            self._locked.append(worker.pid)
            worker.start()

    def _unlock(self) -> None:
        """An unlock that fails because the server is down is tried again."""
        if self.peer.unlock and self._locked:
            pools = self.history().pools
            with suppress(psycopg.OperationalError):
                for pid in list(self._locked):
                    self.execute(self.peer.unlock, pools.get(pid, ""))
                    self._locked.remove(pid)

    def kill(self, worker: Worker) -> None:
        """Once every worker runs jobs: how long the program of a peer takes to start must not matter."""
        self.wait(self._all_have_run, RUN_WITHIN)
        self.kills[worker.pid] = time.time()
        worker.process.send_signal(signal.SIGKILL)

    def _all_have_run(self) -> bool:
        ran = {run.pid for run in self.history().runs.values()}
        return all(worker.pid in ran and worker.process.poll() is None for worker in self.workers)

    def lose_answers(self, worker: Worker) -> None:
        """On each connection of the worker, deliver the next request, drop the answer, and close."""
        self.proxies.call(worker.proxy.lose_answers())

    # Jobs

    @property
    def events(self) -> Path:
        return self.folder / "events.jsonl"

    def history(self) -> History:
        return History.read(self.events)

    def enqueue(self, durations: Sequence[Seconds]) -> list[int]:
        """The numbers of the jobs."""
        jobs = [(next(self.numbers), round(seconds, 3)) for seconds in durations]
        self._run("enqueue", json.dumps(jobs))
        return [number for number, _ in jobs]

    def execute(self, statement: str, *values: object) -> list[Any]:
        with closing(psycopg.connect(self.server.dsn, autocommit=True)) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def states(self, jobs: Collection[int]) -> dict[int, str]:
        stored = dict(self.execute(self.peer.states))
        return {job: stored.get(job, "done") for job in jobs}

    def unfinished(self, jobs: Collection[int]) -> set[int]:
        return {job for job, state in self.states(jobs).items() if state in ("queued", "running")}

    # Waiting

    def wait(self, condition: Callable[[], object], seconds: Seconds) -> bool:
        give_up = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > give_up:
                return False
            time.sleep(0.1)
        return True

    def drain(self, jobs: Collection[int], quiet: Seconds, limit: Seconds = 150.0) -> None:
        """Until all jobs are over, or no handler has recorded anything for so long."""
        give_up = time.monotonic() + limit
        while self.unfinished(jobs) and time.monotonic() < give_up:
            if time.time() - self.events.stat().st_mtime > quiet:
                return
            time.sleep(0.25)

    def _warm_up(self) -> None:
        if self.idle_workers(tries=10):
            raise Stuck(f"{self.peer.name}: not every worker runs jobs; see {self.folder}")

    def idle_workers(self, tries: int = 5) -> list[int]:
        """Workers that run none of many short jobs, however often these are enqueued."""
        idle = {worker.number for worker in self.workers}
        for _ in range(tries):
            jobs = self.enqueue([PROBE_SECONDS] * PROBES)
            self.wait(lambda jobs=jobs: not self.unfinished(jobs), PROBE_WITHIN)  # type: ignore[misc]
            history = self.history()
            ran = {run.pid for job in jobs for run in history.by_job[job]}
            idle -= {worker.number for worker in self.workers if worker.pid in ran}
            if not idle:
                break
        return sorted(idle)
