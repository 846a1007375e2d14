"""The claim cursor: the position in a queue at which a worker's next claim starts.

An old snapshot that is open anywhere in the server keeps the index entries of finished jobs alive. A claim that scans a
queue from its head reads all of them. So each worker remembers, for each queue and rank, up to which `seq` it has
claimed all jobs. This is the mark, and a claim starts there. The worker uses marks only while full scans, from the
head, are slow. A mark lags one second behind the latest claim, because transactions commit out of order.

A job that was committed late, or that went back to its queue, may be before the mark. Claims from the mark miss it, but
for at most a second: then the worker makes a full scan, whatever earlier ones have cost. This limits how much time the
cursor can save. If a full scan takes c seconds, the worker spends c of every second on it. From half a second on, the
worker waits after a full scan for as long as the scan took, but at most a second: it spends half of its time on full
scans at c = 1, and c / (1 + c) beyond. The claims in between stay quick. When a job of this worker goes back to its
queue, the next full scan begins right after that wait.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from msgspec import Struct, field

from .._core.job import Claimed
from .._store.flows.claim_scope import EVERYTHING, Scope

SLOW = 0.006  # a full scan is slow if it takes this many seconds longer than the fastest claim
PER_JOB = 0.00003  # seconds more for each job that it claims
LAG = 1.0
HIDDEN_FOR = 1.0  # at most


class _Queue(Struct):
    marks: dict[int, int] = field(default_factory=dict)  # rank -> seq up to which all jobs are claimed
    recent: deque[tuple[float, int, int]] = field(default_factory=deque)  # (when, rank, seq) not old enough for a mark
    last_was_slow: bool = False  # the last full scan was slow; it may have waited for a lock
    slow: bool = False  # the last two full scans were slow, so claims start at the marks
    scan_began: float = -math.inf  # when the last full scan began
    may_scan_at: float = -math.inf  # the next full scan may begin then, if a job went back to its queue
    must_scan_at: float = -math.inf  # it must begin then in any case
    is_full_scan: bool = True  # the claim under way is a full scan
    sent_at: float = -math.inf  # when the claim under way began


class ClaimCursor:
    """The marks of one worker, by queue. Callers pass the time, from the monotonic clock."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._fastest = 1.0  # seconds that the fastest claim took
        self._requeued_at = -math.inf  # when a job of this worker last went back to its queue

    def forget(self, queue: str) -> None:
        self._queues.pop(queue, None)

    def scope(self, queue: str, want: int, now: float, *, by_task: bool = False) -> Scope:
        """The parts of the queue that the claim about to be sent scans."""
        memory = self._queues.setdefault(queue, _Queue())
        while memory.recent and memory.recent[0][0] <= now - LAG:
            _, rank, seq = memory.recent.popleft()
            memory.marks[rank] = max(seq, memory.marks.get(rank, 0))
        memory.sent_at = now
        memory.is_full_scan = not memory.slow or not memory.marks or now >= self._next_full_scan(memory)
        return Scope(queue, want, EVERYTHING if memory.is_full_scan else _ranges(memory.marks), by_task)

    def record_claim(self, queues: Sequence[str], jobs: Sequence[Claimed], elapsed: float | None, now: float) -> bool:
        """Record the jobs that a claim from these queues returned. True if its last full scan of one was slow.

        `elapsed`: seconds that the claim took; None if it was retried after an error, so that they mean nothing.
        """
        positions: dict[str, list[tuple[int, int]]] = {queue: [] for queue in queues}
        for job in jobs:
            positions.setdefault(job.queue, []).append(job.rank_and_seq)  # a gateway may know more queues
        for queue, claimed in positions.items():
            self._record(queue, claimed, elapsed, now)
        return any(self._queues[queue].last_was_slow for queue in queues)

    def _record(self, queue: str, positions: list[tuple[int, int]], elapsed: float | None, now: float) -> None:
        memory = self._queues.setdefault(queue, _Queue())
        was_hidden = bool(memory.marks) and any(seq <= memory.marks.get(rank, 0) for rank, seq in positions)
        furthest = dict(sorted(positions))  # the last seq of each rank
        memory.recent.extend((now, rank, seq) for rank, seq in furthest.items())
        if memory.is_full_scan and elapsed is not None:
            self._fastest = min(self._fastest, elapsed)
            is_slow = elapsed > self._fastest + SLOW + PER_JOB * len(positions)
            memory.slow, memory.last_was_slow = memory.last_was_slow and is_slow, is_slow
            memory.scan_began = memory.sent_at
            memory.may_scan_at = now + min(now - memory.scan_began, HIDDEN_FOR)
            memory.must_scan_at = max(memory.scan_began + HIDDEN_FOR, memory.may_scan_at)
            if was_hidden:
                memory.may_scan_at = memory.must_scan_at = now  # there may be more before the mark

    def job_requeued(self, now: float) -> bool:
        """A job of this worker went back to its queue. True if the next claim might miss it. From any thread."""
        self._requeued_at = now
        return any(memory.slow for memory in list(self._queues.values()))

    def next_full_scan_in(self, now: float) -> float:
        """Seconds until the next full scan; infinity while every claim is one."""
        hiding = [memory for memory in self._queues.values() if memory.slow and (memory.marks or memory.recent)]
        return min((self._next_full_scan(memory) for memory in hiding), default=math.inf) - now

    def _next_full_scan(self, memory: _Queue) -> float:
        return memory.may_scan_at if self._requeued_at >= memory.scan_began else memory.must_scan_at


def _ranges(marks: dict[int, int]) -> tuple[tuple[int, int, int, int], ...]:
    """The whole queue, without what is before the mark of each rank."""
    (low_rank, low_seq, end_rank, end_seq), ranges = EVERYTHING[0], []
    for rank, seq in sorted(marks.items()):
        ranges.append((low_rank, low_seq, rank, 0))
        low_rank, low_seq = rank, seq
    return (*ranges, (low_rank, low_seq, end_rank, end_seq))
