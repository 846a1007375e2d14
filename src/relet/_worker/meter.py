"""Counts how attempts end and how long they take. The reporter stores the counts every few seconds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from .._core.job import AttemptOutcome
from .._core.stats import BOUNDS, class_of
from .._store.flows.stats import Count
from .._system import System
from .execution import Execution


class _Histogram:
    """Durations by class (`_core.stats.BOUNDS`), and their sum."""

    __slots__ = ("classes", "total")

    def __init__(self) -> None:
        self.classes = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, durations: list[float]) -> None:
        """Count durations. Many of them are sorted first: then one binary search counts a class."""
        self.total += sum(durations)
        if len(durations) < len(BOUNDS):
            for seconds in durations:
                self.classes[class_of(seconds)] += 1
            return
        durations.sort()
        before = 0
        for index, bound in enumerate(BOUNDS):
            below = bisect_right(durations, bound)
            self.classes[index] += below - before
            before = below
        self.classes[-1] += len(durations) - before

    def counts(self, queue: str, name: str) -> list[Count]:
        found = [Count(queue, name, number, bucket) for bucket, number in enumerate(self.classes) if number]
        return [*found, Count(queue, f"{name}.sum", self.total)] if found else []


class _QueueCounts:
    __slots__ = ("outcomes", "runs", "starts", "waits")

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.waits, self.starts, self.runs = _Histogram(), _Histogram(), _Histogram()

    def add(self, outcome: str, executions: Sequence[Execution], now: float) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + len(executions)
        started = [one for one in executions if one.started_at]
        self.starts.add([one.started_at - one.claimed_at for one in started])
        self.runs.add([(one.stopped_at or now) - one.started_at for one in started])
        self.waits.add([_waited(one) for one in executions])

    def counts(self, queue: str) -> list[Count]:
        found = [Count(queue, outcome, number) for outcome, number in self.outcomes.items()]
        for name, histogram in (("waits", self.waits), ("starts", self.starts), ("runs", self.runs)):
            found += histogram.counts(queue, name)
        return found


def _waited(execution: Execution) -> float:
    """Seconds from the job's due time until its handler started: to the claim by the store's clock, then by ours."""
    job = execution.job
    claimed = max(job.expires_at - execution.lease_seconds - job.run_at, 0.0)
    return claimed + (execution.started_at and execution.started_at - execution.claimed_at)


class Meter:
    """Counts by queue since the last `take`, which does most of the work, because every attempt is counted."""

    def __init__(self, system: System) -> None:
        self._now = system.monotonic
        self._lock = system.lock()
        self._queues: dict[str, _QueueCounts] = {}

    def ended(self, outcome: str, executions: Iterable[Execution]) -> None:
        """Count attempts that were settled with this outcome."""
        by_queue: dict[str, list[Execution]] = {}
        for execution in executions:
            by_queue.setdefault(execution.job.queue, []).append(execution)
        now = self._now()
        with self._lock:
            for queue, some in by_queue.items():
                self._of(queue).add(outcome, some, now)

    def lost(self, queue: str) -> None:
        """Count an attempt that was reaped."""
        with self._lock:
            outcomes = self._of(queue).outcomes
            outcomes[AttemptOutcome.LOST] = outcomes.get(AttemptOutcome.LOST, 0) + 1

    @property
    def is_empty(self) -> bool:
        return not self._queues

    def take(self) -> list[Count]:
        with self._lock:
            queues, self._queues = self._queues, {}
        return [count for queue, counts in queues.items() for count in counts.counts(queue)]

    def _of(self, queue: str) -> _QueueCounts:
        return self._queues.get(queue) or self._queues.setdefault(queue, _QueueCounts())
