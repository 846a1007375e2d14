"""The app that the workers of the benchmarks run; they are told by their environment where its jobs are."""

from __future__ import annotations

import asyncio
import os
import time

from leasehold import App, Attempt

app = App(os.environ.get("BENCH_URL"), schema=os.environ.get("BENCH_SCHEMA", "leasehold"))

_notes = os.open(os.environ.get("BENCH_NOTES", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.task
async def noop() -> None:
    """Nothing, on the event loop."""


@app.task
def plain_noop() -> None:
    """Nothing, in a thread."""


@app.task
async def last() -> None:
    """Tells that everything before it has been taken."""
    os.write(_notes, f"last {time.time()}\n".encode())


@app.task
async def stamp(sent: float) -> float:
    """How long it took from before the enqueue to here."""
    return time.time() - sent


@app.task
async def three(n: int) -> int:
    """The end of a chain."""
    return 3 * n


@app.task
async def two(attempt: Attempt, n: int) -> int:
    """The middle of a chain."""
    return attempt.continue_with(three.draft(n))


@app.task
async def one(attempt: Attempt, n: int) -> int:
    """The beginning of a chain."""
    return attempt.continue_with(two.draft(n))


@app.task
def in_transaction(attempt: Attempt) -> None:
    """Nothing, completed in a transaction of its own."""
    with attempt.transaction() as tx:
        tx.succeed(None)


@app.task
async def work(attempt: Attempt, seconds: float) -> None:
    """Something that takes a while, and notes when it began."""
    os.write(_notes, f"{attempt.job.id} {time.time()}\n".encode())
    await asyncio.sleep(seconds)
