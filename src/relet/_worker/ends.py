"""The last ends of attempts that the store has acknowledged to this worker.

A failover to an asynchronous standby may undo them. Then the jobs run again, and only this worker knows that they have
run: it compares what it remembers with the database after it has lost a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from .._core.job import Lease
from .execution import Execution

REMEMBERED = 5000  # ends: about 2 MB
BEFORE_LOSS = 60.0  # seconds: how far a standby may have been behind


class End(NamedTuple):
    """An attempt that has ended. `at`: when, on the monotonic clock."""

    lease: Lease
    version: int
    attempt: int
    task: str
    queue: str
    at: float


class Ends:
    """Ends by lease, the oldest first. Not locked: dict operations are atomic under the GIL."""

    def __init__(self) -> None:
        self._ends: dict[Lease, End] = {}
        self._lost_at: float | None = None

    def add(self, executions: Sequence[Execution], now: float) -> None:
        """Called for every batch of attempts that was settled."""
        ends = self._ends
        for one in executions:
            job = one.job
            ends[one.lease] = End(one.lease, job.version, job.attempt, job.task, job.queue, now)
        while len(ends) > REMEMBERED:
            del ends[next(iter(ends))]

    def lost_connection(self, now: float) -> None:
        """Another server may answer from now on. Kept for a session that is opened later."""
        if self._lost_at is None:
            self._lost_at = now

    def take_loss(self) -> float | None:
        """When a connection was lost first, if one was since the last call."""
        lost_at, self._lost_at = self._lost_at, None
        return lost_at

    def since(self, moment: float) -> list[End]:
        """Those since BEFORE_LOSS seconds before this moment."""
        return [end for end in list(self._ends.values()) if end.at >= moment - BEFORE_LOSS]

    def among(self, leases: Iterable[Lease]) -> list[End]:
        """Those of these leases."""
        found = [self._ends.get(lease) for lease in leases]
        return [end for end in found if end is not None]

    def forget(self, ends: Iterable[End]) -> None:
        """An end that was reported is not reported again."""
        for end in ends:
            self._ends.pop(end.lease, None)


def in_batches(ends: Sequence[End], size: int = 1000) -> Iterable[list[End]]:
    """Ends in batches of bounded size: one query for each."""
    rest = iter(ends)
    while batch := list(islice(rest, size)):
        yield batch
