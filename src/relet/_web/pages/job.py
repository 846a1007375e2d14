"""The page of one job: its fields, timeline, chain, dependencies and dependents."""

from __future__ import annotations

from typing import Any

from ..._core.job import AttemptRecord, Job, State
from ..._core.verbs import VERBS
from ...errors import InvalidInput
from . import timeline
from .formatting import pretty
from .page import Page, PageContext, PageNotFound
from .rerun import offers_rerun

MAX_LISTED = 100  # dependencies or attempts; only the number of the others is displayed


def job(view: PageContext, id: str) -> Page:
    """The page of one job."""
    try:
        details = view.client.describe(id)
    except InvalidInput as error:
        raise PageNotFound(f"Invalid job id: {error}.") from None
    found, attempts, dependencies = details.job, details.attempts, details.dependencies
    verbs = [verb for verb in VERBS.values() if verb.allows(found)]
    context: dict[str, Any] = {
        "job": found,
        "verbs": verbs,
        "offers_rerun": offers_rerun(found),
        "reasons": details.explanation,
        "attempts": attempts[-MAX_LISTED:],
        "attempts_left": max(len(attempts) - MAX_LISTED, 0),
        "drawing": timeline.draw(life(found, attempts, view.now.timestamp())),
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
