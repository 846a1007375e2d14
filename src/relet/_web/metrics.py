"""What Prometheus reads: numbers of the whole store as text, from what the client tells. Nothing is asked for here.

    exposition(client.totals(), client.queues(), client.workers(), version="0.1.0")

Every process that serves it tells the same, so that one of them is to be scraped. Counters come from statistics that
workers store about every five seconds, and go on where they were when workers or this process are restarted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from .._core.job import AttemptOutcome
from .._core.stats import BOUNDS, Histogram, StatPoint
from .._core.views import QueueInfo, by_state
from .._core.worker import WorkerInfo

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram", "info"]
Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]  # what is added to the metric's name, and what it is worth

#: How attempts end. All of them are there from the start: a rate needs the zero before the first.


def exposition(
    totals: Sequence[StatPoint],
    queues: Sequence[QueueInfo],
    workers: Sequence[WorkerInfo],
    *,
    version: str,
    schema: int | str | None = None,
    openmetrics: bool = False,
) -> str:
    """All metrics, in the text format 0.0.4, or that of OpenMetrics. `version` and `schema`: Relet's own."""
    page = _Page(openmetrics=openmetrics)
    built = {"version": version} | ({} if schema is None else {"schema": str(schema)})
    page.add("relet_build", "info", "Which Relet tells this.", [("_info", built, 1)])
    _jobs(page, queues, _labels(one.queue for one in queues))
    _attempts(page, totals, _labels(one.queue for one in totals))
    _workers(page, workers)
    return page.text()


def wants_openmetrics(accept: str) -> bool:
    """Whether a scraper that sends this header prefers OpenMetrics. Prometheus does, unless told otherwise."""
    offers = [_offer(part) for part in accept.split(",")]
    wanted, plain = (
        max((quality for kind, quality in offers if kind == name), default=0.0)
        for name in ("application/openmetrics-text", "text/plain")
    )
    return wanted > 0 and wanted >= plain


def content_type(*, openmetrics: bool) -> str:
    """The header that goes with it."""
    return OPENMETRICS if openmetrics else TEXT


def _jobs(page: _Page, queues: Sequence[QueueInfo], names: Mapping[str, str]) -> None:
    def each(number: str) -> list[Sample]:
        found = [(one.queue, getattr(one, number)) for one in queues]
        return [("", {"queue": names[queue]}, value) for queue, value in found if value is not None]

    jobs: list[Sample] = [
        ("", {"queue": names[one.queue], "state": state}, number)
        for one in queues
        for state, number in by_state(one).items()
    ]
    page.add("relet_jobs", "gauge", "Jobs that are not over, by state.", jobs)
    oldest: list[Sample] = [("", {"queue": names[one.queue]}, one.oldest or 0.0) for one in queues]
    page.add("relet_queue_oldest_seconds", "gauge", "For how long the job that is queued longest has been due.", oldest)
    counted: list[Sample] = [
        ("", {"queue": names[one.queue]}, one.counted_at.timestamp()) for one in queues if one.counted_at is not None
    ]
    page.add(
        "relet_queue_counted_timestamp_seconds", "gauge",
        "When the jobs of the queue were counted, where there are too many to count each time.", counted,
    )  # fmt: skip
    page.add("relet_queue_paused", "gauge", "1 while the queue is paused.", each("paused"))
    page.add(
        "relet_queue_max_running", "gauge", "How many of its jobs may run at once, where that is limited.",
        each("max_running"),
    )  # fmt: skip


def _attempts(page: _Page, totals: Sequence[StatPoint], names: Mapping[str, str]) -> None:
    ends: list[Sample] = [
        ("_total", {"queue": names[one.queue], "outcome": outcome}, one.counts.get(outcome, 0))
        for one in totals
        for outcome in (*AttemptOutcome, *sorted(one.counts.keys() - set(AttemptOutcome)))
    ]
    page.add("relet_attempts", "counter", "Attempts that have ended, by what came of them.", ends)
    lost: list[Sample] = [("_total", {"queue": names[one.queue]}, one.counts.get("lost", 0)) for one in totals]
    page.add(
        "relet_lease_losses", "counter",
        "Leases that ran out, and whose jobs were reaped: taken from workers that were gone.", lost,
    )  # fmt: skip
    timed = {
        "relet_job_wait_seconds": ("From when a job was due to when its handler started.", "waits"),
        "relet_job_start_seconds": ("From when a job was claimed to when its handler started.", "starts"),
        "relet_job_duration_seconds": ("How long handlers took.", "runs"),
    }
    for name, (text, field) in timed.items():
        samples = [sample for one in totals for sample in _histogram({"queue": names[one.queue]}, getattr(one, field))]
        page.add(name, "histogram", text, samples)


