"""Limits, and what people ask of running jobs: traps that each catch a design which looks right."""

from __future__ import annotations

import threading
import time

import pytest

from relet._core.job import Outcome, Raised, Released, Snoozed, State, Succeeded
from relet._store.flows import claim, claim_scope, control, maintenance, operations, settle
from relet._store.flows.operations import Operation
from tests.harness import StoreHarness, draft, half, token
from tests.store.interleave import Background

# Limits.


def test_a_limit_for_all_leaves_room_in_queues_without_a_limit_of_their_own(harness: StoreHarness) -> None:
    harness.limit("*", 10)
    harness.enqueue(*(draft() for _ in range(12)))
    assert [len(harness.claim(2)) for _ in range(6)] == [2, 2, 2, 2, 2, 0]


def test_limits_of_a_queue_and_of_all_hold_together(harness: StoreHarness) -> None:
    harness.limit("*", 5)
    harness.limit("a", 2)
    harness.enqueue(*(draft(queue=queue) for queue in "aaaabbbb"))
    jobs = harness.claim(8, ("a", "b"))
    assert sorted(job.queue for job in jobs) == ["a", "a", "b", "b", "b"]
    harness.succeed(jobs[0])
    assert len(harness.claim(8, ("a", "b"))) == 1


def test_an_expired_owner_under_a_limit_of_one_is_reaped_before_another_runs(harness: StoreHarness) -> None:
    harness.limit("default", 1)
    old = harness.claim_new(policy={"max_attempts": 9})
    harness.add()
    assert harness.claim(1) == []
    harness.later(60)
    harness.run(maintenance.record_pulse, grace=0.0)
    assert len(harness.claim(1)) == 1
    answer = harness.renew(old.lease)
    assert answer.lost == [old.lease]
    assert harness.count("jobs", "state = 'running'") == 1


def test_an_expired_owner_counts_while_no_worker_may_reap(harness: StoreHarness) -> None:
    harness.limit("default", 1)
    old = harness.claim_new()
    harness.add()
    harness.later(60)  # no beat: the store was away
    assert harness.claim(1) == []
    assert list(harness.renew(old.lease).renewed) == [old.lease]


def test_a_second_claim_under_a_limit_of_one_waits_and_finds_no_room(pg_harness: StoreHarness) -> None:
    pg_harness.limit("default", 1)
    pg_harness.enqueue(draft(), draft())
    first = pg_harness.session()
    assert len(first.leave_open(pg_harness.claim_flow(1)).jobs) == 1
    second = Background(lambda: pg_harness.claim(1))
    assert second.blocked
    first.commit()
    assert second.result() == []


def test_a_limit_lowered_while_a_claim_waits_is_heeded(pg_harness: StoreHarness) -> None:
    pg_harness.limit("default", 5)
    pg_harness.enqueue(*(draft() for _ in range(5)))
    assert len(pg_harness.claim(1)) == 1
    person = pg_harness.session()
    person.leave_open(control.set_queue("default", max_running=2))
    waiting = Background(lambda: pg_harness.claim(5))
    assert waiting.blocked
    person.commit()
    assert len(waiting.result()) == 1


def test_a_limit_raised_lowered_and_lifted_during_claims_is_never_exceeded(pg_harness: StoreHarness) -> None:
    """Never more running than the largest limit of the time; nothing stuck once it is lifted."""
    pg_harness.limit("default", 3)
    pg_harness.enqueue(*(draft() for _ in range(60)))
    over = threading.Event()
    seen: list[int] = []

    def work() -> None:
        while not over.is_set():
            for job in pg_harness.claim(2, worker=token()):
                pg_harness.succeed(job)

    def watch() -> None:
        while not over.is_set():
            seen.append(pg_harness.count("jobs", "state = 'running'"))

    threads = [Background(work) for _ in range(3)] + [Background(watch)]
    for most in [1, 2, 0, 3, 1] * 4:
        pg_harness.limit("default", most)
        time.sleep(0.02)
    time.sleep(0.2)
    over.set()
    for thread in threads:
        thread.result()
    assert max(seen) <= 3
    pg_harness.limit("default", None)
    assert len(pg_harness.claim(100)) == pg_harness.count("jobs")


def test_an_open_completion_counts_as_running_until_it_commits(pg_harness: StoreHarness) -> None:
    pg_harness.limit("default", 1)
    job = pg_harness.claim_new()
    pg_harness.add()
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(job.lease, Succeeded("1"))], half))
    assert Background(lambda: pg_harness.claim(1)).result(5) == []
    handler.commit()
    assert len(pg_harness.claim(1)) == 1


def test_a_limited_queue_is_served_beside_an_unlimited_backlog(harness: StoreHarness) -> None:
    """A worker that names the limited queue first must not be starved by a queue that is never empty."""
    harness.limit("precious", 2)
    harness.enqueue(*(draft(queue="bulk") for _ in range(10)), draft(queue="precious"))
    assert "precious" in {job.queue for _ in range(3) for job in harness.claim(2, ("precious", "bulk"))}


