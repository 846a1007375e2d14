"""A discrete simulation of many worker processes and one server, with costs that were measured.

The server has some cores, and takes statements in the order in which they arrive. A process without jobs sends a check
now and then, one with jobs its renewals. A new job wakes one process with a free slot, or waits until there is one.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from bench.statistic import percentile

STATEMENTS_OF_JOB = 3  # it is enqueued, claimed and settled


@dataclass(frozen=True)
class Costs:
    """Statements a second of one process, and seconds of the server's CPU for each, while it runs no jobs and while it
    runs some; and seconds for all statements of a job."""

    idle_rate: float
    idle_seconds: float
    busy_rate: float
    busy_seconds: float
    job_seconds: float


@dataclass(frozen=True)
class Fleet:
    """`rate`: jobs a second; `duration`: seconds that each of them runs."""

    processes: int
    slots: int
    rate: float
    duration: float
    cores: int


class Simulation:
    def __init__(self, fleet: Fleet, costs: Costs, random: Random) -> None:
        self._fleet, self._costs, self._random = fleet, costs, random
        self._numbers = count()
        self._events: list[tuple[float, int, str, int, float]] = []
        self._cores = [0.0] * fleet.cores
        self._running = [0] * fleet.processes
        self._free = list(range(fleet.processes))
        self._position = list(range(fleet.processes))  # in `_free`; -1: it has no free slot
        self._backlog: deque[float] = deque()
        self._busy = 0.0
        self._statements = 0
        self._waits: list[float] = []

    def run(self, seconds: float) -> dict[str, Any]:
        for process in range(self._fleet.processes):
            self._at(self._random.uniform(0, 1 / self._costs.idle_rate), "beat", process)
        if self._fleet.rate:
            self._at(self._random.expovariate(self._fleet.rate), "enqueue")
        while self._events and self._events[0][0] <= seconds:
            now, _, kind, process, since = heapq.heappop(self._events)
            getattr(self, f"_{kind}")(now, process, since)
        waits = self._waits or [0.0]
        return {
            "cores": self._busy / seconds,
            "statements": self._statements / seconds,
            "p50": 1000 * percentile(waits, 0.5),
            "p99": 1000 * percentile(waits, 0.99),
            "started": len(self._waits),
        }

    def _at(self, moment: float, kind: str, process: int = -1, since: float = 0.0) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), kind, process, since))

    def _serve(self, now: float, seconds: float) -> float:
        """When the server has executed a statement that arrives now."""
        end = max(now, heapq.heappop(self._cores)) + seconds
        heapq.heappush(self._cores, end)
        self._busy += seconds
        self._statements += 1
        return end

    def _beat(self, now: float, process: int, _: float) -> None:
        costs = self._costs
        busy = self._running[process] > 0
        self._serve(now, costs.busy_seconds if busy else costs.idle_seconds)
        self._at(now + 1 / (costs.busy_rate if busy else costs.idle_rate), "beat", process)

    def _enqueue(self, now: float, _: int, __: float) -> None:
        self._at(self._serve(now, self._costs.job_seconds / STATEMENTS_OF_JOB), "wake", since=now)
        self._at(now + self._random.expovariate(self._fleet.rate), "enqueue")

    def _wake(self, now: float, _: int, since: float) -> None:
        if self._free:
            self._claim(now, self._random.choice(self._free), since)
        else:
            self._backlog.append(since)

    def _claim(self, now: float, process: int, since: float) -> None:
        self._running[process] += 1
        if self._running[process] == self._fleet.slots:
            self._fill(process)
        self._at(self._serve(now, self._costs.job_seconds / STATEMENTS_OF_JOB), "start", process, since)

    def _start(self, now: float, process: int, since: float) -> None:
        self._waits.append(now - since)
        self._at(now + self._fleet.duration, "settle", process)

    def _settle(self, now: float, process: int, _: float) -> None:
        self._at(self._serve(now, self._costs.job_seconds / STATEMENTS_OF_JOB), "release", process)

    def _release(self, now: float, process: int, _: float) -> None:
        self._running[process] -= 1
        if self._position[process] == -1:
            self._position[process] = len(self._free)
            self._free.append(process)
        if self._backlog:
            self._claim(now, process, self._backlog.popleft())

    def _fill(self, process: int) -> None:
        """It has no free slot any more: the last of `_free` gets its position."""
        position, last = self._position[process], self._free.pop()
        if last != process:
            self._free[position], self._position[last] = last, position
        self._position[process] = -1
