"""The claim cursor: where a worker starts to look, so that it need not walk over what has long been consumed.

A snapshot held open anywhere in the server keeps the index entries of finished jobs alive, and a claim that starts at
the head of its queue walks over all of them. So each worker remembers how far it has consumed a queue at each rank, and
starts there. Only when it helps: as long as looking through everything is quick, everything is looked through. The mark
lags behind, because transactions commit out of order.

What came late, or came back, stands behind the mark. It is hidden for a second at most: then everything is looked
through all the same, whatever earlier looks have cost. That bounds what the cursor can save. With a look through
everything that takes c seconds, a worker spends c of every second on it; from half a second on, it rests for as long as
the look took, a second at most, which is half of the time at c = 1 and c / (1 + c) beyond. The claims in between stay
quick. When a job of this worker goes back to its place, the next look follows after that rest.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from msgspec import Struct, field

from .._core.job import Claimed
from .._store.flows.claim_scope import EVERYTHING, Scope

SLOW = 0.006  # seconds beyond what a claim costs anyway
PER_JOB = 0.00003
LAG = 1.0
HIDDEN_FOR = 1.0  # at most


class _Queue(Struct):
    marks: dict[int, int] = field(default_factory=dict)  # rank -> seq up to which all is consumed
    recent: deque[tuple[float, int, int]] = field(default_factory=deque)  # (when, rank, seq) not yet old enough
    doubtful: bool = False  # the last look through everything was slow; it may have waited for a lock
    slow: bool = False  # two of them were, one after the other
    begun: float = -math.inf  # when the last look through everything began
    rested: float = -math.inf  # from when on the next one may follow, if there is reason to
    due: float = -math.inf  # from when on it must
    whole: bool = True  # the claim under way looks through everything
    sent: float = -math.inf  # when the claim under way began


class ClaimCursor:
    """What one worker remembers of the queues that it claims from. Times are monotonic and given."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._usual = 1.0  # the least that a claim has cost
        self._came_back = -math.inf  # when a job was last known to go back to its place

    def forget(self, queue: str) -> None:
        """Nothing is queued there."""
        self._queues.pop(queue, None)

    def scope(self, queue: str, want: int, now: float, *, by_task: bool = False) -> Scope:
        """Where to look for jobs of a queue."""
        memory = self._queues.setdefault(queue, _Queue())
        while memory.recent and memory.recent[0][0] <= now - LAG:
            _, rank, seq = memory.recent.popleft()
            memory.marks[rank] = max(seq, memory.marks.get(rank, 0))
        memory.sent = now
        memory.whole = not memory.slow or not memory.marks or now >= self._next_whole_look(memory)
        return Scope(queue, want, EVERYTHING if memory.whole else _ranges(memory.marks), by_task)

    def seen(self, queues: Sequence[str], jobs: Sequence[Claimed], elapsed: float | None, now: float) -> bool:
        """What a claim from these queues brought, and how long it took; None if that says nothing, as the store was
        away. True if it took long."""
        places: dict[str, list[tuple[int, int]]] = {queue: [] for queue in queues}
        for job in jobs:
            places[job.queue].append(job.rank_and_seq)
        for queue, found in places.items():
            self._seen_in(queue, found, elapsed, now)
        return any(self._queues[queue].doubtful for queue in queues)

    def _seen_in(self, queue: str, places: list[tuple[int, int]], elapsed: float | None, now: float) -> None:
        memory = self._queues[queue]
        came_back = bool(memory.marks) and any(seq <= memory.marks.get(rank, 0) for rank, seq in places)
        furthest = dict(sorted(places))  # of each rank the last
        memory.recent.extend((now, rank, seq) for rank, seq in furthest.items())
        if memory.whole and elapsed is not None:
            self._usual = min(self._usual, elapsed)
            doubtful, memory.doubtful = memory.doubtful, elapsed > self._usual + SLOW + PER_JOB * len(places)
            memory.slow = doubtful and memory.doubtful
            memory.begun = memory.sent
            memory.rested = now + min(now - memory.begun, HIDDEN_FOR)
            memory.due = max(memory.begun + HIDDEN_FOR, memory.rested)
            if came_back:
                memory.rested = memory.due = now  # where one was, there may be others

    def look_again(self, now: float) -> bool:
        """A job has gone back to its place. True if the next claim might have passed it over. From any thread."""
        self._came_back = now
        return any(memory.slow for memory in list(self._queues.values()))

    def hides_for(self, now: float) -> float:
        """In how many seconds there is something to look through again; infinity if nothing is hidden."""
        hiding = [memory for memory in self._queues.values() if memory.slow and (memory.marks or memory.recent)]
        return min((self._next_whole_look(memory) for memory in hiding), default=math.inf) - now

    def _next_whole_look(self, memory: _Queue) -> float:
        return memory.rested if self._came_back >= memory.begun else memory.due


def _ranges(marks: dict[int, int]) -> tuple[tuple[int, int, int, int], ...]:
    """All of a queue but what lies, at each rank, before its mark."""
    (low_rank, low_seq, end_rank, end_seq), ranges = EVERYTHING[0], []
    for rank, seq in sorted(marks.items()):
        ranges.append((low_rank, low_seq, rank, 0))
        low_rank, low_seq = rank, seq
    return (*ranges, (low_rank, low_seq, end_rank, end_seq))
