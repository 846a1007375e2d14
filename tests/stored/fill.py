"""Puts jobs of every kind into the database that STORED_URL names. Prints their states as JSON: now, and at the end.

A finished job stays as it is. The others end once workers run: the test sends the signal, resumes the paused job and
the paused queue, and cancels the failed job, which frees its target.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relet import Job
from tests.stored.shop import app, approve, collect, die, double, first, refuse

WITHIN = 60.0

client = app.client
ends: dict[str, Any] = {}


def fill() -> dict[str, Any]:
    client.migrate()
    client.limit_queue("limited", max_running=2, rate=5, per=1, group="*", fair=True)
    _ended()
    _asleep()
    _abandoned()
    _waiting()
    client.acting_as("ada").pause_queue("paused")
    return {id: {"now": _now(id), "end": end} for id, end in ends.items()}


def _ended() -> None:
    done = double.enqueue(1)
    chain = first.enqueue(2)
    failed = refuse.using(target="blocked").enqueue("card declined")
    with _worker("default"):
        client.wait_many([done, chain, failed], timeout=WITHIN)
    _ends(done, "succeeded", 2)
    _ends(chain, "succeeded", None)
    ends[client.chain(chain).last.id] = ["succeeded", 4]
    _ends(failed, "cancelled", None)
    _ends(client.acting_as("ada").cancel(double.using(delay=3600).enqueue(3)), "cancelled", None)


def _asleep() -> None:
    """A job that has stored a step and waits for a signal."""
    job = approve.enqueue(7)
    with _worker("default"):
        _until(lambda: _stored(job.id).awaits == "answer")
    _ends(job, "succeeded", "charged 7: yes")


def _abandoned() -> None:
    """A job whose worker was killed. Its lease has expired by the time that the database is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        job = die.using(queue="abandoned").enqueue(folder)
        with _worker("abandoned"):
            _until(Path(folder, "begun").exists)
    _ends(job, "succeeded", "taken over")


def _waiting() -> None:
    """Jobs that have not started, one for each thing to wait for."""
    queued = [double.using(queue="waiting", priority=n).enqueue(n) for n in range(3)]
    for n, job in enumerate(queued):
        _ends(job, "succeeded", 2 * n)
    _ends(double.using(queue="waiting", delay=1).enqueue(10), "succeeded", 20)
    _ends(double.using(queue="waiting", target="blocked").enqueue(11), "succeeded", 22)
    _ends(double.using(queue="waiting", unique="once").enqueue(12), "succeeded", 24)
    _ends(double.using(queue="waiting", unique="window", unique_for=60).enqueue(13), "succeeded", 26)
    _ends(collect.using(queue="waiting", depends_on=queued).enqueue(), "succeeded", [0, 2, 4])
    _ends(client.pause(double.using(queue="waiting").enqueue(14)), "succeeded", 28)
    _ends(double.using(queue="paused").enqueue(15), "succeeded", 30)
    for n, group in enumerate("aab"):
        _ends(double.using(queue="limited", group=group).enqueue(n), "succeeded", 2 * n)


def _ends(job: Job[Any], state: str, result: Any) -> None:
    ends[job.id] = [state, result]


def _stored(id: str) -> Job[Any]:
    found = client.get(id)
    assert found is not None
    return found


def _now(id: str) -> list[Any]:
    job = _stored(id)
    return [job.state, job.result]


@contextmanager
def _worker(queue: str) -> Iterator[None]:
    """A worker of one queue, killed at the end of the block."""
    with subprocess.Popen([sys.executable, "-m", "tests.stored.shop", queue]) as worker:
        try:
            yield
        finally:
            worker.kill()


def _until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + WITHIN
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.02)


if __name__ == "__main__":
    print(json.dumps(fill()))