def _workers(page: _Page, workers: Sequence[WorkerInfo]) -> None:
    names = _labels(one.host for one in workers)
    alive = [one for one in workers if not one.lost]

    def by_host(number: str) -> list[Sample]:
        sums: dict[str, float] = dict.fromkeys((names[one.host] for one in alive), 0)
        for one in alive:
            sums[names[one.host]] += getattr(one, number)
        return [("", {"host": host}, value) for host, value in sums.items()]

    counts = dict.fromkeys(("working", "stopping", "lost"), 0)
    for one in workers:
        counts["lost" if one.lost else "stopping" if one.stopping else "working"] += 1
    states: list[Sample] = [("", {"state": state}, number) for state, number in counts.items()]
    page.add("relet_workers", "gauge", "Workers; lost are those that were not heard of for a while.", states)
    page.add("relet_worker_slots", "gauge", "Slots of the workers that are there.", by_host("slots"))
    page.add("relet_worker_slots_used", "gauge", "Slots in which an attempt runs.", by_host("running"))


def _histogram(labels: Labels, times: Histogram) -> Iterator[Sample]:
    below = 0
    for bound, count in zip((*BOUNDS, math.inf), times.counts, strict=True):
        below += count
        yield "_bucket", {**labels, "le": _number(float(bound))}, below
    yield "_sum", labels, times.total
    yield "_count", labels, below


class _Page:
    """Metrics, one after the other, in one of the two formats."""

    def __init__(self, *, openmetrics: bool) -> None:
        self._openmetrics = openmetrics
        self._lines: list[str] = []

    def add(self, name: str, kind: Kind, help: str, samples: Iterable[Sample]) -> None:
        """One metric; none if there are no samples."""
        found = list(samples)
        if not found:
            return
        # The older format has no info, and calls a counter by the name that its samples have.
        told, kind_told = name, kind
        if not self._openmetrics and kind in ("counter", "info"):
            told = f"{name}_total" if kind == "counter" else f"{name}_info"
            kind_told = "counter" if kind == "counter" else "gauge"
        self._lines += [f"# HELP {told} {help}", f"# TYPE {told} {kind_told}"]
        if self._openmetrics and name.endswith("_seconds"):
            self._lines.append(f"# UNIT {told} seconds")
        self._lines += [f"{name}{suffix}{_written(labels)} {_number(value)}" for suffix, labels, value in found]

    def text(self) -> str:
        """All of it."""
        return "\n".join([*self._lines, *(["# EOF"] if self._openmetrics else []), ""])


def _written(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    """As both formats want it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, int) else repr(value)


def _labels(names: Iterable[str]) -> dict[str, str]:
    """What to call them: nothing that could break a line or cannot be encoded, and still no two alike."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda name: (not _is_clean(name), name)):  # those that can keep theirs, do
        label = name if _is_clean(name) else "".join(letter if _is_clean(letter) else "\ufffd" for letter in name)
        while label in taken:
            label += "\ufffd"
        taken.add(label)
        given[name] = label
    return given


def _is_clean(text: str) -> bool:
    return text.isprintable() or all(letter.isprintable() or letter == "\n" for letter in text)


def _offer(part: str) -> tuple[str, float]:
    kind, *parameters = (word.strip() for word in part.split(";"))
    quality = [value for name, _, value in (one.partition("=") for one in parameters) if name.strip() == "q"]
    try:
        return kind.lower(), float(quality[0]) if quality else 1.0
    except ValueError:
        return kind.lower(), 0.0
