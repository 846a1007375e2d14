"""Whether the database has lost what it acknowledged: a version can only grow, and has one token."""

from __future__ import annotations

import pytest

from relet._core.job import Claimed, Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from relet._store.flows import control
from relet._store.flows.losses import undone
from tests.harness import StoreHarness, token

pytestmark = pytest.mark.every_store

ENDS: list[Outcome] = [
    Succeeded('"done"'), Raised("boom"), Raised("boom", fatal=True), Snoozed(5.0), Released(), Released(pause=True),
]  # fmt: skip


def of(harness: StoreHarness, *jobs: Claimed) -> dict[Lease, State | None]:
    return harness.run(undone, {job.lease: job.version for job in jobs})


def behind(harness: StoreHarness, job: Claimed, change: str) -> None:
    """The row as it was earlier, or became after that, on a server that took over."""
    for table in ("jobs", "finished"):
        harness.query(f"update {{s}}{table} set {change} where id = '{job.id}'")


@pytest.mark.parametrize("outcome", ENDS, ids=["success", "retry", "failure", "snooze", "release", "pause"])
def test_a_stored_outcome_is_not_reported(shared_harness: StoreHarness, outcome: Outcome) -> None:
    job = shared_harness.claim_new()
    state = shared_harness.end(job, outcome)
    assert of(shared_harness, job) == {}
    if state in (State.QUEUED, State.PENDING):
        shared_harness.later(1000.0).promote_all()
        (again,) = shared_harness.claim()
        assert of(shared_harness, job) == {}, "a later attempt changes nothing"
        shared_harness.succeed(again)
        assert of(shared_harness, job, again) == {}


def test_changes_by_operators_and_reapers_are_not_reported(shared_harness: StoreHarness) -> None:
    reaped, completed = shared_harness.claim_new(), shared_harness.claim_new()
    shared_harness.run(control.complete, completed.id, "null")
    shared_harness.later(1000.0).reap()
    assert of(shared_harness, reaped, completed) == {}


def test_a_lost_end_is_reported(shared_harness: StoreHarness) -> None:
    """The claim is stored: the job runs, as the database says, under a lease that has ended."""
    job = shared_harness.claim_new()
    assert of(shared_harness, job) == {job.lease: State.RUNNING}


def test_a_lost_claim_is_reported_even_after_another_one_took_the_same_version(shared_harness: StoreHarness) -> None:
    queued, ended = shared_harness.claim_new(), shared_harness.claim_new()
    shared_harness.release(queued)
    behind(shared_harness, queued, "version = version - 1")
    shared_harness.succeed(ended)
    behind(shared_harness, ended, f"token = '{token()}'")
    assert of(shared_harness, queued, ended) == {queued.lease: State.QUEUED, ended.lease: State.SUCCEEDED}


def test_a_job_that_is_not_there_has_no_state(shared_harness: StoreHarness) -> None:
    job = shared_harness.claim_new()
    shared_harness.succeed(job)
    shared_harness.run(control.delete, job.id)
    assert of(shared_harness, job) == {job.lease: None}
    assert of(shared_harness) == {}
