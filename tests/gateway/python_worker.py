"""The tasks of `workers.py` in Python: a worker that reaches the store by a gateway."""

from __future__ import annotations

import asyncio
import logging
import os

from relet import App, Attempt, Fail, Worker

app = App("postgresql://none@127.0.0.1:1/none")  # a connection to the database would fail


@app.task
async def charge(account: str, cents: int) -> str:
    if cents < 0:
        raise Fail("a charge is positive")
    return f"{account} paid {cents}"


@app.task
async def wait(attempt: Attempt, seconds: float) -> None:
    attempt.progress(0, seconds, "waiting")
    await asyncio.sleep(seconds)


@app.task
async def stumble(attempt: Attempt) -> int:
    if attempt.job.attempt < 2:
        raise ValueError("not yet")
    return attempt.job.attempt


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    Worker(app, gateway=os.environ["RELET_GATEWAY"].split(), lease=3.0).run_sync()
