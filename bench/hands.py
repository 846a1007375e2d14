"""Worker processes for benchmarks: started like any others, watched from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.places import Place
from leasehold import App
from leasehold.store.postgres import PostgresStore

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Hands:
    """An app at a place, and the worker processes that serve it."""

    def __init__(self, place: Place, notes: Path) -> None:
        store = place.store
        is_postgres = isinstance(store, PostgresStore)
        self.url = store._url if is_postgres else f"sqlite:////{str(store.path).lstrip('/')}"
        self.schema = store.schema if is_postgres else "leasehold"
        self.notes = notes
        os.environ |= {"BENCH_URL": self.url, "BENCH_SCHEMA": self.schema, "BENCH_NOTES": str(notes)}
        from bench import tasks  # its app is where the environment says

        self.tasks = tasks
        self.app: App = tasks.app
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """One more worker process; ready when this returns."""
        command = [sys.executable, "-m", "leasehold", "worker", "bench.tasks:app", "--log-level", "error", *options]
        worker = subprocess.Popen(command, cwd=Path(__file__).parent.parent)  # noqa: S603
        self._workers.append(worker)
        self.app.client.result(self.tasks.stamp.using(priority=100).enqueue(time.time()), timeout=30)
        return worker

    def stop(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            worker.wait(30)
        self._workers.clear()

    def fill(self, number: int, draft: Callable[[], Any]) -> None:
        for begin in range(0, number, 1000):
            self.app.client.enqueue_many([draft() for _ in range(min(1000, number - begin))])


@contextmanager
def hands(place: Place) -> Iterator[Hands]:
    """For one benchmark in a process: an app knows its store from the beginning."""
    with tempfile.TemporaryDirectory(prefix="leasehold-bench-") as folder:
        made = Hands(place, Path(folder) / "notes")
        try:
            yield made
        finally:
            made.stop()
            made.app.close()


def cpu_seconds(worker: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_mib(worker: subprocess.Popen[bytes]) -> float:
    return int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1]) * PAGE / 2**20


def wait_until(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            raise SystemExit("the workers are not getting on")
        time.sleep(0.02)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]
