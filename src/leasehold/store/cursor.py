"""The claim cursor: where a worker starts to look, so that it need not walk over what has long been consumed.

A snapshot held open anywhere in the server keeps the index entries of finished jobs alive, and a claim that starts at
the head of its queue walks over all of them. So each worker remembers how far it has consumed a queue at each rank, and
starts there. Only when it helps: as long as looking through everything is quick, everything is looked through. The mark
lags behind, because transactions commit out of order; and once in a while, for a tenth of the time at most, everything
is looked through all the same, to find what came late or came back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..core.job import Claimed
from .flows.lease import EVERYTHING, Scope

SLOW = 0.006  # seconds beyond what a claim costs anyway
PER_JOB = 0.00003
LAG = 1.0
RESCAN_EVERY = 1.0
RESCAN_SHARE = 0.1


@dataclass(slots=True)
class _Queue:
    marks: dict[int, int] = field(default_factory=dict)  # rank -> seq up to which all is consumed
    recent: deque[tuple[float, int, int]] = field(default_factory=deque)  # (when, rank, seq) not yet old enough
    doubtful: bool = False  # the last look through everything was slow; it may have waited for a lock
    slow: bool = False  # two of them were, one after the other
    next_rescan: float = 0.0
    whole: bool = True  # the claim under way looks through everything


class ClaimCursor:
    """What one worker remembers of the queues that it claims from. Times are monotonic and given."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._usual = 1.0  # the least that a claim has cost

    def scope(self, queue: str, want: int, now: float) -> Scope:
        """Where to look for jobs of a queue."""
        memory = self._queues.setdefault(queue, _Queue())
        while memory.recent and memory.recent[0][0] <= now - LAG:
            _, rank, seq = memory.recent.popleft()
            memory.marks[rank] = max(seq, memory.marks.get(rank, 0))
        memory.whole = not memory.slow or not memory.marks or now >= memory.next_rescan
        return Scope(queue, want, EVERYTHING if memory.whole else _ranges(memory.marks))

    def seen(self, queue: str, jobs: Sequence[Claimed], elapsed: float | None, now: float) -> None:
        """What a claim brought, and how long it took; None if that says nothing, as the store was away."""
        memory = self._queues[queue]
        came_back = any(seq <= memory.marks.get(rank, 0) for rank, seq in (job.rank_and_seq for job in jobs))
        furthest: dict[int, int] = {}
        for job in jobs:
            rank, seq = job.rank_and_seq
            furthest[rank] = max(seq, furthest.get(rank, 0))
        memory.recent.extend((now, rank, seq) for rank, seq in furthest.items())
        if memory.whole and elapsed is not None:
            self._usual = min(self._usual, elapsed)
            doubtful, memory.doubtful = memory.doubtful, elapsed > self._usual + SLOW + PER_JOB * len(jobs)
            memory.slow = doubtful and memory.doubtful
            memory.next_rescan = now + max(RESCAN_EVERY, elapsed / RESCAN_SHARE)
            if came_back:
                memory.next_rescan = now  # where one was, there may be others


def _ranges(marks: dict[int, int]) -> tuple[tuple[int, int, int, int], ...]:
    """All of a queue but what lies, at each rank, before its mark."""
    (low_rank, low_seq, end_rank, end_seq), ranges = EVERYTHING[0], []
    for rank, seq in sorted(marks.items()):
        ranges.append((low_rank, low_seq, rank, 0))
        low_rank, low_seq = rank, seq
    return (*ranges, (low_rank, low_seq, end_rank, end_seq))
