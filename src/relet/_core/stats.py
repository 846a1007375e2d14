"""What happened, counted: how many attempts came to what, and how long things took."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime

from msgspec import Struct, field

#: Upper bounds of the classes that durations are counted in, in seconds; one more class is beyond them.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)

#: Lengths of the steps that are kept, in seconds, and for how long what is counted in each of them is.
STEPS = {60: 3 * 3600.0, 600: 3 * 86400.0, 3600: 8 * 86400.0, 21600: 400 * 86400.0}

MOST_POINTS = 180


class Histogram(Struct, frozen=True):
    """Durations by class: how many were not longer than each of `BOUNDS` but longer than the one before."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total: float = 0.0  # seconds, all together

    @property
    def number(self) -> int:
        """How many durations."""
        return sum(self.counts)

    def quantile(self, q: float) -> float | None:
        """How long the fastest part `q` took at the most, as near as the classes tell; None if there is nothing."""
        rank, below = q * self.number, 0
        if not self.number:
            return None
        for place, count in enumerate(self.counts):
            if count and below + count >= rank:
                low = BOUNDS[place - 1] if place else 0.0
                high = BOUNDS[place] if place < len(BOUNDS) else BOUNDS[-1]
                return low + (high - low) * (rank - below) / count
            below += count
        return BOUNDS[-1]

    def __add__(self, other: Histogram) -> Histogram:
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(counts, self.total + other.total)


def class_of(seconds: float) -> int:
    """The class that a duration is counted in."""
    return bisect_left(BOUNDS, seconds)


class StatPoint(Struct, frozen=True):
    """What was counted for a queue within a step, which begins at `at`.

    `counts`: attempts that have ended, by what came of them. `gauges`: the greatest number of jobs in each state that
    was seen, and for how many seconds the longest queued one had been due ("oldest").
    """

    at: datetime
    step: float
    queue: str
    counts: dict[str, int] = field(default_factory=dict)
    waits: Histogram = Histogram()  # from due to started
    starts: Histogram = Histogram()  # from claimed to started
    runs: Histogram = Histogram()  # how long handlers took
    gauges: dict[str, float] = field(default_factory=dict)


def step_for(since: float, until: float, now: float) -> int:
    """The shortest step in which all of a time is still counted, and gives no more points than eyes take in."""
    for step, kept in STEPS.items():
        if since >= now - kept and (until - since) / step <= MOST_POINTS:
            return step
    return max(STEPS)