# What people ask of a running job.

EXITS: dict[str, Outcome] = {
    "retried": Raised("x"),
    "failed": Raised("x", fatal=True),
    "snoozed": Snoozed(5.0),
    "released": Released(),
    "released at shutdown": Released(pause=True),
}


@pytest.mark.parametrize("target", [None, "x"])
@pytest.mark.parametrize("exit", [*EXITS, "reaped"])
@pytest.mark.parametrize(("verb", "end"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_a_request_is_honoured_however_the_attempt_ends(
    harness: StoreHarness, verb: str, end: State, exit: str, target: str | None
) -> None:
    job = harness.claim_new(target=target)
    assert harness.run(getattr(control, verb), job.id).request == verb
    harness.later(60).reap() if exit == "reaped" else harness.settle((job.lease, EXITS[exit]))
    found = harness.get(job.id)
    assert found is not None
    assert (found.state, found.request) == (end, None)
    assert found.holds == (end is State.PAUSED and target is not None)


def test_a_cancel_outweighs_a_pause_in_either_order(harness: StoreHarness) -> None:
    for verbs in (("pause", "cancel"), ("cancel", "pause")):
        job = harness.claim_new()
        for verb in verbs:
            harness.run(getattr(control, verb), job.id)
        assert harness.release(job) is State.CANCELLED


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "run_now", "complete", "delete"])
def test_a_verb_repeated_after_an_unknown_commit_gets_the_answer_of_the_first(harness: StoreHarness, verb: str) -> None:
    id = harness.add(delay=100.0)
    if verb == "resume":
        harness.run(control.pause, id)
    flow = getattr(control, verb)
    arguments = (id, '"r"') if verb == "complete" else (id,)
    operation = Operation(draft().id, verb, id)
    first = harness.run(operations.once, operation, flow, *arguments)
    harness.run(control.delete, id)
    second = harness.later(100).run(operations.once, operation, flow, *arguments)
    assert getattr(first, "state", first) == getattr(second, "state", second)


def test_a_paused_job_with_spent_attempts_can_be_resumed(harness: StoreHarness) -> None:
    """Every row that a legal history makes must pass the checks of the schema on its way on."""
    job = harness.claim_new(policy={"max_attempts": 1}, target="x")
    harness.run(control.pause, job.id)
    assert harness.settle((job.lease, Raised("x"))) == [State.PAUSED]
    harness.run(control.resume, job.id)
    harness.promote()
    assert [one.attempt for one in harness.claim()] == [1]


def test_a_job_that_loses_workers_at_its_last_attempt_runs_alone_before_it_fails(harness: StoreHarness) -> None:
    job = harness.claim_new(policy={"max_attempts": 1})
    for losses in (1, 2):
        harness.later(100).reap()
        harness.later(100).promote()
        assert harness.claim(alone=losses == 1) == [], "with one loss it runs in company, with two it does not"
        (job,) = harness.claim(alone=losses == 2)
        assert (job.attempt, job.losses) == (1, losses)
    harness.later(100).reap()
    assert harness.state(job.id) is State.FAILED


# Taking in advance from queues with limits.


def claim_ahead(harness: StoreHarness) -> int:
    """Ask for 20 jobs, of which 5 can start at once and 10 may wait; how many were claimed."""
    scopes = [claim_scope.Scope("default", 20)]
    found = harness.run(claim.claim, "w", token(), scopes, ["t"], want=20, slots=5, ahead=10, lease=30.0, random=half)
    return len(found.jobs)


@pytest.mark.parametrize(("limit", "expected"), [(100, 15), (8, 8), (3, 3)])
def test_a_limited_claim_takes_some_in_advance_and_no_more_than_the_limit_allows(
    harness: StoreHarness, limit: int, expected: int
) -> None:
    harness.limit("default", limit)
    harness.enqueue(*(draft() for _ in range(30)))
    assert claim_ahead(harness) == expected
    assert harness.count("jobs", "state = 'running'") == expected


def test_nothing_is_taken_in_advance_where_starts_are_counted(harness: StoreHarness) -> None:
    harness.run(control.set_queue, "default", rate=("", 100, 60.0))
    harness.enqueue(*(draft() for _ in range(30)))
    assert claim_ahead(harness) == 5


def test_a_claim_that_knows_of_the_limit_serves_the_queue_when_that_is_lifted(harness: StoreHarness) -> None:
    harness.enqueue(*(draft() for _ in range(3)))
    scopes, known = [claim_scope.Scope("default", 5)], frozenset({"default"})
    found = harness.run(
        claim.claim, "w", token(), scopes, ["t"], want=5, lease=30.0, random=half, check_flags=False, limited=known
    )
    assert len(found.jobs) == 3
