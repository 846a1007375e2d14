"""Checks that a worker in any language keeps the protocol: a program that runs three tasks.

    charge(account, cents)  returns "<account> paid <cents>"; fails for good if cents is negative
    wait(seconds)           reports progress (0 of seconds, "waiting"), and waits; it ends when it is cancelled
    stumble()               raises an error in its first attempt; returns the number of the second

The program reads the URLs of gateways, separated by blanks, from RELET_GATEWAY, a token from RELET_GATEWAY_TOKEN, and
stops by SIGTERM. Its leases last 3 seconds: `python -m tests.gateway.workers postgresql://... node main.mjs`
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from relet import App, Job
from tests import forks
from tests.gateway.serving import free_port
from tests.waiting import Pause

TOKEN = "gateway-token-for-workers"
WITHIN = 30.0  # seconds
LEASE = 3.0
SHOP = """
from relet import App

app = App({url!r}, schema={schema!r})

@app.task
def charge(account: str, cents: int) -> str: ...

@app.task
def wait(seconds: float) -> None: ...

@app.task
def stumble() -> int: ...
"""


class Bench:
    """A store, gateways and workers, all of them processes."""

    def __init__(self, folder: Path, url: str, schema: str, command: Sequence[str], gateways: int = 1) -> None:
        self._folder, self._command = folder, command
        text = SHOP.format(url=url, schema=schema)
        (folder / "gateway_shop.py").write_text(text)
        names: dict[str, Any] = {"__name__": "gateway_shop"}
        exec(compile(text, "gateway_shop.py", "exec"), names)
        self.app: App = names["app"]
        self.app.client.migrate()
        self._ports = [free_port() for _ in range(gateways)]
        self._stack = ExitStack()

    def gateway(self, number: int = 0) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "relet", "gateway", "gateway_shop:app", "--port", str(self._ports[number])]
        process = self._start(words, f"gateway{number}")
        give_up, pause, log = time.monotonic() + WITHIN, Pause(), self._folder / f"gateway{number}.log"
        while "Started server process" not in log.read_text():
            assert time.monotonic() < give_up, log.read_text()
            pause()
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start(self._command, "worker")

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._ports]

    def _start(self, words: Sequence[str], name: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "RELET_GATEWAY": " ".join(self.urls), "RELET_GATEWAY_TOKEN": TOKEN}
        start = forks.Popen if words[0] == sys.executable else subprocess.Popen
        with (self._folder / f"{name}.log").open("wb") as log:
            process = start(words, cwd=self._folder, env=env, stdout=log, stderr=log)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def enqueue(self, task: str, *args: Any, **options: Any) -> Job[Any]:
        job: Job[Any] = self.app.tasks[task].using(**options).enqueue(*args)
        return job

    def job(self, job: Job[Any]) -> Job[Any]:
        found = self.app.client.get(job)
        assert found is not None
        return found

    def until(self, job: Job[Any], condition: Callable[[Job[Any]], object]) -> Job[Any]:
        """Wait until this is true of a job."""
        give_up, pause = time.monotonic() + WITHIN, Pause()
        while not condition(found := self.job(job)):
            assert time.monotonic() < give_up, f"{found} {found.error}\n{self.logs}"
            pause()
        return found

    @property
    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()[-4000:]}" for path in sorted(self._folder.glob("*.log")))

    def close(self) -> None:
        self._stack.close()
        self.app.close()


@contextmanager
def bench(folder: Path, url: str, schema: str, command: Sequence[str], gateways: int = 1) -> Iterator[Bench]:
    one = Bench(folder, url, schema, command, gateways)
    try:
        yield one
    finally:
        one.close()


def is_over(job: Job[Any]) -> bool:
    return job.state in ("succeeded", "failed", "cancelled")


def it_runs_jobs(site: Bench) -> None:
    site.gateway()
    worker = site.worker()
    paid, refused, stumbled = (
        site.enqueue("charge", "acct-7", 500),
        site.enqueue("charge", "acct-7", -1),
        site.enqueue("stumble"),
    )
    assert site.until(paid, is_over).result == "acct-7 paid 500"
    failed = site.until(refused, is_over)
    assert (failed.state, failed.attempt) == ("failed", 1), f"{failed} {failed.attempt} {failed.error}"
    found = site.until(stumbled, is_over)
    assert (found.result, found.attempt) == (2, 2)
    many = [site.enqueue("charge", "acct", n) for n in range(200)]
    assert [site.until(job, is_over).result for job in many] == [f"acct paid {n}" for n in range(200)]
    (row,) = [one for one in site.app.client.workers() if one.slots]
    assert row.tasks == ("charge", "stumble", "wait")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(WITHIN) == 0
    assert [one for one in site.app.client.workers() if one.slots] == []


def it_renews_reports_and_obeys(site: Bench) -> None:
    site.gateway()
    site.worker()
    long, cancelled = site.enqueue("wait", 2 * LEASE), site.enqueue("wait", 600)
    site.until(long, lambda job: job.progress is not None and job.progress.note == "waiting")
    site.until(cancelled, lambda job: job.state == "running")
    site.app.client.cancel(cancelled)
    assert site.until(cancelled, is_over).state == "cancelled"
    found = site.until(long, is_over)
    assert (found.state, found.attempt, found.losses) == ("succeeded", 1, 0)


def another_worker_takes_over(site: Bench) -> None:
    site.gateway()
    worker = site.worker()
    job = site.enqueue("wait", 1)
    site.until(job, lambda one: one.state == "running")
    worker.kill()
    site.worker()
    found = site.until(job, is_over)
    assert (found.state, found.losses) == ("succeeded", 1)


def it_survives_the_gateway(site: Bench) -> None:
    """The only gateway is away for longer than a lease. No lease is lost, and jobs that ended meanwhile are settled."""
    gateway = site.gateway()
    site.worker()
    short, long = site.enqueue("wait", LEASE), site.enqueue("wait", 3 * LEASE)
    for job in (short, long):
        site.until(job, lambda one: one.progress is not None)
    gateway.kill()
    gateway.wait()
    time.sleep(1.5 * LEASE)
    site.gateway()
    for job in (short, long):
        found = site.until(job, is_over)
        assert (found.state, found.attempt, found.losses) == ("succeeded", 1, 0), site.logs


def it_settles_as_it_stops(site: Bench) -> None:
    site.gateway()
    worker = site.worker()
    job = site.enqueue("wait", 2.0)
    site.until(job, lambda one: one.progress is not None)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(WITHIN) == 0
    found = site.job(job)
    assert (found.state, found.attempt) == ("succeeded", 1)


CHECKS: tuple[Callable[[Bench], None], ...] = (
    it_runs_jobs, it_renews_reports_and_obeys, another_worker_takes_over, it_survives_the_gateway,
    it_settles_as_it_stops,
)  # fmt: skip


def main(url: str, *command: str) -> None:
    for number, check in enumerate(CHECKS):
        with tempfile.TemporaryDirectory() as folder:
            with bench(Path(folder), url, f"relet_worker_check_{os.getpid()}_{number}", command) as site:
                check(site)
            print(f"passed: {check.__name__.replace('_', ' ')}")


if __name__ == "__main__":
    main(*sys.argv[1:])
