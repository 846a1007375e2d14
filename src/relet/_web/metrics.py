"""Metrics of the whole store for Prometheus. Makes no queries: the caller passes the numbers.

    exposition(client.totals(), client.queues(), client.workers(), version="0.1.0")

Every process that serves these metrics reports the same numbers, so scrape only one of them. Counters come from
statistics that workers store about every five seconds, and continue across restarts of workers and of this process.

The text is written here, and not by a library, which takes half a second for a thousand queues.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .._core.job import AttemptOutcome
from .._core.stats import BOUNDS, Histogram, StatPoint
from .._core.views import QueueInfo, ReplicaStatus, by_state
from .._core.worker import WorkerInfo

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

TOGETHER = "*"  # the label of all queues together
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_BUCKETS = [f'le="{float(bound)!r}"' for bound in BOUNDS] + ['le="+Inf"']


@dataclass
class Family:
    """One metric, with a line for each series."""

    name: str
    kind: Literal["gauge", "counter", "histogram", "info"]
    help: str
    lines: list[str] = field(default_factory=list)

    def add(self, labels: str, value: float, suffix: str = "") -> None:
        """A series. `labels` as the text writes them."""
        self.lines.append(f"{self.name}{suffix}{{{labels}}} {_number(value)}")

    def written(self, openmetrics: bool) -> Iterator[str]:
        """The lines of this metric. In the older format, counters and infos are called as their series are."""
        name, kind = self.name, self.kind
        if not openmetrics:
            name += {"counter": "_total", "info": "_info"}.get(kind, "")
            kind = "gauge" if kind == "info" else kind
        yield f"# HELP {name} {self.help}"
        yield f"# TYPE {name} {kind}"
        if openmetrics and name.endswith("_seconds"):
            yield f"# UNIT {name} seconds"
        yield from self.lines


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
    queues together, in place of those of each queue. Metrics without series are left out."""
    built = {"version": version} | ({} if schema is None else {"schema": str(schema)})
    build = Family("relet_build", "info", "The version of Relet that exports these metrics.")
    build.add(",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in built.items()), 1, "_info")
    timed = totals if together is None else [together]
    families = [build, *_jobs(queues), *_attempts(totals), *_times(timed), *_workers(workers), *_replica(replica)]
    lines = [line for family in families if family.lines for line in family.written(openmetrics)]
    return "\n".join([*lines, "# EOF", ""] if openmetrics else [*lines, ""])


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


def _jobs(queues: Sequence[QueueInfo]) -> Iterator[Family]:
    labels = _labels("queue", (one.queue for one in queues))
    jobs = Family("relet_jobs", "gauge", "Jobs that are not over, by state.")
    for one in queues:
        for state, number in by_state(one).items():
            jobs.add(f'{labels[one.queue]},state="{state}"', number)
    oldest = Family("relet_queue_oldest_seconds", "gauge", "For how long the job that is queued longest has been due.")
    text = "When the jobs of the queue were counted, where there are too many to count each time."
    counted = Family("relet_queue_counted_timestamp_seconds", "gauge", text)
    paused = Family("relet_queue_paused", "gauge", "1 while the queue is paused.")
    limit = Family("relet_queue_max_running", "gauge", "How many of its jobs may run at once, where that is limited.")
    for one in queues:
        label = labels[one.queue]
        oldest.add(label, one.oldest or 0.0)
        paused.add(label, one.paused)
        if one.counted_at is not None:
            counted.add(label, one.counted_at.timestamp())
        if one.max_running is not None:
            limit.add(label, one.max_running)
    yield from (jobs, oldest, counted, paused, limit)


def _attempts(totals: Sequence[StatPoint]) -> Iterator[Family]:
    labels = _labels("queue", (one.queue for one in totals))
    ended = Family("relet_attempts", "counter", "Attempts that have ended, by outcome.")
    text = "Leases that expired, and whose jobs were taken from their workers."
    lost = Family("relet_lease_losses", "counter", text)
    known = dict.fromkeys(map(str, AttemptOutcome))
    for one in totals:
        label = labels[one.queue]
        # Every outcome is exported from the start, with 0: rate() needs a zero before the first increase.
        for outcome in (*known, *sorted(one.counts.keys() - known.keys())):
            ended.add(f'outcome="{outcome}",{label}', one.counts.get(outcome, 0), "_total")
        lost.add(label, one.counts.get("lost", 0), "_total")
    yield from (ended, lost)


def _times(totals: Sequence[StatPoint]) -> Iterator[Family]:
    labels = _labels("queue", (one.queue for one in totals))
    timed = {
        "relet_job_wait_seconds": ("From when a job was due to when its handler started.", "waits"),
        "relet_job_start_seconds": ("From when a job was claimed to when its handler started.", "starts"),
        "relet_job_duration_seconds": ("How long handlers took.", "runs"),
    }
    for name, (text, part) in timed.items():
        family = Family(name, "histogram", text)
        for one in totals:
            _add_histogram(family, labels[one.queue], getattr(one, part))
        yield family


def _add_histogram(family: Family, label: str, times: Histogram) -> None:
    """Cumulative counts by upper bound, as Prometheus has them."""
    below = 0
    for bound, count in zip(_BUCKETS, times.counts, strict=True):
        below += count
        family.add(f"{bound},{label}", below, "_bucket")
    family.add(label, below, "_count")
    family.add(label, times.total, "_sum")


def _workers(workers: Sequence[WorkerInfo]) -> Iterator[Family]:
    labels = _labels("host", (one.host for one in workers))
    counts = dict.fromkeys(("working", "stopping", "lost"), 0)
    slots, used = dict[str, int](), dict[str, int]()
    for one in workers:
        counts["lost" if one.lost else "stopping" if one.stopping else "working"] += 1
        if not one.lost:
            label = labels[one.host]
            slots[label] = slots.get(label, 0) + one.slots
            used[label] = used.get(label, 0) + one.running
    states = {f'state="{state}"': number for state, number in counts.items()}
    text = "Workers by state. Lost: without a report for a while, and without having announced their end."
    yield _gauge("relet_workers", text, states)
    yield _gauge("relet_worker_slots", "Slots of the live workers.", slots)
    yield _gauge("relet_worker_slots_used", "Slots in which an attempt runs.", used)


def _replica(status: ReplicaStatus | None) -> Iterator[Family]:
    if status is None:
        return
    serving = {"": float(status.problem is None)}
    yield _gauge("relet_replica_serving", "1 while the replica serves the reads of the dashboard.", serving)
    if status.lag is not None:
        text = "For how many seconds the replica has been behind the primary."
        yield _gauge("relet_replica_lag_seconds", text, {"": status.lag})


def _gauge(name: str, help: str, values: dict[str, int] | dict[str, float]) -> Family:
    family = Family(name, "gauge", help)
    for labels, value in values.items():
        family.add(labels, value)
    return family


def _number(value: float) -> str:
    number = float(value)
    return repr(number) if math.isfinite(number) else {math.inf: "+Inf", -math.inf: "-Inf"}.get(number, "NaN")


def _labels(kind: str, names: Iterable[str]) -> dict[str, str]:
    """The label of each name as the text writes it: printable and encodable, and still unique."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda name: (not _is_clean(name), name)):  # clean names first, unchanged
        label = name if _is_clean(name) else "".join(letter if _is_clean(letter) else "\ufffd" for letter in name)
        while label in taken:
            label += "\ufffd"
        taken.add(label)
        labels[name] = f'{kind}="{label.translate(_ESCAPED)}"'
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
