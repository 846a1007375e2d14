"""`./dev demo`: a worker is killed in the middle of a job, and nothing is lost. On a SQLite file, in a few seconds."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from .app import App
from .core.job import Claimed, Lease, State, Succeeded
from .core.machine import Change
from .store.flows import lease, upkeep
from .store.store import Store

LEASE = 2.0

_begun = time.monotonic()


def main() -> None:
    """The whole story."""
    logging.getLogger("leasehold").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="leasehold-demo-") as folder:
        url = f"sqlite:///{folder}/shop.db"
        app = App(url)
        app.task(charge)
        say(f"a new store: {url}")
        jobs = app.client.enqueue_many([app.lookup("charge").draft(f"account-{number}", 500) for number in (1, 2, 3)])
        say(f"enqueued {len(jobs)} jobs: " + ", ".join(job.payload for job in jobs))
        zombie = run_and_kill_worker(url)
        recover(app, zombie)
        app.close()


def charge(account: str, cents: int) -> str:
    """What the jobs would do, were they not to be shown one by one."""
    return f"{account} paid {cents}"


def run_and_kill_worker(url: str) -> Lease:
    """Worker A, a process of its own, claims a job, and is killed while it holds the lease."""
    child = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "leasehold.demo", "worker", url], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None  # noqa: S101
    token = child.stdout.readline().split()
    held = Lease(token[0], token[1])
    say(f"worker A (process {child.pid}) has claimed job {held.id}, for {LEASE:g} s at a time")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    say("worker A is killed with -9 in the middle of the job; nobody is told")
    return held


def recover(app: App, zombie: Lease) -> None:
    """Worker B finds the job once its lease has run out; what A still says is not believed."""
    store = app.store()
    say(f"why does it not run? {app.client.explain(zombie.id)[0]}")
    while not (changes := reap(store)):
        time.sleep(0.1)
    say(f"the lease has run out; the job is {changes[0].state} again ({changes[0].error})")
    claimed = claim(store, "B", 10)
    say(f"worker B has claimed {len(claimed)} jobs, that one as attempt {version_of(claimed, zombie.id)}")
    (answer,) = store.run(lease.settle, [(zombie, Succeeded('"by A"'))], random.random)
    say(f"A's ghost says that it is done: {'believed!' if answer.state else 'lease lost, nothing was written'}")
    store.run(lease.settle, [(job.lease, Succeeded('"by B"')) for job in claimed], random.random)
    finished = app.client.count(state=State.SUCCEEDED)
    say(f"worker B is done: {finished} of 3 jobs succeeded, result {app.client.wait(zombie.id).result}, none lost")
    if finished != 3 or answer.state:
        raise SystemExit("the demo has failed")


def reap(store: Store) -> list[Change]:
    """What upkeep does once a second."""
    store.run(upkeep.beat, grace=0.0)
    return store.run(lease.reap, random.random)


def claim(store: Store, worker: str, want: int) -> list[Claimed]:
    """What a worker does whenever it has room."""
    scopes = [lease.Scope("default", want)]
    token = str(uuid.uuid4())
    return store.run(lease.claim, worker, token, scopes, ["charge"], want=want, lease=LEASE, random=random.random).jobs


def version_of(jobs: list[Claimed], job_id: str) -> int:
    """How often the job has been claimed by now."""
    return next(job.version for job in jobs if job.id == job_id)


def worker(url: str) -> None:
    """Worker A: claims one job, says so, and works for longer than it will live."""
    (job,) = claim(App(url).store(), "A", 1)
    print(job.id, job.token, flush=True)
    time.sleep(60)


def say(line: str) -> None:
    """A line of the story."""
    print(f"{time.monotonic() - _begun:6.2f} s  {line}", flush=True)


if __name__ == "__main__":
    logging.getLogger("leasehold").setLevel(logging.ERROR)
    worker(sys.argv[2]) if sys.argv[1:2] == ["worker"] else main()
