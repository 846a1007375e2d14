"""The protocol between the driver and an adapter. Standard library only: it runs in every peer's environment.

A worker prints `ready`, waits for a line, then works and prints its counts as JSON every 25 ms. A second line makes it
print its latencies and exit. A producer prints `ready` and answers every command with the seconds that it took:

    one N              enqueue N jobs, one call each
    bulk N             enqueue N jobs, 1,000 a call
    flaky N            the same, numbered; every 20th fails at its first attempt
    paced N RATE       N jobs that carry the time, RATE a second at random intervals
    load RATE SECONDS  a steady stream in small calls
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import random
import sys
import threading
import time

CHUNK = 1000
FAILS_EVERY = 20
REPORT_EVERY = 0.025
LOAD_STEP = 0.02


class Calls:
    """Counts of handler calls. Handlers may run in threads, hence the lock."""

    def __init__(self):
        self.calls = self.successes = 0
        self.first = self.last = 0.0
        self.latencies = []
        self._failed = set()
        self._lock = threading.Lock()

    def succeed(self):
        """A call that does nothing."""
        now = time.time()
        with self._lock:
            self.first = self.first or now
            self.last = now
            self.calls += 1
            self.successes += 1

    def arrive(self, sent):
        """A call whose job carries the time before it was enqueued."""
        self.latencies.append(1000 * (time.time() - sent))
        self.succeed()

    def must_fail(self, number):
        """Begin a call; true if it is the first attempt of a job that has to fail once."""
        with self._lock:
            self.first = self.first or time.time()
            self.calls += 1
            fails = number % FAILS_EVERY == 0 and number not in self._failed
            if fails:
                self._failed.add(number)
            return fails

    def finish(self):
        """End a call begun by `must_fail`."""
        with self._lock:
            self.successes += 1
            self.last = time.time()

    def add(self, number, began):
        """Calls of a loop that has no handlers."""
        with self._lock:
            self.first = self.first or began
            self.last = time.time()
            self.calls += number
            self.successes += number

    def report(self):
        counts = {"calls": self.calls, "successes": self.successes, "first": self.first, "last": self.last}
        print(json.dumps(counts), flush=True)


def serve_worker(calls):
    """Return when the driver says go; from then on report from threads."""
    print("ready", flush=True)
    sys.stdin.readline()
    for target in (_report, _await_end):
        threading.Thread(target=target, args=(calls,), daemon=True).start()


def _report(calls):
    reported = -1
    while True:
        time.sleep(REPORT_EVERY)
        if calls.calls + calls.successes != reported:
            reported = calls.calls + calls.successes
            calls.report()


def _await_end(calls):
    sys.stdin.readline()
    calls.report()
    print(json.dumps({"latencies": calls.latencies}), flush=True)
    os._exit(0)


def serve_producer(one, bulk, stamp, flaky):
    """`one()` enqueues a job, `bulk(n)` n jobs, `stamp(time)` one that carries it, `flaky(numbers)` one for each."""
    asyncio.run(_serve(one, bulk, stamp, flaky, sys.stdin.readline))


async def serve_async_producer(one, bulk, stamp, flaky):
    """The same with functions that return awaitables."""
    loop = asyncio.get_running_loop()
    await _serve(one, bulk, stamp, flaky, lambda: loop.run_in_executor(None, sys.stdin.readline))


async def _serve(one, bulk, stamp, flaky, read):
    verbs = {
        "one": lambda n: _repeat(one, n),
        "bulk": lambda n: _chunks(lambda part: bulk(len(part)), n),
        "flaky": lambda n: _chunks(flaky, n),
        "paced": lambda n, rate: _paced(stamp, n, rate),
        "load": lambda rate, seconds: _load(bulk, rate, seconds),
    }
    print("ready", flush=True)
    while line := await _result(read()):
        verb, *numbers = line.split()
        begin = time.perf_counter()
        await verbs[verb](*(float(number) if "." in number else int(number) for number in numbers))
        print(json.dumps({"seconds": time.perf_counter() - begin}), flush=True)


async def _result(value):
    return await value if inspect.isawaitable(value) else value


async def _repeat(one, n):
    for _ in range(n):
        answer = one()
        if inspect.isawaitable(answer):
            await answer


async def _chunks(send, n):
    for begin in range(0, n, CHUNK):
        await _result(send(range(begin, min(begin + CHUNK, n))))


async def _paced(stamp, n, rate):
    for _ in range(n):
        await asyncio.sleep(random.uniform(0.5, 1.5) / rate)
        await _result(stamp(time.time()))


async def _load(bulk, rate, seconds):
    begin, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begin) < seconds:
        due = int(rate * passed) - sent
        if due > 0:
            await _result(bulk(min(due, CHUNK)))
            sent += min(due, CHUNK)
        await asyncio.sleep(LOAD_STEP)
