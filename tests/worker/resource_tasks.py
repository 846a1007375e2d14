"""An app with resources, for child processes, which import it. Everything is noted in the file that NOTES names."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from relet import App, Attempt, injected

app = App(os.environ.get("RELET_TEST_URL", "sqlite:///:memory:"))


def note(*words: object) -> None:
    file = os.open(os.environ["RELET_TEST_NOTES"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(file, (" ".join(map(str, (*words, os.getpid()))) + "\n").encode())
    os.close(file)


class Pool:
    """Of a plain resource."""

    def __init__(self) -> None:
        self.is_open = True
        self.pid = os.getpid()


class Session:
    """Of an async resource. It works only on the loop that made it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.loop = asyncio.get_running_loop()


class Model:
    """That only child processes need."""


class Stubborn:
    """That is not closed in time."""


@app.resource
def hook() -> Iterator[None]:
    note("hook", "start")
    yield
    note("hook", "stop")


@app.resource
async def session(pool: Pool) -> AsyncIterator[Session]:
    if "RELET_TEST_BREAK" in os.environ:
        raise ConnectionError("no such host")
    note("session", "start")
    async with asyncio.TaskGroup() as group:  # must be left in the task that entered it
        group.create_task(asyncio.sleep(0))
        yield Session(pool)
    note("session", "stop")
    assert pool.is_open


@app.resource
def pool() -> Iterator[Pool]:
    made = Pool()
    note("pool", "start")
    yield made
    made.is_open = False
    note("pool", "stop")


@app.resource
def model() -> Model:
    note("model", "start")
    return Model()


@app.resource
def stubborn() -> Iterator[Stubborn]:
    yield Stubborn()
    note("stubborn", "stop")
    time.sleep(60)


@app.task
def plain(number: int, pool: Pool = injected) -> int:
    assert pool.is_open
    assert pool.pid == os.getpid()
    return number


@app.task
async def on_loop(attempt: Attempt, number: int, *, session: Session = injected, pool: Pool = injected) -> int:
    assert session.loop is asyncio.get_running_loop()
    assert session.pool is pool
    assert pool.is_open
    return number


@app.task
async def slow(attempt: Attempt, pool: Pool = injected) -> None:
    note("slow", "start")
    await asyncio.sleep(0.5)
    assert pool.is_open
    note("slow", "stop")


@app.task(process=True)
def in_child(model: Model = injected) -> int:
    return os.getpid()


@app.task(process=True)
async def on_loop_of_child(number: int, session: Session = injected) -> list[int]:
    assert session.loop is asyncio.get_running_loop()
    assert session.pool.pid == os.getpid()
    await asyncio.sleep(0)
    return [number, os.getpid()]


@app.task(process=True)
def stubborn_in_child(stubborn: Stubborn = injected) -> int:
    return os.getpid()


@app.task(process=True)
def bare_in_child() -> int:
    return os.getpid()


@app.task(process=True)
def wait_in_child(attempt: Attempt, place: str, pool: Pool = injected) -> None:
    Path(place).touch()
    while True:
        attempt.check()
        time.sleep(0.01)
