"""Statistics: counted by workers, added up by the minute, older ones in longer steps, so that the table stays small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import Any, NamedTuple

from ..._core.job import utc
from ..._core.stats import BOUNDS, STEPS, Histogram, StatPage, StatPoint, step_for
from ..._core.views import QueueInfo
from ..query import BEGIN, LONG, Flow, Row, as_json, bounded, read, read_only, write

HISTOGRAMS = ("waits", "starts", "runs")
TOGETHER = "*"  # all queues together: stored as well, as adding up a hundred queues for each read would take seconds
GAUGES = ("pending", "queued", "running", "paused_jobs", "failed")
MAX_SAMPLE_AGE = 9  # minutes: `inspect.SAMPLES_FOR` is longer
MAX_ROLLED_UP = 5000  # rows that one transaction adds up in longer steps
MAX_READ = 600  # steps of queues that one page reads; each has some twenty rows
MAX_TOTALS = 200  # queues on a page of totals; each has up to a hundred rows


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


def claim_sample() -> Flow[float | None]:
    """The minute in which this worker shall count the jobs: the first worker to ask does. None: it shall not.

    It counts with `inspect.counted_queues`, which locks nothing however long it takes, and stores the sample.
    """
    claimed = yield write("stats/claim_sample", minutes=MAX_SAMPLE_AGE)
    return float(claimed[0][0]) if claimed else None


def save_sample(queues: Sequence[QueueInfo], minute: float = 0.0, took: float = 0.0) -> Flow[None]:
    """Store how many jobs each queue has in each state. `took`: seconds that it took to count them, in this minute. A
    second of counting is enough for a minute, so that counting takes a sixtieth of the time at most."""
    yield BEGIN
    yield write("stats/pace_samples", at=minute, minutes=min(max(ceil(took), 1), MAX_SAMPLE_AGE))
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
def roll_up() -> Flow[bool]:
    """Add up the oldest statistics in longer steps: so many rows that the transaction is short. Returns whether there
    may be more."""
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    for step, longer in zip(STEPS, [*STEPS, 0][1:], strict=True):
        before = (moment - STEPS[step]) // 3600 * 3600
        for sign in (1, -1):  # rows for all queues together have negative steps
            last = yield read("stats/last_old", step=sign * step, before=before, limit=MAX_ROLLED_UP)
            if last:
                # The same rows for both statements: none is deleted before it was added up.
                old = dict(zip(("at", "queue", "name", "bucket"), last[0], strict=True)) | {"step": sign * step}
                if longer:
                    yield write("stats/roll_up", **old, longer=sign * longer)
                yield write("stats/delete_old", **old)
                return True
    return False


@bounded(LONG)
@read_only
def stats(
    since: float, until: float | None, *, step: int | None = None, queues: Sequence[str], only: str | None = None
) -> Flow[list[StatPoint]]:
    """Statistics of a period, by step and queue; `queues` ["*"]: all queues together. `only`: read just this count."""
    which = yield from _period(since, until, step)
    if list(queues) == [TOGETHER]:
        found = yield read("stats/points_together", **which, only=only)
    else:
        found = yield from _of_queues(queues, which, only)
    return _points(found, float(which["step"]))


@bounded(LONG)
@read_only
def page(
    since: float, until: float | None, *, step: int | None = None, only: str | None = None, cursor: str | None = None
) -> Flow[StatPage]:
    """Statistics of a period, of as many queues as one page reads, by step and queue."""
    which = yield from _period(since, until, step)
    number = max(MAX_READ // which.pop("lookups"), 1)
    names = [row[0] for row in (yield read("stats/queues", **which, after=cursor or "", limit=number + 1))]
    found = yield from _of_queues(names[:number], which, only)
    return StatPage(_points(found, float(which["step"])), names[number - 1] if len(names) > number else None)


def _period(since: float, until: float | None, step: int | None) -> Flow[dict[str, Any]]:
    """The parameters of statements that read a period; `lookups`: how many steps of each queue it may have."""
    moment = (yield read("inspect/clock"))[0][0]
    until = moment + 60 if until is None else until
    step = step or step_for(since, until, moment)
    begin = since // step * step
    lengths = [(min(until, moment) - max(begin, moment - kept)) / each for each, kept in STEPS.items() if each <= step]
    lookups = int(sum(max(length, 0.0) for length in lengths)) + 1
    return {"since": begin, "until": until, "step": step, "lookups": lookups}


def _of_queues(queues: Sequence[str], which: dict[str, Any], only: str | None) -> Flow[list[Row]]:
    statement = "stats/points_of_queues" if only is None else "stats/count_of_queues"
    return (yield read(statement, **which, only=only, queues=list(queues)))


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
def totals(cursor: str | None = None) -> Flow[StatPage]:
    """The totals since the store was created, of as many queues as one page reads."""
    found = _points((yield read("stats/totals", after=cursor or "", limit=MAX_TOTALS + 1)), 0.0)
    page = found[:MAX_TOTALS]
    return StatPage(page, page[-1].queue if len(found) > MAX_TOTALS else None)


@bounded(LONG)
@read_only
def exported(max_queues: int) -> Flow[tuple[list[StatPoint], StatPoint | None]]:
    """The totals of every queue for monitoring. With more than `max_queues`, the points have no histograms, and the
    second value has those of all queues together."""
    names = yield read("stats/total_names", limit=max_queues + 1)
    if len(names) <= max_queues:
        return _points((yield read("stats/totals", after="", limit=max_queues)), 0.0), None
    together = _points((yield read("stats/total_histograms")), 0.0)
    return _points((yield read("stats/total_counts")), 0.0), together[0] if together else None


def _points(found: Sequence[Row], step: float) -> list[StatPoint]:
    """The points of rows that are in the order of time and queue."""
    return [_point(at, queue, step, rows) for (at, queue), rows in groupby(found, itemgetter(0, 1))]


@cache
def _kind(name: str) -> tuple[str, str]:
    """The field of a point that a name of the table belongs to, and the name within that field."""
    kind, _, rest = name.partition(".")
    if kind == "gauge":
        return "gauges", rest.removesuffix("_jobs")
    if kind in HISTOGRAMS:
        return ("sums" if rest == "sum" else "classes"), kind
    return "counts", name


def _point(at: float, queue: str, step: float, rows: Iterable[Row]) -> StatPoint:
    counts: dict[str, int] = {}
    gauges: dict[str, float] = {}
    classes: dict[str, list[int]] = {}
    sums: dict[str, float] = {}
    for _, _, full_name, bucket, number in rows:
        field, name = _kind(full_name)
        if field == "classes":
            bucket = min(bucket, len(BOUNDS))  # a later release may have more buckets
            if name not in classes:
                classes[name] = [0] * (len(BOUNDS) + 1)
            classes[name][bucket] += int(number)
        elif field == "counts":
            counts[name] = int(number)
        elif field == "sums":
            sums[name] = number
        else:
            gauges[name] = number
    waits, starts, runs = (
        Histogram(tuple(classes[name]), sums.get(name, 0.0)) if name in classes else Histogram() for name in HISTOGRAMS
    )
    return StatPoint(utc(at), step, queue, counts, waits, starts, runs, gauges)
