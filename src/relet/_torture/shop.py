"""The app of a run: tasks that use every feature. A middleware records the start and the end of each attempt.

Every handler returns the version of its attempt, so that a stored result names the attempt that produced it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

from .. import App, Attempt, Backoff, Draft, Fail, Retry
from ..events import Ended, Failed, Retried, Succeeded
from ..types import BatchItem, FailedJob
from .clock import move_clock
from .facts import LONGEST_BACKOFF, MAX_RUNNING, MAX_RUNNING_PER_GROUP, RATES, REPLACED, WINDOW, WINDOWED
from .history import History
from .settings import load

SOON = Backoff(base=0.05, max=LONGEST_BACKOFF)
GREED = 200 * 2**20  # bytes

settings = load()
if settings.clock:
    move_clock(settings.clock)
history = History(settings.histories, "worker")
app = App(settings.url, schema=settings.schema, defaults={"backoff": SOON, "max_attempts": 5})
# Of tasks that need a connection to the database: a worker behind a gateway does not know them.
with_database = App(settings.url) if settings.is_remote else app


@app.middleware
def record(attempt: Attempt) -> Iterator[None]:
    history.write("start", **_about(attempt))
    try:
        yield
    except BaseException as error:
        write_end(attempt, type(error).__name__)
        raise
    write_end(attempt, None)


def write_end(attempt: Attempt, error: str | None) -> None:
    history.write("end", error=error, **_about(attempt))


def _about(attempt: Attempt) -> dict[str, Any]:
    return {
        "job": attempt.job.id, "version": attempt.version, "task": attempt.job.task, "worker": attempt.worker,
        "tenant": attempt.tenant,
    }  # fmt: skip


def announce(event: Ended) -> None:
    history.write(
        "announced", job=event.job_id, version=event.version, tenant=event.tenant, outcome=type(event).__name__.lower()
    )


if os.getpid() % 2:  # without listeners, a worker stores successes in another way
    for kind in (Succeeded, Retried, Failed):
        app.on(kind)(announce)


@app.task
async def quick(attempt: Attempt) -> int:
    return attempt.version


@app.task
def quick_thread(attempt: Attempt) -> int:
    time.sleep(random.random() * 0.02)
    return attempt.version


@app.task
async def medium(attempt: Attempt) -> int:
    await asyncio.sleep(random.random() * 0.3)
    return attempt.version


@app.task
async def long(attempt: Attempt, leases: float) -> int:
    """Lasts several leases, in small steps."""
    until = time.monotonic() + leases * settings.lease
    while time.monotonic() < until:
        await asyncio.sleep(0.05)
        if attempt.deadline > time.monotonic():
            history.write("check", **_about(attempt))
    return attempt.version


@app.task
async def flaky(attempt: Attempt, failures: int) -> int:
    if attempt.job.attempt <= failures:
        raise Retry("not yet", delay=0.05)
    return attempt.version


@app.task
async def apologise(attempt: Attempt, failed: FailedJob) -> int:
    return attempt.version


@app.task(max_attempts=2, follow_up=apologise)
async def hopeless(attempt: Attempt) -> int:
    raise Fail("never")


@with_database.task
def pay(attempt: Attempt) -> int:
    """Writes to the ledger and completes the job in one transaction."""
    store = settings if attempt.tenant is None else settings.of_tenant()
    with attempt.transaction() as transaction:
        mark = "?" if settings.is_sqlite else "%s"
        transaction.connection.execute(
            f"insert into {store.prefix}torture_ledger values ({mark}, {mark})",
            (attempt.job.id, attempt.version),
        )
        transaction.succeed(attempt.version)
    return attempt.version


@app.task(queue="targets")
async def targeted(attempt: Attempt) -> int:
    await asyncio.sleep(0.005)
    return attempt.version


@app.limit(max_running=MAX_RUNNING["limited"])
@app.task(queue="limited")
async def limited(attempt: Attempt) -> int:
    await asyncio.sleep(0.01)
    return attempt.version


@app.limit(max_running=MAX_RUNNING_PER_GROUP["grouped"], group="*")
@app.task(queue="grouped")
async def grouped(attempt: Attempt) -> int:
    await asyncio.sleep(0.01)
    return attempt.version


@app.limit(rate=RATES["rated"][0], per=RATES["rated"][1])
@app.task(queue="rated")
async def rated(attempt: Attempt) -> int:
    return attempt.version


@app.task
async def unique(attempt: Attempt) -> int:
    await asyncio.sleep(0.01)
    return attempt.version


@app.task
async def next_link(attempt: Attempt, links: int) -> Any:
    if links:
        return attempt.continue_with(next_link.draft(links - 1))
    return attempt.version


@app.task
async def first_link(attempt: Attempt, links: int) -> Any:
    return attempt.continue_with(next_link.draft(links))


@app.task
async def dependent(attempt: Attempt) -> int:
    return attempt.version


@app.task
def stepwise(attempt: Attempt) -> int:
    first = attempt.step("first", os.getpid)
    attempt.sleep("nap", 0.1)
    assert attempt.step("first", os.getpid) == first
    return attempt.version


@app.task
def signalled(attempt: Attempt) -> int:
    attempt.wait_for("go", int, timeout=3600)
    return attempt.version


@app.batch_task(size=10, wait=0.05)
async def batch(items: list[BatchItem[int]]) -> None:
    for item in items:
        item.succeed(item.attempt.version)


@app.task(max_attempts=8)
async def poison(attempt: Attempt) -> int:
    """Kills its worker on the first attempt, as a fault in native code does."""
    if attempt.version == 1:
        history.write("fault", kind="segfault", workers=[os.getpid()], signalled=os.getpid(), seconds=None)
        os.kill(os.getpid(), signal.SIGSEGV)
    return attempt.version


@app.task(process=True, max_attempts=8)
def greedy(attempt: Attempt) -> int:
    """On the first attempt it takes much memory, until the kernel kills its process."""
    if attempt.version == 1:
        taken = bytearray(GREED)
        history.write("fault", kind="out of memory", workers=[], seconds=0.0, bytes=len(taken))
        write_end(attempt, "killed")
        os.kill(os.getpid(), signal.SIGKILL)
    return attempt.version


@app.task
async def blocking(attempt: Attempt) -> int:
    """Blocks the event loop for longer than a lease. The heartbeat has its own thread, so that the lease stays."""
    time.sleep(1.5 * settings.lease)
    return attempt.version


@app.schedule(every=1.0, missed="all")
@app.task
async def tick(attempt: Attempt) -> int:
    return attempt.version


class Mix:
    """Makes drafts of all kinds, in proportions that let slow ones not block the others."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self._kinds = {
            self._quick: 40, self._thread: 12, self._flaky: 8, self._pay: 10, self._targeted: 8, self._limited: 6,
            self._grouped: 6, self._unique: 5, self._chain: 4, self._dependents: 3, self._stepwise: 3,
            self._signalled: 2, self._batch: 8, self._hopeless: 2, self._long: 1, self._late: 2, self._medium: 12,
            self._rated: 3, self._replacing: 3, self._many: 10,
        }  # fmt: skip

    def drafts(self) -> list[Draft[Any]]:
        """The jobs of one call of enqueue_many."""
        chosen = self._random.choices(list(self._kinds), list(self._kinds.values()), k=self._random.choice([1, 1, 5]))
        return [draft for kind in chosen for draft in kind()]

    def rare(self) -> list[Draft[Any]]:
        """A job that does harm."""
        return [self._random.choice([poison, blocking, greedy]).draft()]

    def _quick(self) -> list[Draft[Any]]:
        return [quick.using(priority=self._random.choice([0, 0, 5, -5])).draft()]

    def _many(self) -> list[Draft[Any]]:
        return [quick.draft() for _ in range(20)]

    def _thread(self) -> list[Draft[Any]]:
        return [quick_thread.draft()]

    def _medium(self) -> list[Draft[Any]]:
        return [medium.draft()]

    def _late(self) -> list[Draft[Any]]:
        return [quick.using(delay=self._random.random() * settings.lease).draft()]

    def _flaky(self) -> list[Draft[Any]]:
        return [flaky.draft(self._random.choice([1, 2]))]

    def _hopeless(self) -> list[Draft[Any]]:
        return [hopeless.draft()]

    def _pay(self) -> list[Draft[Any]]:
        return [pay.draft()]

    def _targeted(self) -> list[Draft[Any]]:
        return [targeted.using(target=f"t{self._random.randrange(20)}", on_failure="continue").draft()]

    def _limited(self) -> list[Draft[Any]]:
        return [limited.draft()]

    def _grouped(self) -> list[Draft[Any]]:
        return [grouped.using(group=f"g{self._random.randrange(10)}").draft()]

    def _unique(self) -> list[Draft[Any]]:
        number = self._random.randrange(10)
        if self._random.random() < 0.3:
            return [unique.using(unique=f"{WINDOWED}{number}", unique_for=WINDOW).draft()]
        return [unique.using(unique=f"u{number}").draft()]

    def _rated(self) -> list[Draft[Any]]:
        return [rated.draft()]

    def _replacing(self) -> list[Draft[Any]]:
        return [unique.using(unique=f"{REPLACED}{self._random.randrange(5)}", replace=True).draft()]

    def _chain(self) -> list[Draft[Any]]:
        return [first_link.draft(self._random.randrange(3))]

    def _dependents(self) -> list[Draft[Any]]:
        parts = [quick.draft(), pay.draft()]
        return [*parts, dependent.using(depends_on=parts, on_dependency_failure="run").draft()]

    def _stepwise(self) -> list[Draft[Any]]:
        return [stepwise.draft()]

    def _signalled(self) -> list[Draft[Any]]:
        return [signalled.draft()]

    def _batch(self) -> list[Draft[Any]]:
        self._number += 1
        return [batch.draft(self._number)]

    def _long(self) -> list[Draft[Any]]:
        return [long.draft(self._random.choice([1.5, 2.5]))]
