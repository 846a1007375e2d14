"""The tasks whose jobs are in the stored databases. Later releases must still run them, so tasks are only added."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from relet import App, Attempt, Backoff, Worker

app = App(os.environ["STORED_URL"], schema=os.environ.get("STORED_SCHEMA", "relet"))


@app.schedule("0 3 * * *")
@app.task
def report() -> str:
    return "report"


@app.task
def double(number: int) -> int:
    return 2 * number


@app.task(max_attempts=2, backoff=Backoff(base=0.01, max=0.01))
def refuse(reason: str) -> None:
    raise ValueError(reason)


@app.task
def first(attempt: Attempt, number: int) -> int:
    return attempt.continue_with(double.draft(number))


@app.task
def collect(attempt: Attempt) -> list[int]:
    return attempt.dependency_results(double)


@app.task
def approve(attempt: Attempt, amount: int) -> str:
    charged = attempt.step("charge", charge, amount)
    answer: str = attempt.wait_for("answer")
    return f"{charged}: {answer}"


def charge(amount: int) -> str:
    return f"charged {amount}"


@app.task
def die(attempt: Attempt, folder: str) -> str:
    """Runs until its worker is killed; a later attempt succeeds."""
    if attempt.job.attempt == 1:
        Path(folder, "begun").touch()
        time.sleep(600)
    return "taken over"


if __name__ == "__main__":
    Worker(app, queues=sys.argv[1:] or None, lease=5.0, keep_finished=3e8, keep_failed=3e8).run_sync()
