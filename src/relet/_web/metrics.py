"""Metrics of the whole store for Prometheus. Makes no queries: the caller passes the numbers.

    exposition(client.totals(), client.queues(), client.workers(), version="0.1.0")

Every process that serves these metrics reports the same numbers, so scrape only one of them. Counters come from
statistics that workers store about every five seconds, and continue across restarts of workers and of this process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from .._core.job import AttemptOutcome
from .._core.stats import BOUNDS, Histogram, StatPoint
from .._core.views import QueueInfo, ReplicaStatus, by_state
from .._core.worker import WorkerInfo

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

TOGETHER = "*"  # the label of all queues together

LabelsAndValue = tuple[Sequence[str], float]


def exposition(
    totals: Sequence[StatPoint],
    queues: Sequence[QueueInfo],
    workers: Sequence[WorkerInfo],
    *,
    version: str,
    schema: int | str | None = None,
    openmetrics: bool = False,
    replica: ReplicaStatus | None = None,
    together: StatPoint | None = None,
) -> str:
    """All metrics in the text format 0.0.4 or in OpenMetrics. `version` and `schema` are those of Relet. `replica`: the
    state of the replica that the dashboard reads from, if there is one. `together`: export these histograms, of all
    queues together, in place of those of each queue."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(totals, queues, workers, version, schema, replica, together))
    return (generate_openmetrics if openmetrics else generate_latest)(registry).decode()


def wants_openmetrics(accept: str) -> bool:
    """True if this Accept header prefers OpenMetrics. Prometheus does by default."""
    qualities: dict[str, float] = {}
    for part in accept.split(","):
        kind, quality = _media_range(part)
        qualities[kind] = max(quality, qualities.get(kind, 0.0))
    wanted = qualities.get("application/openmetrics-text", 0.0)
    return wanted > 0 and wanted >= qualities.get("text/plain", 0.0)


def content_type(*, openmetrics: bool) -> str:
    """The Content-Type header of the chosen format."""
    return OPENMETRICS if openmetrics else TEXT


@dataclass(frozen=True, eq=False)  # a registry keeps collectors by identity
class StoreCollector(Collector):
    """The numbers of a store as metric families. Families without samples are left out."""

    totals: Sequence[StatPoint]
    queues: Sequence[QueueInfo]
    workers: Sequence[WorkerInfo]
    version: str
    schema: int | str | None = None
    replica: ReplicaStatus | None = None
    together: StatPoint | None = None

    def collect(self) -> Iterator[Metric]:
        built = {"version": self.version} | ({} if self.schema is None else {"schema": str(self.schema)})
        yield InfoMetricFamily("relet_build", "The version of Relet that exports these metrics.", value=built)
        timed = self.totals if self.together is None else [self.together]
        of_jobs = (*_jobs(self.queues), *_attempts(self.totals), *_times(timed))
        families = (*of_jobs, *_workers(self.workers), *_replica(self.replica))
        yield from (family for family in families if family.samples)


def _jobs(queues: Sequence[QueueInfo]) -> Iterator[Metric]:
    names = _labels(one.queue for one in queues)

    def each(number: str) -> list[LabelsAndValue]:
        found = [(one.queue, getattr(one, number)) for one in queues]
        return [([names[queue]], value) for queue, value in found if value is not None]

    jobs: list[LabelsAndValue] = []
    for one in queues:
        jobs += [([names[one.queue], state], number) for state, number in by_state(one).items()]
    yield _gauge("relet_jobs", "Jobs that are not over, by state.", ["queue", "state"], jobs)
    yield _gauge(
        "relet_queue_oldest_seconds",
        "For how long the job that is queued longest has been due.",
        ["queue"],
        [([names[one.queue]], one.oldest or 0.0) for one in queues],
    )
    yield _gauge(
        "relet_queue_counted_timestamp_seconds",
        "When the jobs of the queue were counted, where there are too many to count each time.",
        ["queue"],
        [([names[one.queue]], one.counted_at.timestamp()) for one in queues if one.counted_at is not None],
    )
    yield _gauge("relet_queue_paused", "1 while the queue is paused.", ["queue"], each("paused"))
    text = "How many of its jobs may run at once, where that is limited."
    yield _gauge("relet_queue_max_running", text, ["queue"], each("max_running"))


