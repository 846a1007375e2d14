"""One job: everything about it, its life drawn, and what it is joined to."""

from __future__ import annotations

from typing import Any

from ..._core.ids import parse_id
from ..._core.job import AttemptRecord, Job, State
from ..._core.verbs import VERBS, Verb
from ...errors import InvalidInput, JobNotFound
from . import timeline
from .context import NotThere, Page, View
from .formatting import pretty

MOST_SHOWN = 100  # blockers, attempts: more are named by their number


def job(view: View, id: str) -> Page:
    """The page of one job."""
    found = get(view, id)
    attempts = view.client.attempts(found)
    chain = view.client.chain(found) if found.position or found.continued else None
    blockers = view.client.blockers(found)
    dependents = view.client.dependents(found, limit=MOST_SHOWN)
    context: dict[str, Any] = {
        "job": found,
        "actions": actions(found),
        "reasons": view.client.explain(found),
        "attempts": attempts[-MOST_SHOWN:],
        "attempts_left": max(len(attempts) - MOST_SHOWN, 0),
        "drawing": timeline.draw(life(found, attempts, view.now.timestamp())),
        "leased": any(one.outcome in timeline.LEASED for one in attempts),
        "chain": chain,
        "blockers": blockers[:MOST_SHOWN],
        "blockers_left": max(len(blockers) - MOST_SHOWN, 0),
        "payload": pretty(view.redact(found.payload_json)),
        "result": None if found.result_json is None else pretty(view.redact(found.result_json)),
        "carried": None if found.context is None else pretty(view.redact(found.context)),
        "dependents": dependents,
        "joined": bool(chain or blockers or dependents),
    }
    return Page(f"{found.task} {found.id[-8:]}", "job.html", context)


def get(view: View, id: str) -> Job[Any]:
    """The job of this id, or NotThere."""
    try:
        found = view.client.get(parse_id(id))
    except InvalidInput as error:
        raise NotThere(f"No job: {error}.") from None
    if found is None:
        raise NotThere(f"There is no job {id}: it never was, was deleted, or was pruned.")
    return found


def actions(found: Job[Any]) -> list[Verb]:
    """What can be done with a job as it is."""
    return [verb for verb in VERBS.values() if verb.allows(found)]


def life(found: Job[Any], attempts: list[AttemptRecord], now: float) -> timeline.Life:
    """A job as the drawing takes it."""
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
    # Of a job that was retried only the latest due time is kept: the first is known if it was due when it was made.
    due = run_at if not runs or run_at <= runs[0].started else created
    ahead = run_at if runs and found.state in (State.PENDING, State.QUEUED) else None
    ended = found.finished_at.timestamp() if found.finished_at else None
    return timeline.Life(created, due, now, runs, ended, ahead)


def missing(error: Exception) -> Page:
    """What is shown where something does not exist."""
    said = f"There is no job {', '.join(error.ids)}." if isinstance(error, JobNotFound) else str(error)
    advice = "It may have been deleted, or pruned since it was over."
    return Page("Not found", "problem.html", {"said": said, "advice": advice}, status=404, live=False)
