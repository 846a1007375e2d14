"""The request of a claim, and its result."""

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

#: How far a job is trusted, by the number of workers that died while they ran it. A quarantined job must run alone.
HEALTHY, SUSPECT, QUARANTINED = 0, 1, 2


class Scope(Struct, frozen=True):
    """How many jobs of a queue to claim, and the ranges of (rank, seq) to search for them.

    `by_task`: the queue has jobs of tasks that the worker does not know; search by task, so as not to read those.
    """

    queue: str
    want: int
    ranges: tuple[tuple[int, int, int, int], ...] = EVERYTHING
    by_task: bool = False


def scope_columns(scopes: Sequence[Scope]) -> dict[str, list[Any]]:
    """Scopes as the parameters of `claim`: the queues in order, their ranges, and the first and last range of each
    queue, counted from 1."""
    ranges = [one for scope in scopes for one in scope.ranges]
    low_ranks, low_seqs, high_ranks, high_seqs = map(list, zip(*ranges, strict=True))
    queues = [scope.queue for scope in scopes]
    wants = [scope.want for scope in scopes]
    lasts = list(accumulate(len(scope.ranges) for scope in scopes))
    firsts = [last - len(scope.ranges) + 1 for last, scope in zip(lasts, scopes, strict=True)]
    return {
        "queues": queues,
        "wants": wants,
        "firsts": firsts,
        "lasts": lasts,
        "low_ranks": low_ranks,
        "low_seqs": low_seqs,
        "high_ranks": high_ranks,
        "high_seqs": high_seqs,
    }


class QueueFlags(Struct, frozen=True):
    """Whether suspects and quarantined jobs are queued, which queues have limits, and whether workers sleep."""

    suspects: bool = False
    quarantined: bool = False
    limited: frozenset[str] = frozenset()
    sleeping: bool = False


@read_only
def flags(queues: Sequence[str], tasks: Iterable[str]) -> Flow[QueueFlags]:
    """Read the flags of these queues. Not part of every claim: during a backlog they are needed only now and then."""
    ((kinds, limited, sleeping),) = yield read("claim/queue_flags", queues=list(queues), tasks=list(tasks))
    return QueueFlags(bool(kinds & SUSPECT), bool(kinds & QUARANTINED), mapping.names(limited), bool(sleeping))


class Claim(Struct, frozen=True):
    """The result of a claim.

    `flags`: None if the claim did not read them. `again_in`: a rate is used up, and has room again in
    so many seconds; 0: the claim ended before it had read all groups.
    `limited`: some jobs are from queues with limits, from which no more are taken than can start at once. `waited`:
    seconds that a gateway waited for jobs before it claimed these.
    """

    jobs: list[Claimed]
    flags: QueueFlags | None = None
    again_in: float | None = None
    limited: bool = False
    waited: float = 0.0

    def __add__(self, other: Claim) -> Claim:
        soon = [one.again_in for one in (self, other) if one.again_in is not None]
        limited = self.limited or other.limited
        flags = self.flags or other.flags
        return Claim(self.jobs + other.jobs, flags, min(soon, default=None), limited, self.waited)