def _attempts(totals: Sequence[StatPoint]) -> Iterator[Metric]:
    names = _labels(one.queue for one in totals)
    ended = CounterMetricFamily("relet_attempts", "Attempts that have ended, by outcome.", labels=["queue", "outcome"])
    lost = CounterMetricFamily(
        "relet_lease_losses",
        "Leases that expired, and whose jobs were taken from their workers.",
        labels=["queue"],
    )
    for one in totals:
        # Every outcome is exported from the start, with 0: rate() needs a zero before the first increase.
        for outcome in (*AttemptOutcome, *sorted(one.counts.keys() - set(AttemptOutcome))):
            ended.add_metric([names[one.queue], outcome], one.counts.get(outcome, 0))
        lost.add_metric([names[one.queue]], one.counts.get("lost", 0))
    yield from (ended, lost)


def _times(totals: Sequence[StatPoint]) -> Iterator[Metric]:
    names = _labels(one.queue for one in totals)
    timed = {
        "relet_job_wait_seconds": ("From when a job was due to when its handler started.", "waits"),
        "relet_job_start_seconds": ("From when a job was claimed to when its handler started.", "starts"),
        "relet_job_duration_seconds": ("How long handlers took.", "runs"),
    }
    for name, (text, field) in timed.items():
        family = HistogramMetricFamily(name, text, labels=["queue"], unit="seconds")
        for one in totals:
            times: Histogram = getattr(one, field)
            family.add_metric([names[one.queue]], buckets=_buckets(times), sum_value=times.total)
        yield family


def _workers(workers: Sequence[WorkerInfo]) -> Iterator[Metric]:
    names = _labels(one.host for one in workers)
    alive = [one for one in workers if not one.lost]

    def by_host(number: str) -> list[LabelsAndValue]:
        sums: dict[str, float] = dict.fromkeys((names[one.host] for one in alive), 0)
        for one in alive:
            sums[names[one.host]] += getattr(one, number)
        return [([host], value) for host, value in sums.items()]

    counts = dict.fromkeys(("working", "stopping", "lost"), 0)
    for one in workers:
        counts["lost" if one.lost else "stopping" if one.stopping else "working"] += 1
    states: list[LabelsAndValue] = [([state], number) for state, number in counts.items()]
    yield _gauge(
        "relet_workers",
        "Workers by state. Lost: without a report for a while, and without having announced their end.",
        ["state"],
        states,
    )
    yield _gauge("relet_worker_slots", "Slots of the live workers.", ["host"], by_host("slots"))
    yield _gauge("relet_worker_slots_used", "Slots in which an attempt runs.", ["host"], by_host("running"))


def _replica(status: ReplicaStatus | None) -> Iterator[Metric]:
    if status is None:
        return
    serving: list[LabelsAndValue] = [([], float(status.problem is None))]
    yield _gauge("relet_replica_serving", "1 while the replica serves the reads of the dashboard.", [], serving)
    if status.lag is not None:
        text = "For how many seconds the replica has been behind the primary."
        yield _gauge("relet_replica_lag_seconds", text, [], [([], status.lag)])


def _gauge(name: str, help: str, labels: Sequence[str], values: Iterable[LabelsAndValue]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help, labels=labels, unit="seconds" if name.endswith("_seconds") else "")
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family


def _buckets(times: Histogram) -> list[tuple[str, float]]:
    """Cumulative counts by upper bound, as Prometheus has them."""
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound, count in zip((*BOUNDS, math.inf), times.counts, strict=True):
        below += count
        buckets.append(("+Inf" if math.isinf(bound) else str(float(bound)), below))
    return buckets


def _labels(names: Iterable[str]) -> dict[str, str]:
    """A label value for each name: printable and encodable, and still unique."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda name: (not _is_clean(name), name)):  # clean names first, unchanged
        label = name if _is_clean(name) else "".join(letter if _is_clean(letter) else "\ufffd" for letter in name)
        while label in taken:
            label += "\ufffd"
        taken.add(label)
        labels[name] = label
    return labels


def _is_clean(text: str) -> bool:
    return text.isprintable() or all(letter.isprintable() or letter == "\n" for letter in text)


def _media_range(part: str) -> tuple[str, float]:
    """A media type of an Accept header, and its quality."""
    kind, *parameters = part.split(";")
    pairs = [one.partition("=") for one in parameters]
    qualities = [value for name, _, value in pairs if name.strip() == "q"]
    try:
        return kind.strip().lower(), float(qualities[0]) if qualities else 1.0
    except ValueError:
        return kind.strip().lower(), 0.0
