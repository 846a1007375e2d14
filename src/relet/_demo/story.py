"""The story of the demo, on a SQLite file, with real `relet worker` processes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .._core.job import State
from ..app import App
from . import charge
from .scene import JOBS, LEASE, SLOTS, Show, Story, WorkerProcess

KILL_AFTER = 2.5
GIVE_UP_AFTER = 60.0


def main() -> int:
    """Run the demo. Returns 0 if no job was lost."""
    logging.getLogger("relet").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="relet-demo-") as folder:
        os.environ["RELET_URL"] = f"sqlite:///{folder}/shop.db"
        app = App()
        app.client.migrate()
        story = Story()
        story.say(f"New store in a SQLite file, no setup; {JOBS} jobs, leases of {LEASE:g} s")
        try:
            with _worker("A") as a, _worker("B") as b, _view(story, [a, b]) as show:
                threading.Thread(target=_produce, args=(story,), daemon=True).start()
                _watch(app, story, a, b, show)
        finally:
            app.close()
        return _sum_up(story)


def _produce(story: Story) -> None:
    """Enqueue jobs, like a program that does not wait for them."""
    shop = App()
    task = shop.task(charge.__wrapped__)
    for number in range(JOBS):
        task.enqueue(f"account-{number}", 500)
        story.enqueued = number + 1
        time.sleep(0.06)
    shop.close()


@contextmanager
def _worker(name: str) -> Iterator[WorkerProcess]:
    arguments = ["relet._demo:app", "--lease", str(LEASE), "-c", str(SLOTS), "--log-level", "error"]
    process = subprocess.Popen([sys.executable, "-m", "relet", "worker", *arguments], process_group=0)
    try:
        yield WorkerProcess(name, process)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _watch(app: App, story: Story, a: WorkerProcess, b: WorkerProcess, show: Show) -> None:
    """Read the store ten times a second; kill worker A while it runs jobs; return when all jobs succeeded."""
    while story.succeeded < JOBS and time.monotonic() - story.begun < GIVE_UP_AFTER:
        _read(app, story, [a, b])
        if a.killed_at is None and time.monotonic() - story.begun > KILL_AFTER and story.running.get("A"):
            _kill(app, story, a)
        if a.killed_at is not None:
            _follow(app, story, a)
        show()
        time.sleep(0.1)


def _read(app: App, story: Story, workers: list[WorkerProcess]) -> None:
    queues = app.client.queues()
    for state in ("pending", "queued", "running"):
        story.counts[state] = sum(getattr(queue, state) for queue in queues)
    page = app.client.jobs(state=[State.RUNNING, State.SUCCEEDED], limit=1000)
    story.counts["succeeded"] = sum(job.state is State.SUCCEEDED for job in page.jobs)
    for worker in workers:
        jobs = [job for job in page.jobs if worker.holds(job.worker)]
        story.running[worker.name] = sum(job.state is State.RUNNING for job in jobs)
        story.done[worker.name] = sum(job.state is State.SUCCEEDED for job in jobs)


def _kill(app: App, story: Story, a: WorkerProcess) -> None:
    a.process.kill()
    a.process.wait()
    a.killed_at = time.monotonic()
    running = [job for job in app.client.jobs(state=State.RUNNING, limit=1000).jobs if a.holds(job.worker)]
    story.orphans = {job.id: "" for job in running}
    story.say(f"Killed worker A (process {a.process.pid}) with -9 while it ran {len(running)} jobs")


def _follow(app: App, story: Story, a: WorkerProcess) -> None:
    """Note the states of the jobs that worker A ran when it was killed."""
    for job_id, before in story.orphans.items():
        job = app.client.get(job_id)
        if job is None or before.startswith("succeeded"):
            continue
        if job.state is State.RUNNING and a.holds(job.worker):
            now = "leased to A, which was killed"
        elif job.state is State.RUNNING:
            now = f"running again on B, attempt {job.attempt}"
        else:
            now = f"{job.state}, attempt {job.attempt}"
        if job.attempt > 1 and job_id not in story.taken_over and a.killed_at is not None:
            story.taken_over[job_id] = time.monotonic() - a.killed_at
            story.say(f"B took over job ...{job_id[-6:]}, {story.taken_over[job_id]:.1f} s after the kill")
        story.orphans[job_id] = now


def _sum_up(story: Story) -> int:
    lost = story.enqueued - story.succeeded
    slowest = max(story.taken_over.values(), default=0.0)
    print(f"{story.succeeded} of {story.enqueued} jobs succeeded, {lost} lost.", end=" ")
    print(
        f"Worker A was killed while it ran {len(story.orphans)}; B took over {len(story.taken_over)} of them", end=" "
    )
    print(f"within {slowest:.1f} s (leases of {LEASE:g} s).")
    passed = lost == 0 and story.enqueued == JOBS and len(story.taken_over) == len(story.orphans) > 0
    if not passed:
        print("The demo failed.", file=sys.stderr)
    return 0 if passed else 1


@contextmanager
def _view(story: Story, workers: list[WorkerProcess]) -> Iterator[Show]:
    """A live view if rich is installed, else plain lines."""
    try:
        from .view import LiveShow  # needs rich, which is an extra
    except ImportError:
        show: Show = Show(story)
        yield show
        show()
        return
    with LiveShow(story, workers) as live:
        yield live
