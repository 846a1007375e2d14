"""Metrics of the whole store in the formats that Prometheus scrapes. Makes no queries: the caller passes the numbers.

    exposition(client.totals(), client.queues(), client.workers(), version="0.1.0")

Every process that serves these metrics reports the same numbers, so scrape only one of them. Counters come from
statistics that workers store about every five seconds, and continue across restarts of workers and of this process.
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
Sample = tuple[str, Labels, float]  # the suffix of the metric's name, its labels, its value


def exposition(
    totals: Sequence[StatPoint],
    queues: Sequence[QueueInfo],
    workers: Sequence[WorkerInfo],
    *,
    version: str,
    schema: int | str | None = None,
    openmetrics: bool = False,
) -> str:
    """All metrics in the text format 0.0.4 or in OpenMetrics. `version` and `schema` are those of Relet."""
    page = _Exposition(openmetrics=openmetrics)
    built = {"version": version} | ({} if schema is None else {"schema": str(schema)})
    page.add("relet_build", "info", "Which Relet tells this.", [("_info", built, 1)])
    _jobs(page, queues, _labels(one.queue for one in queues))
    _attempts(page, totals, _labels(one.queue for one in totals))
    _workers(page, workers)
    return page.text()


def wants_openmetrics(accept: str) -> bool:
    """True if this Accept header prefers OpenMetrics. Prometheus does by default."""
    offers = [_offer(part) for part in accept.split(",")]
    wanted, plain = (
        max((quality for kind, quality in offers if kind == name), default=0.0)
        for name in ("application/openmetrics-text", "text/plain")
    )
    return wanted > 0 and wanted >= plain


def content_type(*, openmetrics: bool) -> str:
    """The Content-Type header of the chosen format."""
    return OPENMETRICS if openmetrics else TEXT


def _jobs(page: _Exposition, queues: Sequence[QueueInfo], names: Mapping[str, str]) -> None:
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


def _attempts(page: _Exposition, totals: Sequence[StatPoint], names: Mapping[str, str]) -> None:
    # Every outcome is exported from the start, with 0: rate() needs a zero before the first increase.
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


def _workers(page: _Exposition, workers: Sequence[WorkerInfo]) -> None:
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


class _Exposition:
    """Collects metric families as lines of one of the two formats."""

    def __init__(self, *, openmetrics: bool) -> None:
        self._openmetrics = openmetrics
        self._lines: list[str] = []

    def add(self, name: str, kind: Kind, help: str, samples: Iterable[Sample]) -> None:
        """Append one metric family, unless it has no samples."""
        found = list(samples)
        if not found:
            return
        # The text format 0.0.4 has no type info, and declares a counter under the name of its samples.
        family, family_kind = name, kind
        if not self._openmetrics and kind in ("counter", "info"):
            family = f"{name}_total" if kind == "counter" else f"{name}_info"
            family_kind = "counter" if kind == "counter" else "gauge"
        self._lines += [f"# HELP {family} {help}", f"# TYPE {family} {family_kind}"]
        if self._openmetrics and name.endswith("_seconds"):
            self._lines.append(f"# UNIT {family} seconds")
        self._lines += [f"{name}{suffix}{_written(labels)} {_number(value)}" for suffix, labels, value in found]

    def text(self) -> str:
        """The complete response body."""
        return "\n".join([*self._lines, *(["# EOF"] if self._openmetrics else []), ""])


def _written(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    """A value as both formats spell it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, int) else repr(value)


def _labels(names: Iterable[str]) -> dict[str, str]:
    """A label value for each name: printable and encodable, and still unique."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(
        set(names), key=lambda name: (not _is_clean(name), name)
    ):  # clean names come first and stay unchanged
        label = name if _is_clean(name) else "".join(letter if _is_clean(letter) else "\ufffd" for letter in name)
        while label in taken:
            label += "\ufffd"
        taken.add(label)
        labels[name] = label
    return labels


def _is_clean(text: str) -> bool:
    return text.isprintable() or all(letter.isprintable() or letter == "\n" for letter in text)


def _offer(part: str) -> tuple[str, float]:
    kind, *parameters = (word.strip() for word in part.split(";"))
    quality = [value for name, _, value in (one.partition("=") for one in parameters) if name.strip() == "q"]
    try:
        return kind.lower(), float(quality[0]) if quality else 1.0
    except ValueError:
        return kind.lower(), 0.0
