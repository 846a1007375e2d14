"""Response bodies of the HTTP API: the client's types as JSON.

Payloads, results and the like are embedded as the JSON text that the store holds (`Raw`), so that numbers of any size
arrive unchanged. They pass through `redact` first. Request bodies are in `requests.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from ..._core.job import AttemptRecord, Chain, Job, State, StepRecord
from ..._core.redact import HIDDEN, Redact, redacted
from ..._core.schedule import Missed, Overlap, ScheduleInfo, Tick
from ..._core.stats import Histogram, StatPoint
from ..._core.views import AuditEntry, FailureGroup, JobDetails, QueueInfo, TargetInfo, TargetView
from ..._core.worker import WorkerInfo

Moment = Annotated[datetime, Meta(tz=True)]

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """A complete HTTP response."""

    status: int
    body: bytes = b""
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


_EMBEDDED = ("payload", "result", "context")  # fields of a job that are JSON text


def _make_job_out() -> Any:
    """A struct with the fields of `Job`, all of them required."""
    fields: list[tuple[str, Any]] = []
    for one in msgspec.structs.fields(Job):
        kind = {datetime: Moment, datetime | None: Moment | None}.get(one.type, one.type)
        fields.append((one.encode_name, Raw if one.encode_name in _EMBEDDED else kind))
    about = {"__doc__": "A job as it was when the store read it."}
    return msgspec.defstruct("JobOut", fields, namespace=about, module=__name__, kw_only=True)


if TYPE_CHECKING:

    class JobOut(Struct, kw_only=True): ...

else:
    JobOut = _make_job_out()


class Attempts(Struct):
    """Every attempt of a job, in order."""

    attempts: list[AttemptRecord]


class StepOut(Struct):
    """A durable step, a sleep, a wait for a signal, or a signal that was sent, by `kind`."""

    name: str
    kind: str
    at: datetime
    until: datetime | None
    result: Raw
    started_at: datetime | None
    input: Raw


class Steps(Struct):
    """The durable steps of a job with its sleeps, waits and signals, in order."""

    steps: list[StepOut]


class DependencyOut(Struct):
    """A chain that a job waits or waited for. `state` is null until the chain has ended."""

    chain: str
    state: str | None
    result: Raw
    task: str | None


class JobView(JobOut, kw_only=True):
    """A job with its history, dependencies and dependents. `explain` says in sentences why it does not run."""

    attempts: list[AttemptRecord]
    steps: list[StepOut]
    dependencies: list[DependencyOut]
    dependents: list[JobOut]
    explain: list[str]


class Jobs(Struct):
    """Jobs, in the order of the request."""

    jobs: list[JobOut]


class JobPage(Struct):
    """A page of jobs, newest first. Pass `cursor` for the next page; null on the last page."""

    jobs: list[JobOut]
    cursor: str | None


class Counted(Struct):
    """A number of jobs, counted up to `limit`, among the newest `scan` live and `scan` finished ones."""

    count: int
    limit: int
    scan: int


class Reasons(Struct):
    """Sentences that explain why a job does not run, the most direct reason first."""

    reasons: list[str]


class ChainOut(Struct):
    """A job and those that continued it. State and result are those of the last one."""

    id: str
    state: State
    result: Raw
    jobs: list[JobOut]


class SignalOut(Struct):
    """`sent` is false if a signal of this name was sent before; its first value is kept."""

    sent: bool


class BulkOut(Struct):
    """The result of a bulk action, or its preview. `more`: it stopped early; pass `cursor` as `before` to continue."""

    matching: int
    done: int
    refused: int
    more: bool
    preview: bool
    cursor: str | None = None


class Queues(Struct):
    """Every queue that has live jobs or settings. `*` stands for all queues together."""

    queues: list[QueueInfo]


class TargetInfoOut(Struct):
    """A target that is held or waited for. `at_least`: counting stopped at `waiting`."""

    target: str
    holder: JobOut | None
    waiting: int
    at_least: bool


class TargetPageOut(Struct):
    """A page of targets, by name. Pass `cursor` for the next page; null on the last page."""

    targets: list[TargetInfoOut]
    cursor: str | None


class TargetOut(Struct):
    """The job that holds a target, and the first of the jobs in line, in order. `waiting` counts all of them;
    `at_least`: counting stopped there."""

    target: str
    holder: JobOut | None
    line: list[JobOut]
    waiting: int
    at_least: bool


class ScheduleOut(Struct):
    """A schedule. `declared`: it is declared in code. `problem`: why this release cannot read the stored schedule."""

    name: str
    task: str
    queue: str
    payload: Raw
    cron: str | None
    every: float | None
    timezone: str
    missed: Missed
    overlap: Overlap
    paused: bool
    next_at: Moment | None
    last_at: Moment | None
    last_job: str | None
    declared: bool
    problem: str | None


class SchedulesOut(Struct):
    """All schedules, by name."""

    schedules: list[ScheduleOut]


class TickOut(Struct):
    """The job that a tick enqueued, or a note that says why it enqueued none."""

    at: Moment
    job: str | None
    note: str | None


class Ticks(Struct):
    """Ticks of a schedule, the latest first."""

    ticks: list[TickOut]


class Workers(Struct):
    """Every live worker, and those lost within a day."""

    workers: list[WorkerInfo]


class HistogramOut(Struct):
    """Counts of durations by bucket. Each bucket ends at one of the bounds, inclusive; the last one has no bound.

    `total` is the sum of all durations, in seconds.
    """

    counts: list[int]
    total: float


class PointOut(Struct):
    """Statistics of a queue within a step: attempts by outcome, jobs by state, and durations."""

    at: Moment
    step: float
    queue: str
    counts: dict[str, int]
    waits: HistogramOut
    starts: HistogramOut
    runs: HistogramOut
    gauges: dict[str, float]


class Points(Struct):
    """Statistics of some queues. `bounds` are the bucket bounds of the histograms, in seconds. Pass `cursor` for the
    next queues; null on the last page."""

    bounds: list[float]
    points: list[PointOut]
    cursor: str | None


class Failures(Struct):
    """Jobs that have failed, by task and error, the latest first."""

    failures: list[FailureGroup]


class AuditEntryOut(Struct):
    """One change: who made it, what it was, its subject, and details."""

    id: str
    at: Moment
    who: str
    what: str
    subject: str
    detail: Raw


class AuditOut(Struct):
    """A page of entries, the latest first. Pass `cursor` for the next page; null on the last page."""

    entries: list[AuditEntryOut]
    cursor: str | None


class TaskOut(Struct):
    """A task that can be enqueued. `payload` and `result` are JSON schemas; null if the types have none."""

    name: str
    summary: str | None
    queue: str
    priority: int
    max_attempts: int
    timeout: float | None
    payload: dict[str, Any] | None
    result: dict[str, Any] | None


class TasksOut(Struct):
    """The tasks of this app, by name."""

    tasks: list[TaskOut]


_SAME = tuple(name for name in JobOut.__struct_fields__ if name not in _EMBEDDED)


def raw(text: str | None) -> Raw:
    """Redacted JSON text as a value of a response. `HIDDEN`, which replaces unreadable text, is encoded as a string."""
    return Raw(b"null" if text is None else msgspec.json.encode(text) if text == HIDDEN else text.encode())


def job_out(job: Job[Any], redact: Redact) -> JobOut:
    """A job as a response."""
    return JobOut(**_job_fields(job, redact))


def jobs_out(jobs: Iterable[Job[Any]], redact: Redact) -> list[JobOut]:
    """Jobs as responses, in the same order."""
    return [job_out(job, redact) for job in jobs]


def _job_fields(job: Job[Any], redact: Redact) -> dict[str, Any]:
    job = redacted(job, redact)
    texts = {"payload": raw(job.payload_json), "result": raw(job.result_json), "context": raw(job.context)}
    return {name: getattr(job, name) for name in _SAME} | texts


def job_view(
    details: JobDetails,
    redact: Redact,
) -> JobView:
    """A job with its attempts, steps, dependencies, dependents and explanation as a response."""
    dependencies = redacted(details.dependencies, redact)
    return JobView(
        **_job_fields(details.job, redact),
        attempts=redacted(details.attempts, redact),
        steps=steps_out(details.steps, redact),
        dependencies=[DependencyOut(one.chain, one.state, raw(one.result_json), one.task) for one in dependencies],
        dependents=jobs_out(details.dependents, redact),
        explain=redacted(details.explanation, redact),
    )


def steps_out(steps: list[StepRecord], redact: Redact) -> list[StepOut]:
    return [
        StepOut(one.name, one.kind, one.at, one.until, raw(one.result_json), one.started_at, raw(one.input_json))
        for one in redacted(steps, redact)
    ]


def chain_out(chain: Chain, redact: Redact) -> ChainOut:
    """A chain as a response."""
    return ChainOut(chain.id, chain.state, raw(redacted(chain, redact).result_json), jobs_out(chain, redact))


def target_info_out(info: TargetInfo, redact: Redact) -> TargetInfoOut:
    """A target of a list as a response."""
    return TargetInfoOut(info.target, _holder(info.holder, redact), info.waiting, info.at_least)


def target_out(view: TargetView, redact: Redact) -> TargetOut:
    """A target and the jobs in line as a response."""
    holder, line = _holder(view.holder, redact), jobs_out(view.line, redact)
    return TargetOut(view.target, holder, line, view.waiting, view.at_least)


def _holder(job: Job[Any] | None, redact: Redact) -> JobOut | None:
    return None if job is None else job_out(job, redact)


def schedule_out(info: ScheduleInfo, redact: Redact) -> ScheduleOut:
    """A schedule as a response."""
    same = {name: getattr(info, name) for name in ScheduleOut.__struct_fields__ if name != "payload"}
    return ScheduleOut(**same, payload=raw(redacted(info, redact).payload_json))


def ticks_out(ticks: Iterable[Tick]) -> Ticks:
    """Ticks as a response."""
    return Ticks([TickOut(*tick) for tick in ticks])


def point_out(point: StatPoint) -> PointOut:
    """Statistics of one step as a response."""
    waits, starts, runs = (_histogram_out(times) for times in (point.waits, point.starts, point.runs))
    return PointOut(point.at, point.step, point.queue, point.counts, waits, starts, runs, point.gauges)


def _histogram_out(times: Histogram) -> HistogramOut:
    return HistogramOut(list(times.counts), times.total)


def entry_out(entry: AuditEntry, redact: Redact) -> AuditEntryOut:
    """An entry of the audit trail as a response, with its details redacted."""
    detail = Raw(msgspec.json.encode(redacted(entry, redact).detail))
    return AuditEntryOut(entry.id, entry.at, entry.who, entry.what, entry.subject, detail)


def no_queue(name: str) -> QueueInfo:
    """A queue without jobs and settings."""
    return QueueInfo(name, False, None, 0, 0, 0, 0, 0)
