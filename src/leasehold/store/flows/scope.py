"""What a claim asks for, and what it brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ...core.job import Claimed
from ..query import Row, as_json
from . import rows

#: From the smallest (rank, seq) to beyond the largest: all of a queue.
EVERYTHING = ((-101, 0, 101, 0),)

#: How far a job is trusted, by the workers that it has lost: none, one, or so many that it must run alone.
SOUND, SUSPECT, LONELY = 0, 1, 2


class Scope(Struct, frozen=True):
    """How many jobs of a queue are wanted, and which ranges of (rank, seq) to look through for them."""

    queue: str
    want: int
    ranges: tuple[tuple[int, int, int, int], ...] = EVERYTHING

    def row(self, place: int) -> dict[str, Any]:
        """What `claim` sends of it."""
        names = ("low_rank", "low_seq", "high_rank", "high_seq")
        ranges = [dict(zip(names, one, strict=True)) for one in self.ranges]
        return {"place": place, "queue": self.queue, "want": self.want, "ranges": ranges}


def places(scopes: Sequence[Scope]) -> str:
    """Scopes as `claim` wants them."""
    return as_json([scope.row(place) for place, scope in enumerate(scopes)])


class Claim(Struct, frozen=True):
    """What a claim brought. `suspects` and `lonely` tell that jobs of these kinds were waiting as well.

    `again_in`: a rate is used up, and in so many seconds there will be room again. `limited`: some are of queues with
    limits, from which no more are taken than can start at once.
    """

    jobs: list[Claimed]
    suspects: bool = False
    lonely: bool = False
    again_in: float | None = None
    limited: bool = False

    def __add__(self, other: Claim) -> Claim:
        soon = [one.again_in for one in (self, other) if one.again_in is not None]
        suspects, lonely = self.suspects or other.suspects, self.lonely or other.lonely
        limited = self.limited or other.limited
        return Claim(self.jobs + other.jobs, suspects, lonely, min(soon, default=None), limited)


def claim_of(answer: list[Row], token: str) -> tuple[Claim, frozenset[str]]:
    """Claimed jobs, in no order, and the queues that have limits, from the rows of `claim`."""
    jobs = [rows.claimed(row[2:], token) for row in answer if row[2] is not None]
    waiting = answer[0][0] or 0
    return Claim(jobs, bool(waiting & SUSPECT), bool(waiting & LONELY)), rows.names(answer[0][1])
