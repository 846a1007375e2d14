"""The app of producers and workers. A file has the starts and ends of its handlers, and the reports of workers."""

from __future__ import annotations

import os
import time

from relet import App, Attempt, events

RUNS = os.open(os.environ["FAILOVER_RUNS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
app = App(os.environ["FAILOVER_URL"], defaults={"max_attempts": 6})


def record(kind: str, job_id: str) -> None:
    """The monotonic clock is that of the machine: producers and all workers have the same."""
    os.write(RUNS, f"{kind} {job_id} {os.getpid()} {time.monotonic():.3f}\n".encode())


for kind in (events.Undone, events.LeaseLost):
    app.on(kind)(lambda event: record("reported", event.job_id))


@app.task
def work(attempt: Attempt, seconds: float) -> None:
    record("start", attempt.job.id)
    time.sleep(seconds)
    record("end", attempt.job.id)


@app.task
def work_and_go_on(attempt: Attempt) -> None:
    """Completes its job, and enqueues another one, in its own transaction."""
    record("start", attempt.job.id)
    with attempt.transaction() as tx:
        tx.enqueue(work.draft(0.005))
        tx.succeed(None)
    record("end", attempt.job.id)
