"""The page of one job: its fields, timeline, chain, dependencies and dependents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..._core.job import AttemptRecord, State, StepRecord
from ..._core.verbs import VERBS
from ..._core.views import JobDetails
from ...errors import InvalidInput
from . import timeline
from .formatting import clock, pretty, visible_line
from .page import Page, PageContext, PageNotFound
from .rerun import offers_rerun

ENDLESS = 10 * 365 * 86400.0  # seconds: a wait without a timeout ends later than this
MAX_LISTED = 100  # dependencies or attempts; only the number of the others is displayed


def job(view: PageContext, id: str) -> Page:
    """The page of one job."""
    try:
        details = view.client.describe(id)
    except InvalidInput as error:
        raise PageNotFound(f"Invalid job id: {error}.") from None
    found, attempts, dependencies = details.job, details.attempts, details.dependencies
    verbs = [verb for verb in VERBS.values() if verb.allows(found)]
    rows = steps_of(details, view)
    context: dict[str, Any] = {
        "job": found,
        "verbs": verbs,
        "awaits": awaited_signal(details),
        "offers_rerun": offers_rerun(found),
        "reasons": details.explanation,
        "attempts": attempts[-MAX_LISTED:],
        "attempts_left": max(len(attempts) - MAX_LISTED, 0),
        "drawing": timeline.draw(life(details, view)),
        "steps": rows[-MAX_LISTED:],
        "steps_left": max(len(rows) - MAX_LISTED, 0),
        "draws_leases": any(one.outcome in timeline.LEASED for one in attempts),
        "chain": details.chain,
        "dependencies": dependencies[:MAX_LISTED],
        "dependencies_left": max(len(dependencies) - MAX_LISTED, 0),
        "payload": pretty(view.redact(found.payload_json)),
        "result": None if found.result_json is None else pretty(view.redact(found.result_json)),
        "context": None if found.context is None else pretty(view.redact(found.context)),
        "dependents": details.dependents,
        "shows_chain": bool(found.position or found.continued or dependencies or details.dependents),
    }
    return Page(f"{found.task} {found.id[-8:]}", "job.html", context)


def life(details: JobDetails, view: PageContext) -> timeline.Life:
    """A job as the input of its timeline."""
    found, now = details.job, view.now.timestamp()
    runs = [_execution(one) for one in details.attempts]
    created, run_at = found.created_at.timestamp(), found.run_at.timestamp()
    # The store keeps only the latest due time of a retried job, so its first due time is taken to be its creation.
    due = run_at if not runs or run_at <= runs[0].started else created
    ahead = run_at if runs and found.state in (State.PENDING, State.QUEUED) else None
    if found.awaits and run_at - now > ENDLESS:
        ahead = None
    ended = found.finished_at.timestamp() if found.finished_at else None
    rows = [timeline.Step(one.kind, one.name, one.start, one.end, one.note) for one in steps_of(details, view)]
    return timeline.Life(created, due, now, runs, ended, ahead, rows)


def _execution(one: AttemptRecord) -> timeline.Execution:
    return timeline.Execution(
        attempt=one.attempt,
        version=one.version,
        worker=one.worker,
        started=one.started_at.timestamp(),
        ended=None if one.ended_at is None else one.ended_at.timestamp(),
        outcome=one.outcome,
        reason=one.error,
        renewed=None if one.renewed_at is None else one.renewed_at.timestamp(),
        expires=None if one.expires_at is None else one.expires_at.timestamp(),
    )


@dataclass(frozen=True)
class StepRow:
    """A durable step, a sleep, a wait or a signal, with the time that it took. Times are seconds since 1970.

    `end` may be in the future: a sleep, or a wait that is not over.
    """

    kind: str
    name: str
    start: float
    end: float
    at: datetime  # when it was stored
    output: str | None  # the result of a step, or the value of a signal, as JSON text
    note: str
    input: str | None = None  # the arguments of a step, as JSON text


def steps_of(details: JobDetails, view: PageContext) -> list[StepRow]:
    """The steps of a job in order. A job that waits for a signal without a timeout has a last row for that wait."""
    starts = [one.started_at.timestamp() for one in details.attempts]
    signals = {one.name: one.at.timestamp() for one in details.steps if one.kind == "signal"}
    rows, before = [], 0.0
    for one in details.steps:
        at = one.at.timestamp()
        attempt = max((start for start in starts if start <= at), default=at)
        started = max(before, attempt) if one.started_at is None else one.started_at.timestamp()
        start = started if one.kind == "step" else at
        end = at if one.until is None else min(one.until.timestamp(), _woken(one, signals))
        output = None if one.result_json is None else view.redact(one.result_json)
        is_open = one.kind == "wait" and end > view.now.timestamp()
        input = None if one.input_json is None else view.redact(one.input_json)
        note = _note(one, output, is_open=is_open)
        rows.append(StepRow(one.kind, one.name, start, end, one.at, output, note, input))
        before = at if one.kind == "step" else max(before, min(end, view.now.timestamp()))
    if awaited_signal(details) and not any(row.kind == "wait" and row.end > view.now.timestamp() for row in rows):
        rows.append(_open_wait(details, view))
    return rows


def awaited_signal(details: JobDetails) -> str | None:
    """The signal for which the job waits, unless it was sent a moment ago."""
    sent = {one.name for one in details.steps if one.kind == "signal"}
    return None if details.job.awaits in sent else details.job.awaits


def _woken(one: StepRecord, signals: Mapping[str, float]) -> float:
    """When the signal for which a job waits was sent."""
    sent = signals.get(one.name, float("inf")) if one.kind == "wait" else float("inf")
    return sent if sent >= one.at.timestamp() else float("inf")


def _open_wait(details: JobDetails, view: PageContext) -> StepRow:
    since = next((one.ended_at for one in reversed(details.attempts) if one.ended_at), details.job.created_at)
    name = details.job.awaits or ""
    return StepRow("wait", name, since.timestamp(), view.now.timestamp(), since, None, "until the signal is sent")


def _note(one: StepRecord, output: str | None, *, is_open: bool) -> str:
    if one.kind == "missed":
        return "the signal was not sent in time"
    if one.kind == "sleep" and one.until is not None:
        return f"until {clock(one.until)}"
    if is_open:
        return f"until the signal is sent, at the latest {clock(one.until)}"
    return "" if output in (None, "null") else f"\u2192 {visible_line(output, 120)}"
