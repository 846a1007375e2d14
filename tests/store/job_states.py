"""Jobs in any state, brought there by the verbs that lead to it."""

from __future__ import annotations

import uuid
from typing import Any

from relet._core.job import Claimed, Lease, Raised, Succeeded
from relet._store.flows import control
from tests.harness import StoreHarness


def job_in(harness: StoreHarness, situation: str, target: str | None = None, **options: Any) -> tuple[str, Lease]:
    """A job in this state, and a lease to settle it with: its own if it runs, otherwise one that nothing holds."""
    id = _enqueued(harness, situation, {"target": target, **options})
    if situation in ("running", "succeeded", "failed", "cancelled"):
        lease = leases(harness.claim())[id]
        if situation == "running":
            return id, lease
        harness.settle((lease, Succeeded() if situation == "succeeded" else Raised("boom", fatal=True)))
    if situation in ("paused", "paused-target"):
        harness.run(control.pause, id)
    if situation == "cancelled":
        harness.run(control.cancel, id)
    assert harness.state(id) == situation.split("-")[0]
    return id, Lease(id, str(uuid.UUID(int=999)))


def leases(jobs: list[Claimed]) -> dict[str, Lease]:
    """By the ids of the jobs."""
    return {job.id: job.lease for job in jobs}


def _enqueued(harness: StoreHarness, situation: str, options: dict[str, Any]) -> str:
    """A job that is queued, or waits as the situation demands."""
    match situation:
        case "pending-time":
            return harness.add(delay=60.0, **options)
        case "pending-jobs":
            options["depends_on"] = (harness.add(queue="elsewhere"),)
        case "pending-target" | "paused-target":
            harness.add(queue="elsewhere", target="x")
            harness.promote()
            return harness.add(**{**options, "target": "x"})
    id = harness.add(**options)
    harness.promote()
    return id
