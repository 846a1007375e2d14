"""The app of the benchmarks: `bench.app:app`. The environment says where its jobs are and what they look like.

BENCH_URL, BENCH_SCHEMA    the store
BENCH_HANDLER=thread       handlers are plain functions, which run in threads
BENCH_FEATURE              what the jobs use: see `Jobs`
BENCH_PAYLOAD, BENCH_QUEUES, BENCH_TARGETS, BENCH_KEYS    bytes of payload; how many queues, targets, fair groups
BENCH_NOTES                a file to which `work` appends the job and the time
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from typing import Any

from bench.adapters.wire import Calls
from relet import App, Attempt, Backoff

calls = Calls()
app = App(os.environ.get("BENCH_URL"), schema=os.environ.get("BENCH_SCHEMA", "relet"))
threads = os.environ.get("BENCH_HANDLER") == "thread"
_notes = os.open(os.environ.get("BENCH_NOTES", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


if threads:

    @app.task
    def noop(account: str, cents: int) -> None:
        calls.succeed()

    @app.task(max_attempts=5, backoff=Backoff(base=1, factor=1, jitter=False))
    def flaky(number: int) -> None:
        if calls.must_fail(number):
            raise ValueError("first attempt")
        time.sleep(0.001)
        calls.finish()

else:

    @app.task
    async def noop(account: str, cents: int) -> None:
        calls.succeed()

    @app.task(max_attempts=5, backoff=Backoff(base=1, factor=1, jitter=False))
    async def flaky(number: int) -> None:
        if calls.must_fail(number):
            raise ValueError("first attempt")
        await asyncio.sleep(0.001)
        calls.finish()


@app.task
async def stamp(sent: float) -> float:
    calls.arrive(sent)
    return time.time()


@app.task(max_attempts=1)
async def failing() -> None:
    raise ConnectionError("connection refused")


@app.task
async def work(attempt: Attempt, seconds: float) -> None:
    os.write(_notes, f"{attempt.job.id} {time.time()}\n".encode())
    await asyncio.sleep(seconds)
    calls.succeed()


@app.task
async def chain_end(number: int) -> int:
    calls.succeed()
    return 3 * number


@app.task
async def chain_middle(attempt: Attempt, number: int) -> int:
    calls.succeed()
    return attempt.continue_with(chain_end.draft(number))


@app.task
async def chain_start(attempt: Attempt, number: int) -> int:
    calls.succeed()
    return attempt.continue_with(chain_middle.draft(number))


@app.task
def complete_in_transaction(attempt: Attempt) -> None:
    calls.succeed()
    with attempt.transaction() as tx:
        tx.succeed(None)


def _number(name: str, default: int) -> int:
    return int(os.environ.get(name, default))


class Jobs:
    """Drafts of jobs that use the feature named by BENCH_FEATURE."""

    def __init__(self) -> None:
        self._feature = os.environ.get("BENCH_FEATURE", "plain")
        self._account = "a" * max(_number("BENCH_PAYLOAD", 0) - 30, 0) or "acct-7"
        self._queues = _number("BENCH_QUEUES", 1)
        self._targets = _number("BENCH_TARGETS", 1000)
        self._keys = _number("BENCH_KEYS", 1000)
        self._numbers = itertools.count()
        self._makers = {
            "plain": self._plain,
            "max_running": self._plain,
            "targets": self._with_targets,
            "fair": self._fair,
            "unique": self._unique,
            "dependencies": self._dependencies,
            "chains": self._chains,
            "fan_in": self._fan_in,
            "fan_out": self._fan_out,
            "transactions": self._transactions,
            "work": self._work,
            "failing": lambda n: [failing.draft() for _ in range(n)],
        }

    def limit_queues(self) -> None:
        if self._feature == "max_running":
            app.client.limit_queue("default", max_running=_number("BENCH_MAX_RUNNING", 100))
        elif self._feature == "fair":
            app.client.limit_queue("default", fair=True)

    def drafts(self, n: int) -> list[Any]:
        """Jobs for one call of enqueue_many."""
        return self._makers[self._feature](n)

    def _noop(self, **options: Any) -> Any:
        return noop.using(**options).draft(self._account, 500)

    def _plain(self, n: int) -> list[Any]:
        if self._queues == 1:
            return [noop.draft(self._account, 500) for _ in range(n)]
        return [self._noop(queue=f"q{number % self._queues}") for number in self._next(n)]

    def _next(self, n: int) -> list[int]:
        return list(itertools.islice(self._numbers, n))

    def _with_targets(self, n: int) -> list[Any]:
        return [self._noop(target=f"t{number % self._targets}") for number in self._next(n)]

    def _fair(self, n: int) -> list[Any]:
        return [self._noop(group=f"k{number % self._keys}") for number in self._next(n)]

    def _unique(self, n: int) -> list[Any]:
        return [self._noop(unique=f"u{os.getpid()}-{number}") for number in self._next(n)]

    def _dependencies(self, n: int) -> list[Any]:
        """Pairs: the second job of each waits for the first."""
        firsts = [noop.draft(self._account, 500) for _ in range(n - n // 2)]
        return firsts + [self._noop(depends_on=[first]) for first in firsts[: n // 2]]

    def _chains(self, n: int) -> list[Any]:
        return [chain_start.draft(number) for number in self._next(n)]

    def _fan_in(self, n: int) -> list[Any]:
        """n - 1 jobs and one that waits for all of them."""
        parts = [noop.draft(self._account, 500) for _ in range(n - 1)]
        return [*parts, self._noop(depends_on=parts)] if parts else self._plain(n)

    def _fan_out(self, n: int) -> list[Any]:
        """One job, and n - 1 that wait for it."""
        first = noop.draft(self._account, 500)
        return [first, *(self._noop(depends_on=[first]) for _ in range(n - 1))]

    def _transactions(self, n: int) -> list[Any]:
        return [complete_in_transaction.draft() for _ in range(n)]

    def _work(self, n: int) -> list[Any]:
        return [work.draft(float(os.environ.get("BENCH_SECONDS", "0.02"))) for _ in range(n)]
