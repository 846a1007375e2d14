"""Producers and workers on one URL, and the fate of the jobs: by the acknowledgements, the record of the handlers,
and the database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from bench.environments import ROOT
from relet import errors

LEASE, SLOTS, PRODUCERS = 6.0, 8, 3
WORK, LONG = 0.02, 3.0  # seconds; each 17th job of a producer is a long one
PAUSE = 0.02  # seconds between two calls of one producer
BEFORE, AFTER = 6.0, 14.0  # seconds under load
START_WITHIN, DRAIN_WITHIN = 60.0, 90.0
#: Attempts whose handler raised: its own transaction was cut off.
FAILED = "select job::text from relet.attempts where outcome in ('retried', 'failed')"
LIVE = "select count(*) from relet.jobs where state in ('pending', 'queued', 'running')"


class Run(NamedTuple):
    """One run of a handler. `end` is infinite if it was not recorded."""

    job: str
    start: float
    end: float


class Load:
    """`url`: of workers and producers. `server`: the URL of the server that has the jobs in the end."""

    def __init__(self, folder: Path, url: str, workers: int) -> None:
        self.folder, self.url = folder, url
        self.env = {**os.environ, "FAILOVER_URL": url, "FAILOVER_RUNS": str(folder / "runs")}
        os.environ.update(self.env)
        from bench.failover import shop

        self.shop = shop
        shop.app.client.migrate()
        self.acknowledged: dict[str, float] = {}
        self.errors: Counter[str] = Counter()
        self._stopped = threading.Event()
        self._producers = [threading.Thread(target=self._produce, daemon=True) for _ in range(PRODUCERS)]
        self._workers = [self._start_worker(number) for number in range(workers)]

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "relet", "worker", "bench.failover.shop:app", "--lease", str(LEASE)]
        with (self.folder / f"worker{number}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, "-c", str(SLOTS)], cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _produce(self) -> None:
        number = 0
        while not self._stopped.wait(PAUSE):
            number += 1
            seconds = LONG if number % 17 == 0 else WORK
            draft = self.shop.work.draft(seconds) if number % 5 else self.shop.work_and_go_on.draft()
            try:
                job = self.shop.app.client.enqueue(draft)
            except errors.ReletError as error:
                self.errors[type(error).__name__] += 1
            else:
                self.acknowledged[job.id] = time.monotonic()

    def begin(self) -> None:
        """Returns once every worker has run jobs, and some seconds more."""
        for producer in self._producers:
            producer.start()
        workers = {worker.pid for worker in self._workers}
        give_up = time.monotonic() + START_WITHIN
        while not workers <= {int(pid) for _, _, pid, _ in self._lines()}:
            if time.monotonic() > give_up:
                raise RuntimeError(f"not every worker ran jobs:\n{self.logs()}")
            time.sleep(0.1)
        time.sleep(BEFORE)

    def end(self, server: Callable[[], str]) -> list[int]:
        """Go on for some seconds, then let everything end. Returns the exit codes of the workers."""
        time.sleep(AFTER)
        self._stopped.set()
        for producer in self._producers:
            producer.join()
        give_up = time.monotonic() + DRAIN_WITHIN
        while self._live(server()) and time.monotonic() < give_up:
            time.sleep(0.3)
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        return [worker.wait(60.0) for worker in self._workers]

    def _live(self, server: str) -> int:
        try:
            with psycopg.connect(server, connect_timeout=3) as connection:
                return int((connection.execute(LIVE).fetchone() or (0,))[0])
        except psycopg.OperationalError:
            return -1

    def close(self) -> None:
        self._stopped.set()
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self.shop.app.close()

    def logs(self) -> str:
        return "\n".join(file.read_text()[-2000:] for file in sorted(self.folder.glob("worker*.log")))

    def _lines(self) -> list[list[str]]:
        file = self.folder / "runs"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def runs(self) -> list[Run]:
        """Of all jobs, by start. A process runs a job only once at a time."""
        found: list[Run] = []
        begun: dict[tuple[str, str], float] = {}
        for kind, job, pid, moment in self._lines():
            if kind == "start":
                begun[job, pid] = float(moment)
            elif kind == "end":
                found.append(Run(job, begun.pop((job, pid)), float(moment)))
        found += [Run(job, start, float("inf")) for (job, _), start in begun.items()]
        return sorted(found, key=lambda run: run.start)

    def reported(self) -> set[str]:
        """Jobs of which a worker has reported that their claim or end is lost."""
        return {job for kind, job, _, _ in self._lines() if kind == "reported"}


def figures(load: Load, server: str, fault: float, promoted: float | None) -> dict[str, Any]:
    """`fault`: when the server was lost. `promoted`: when another one was asked to take over."""
    with psycopg.connect(server) as connection:
        states: dict[str, str] = dict(connection.execute("select id::text, state::text from relet.all_jobs").fetchall())
        failed = {job for (job,) in connection.execute(FAILED)}
    runs = load.runs()
    starts, ends = Counter(run.job for run in runs), Counter(run.job for run in runs if run.end < float("inf"))
    twice = {job for job, number in starts.items() if number > 1}
    again = {job for job, number in ends.items() if number > 1}
    unknown = ends.keys() - states.keys()
    found: dict[str, Any] = {
        "acknowledged": len(load.acknowledged),
        "lost": sum(states.get(job) != "succeeded" for job in load.acknowledged),
        "started twice": len(twice),
        "failed first": len(twice & failed),
        "ended twice": len(again),
        "overlap": overlaps(runs),
        "ran, unknown to the store": len(unknown),
        "of these two, reported": len((again | unknown) & load.reported()),
        "without acknowledgement": longest_gap(load.acknowledged.values(), fault),
        "without start": longest_gap((run.start for run in runs), fault),
        "errors": dict(load.errors),
    }
    if promoted is not None:
        later = {job: moment for job, moment in load.acknowledged.items() if moment > promoted}
        found["to acknowledgement"] = min(later.values(), default=float("inf")) - promoted
        began = (run.start for run in runs if run.job in later)
        found["to start"] = min(began, default=float("inf")) - promoted
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in found.items()}


def overlaps(runs: Iterable[Run]) -> int:
    """Jobs of which two runs overlap. A run without an end, whose handler was aborted, overlaps none."""
    last: dict[str, float] = {}
    found = set()
    for run in runs:
        if run.start < last.get(run.job, 0.0):
            found.add(run.job)
        last[run.job] = max(last.get(run.job, 0.0), run.end if run.end < float("inf") else run.start)
    return len(found)


def longest_gap(moments: Iterable[float], fault: float) -> float:
    """The longest time between two of these moments, of which the later one is after the fault."""
    pairs = pairwise(sorted(moments))
    return max((later - earlier for earlier, later in pairs if later > fault), default=0.0)
