"""What a worker tells of itself: that it is there, how busy it is, and what it has counted.

In a thread of its own, and about once in five seconds: no attempt waits for it, and nothing depends on it.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from .._core.release import release
from .._core.stats import BOUNDS, class_of
from .._core.worker import WorkerFacts
from .._store.flows import inspect, stats, worker_reports
from .._store.flows.stats import Count
from .._store.retry import RetryFor
from ..errors import ReletError
from .execution import Execution
from .reconnect import ReconnectingStore, run_loop

log = logging.getLogger("relet.worker")

REPORT_EVERY = 5.0
SAMPLE_EVERY = 60.0
FAREWELL = 1.0  # seconds: a store that is away keeps nobody from stopping


class _Times:
    """How long something took, by classes."""

    __slots__ = ("classes", "total")

    def __init__(self) -> None:
        self.classes = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def counts(self, queue: str, name: str) -> list[Count]:
        found = [Count(queue, name, number, bucket) for bucket, number in enumerate(self.classes) if number]
        return [*found, Count(queue, f"{name}.sum", self.total)] if found else []


class _Tally:
    """What was counted of one queue."""

    __slots__ = ("ends", "runs", "starts", "waits")

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.waits, self.starts, self.runs = _Times(), _Times(), _Times()

    def counts(self, queue: str) -> list[Count]:
        times = (("waits", self.waits), ("starts", self.starts), ("runs", self.runs))
        ends = [Count(queue, what, number) for what, number in self.ends.items()]
        return [*ends, *(count for name, one in times for count in one.counts(queue, name))]


class Meter:
    """Counts what attempts come to and how long they take, until somebody takes the numbers away.

    Every attempt comes through here: what can be done when the numbers are taken away is done then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def ended(self, what: str, runs: Iterable[Execution]) -> None:
        """Attempts have ended in this way, and are settled."""
        by_queue: dict[str, list[Execution]] = {}
        for run in runs:
            by_queue.setdefault(run.job.queue, []).append(run)
        with self._lock:
            for queue, some in by_queue.items():
                self._count(self._tallies.get(queue) or self._new(queue), what, some)

    def _count(self, tally: _Tally, what: str, runs: Sequence[Execution]) -> None:
        tally.ends[what] = tally.ends.get(what, 0) + len(runs)
        started = [run for run in runs if run.started]
        _add(tally.starts, [run.started - run.taken for run in started])
        now = time.monotonic()
        _add(tally.runs, [(run.stopped or now) - run.started for run in started])
        # Until the claim by the store's clock, from there on by ours.
        _add(tally.waits, [
            max(run.job.expires_at - run.seconds - run.job.run_at, 0.0) + (run.started and run.started - run.taken)
            for run in runs
        ])  # fmt: skip

    def lost(self, queue: str) -> None:
        """An attempt was taken from a worker that is gone."""
        with self._lock:
            ends = (self._tallies.get(queue) or self._new(queue)).ends
            ends["lost"] = ends.get("lost", 0) + 1

    def take(self) -> list[Count]:
        """What was counted since the last time."""
        with self._lock:
            tallies, self._tallies = self._tallies, {}
        return [count for queue, tally in tallies.items() for count in tally.counts(queue)]

    def _new(self, queue: str) -> _Tally:
        return self._tallies.setdefault(queue, _Tally())


def _add(times: _Times, seconds: list[float]) -> None:
    """Count durations. Of many, which are sorted, each class is one search."""
    times.total += sum(seconds)
    if len(seconds) < len(BOUNDS):
        for one in seconds:
            times.classes[class_of(one)] += 1
        return
    seconds.sort()
    before = 0
    for place, bound in enumerate(BOUNDS):
        below = bisect_right(seconds, bound)
        times.classes[place] += below - before
        before = below
    times.classes[-1] += len(seconds) - before


def facts(worker: str, queues: list[str] | None, slots: int, tasks: list[str], lease: float) -> WorkerFacts:
    """What a worker says of itself."""
    names = None if queues is None else tuple(queues)
    host, pid = socket.gethostname(), os.getpid()
    return WorkerFacts(worker, host, pid, names, slots, tuple(sorted(tasks)), lease, release())


class Reporter:
    """Speaks for one worker at one store."""

    def __init__(self, link: ReconnectingStore, meter: Meter, facts: WorkerFacts, running: Callable[[], int]) -> None:
        self._link, self._meter, self._facts, self._running = link, meter, facts, running
        self._halt = threading.Event()
        self._sample_at = 0.0
        self.stopping = False

    def start(self) -> list[threading.Thread]:
        """From now on."""
        return [run_loop("reporter", self.step, self._halt)]

    def step(self) -> None:
        """Report, then wait. Once a minute one of all workers counts the jobs."""
        self.report()
        if time.monotonic() >= self._sample_at:
            self._sample_at = time.monotonic() + SAMPLE_EVERY
            self.sample()
        self._halt.wait(REPORT_EVERY * random.uniform(0.9, 1.1))  # noqa: S311

    def sample(self) -> None:
        """Count the jobs, unless another worker does."""
        if self._link.run(self._halt, stats.take_sample):
            self._link.run(self._halt, stats.keep_sample, self._link.run(self._halt, inspect.counted_queues))

    def report(self) -> None:
        """Say that the worker is there, and what it has counted."""
        said = (str(uuid.uuid4()), self._facts, self._running(), self.stopping, self._meter.take())
        self._link.run(self._halt, worker_reports.report, *said)

    def stop(self) -> None:
        """No more."""
        self._halt.set()

    def say_goodbye(self, give_up: float) -> None:
        """The worker has stopped in good order. A store that does not listen keeps nobody beyond this moment."""
        thread = threading.Thread(target=self._forget, name="relet-goodbye", daemon=True)
        thread.start()
        thread.join(max(give_up - time.monotonic(), FAREWELL))

    def _forget(self) -> None:
        try:
            last = (str(uuid.uuid4()), self._facts, 0, True, self._meter.take())
            self._link.store.run_with(RetryFor(FAREWELL), worker_reports.report, *last)
            self._link.store.run_with(RetryFor(FAREWELL), worker_reports.forget, self._facts.name)
        except ReletError as error:
            log.info("the store does not hear that this worker has stopped: %s", error)
