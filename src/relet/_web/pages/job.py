"""The page of one job: its fields, timeline, chain, dependencies and dependents."""

from __future__ import annotations

from typing import Any

from ..._core.ids import parse_id
from ..._core.job import AttemptRecord, Job, State
from ..._core.verbs import VERBS, Verb
from ..._core.views import JobDetails
from ...errors import InvalidInput
from . import timeline
from .context import Page, PageContext, PageNotFound
from .formatting import pretty

MAX_LISTED = 100  # dependencies or attempts; only the number of the others is displayed


def job(view: PageContext, id: str) -> Page:
    """The page of one job."""
    details = describe(view, id)
    found, attempts, dependencies = details.job, details.attempts, details.dependencies
    context: dict[str, Any] = {
        "job": found,
        "actions": actions(found),
        "reasons": details.explanation,
        "attempts": attempts[-MAX_LISTED:],
        "attempts_left": max(len(attempts) - MAX_LISTED, 0),
        "drawing": timeline.draw(life(found, attempts, view.now.timestamp())),
        "leased": any(one.outcome in timeline.LEASED for one in attempts),
        "chain": details.chain,
        "dependencies": dependencies[:MAX_LISTED],
        "dependencies_left": max(len(dependencies) - MAX_LISTED, 0),
        "payload": pretty(view.redact(found.payload_json)),
        "result": None if found.result_json is None else pretty(view.redact(found.result_json)),
        "carried": None if found.context is None else pretty(view.redact(found.context)),
        "dependents": details.dependents,
        "joined": bool(found.position or found.continued or dependencies or details.dependents),
    }
    return Page(f"{found.task} {found.id[-8:]}", "job.html", context)


def get(view: PageContext, id: str) -> Job[Any]:
    """The job of this id. Raises PageNotFound if there is none."""
    try:
        found = view.client.get(parse_id(id))
    except InvalidInput as error:
        raise PageNotFound(f"Invalid job id: {error}.") from None
    if found is None:
        raise PageNotFound(f"There is no job {id}.")
    return found


def describe(view: PageContext, id: str) -> JobDetails:
    """The job of this id with all that its page displays. Raises PageNotFound if there is no such job."""
    try:
        return view.client.describe(id)
    except InvalidInput as error:
        raise PageNotFound(f"Invalid job id: {error}.") from None


def actions(found: Job[Any]) -> list[Verb]:
    """The verbs that the state of a job allows."""
    return [verb for verb in VERBS.values() if verb.allows(found)]


def life(found: Job[Any], attempts: list[AttemptRecord], now: float) -> timeline.Life:
    """A job as the input of its timeline."""
    runs = [
        timeline.Execution(
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
        for one in attempts
    ]
    created, run_at = found.created_at.timestamp(), found.run_at.timestamp()
    # The store keeps only the latest due time of a retried job, so its first due time is taken to be its creation.
    due = run_at if not runs or run_at <= runs[0].started else created
    ahead = run_at if runs and found.state in (State.PENDING, State.QUEUED) else None
    ended = found.finished_at.timestamp() if found.finished_at else None
    return timeline.Life(created, due, now, runs, ended, ahead)
