"""The measurements of `relet bench`, and the check that every job ran exactly once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO, Any

from .. import progress
from ..load_app import CommandError
from . import app as bench_app
from .scratch import Scratch

CHUNK = 1000
MAX_SINGLES = 1000
LATENCIES = 200
WAIT = 0.02  # average seconds between two jobs of the latency measurement
START_WITHIN = 60.0
DRAIN_WITHIN = 600.0
LIVE = ("pending", "queued", "running", "paused", "failed")


@dataclass(frozen=True)
class Latency:
    """Milliseconds."""

    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True)
class Figures:
    """Jobs per second; `raw_*` of the bare loop."""

    where: str
    jobs: int
    processes: int
    slots: int
    single: float
    bulk: float
    drain: float
    raw_single: float
    raw_bulk: float
    raw_drain: float
    latency: Latency

    def document(self) -> dict[str, Any]:
        return asdict(self)


def measure(store: Scratch, jobs: int, processes: int, slots: int) -> Figures:
    tasks = bench_app.TaskRegistry(store.app)
    client, singles = store.app.client, min(jobs, MAX_SINGLES)
    client.pause_queue("default")
    single = _timed("enqueue one by one", singles, 1, lambda n: tasks.noop.enqueue("acct-7", 500))
    bulk = _timed("enqueue in bulk", jobs, CHUNK,
                  lambda n: client.enqueue_many([tasks.noop.draft("acct-7", 500) for _ in range(n)]))  # fmt: skip
    with _worker(store, processes, slots) as check:
        client.result(tasks.stamp.enqueue(), timeout=START_WITHIN)
        drain = _drain(store, singles + jobs, check)
        latency = _latency(store, tasks, min(LATENCIES, max(jobs // 10, 20)))
    _verify(store, singles + jobs)
    raw = store.raw
    raw_single = _timed("bare loop: insert one by one", singles, 1, lambda n: raw.insert())
    raw_bulk = _timed("bare loop: insert in bulk", jobs, CHUNK, raw.insert_many)
    raw_drain = _raw_drain(store, singles + jobs)
    return Figures(store.where, jobs, processes, slots, single, bulk, drain, raw_single, raw_bulk, raw_drain, latency)


def _timed(what: str, number: int, chunk: int, send: Callable[[int], object]) -> float:
    """Jobs per second."""
    with progress.bar(what, number) as advance:
        begin = time.perf_counter()
        for start in range(0, number, chunk):
            send(min(chunk, number - start))
            if start % 100 == 0:
                advance(start)
        return number / (time.perf_counter() - begin)


@contextmanager
def _worker(store: Scratch, processes: int, slots: int) -> Iterator[Callable[[], None]]:
    """Run a `relet worker` on the scratch store. The yielded function raises if the worker has ended."""
    command = [sys.executable, "-m", "relet", "worker", f"{bench_app.__name__}:app", "--log-level", "error"]
    options = ["--processes", str(processes), "-c", str(slots), "--shutdown-timeout", "5"]
    environment = {**os.environ, bench_app.URL: store.url, bench_app.SCHEMA: store.schema}
    with tempfile.TemporaryFile("w+") as log:
        # In a new session: Ctrl-C reaches only this process, which stops the worker before it removes the store.
        process = subprocess.Popen([*command, *options], env=environment, stderr=log, start_new_session=True)
        try:
            yield lambda: _check(process, log)
        finally:
            _end(process)


def _check(process: subprocess.Popen[bytes], log: IO[str]) -> None:
    if process.poll() is not None:
        log.seek(0)
        raise CommandError(f"The worker ended with code {process.returncode}: {log.read().strip()[-500:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _drain(store: Scratch, number: int, check: Callable[[], None]) -> float:
    """Jobs per second from the release of the queue until all jobs have ended."""
    client, begin = store.app.client, time.perf_counter()
    client.resume_queue("default")
    with progress.bar("drain", number) as advance:
        while client.count(state=LIVE, limit=1):
            check()
            if time.perf_counter() - begin > DRAIN_WITHIN:
                raise CommandError(f"The worker did not finish {number:,} jobs within {DRAIN_WITHIN:.0f} s.")
            time.sleep(0.01)
        advance(number)
    return number / (time.perf_counter() - begin)


def _latency(store: Scratch, tasks: bench_app.TaskRegistry, jobs: int) -> Latency:
    """Measure from before the enqueue call to the first line of the handler, with an idle worker."""
    found = []
    with progress.bar("latency", jobs) as advance:
        for number in range(jobs):
            time.sleep(random.uniform(0.5, 1.5) * WAIT)
            sent = time.time()
            found.append(1000 * (store.app.client.result(tasks.stamp.enqueue(), timeout=30.0) - sent))
            advance(number + 1)
    found.sort()
    p50, p90, p99 = (found[int(len(found) * share)] for share in (0.5, 0.9, 0.99))
    return Latency(p50, p90, p99, found[-1])


def _verify(store: Scratch, number: int) -> None:
    """Check that every job succeeded at its first attempt."""
    client, seen, cursor = store.app.client, set[str](), None
    while True:
        page = client.jobs(task="noop", limit=1000, cursor=cursor)
        repeated = [job for job in page.jobs if job.state != "succeeded" or job.attempt != 1]
        if repeated:
            raise CommandError(f"{repeated[0]!r} is at attempt {repeated[0].attempt}: it did not run exactly once.")
        seen |= {job.id for job in page.jobs}
        if (cursor := page.cursor) is None:
            break
    if len(seen) != number:
        raise CommandError(f"{len(seen):,} jobs finished, but {number:,} were enqueued.")


def _raw_drain(store: Scratch, number: int) -> float:
    store.raw.analyze()
    done, begin = 0, time.perf_counter()
    with progress.bar("bare loop: drain", number) as advance:
        while step := store.raw.step():
            done += step
            advance(done)
    if done != number:
        raise CommandError(f"The bare loop finished {done:,} of {number:,} rows.")
    return number / (time.perf_counter() - begin)
