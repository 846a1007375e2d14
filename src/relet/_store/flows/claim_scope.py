"""What a claim asks for, and what it brings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct

from ..._core.job import Claimed
from ..query import Flow, read, read_only
from . import mapping

#: From the smallest (rank, seq) to beyond the largest: all of a queue.
EVERYTHING = ((-101, 0, 101, 0),)

#: How far a job is trusted, by the workers that it has lost: none, one, or so many that it must run alone.
HEALTHY, SUSPECT, QUARANTINED = 0, 1, 2


class Scope(Struct, frozen=True):
    """How many jobs of a queue are wanted, and which ranges of (rank, seq) to look through for them.

    `by_task`: jobs of unknown tasks stand in the queue, which are not to be walked over.
    """

    queue: str
    want: int
    ranges: tuple[tuple[int, int, int, int], ...] = EVERYTHING
    by_task: bool = False


def places(scopes: Sequence[Scope]) -> dict[str, list[Any]]:
    """Scopes as `claim` takes them: the queues in order, their ranges, and which of these are whose, from 1 on."""
    low_ranks, low_seqs, high_ranks, high_seqs = (
        list(column) for column in zip(*[one for scope in scopes for one in scope.ranges], strict=True)
    )
    lasts = list(accumulate(len(scope.ranges) for scope in scopes))
    return {
        "queues": [scope.queue for scope in scopes],
        "wants": [scope.want for scope in scopes],
        "firsts": [last - len(scope.ranges) + 1 for last, scope in zip(lasts, scopes, strict=True)],
        "lasts": lasts,
        "low_ranks": low_ranks,
        "low_seqs": low_seqs,
        "high_ranks": high_ranks,
        "high_seqs": high_seqs,
    }


class QueueFlags(Struct, frozen=True):
    """What waits in queues besides healthy jobs: suspects, jobs that must run alone; and which queues have limits."""

    suspects: bool = False
    quarantined: bool = False
    limited: frozenset[str] = frozenset()


@read_only
def flags(queues: Sequence[str], tasks: Iterable[str]) -> Flow[QueueFlags]:
    """Look for them. Apart from the claim: while a backlog lasts, that is needed only now and then."""
    ((kinds, limited),) = yield read("claim/queue_flags", queues=list(queues), tasks=list(tasks))
    return QueueFlags(bool(kinds & SUSPECT), bool(kinds & QUARANTINED), mapping.names(limited))


class Claim(Struct, frozen=True):
    """What a claim brought.

    `flags`: what waits besides; None if the claim did not look. `again_in`: a rate is used up, and in so many seconds
    there will be room again. `limited`: some are of queues with limits, from which no more are taken than can start at
    once.
    """

    jobs: list[Claimed]
    flags: QueueFlags | None = None
    again_in: float | None = None
    limited: bool = False

    def __add__(self, other: Claim) -> Claim:
        soon = [one.again_in for one in (self, other) if one.again_in is not None]
        limited = self.limited or other.limited
        return Claim(self.jobs + other.jobs, self.flags or other.flags, min(soon, default=None), limited)
