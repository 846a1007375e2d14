"""The invariant of the order of claims. As in `check`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from itertools import groupby

from . import facts
from .jobs import Jobs, Violation
from .load import Record

RESCANNED_WITHIN = 2.0  # seconds, of which one is for the statements
Position = tuple[int, int, str]  # rank, sequence, job


class _Queue:
    """The jobs of one queue that wait for a claim, but those of some tasks. `overlooked`: for how many seconds claims
    may leave the first one."""

    def __init__(self, without: Collection[str] = (), overlooked: float = 0.0) -> None:
        self._without, self._overlooked = without, overlooked
        self._left_since: dict[Position, float] = {}
        self._positions: dict[str, Position] = {}
        self._heap: list[Position] = []  # has also jobs that do not wait any more

    def change(self, one: Record) -> None:
        """A job that lost an attempt is claimed in another order, and does not count."""
        self._positions.pop(one.job, None)
        row = one.after
        if row and row["state"] == "queued" and row["queue"] == facts.ORDERED and not row["losses"]:
            if row["task"] in self._without:
                return
            self._positions[one.job] = row["rank"], row["seq"], one.job
            heappush(self._heap, self._positions[one.job])

    def claim(self, records: list[Record]) -> Position | None:
        """Remove the jobs of a claim. Returns one that was before the last of them, and that claims left too long."""
        found = [self._positions.pop(one.job) for one in records if one.job in self._positions]
        while self._heap and self._positions.get(self._heap[0][2]) != self._heap[0]:
            heappop(self._heap)
        if not found or not self._heap or self._heap[0] > max(found):
            return None
        now, left = records[0].moment or 0.0, self._heap[0]
        return left if now - self._left_since.setdefault(left, now) >= self._overlooked else None


def claims_follow_the_order(jobs: Jobs) -> Iterator[Violation]:
    """FF: on SQLite, a claim takes the first jobs of a queue. On PostgreSQL, it skips those that are locked or not yet
    committed, and its cursor may have passed a job that was committed late: it scans the whole queue every second.

    Workers behind a gateway do not know the tasks that need a database.
    """
    is_sqlite = jobs.loaded.settings.is_sqlite
    if not is_sqlite and not jobs.loaded.is_virtual:
        return  # faults lock rows for longer
    overlooked = 0.0 if is_sqlite else RESCANNED_WITHIN
    queue, of_remote = _Queue(overlooked=overlooked), _Queue(facts.NEED_DATABASE, overlooked)
    changes = (one for one in jobs.loaded.records if one.table == "jobs")
    for token, group in groupby(changes, key=_token):
        records = list(group)
        if token is None:
            for one in records:
                queue.change(one)
                of_remote.change(one)
            continue
        left, left_by_remote = queue.claim(records), of_remote.claim(records)
        if facts.REMOTE in records[0].after["worker"]:
            left = left_by_remote
        if left:
            yield Violation("FF", left[2], f"later jobs were claimed before it, record {records[0].seq}")


def _token(one: Record) -> str | None:
    """The token of the claim that made this change; None if no claim did."""
    is_claim = one.after.get("state") == "running" and one.before.get("state") == "queued"
    return one.after["token"] if is_claim else None
