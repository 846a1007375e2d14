"""Statistics over time, resampled to even steps, and the charts of the overview."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from markupsafe import Markup

from ..._core.job import AttemptOutcome
from ..._core.stats import Histogram, StatPoint
from .charts import Chart, Series, draw
from .formatting import duration, number, short_number
from .page import PageContext


@dataclass(frozen=True)
class Range:
    """A time range of the charts."""

    key: str
    words: str
    seconds: float
    step: float  # seconds; a multiple of a stored step


RANGES = (
    Range("1h", "hour", 3600, 60),
    Range("24h", "day", 86400, 1200),
    Range("7d", "week", 7 * 86400, 7200),
    Range("30d", "month", 30 * 86400, 12 * 3600),
)
WAITING = ("queued", "pending", "running")


@dataclass
class Step:
    """Statistics of one step, summed over queues."""

    start: float
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    waits: Histogram | None = None
    runs: Histogram | None = None
    gauges: dict[tuple[str, str], float] = field(default_factory=dict)  # by queue and name

    def add(self, point: StatPoint) -> None:
        """Add a point that lies in this step."""
        for name, value in point.counts.items():
            self.counts[name] += value
        self.waits = _sum(self.waits, point.waits)
        self.runs = _sum(self.runs, point.runs)
        for name, gauge in point.gauges.items():
            key = (point.queue, name)
            self.gauges[key] = max(self.gauges.get(key, 0.0), gauge)

    def gauge(self, name: str) -> float | None:
        """A gauge summed over all queues; None if it was not sampled."""
        known = [value for (_, which), value in self.gauges.items() if which == name]
        return sum(known) if known else None

    @property
    def ended(self) -> int:
        """The number of attempts that ended."""
        return sum(self.counts.values())


def range_of(key: str | None) -> Range:
    """The range of this key; an hour for an unknown key."""
    return next((one for one in RANGES if one.key == key), RANGES[0])


def steps(points: Iterable[StatPoint], which: Range, now: datetime) -> list[Step]:
    """Every step of the range, including empty ones."""
    end = math.floor(now.timestamp() / which.step + 1) * which.step
    number_of = round(which.seconds / which.step)
    start = end - number_of * which.step
    found = [Step(start + index * which.step) for index in range(number_of)]
    for point in points:
        index = math.floor((point.at.timestamp() - start) / which.step)
        if 0 <= index < number_of:
            found[index].add(point)
    return found


@dataclass(frozen=True)
class Figure:
    """A chart with its title and legend, and its numbers as a table."""

    title: str
    note: str
    legend: Sequence[tuple[str, str]]
    drawing: Markup
    head: Sequence[str]
    rows: Sequence[tuple[datetime, Sequence[str]]]


@dataclass(frozen=True)
class History:
    """The charts of a time range, and whether it has any data."""

    figures: Sequence[Figure]
    succeeded: int
    anything: bool


def history(view: PageContext, which: Range, queue: str = "*") -> History:
    """Read the statistics of a range and draw its charts, of one queue or of all together."""
    since = view.now - timedelta(seconds=which.seconds)
    found = steps(view.client.stats(since=since, queue=queue), which, view.now)
    succeeded = sum(step.counts.get("succeeded", 0) for step in found)
    return History(draw_all(found, which), succeeded, any(step.ended or step.gauges for step in found))


def draw_all(found: Sequence[Step], which: Range) -> list[Figure]:
    """The four charts of the overview."""
    return [_throughput(found, which), _backlog(found, which), _waits(found, which), _runs(found, which)]


def _throughput(found: Sequence[Step], which: Range) -> Figure:
    kinds = {"lost": "failed", "snoozed": "pending", "released": "pending"}
    series = []
    for name in AttemptOutcome:
        counts = [float(step.counts.get(name, 0)) for step in found]
        if name.is_common or any(counts):
            series.append(Series(name, counts, kinds.get(name, name)))
    # Lost attempts have the colour of failed ones: one colour less to learn, and the table separates them.
    legend = [("succeeded", "succeeded"), ("failed or lost", "failed"), ("retried", "retried")]
    total = sum(step.ended for step in found)
    per = f"{duration(which.step)} each"
    note = f"{number(total)} attempts ended, {per}"
    return _figure("Throughput", note, legend, found, which, series, short_number)


def _backlog(found: Sequence[Step], which: Range) -> Figure:
    series, legend = [], []
    for name in WAITING:
        series.append(Series(name, [step.gauge(name) for step in found], name))
        legend.append((name, name))
    last = next((step.gauge("queued") for step in reversed(found) if step.gauge("queued") is not None), None)
    note = "unfinished jobs" if last is None else f"unfinished jobs; {number(last)} queued at last"
    return _figure("Backlog", note, legend, found, which, series, short_number)


def _waits(found: Sequence[Step], which: Range) -> Figure:
    return _quantiles("Waiting time", "from due to started", found, which, [step.waits for step in found])


def _runs(found: Sequence[Step], which: Range) -> Figure:
    return _quantiles("Run time", "how long handlers took", found, which, [step.runs for step in found])


def _quantiles(
    title: str, note: str, found: Sequence[Step], which: Range, all_of: Sequence[Histogram | None]
) -> Figure:
    usual = Series("p50", [one.quantile(0.5) if one else None for one in all_of], "usual", line=True)
    slow = Series("p95", [one.quantile(0.95) if one else None for one in all_of], "slow", line=True)
    legend = [("p50 (median)", "usual"), ("p95", "slow")]
    return _figure(title, note, legend, found, which, [usual, slow], duration)


def _figure(
    title: str,
    note: str,
    legend: Sequence[tuple[str, str]],
    found: Sequence[Step],
    which: Range,
    series: Sequence[Series],
    format_value: Callable[[float], str],
) -> Figure:
    chart = Chart(
        f"{title} of the last {which.words}, {note}", [step.start for step in found], which.step, series, format_value
    )
    rows = []
    for index, step in enumerate(found):
        values = [one.values[index] for one in series]
        if any(values):
            rows.append((datetime.fromtimestamp(step.start, UTC), [_cell(value, format_value) for value in values]))
    return Figure(title, note, legend, draw(chart), [one.name for one in series], rows)


def _cell(value: float | None, format_value: Callable[[float], str]) -> str:
    return "\u2013" if value is None else format_value(value)


def _sum(one: Histogram | None, other: Histogram) -> Histogram | None:
    if not other.number:
        return one
    return other if one is None else one + other
