"""Statistics: how many attempts ended in which way, and histograms of durations."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime

from msgspec import Struct, field

#: Upper bounds of the classes of a histogram, in seconds. One more class counts everything above the last.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)

#: The resolutions: the length of a step in seconds, and for how many seconds steps of that length are kept.
STEPS = {60: 3 * 3600.0, 600: 3 * 86400.0, 3600: 8 * 86400.0, 21600: 400 * 86400.0}

MAX_POINTS = 180


class Histogram(Struct, frozen=True):
    """The number of durations in each class: at most its bound in `BOUNDS`, above the one before."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total: float = 0.0  # sum of all durations, in seconds

    @property
    def number(self) -> int:
        """The number of durations."""
        return sum(self.counts)

    def quantile(self, q: float) -> float | None:
        """The quantile `q`, from 0 to 1, interpolated within its class; None if there are no durations."""
        rank, below = q * self.number, 0
        if not self.number:
            return None
        for index, count in enumerate(self.counts):
            if count and below + count >= rank:
                low = BOUNDS[index - 1] if index else 0.0
                high = BOUNDS[index] if index < len(BOUNDS) else BOUNDS[-1]
                return low + (high - low) * (rank - below) / count
            below += count
        return BOUNDS[-1]

    def __add__(self, other: Histogram) -> Histogram:
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(counts, self.total + other.total)


def class_of(seconds: float) -> int:
    """The index of the class that counts a duration."""
    return bisect_left(BOUNDS, seconds)


class StatPoint(Struct, frozen=True):
    """The figures of a queue for one step, which begins at `at`.

    `counts`: ended attempts by outcome. `gauges`: the highest sampled number of jobs in each state, and for how many
    seconds the longest queued job had been due ("oldest").
    """

    at: datetime
    step: float
    queue: str
    counts: dict[str, int] = field(default_factory=dict)
    waits: Histogram = Histogram()  # from due to started
    starts: Histogram = Histogram()  # from claimed to started
    runs: Histogram = Histogram()  # durations of handlers
    gauges: dict[str, float] = field(default_factory=dict)


class StatPage(Struct, frozen=True):
    """The points of some queues, by time and queue. Pass `cursor` to the next call; None: this is the last page."""

    points: list[StatPoint]
    cursor: str | None


def step_for(since: float, until: float, now: float) -> int:
    """The shortest step that is still kept for the whole period and gives at most `MAX_POINTS` points."""
    for step, kept in STEPS.items():
        if since >= now - kept and (until - since) / step <= MAX_POINTS:
            return step
    return max(STEPS)
