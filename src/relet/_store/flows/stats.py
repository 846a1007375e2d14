"""Statistics: counted by workers, added up by the minute, older ones in longer steps, so that the table stays small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..._core.job import utc
from ..._core.stats import BOUNDS, STEPS, Histogram, StatPoint, step_for
from ..._core.views import QueueInfo
from ..query import BEGIN, LONG, Flow, Row, as_json, bounded, read, read_only, write

HISTOGRAMS = ("waits", "starts", "runs")
TOGETHER = "*"  # all queues together: stored as well, as adding up a hundred queues for each read would take seconds
GAUGES = ("pending", "queued", "running", "paused_jobs", "failed")


class Count(NamedTuple):
    """An increment. `bucket`: of a histogram. `peak`: keep the greatest value, not the sum."""

    queue: str
    name: str
    number: float
    bucket: int = 0
    peak: bool = False


def add(counts: Iterable[Count]) -> Flow[None]:
    """Add the increments to the current minute."""
    found = list(counts)
    if found:
        batch = [count._asdict() for count in (*found, *_together(found))]
        yield write("stats/add", batch=as_json(batch))


def _together(counts: Sequence[Count]) -> list[Count]:
    """The increments of all queues together. Of the age of the oldest job, the greatest counts."""
    sums: dict[tuple[str, int, bool], float] = {}
    for _, name, number, bucket, peak in counts:
        before = sums.get((name, bucket, peak), 0.0)
        sums[name, bucket, peak] = max(before, number) if name == "gauge.oldest" else before + number
    return [Count(TOGETHER, name, number, bucket, peak) for (name, bucket, peak), number in sums.items()]


def claim_sample() -> Flow[bool]:
    """Whether this worker shall count the jobs in this minute: the first worker to ask does.

    It counts with `inspect.counted_queues`, which locks nothing however long it takes, and stores the sample.
    """
    return bool((yield write("stats/claim_sample")))


def save_sample(queues: Sequence[QueueInfo]) -> Flow[None]:
    """Store how many jobs each queue has in each state."""
    yield BEGIN
    counts, rows = [], []
    for info in queues:
        numbers = {name: getattr(info, name) for name in GAUGES}
        rows.append({"queue": info.queue, **numbers, "oldest": info.oldest})
        counts += [Count(info.queue, f"gauge.{name}", number, peak=True) for name, number in numbers.items()]
        counts.append(Count(info.queue, "gauge.oldest", info.oldest or 0.0, peak=True))
    yield write("stats/delete_samples", queues=as_json([info.queue for info in queues]))
    yield write("stats/save_samples", batch=as_json(rows))
    yield from add(counts)


@bounded(LONG)
def roll_up() -> Flow[None]:
    """Add up old statistics in longer steps."""
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    lengths = [*STEPS, 0]
    for step, longer in zip(STEPS, lengths[1:], strict=True):
        before = (
            (moment - STEPS[step]) // 3600 * 3600
        )  # one moment for both statements: no row is deleted before it was added up
        for sign in (1, -1):  # rows for all queues together have negative steps
            if longer:
                yield write("stats/roll_up", step=sign * step, longer=sign * longer, before=before)
            yield write("stats/delete_old", step=sign * step, before=before)


@bounded(LONG)
@read_only
def stats(
    since: float,
    until: float | None,
    *,
    step: int | None = None,
    queues: Sequence[str] | None = None,
    only: str | None = None,
) -> Flow[list[StatPoint]]:
    """Statistics of a period, by step and queue; `queues` ["*"]: all queues together; None: of every queue. `only`:
    read just this count.
    """
    moment = (yield read("inspect/clock"))[0][0]
    until = moment + 60 if until is None else until
    step = step or step_for(since, until, moment)
    first = since // step * step
    which = {"since": first, "until": until, "step": step, "only": only}
    if queues is None:
        found = yield read("stats/points", **which)
    elif list(queues) == [TOGETHER]:
        found = yield read("stats/points_together", **which)
    else:
        statement = "stats/points_of_queues" if only is None else "stats/count_of_queues"
        found = yield read(statement, **which, queues=list(queues))
    return _points(found, float(step))


@bounded(LONG)
@read_only
def recent_counts(queues: Sequence[str], name: str, since: float, step: int) -> Flow[dict[str, dict[float, int]]]:
    """One count of these queues by the start of each step, which is a multiple of a minute; minutes are kept for three
    hours. For pages that list many queues.
    """
    moment = (yield read("inspect/clock"))[0][0]
    which = {"since": since // step * step, "until": moment + 60, "step": step, "only": name}
    counts: dict[str, dict[float, int]] = {}
    for at, queue, _, _, number in (yield read("stats/count_of_queues", **which, queues=list(queues))):
        counts.setdefault(queue, {})[at] = int(number)
    return counts


@bounded(LONG)
@read_only
def totals() -> Flow[list[StatPoint]]:
    """The totals since the store was created, by queue."""
    return _points((yield read("stats/totals")), 0.0)


def _points(found: Sequence[Row], step: float) -> list[StatPoint]:
    grouped: dict[tuple[float, str], list[Row]] = {}
    for row in found:
        grouped.setdefault((row[0], row[1]), []).append(row)
    return [_point(at, queue, step, rows) for (at, queue), rows in grouped.items()]


def _point(at: float, queue: str, step: float, rows: list[Row]) -> StatPoint:
    counts: dict[str, int] = {}
    gauges: dict[str, float] = {}
    classes: dict[str, list[int]] = {}
    sums: dict[str, float] = {}
    for _, _, name, bucket, number in rows:
        kind, _, rest = name.partition(".")
        if kind == "gauge":
            gauges[rest.removesuffix("_jobs")] = number
        elif kind in HISTOGRAMS and rest == "sum":
            sums[kind] = number
        elif kind in HISTOGRAMS:
            bucket = min(bucket, len(BOUNDS))  # a later release may have more buckets
            classes.setdefault(kind, [0] * (len(BOUNDS) + 1))[bucket] += int(number)
        else:
            counts[name] = int(number)
    waits, starts, runs = (
        Histogram(tuple(classes[name]), sums.get(name, 0.0)) if name in classes else Histogram() for name in HISTOGRAMS
    )
    return StatPoint(utc(at), step, queue, counts, waits, starts, runs, gauges)
