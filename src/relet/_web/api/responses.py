"""What the HTTP API answers with: the nouns of the client as they travel.

Payloads, results and the like are JSON values there, passed on as the text that the store has (`Raw`), so that numbers
of any size arrive as they were stored. They go through `redact` first. What can be asked is in `asks.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from ..._core.job import AttemptRecord, BlockerInfo, Chain, Job, Progress, Request, State, Wait
from ..._core.redact import HIDDEN, Redact, redacted
from ..._core.schedule import Missed, Overlap, ScheduleInfo, Tick
from ..._core.stats import Histogram, StatPoint
from ..._core.views import AuditEntry, FailureGroup, QueueInfo, TargetInfo, TargetView
from ..._core.worker import WorkerInfo

Moment = Annotated[datetime, Meta(tz=True)]

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """An answer, ready to be sent."""

    status: int
    body: bytes = b""
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


class JobOut(Struct, kw_only=True):
    """A job as the store knew it at one moment."""

    id: str
    task: str
    queue: str
    state: State
    priority: int
    payload: Raw
    attempt: int
    max_attempts: int
    losses: int
    version: int
    chain: str
    position: int
    created_at: Moment
    run_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    wait: Wait | None
    target: str | None
    holds: bool
    unique: str | None
    key: str | None
    worker: str | None
    expires_at: Moment | None
    renewed_at: Moment | None
    request: Request | None
    result: Raw
    error: str | None
    continued: bool
    progress: Progress | None
    awaits: str | None
    context: Raw
    existing: bool


class Attempts(Struct):
    """Every attempt of a job, in order."""

    attempts: list[AttemptRecord]


class BlockerOut(Struct):
    """A chain that a job waits or waited for; `state` is null until it has ended."""

    chain: str
    state: str | None
    result: Raw
    task: str | None


class JobView(JobOut, kw_only=True):
    """A job with its history and what it stands between. `explain` says why it does not run, in sentences."""

    attempts: list[AttemptRecord]
    blockers: list[BlockerOut]
    dependents: list[JobOut]
    explain: list[str]


class Jobs(Struct):
    """Jobs, in the order in which they were given."""

    jobs: list[JobOut]


class JobPage(Struct):
    """Some jobs, newest first. `next` is the `before` of the next page; null: these were the last."""

    jobs: list[JobOut]
    next: str | None


class Counted(Struct):
    """How many jobs: counted no further than `most`, among the newest `scan` live and `scan` finished ones."""

    count: int
    most: int
    scan: int


class Reasons(Struct):
    """Why a job does not run, in sentences; the first is the nearest reason."""

    reasons: list[str]


class ChainOut(Struct):
    """A job and those that went on with it. State and result are those of the last one."""

    id: str
    state: State
    result: Raw
    jobs: list[JobOut]


class Told(Struct):
    """`told` is false if the job was told something under this name before: that stays."""

    told: bool


class BulkOut(Struct):
    """What came of a bulk action, or would. `more`: it ended before all were come to; `next` says where to go on."""

    matching: int
    done: int
    refused: int
    more: bool
    preview: bool
    next: str | None = None


class Queues(Struct):
    """Every queue that has live jobs, or of which something was said; `*` stands for all of them together."""

    queues: list[QueueInfo]


class TargetInfoOut(Struct):
    """A target that is held or waited for."""

    target: str
    holder: JobOut | None
    waiting: int


class TargetPageOut(Struct):
    """Some targets, by name. `next` is the `after` of the next page; null: these were the last."""

    targets: list[TargetInfoOut]
    next: str | None


class TargetOut(Struct):
    """Who holds a target, and the first of those in line, in order; `waiting` counts all of them."""

    target: str
    holder: JobOut | None
    line: list[JobOut]
    waiting: int


class ScheduleOut(Struct):
    """What is enqueued on a clock. `declared`: in code. `problem`: why this release cannot read what was stored."""

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
    """The job that was enqueued for a tick, or why none was."""

    at: Moment
    job: str | None
    note: str | None


class Ticks(Struct):
    """Ticks of a schedule, the latest first."""

    ticks: list[TickOut]


class Workers(Struct):
    """Every worker that is there, or was lost within a day."""

    workers: list[WorkerInfo]


class HistogramOut(Struct):
    """How many durations were not longer than each of the bounds but longer than the one before; then the longer ones.

    `total` is the sum of them all, in seconds.
    """

    counts: list[int]
    total: float


class PointOut(Struct):
    """What was counted for a queue within a step: attempts by what came of them, jobs by state, and times taken."""

    at: Moment
    step: float
    queue: str
    counts: dict[str, int]
    waits: HistogramOut
    starts: HistogramOut
    runs: HistogramOut
    gauges: dict[str, float]


class Points(Struct):
    """Statistics. `bounds` are those of the histograms, in seconds."""

    bounds: list[float]
    points: list[PointOut]


class Failures(Struct):
    """Jobs that have failed, by task and error, the latest first."""

    failures: list[FailureGroup]


class AuditEntryOut(Struct):
    """Who did what, to whom, and what else there is to say."""

    id: str
    at: Moment
    who: str
    what: str
    subject: str
    detail: Raw


class AuditOut(Struct):
    """Some entries, the latest first. `next` is the `before` of the next page; null: these were the last."""

    entries: list[AuditEntryOut]
    next: str | None


class TaskOut(Struct):
    """A task that can be enqueued. `payload` and `result` are JSON schemas; null where there is none to be had."""

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


_SAME = tuple(name for name in JobOut.__struct_fields__ if name not in ("payload", "result", "context"))


def raw(text: str | None) -> Raw:
    """JSON text, as it may be shown, as a value of an answer. What could not be read is hidden, and is no JSON."""
    return Raw(b"null" if text is None else msgspec.json.encode(text) if text == HIDDEN else text.encode())


def job_out(job: Job[Any], redact: Redact) -> JobOut:
    """A job."""
    return JobOut(**_job_fields(job, redact))


def jobs_out(jobs: Iterable[Job[Any]], redact: Redact) -> list[JobOut]:
    """Jobs, in their order."""
    return [job_out(job, redact) for job in jobs]


def _job_fields(job: Job[Any], redact: Redact) -> dict[str, Any]:
    job = redacted(job, redact)
    texts = {"payload": raw(job.payload_json), "result": raw(job.result_json), "context": raw(job.context)}
    return {name: getattr(job, name) for name in _SAME} | texts


def job_view(
    job: Job[Any],
    attempts: list[AttemptRecord],
    blockers: list[BlockerInfo],
    dependents: list[Job[Any]],
    explain: list[str],
    redact: Redact,
) -> JobView:
    """A job with all that was found about it."""
    blockers = redacted(blockers, redact)
    return JobView(
        **_job_fields(job, redact),
        attempts=redacted(attempts, redact),
        blockers=[BlockerOut(one.chain, one.state, raw(one.result_json), one.task) for one in blockers],
        dependents=jobs_out(dependents, redact),
        explain=redacted(explain, redact),
    )


def chain_out(chain: Chain, redact: Redact) -> ChainOut:
    """A chain."""
    return ChainOut(chain.id, chain.state, raw(redacted(chain, redact).result_json), jobs_out(chain, redact))


def target_info_out(info: TargetInfo, redact: Redact) -> TargetInfoOut:
    """A target in a list."""
    return TargetInfoOut(info.target, _holder(info.holder, redact), info.waiting)


def target_out(view: TargetView, redact: Redact) -> TargetOut:
    """A target and its line."""
    return TargetOut(view.target, _holder(view.holder, redact), jobs_out(view.line, redact), view.waiting)


def _holder(job: Job[Any] | None, redact: Redact) -> JobOut | None:
    return None if job is None else job_out(job, redact)


def schedule_out(info: ScheduleInfo, redact: Redact) -> ScheduleOut:
    """A schedule."""
    same = {name: getattr(info, name) for name in ScheduleOut.__struct_fields__ if name != "payload"}
    return ScheduleOut(**same, payload=raw(redacted(info, redact).payload_json))


def ticks_out(ticks: Iterable[Tick]) -> Ticks:
    """Ticks."""
    return Ticks([TickOut(*tick) for tick in ticks])


def point_out(point: StatPoint) -> PointOut:
    """What was counted."""
    waits, starts, runs = (_histogram_out(times) for times in (point.waits, point.starts, point.runs))
    return PointOut(point.at, point.step, point.queue, point.counts, waits, starts, runs, point.gauges)


def _histogram_out(times: Histogram) -> HistogramOut:
    return HistogramOut(list(times.counts), times.total)


def entry_out(entry: AuditEntry, redact: Redact) -> AuditEntryOut:
    """An entry of the audit trail; what is hidden elsewhere is hidden in it as well."""
    detail = Raw(msgspec.json.encode(redacted(entry, redact).detail))
    return AuditEntryOut(entry.id, entry.at, entry.who, entry.what, entry.subject, detail)


def no_queue(name: str) -> QueueInfo:
    """A queue of which nothing is known."""
    return QueueInfo(name, False, None, 0, 0, 0, 0, 0)
