"""The fence and the claim: traps that each catch a design which looks right.

What must hold is the name of the test. Those with `b` run on every store; with `pg` there are two transactions at once.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time

import psycopg
import pytest

from relet._core.job import Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from relet._store import postgres
from relet._store.flows import control, inspect, lease, maintenance
from relet._store.flows import settle as settle_flows
from relet._store.postgres import PostgresStore
from relet._store.query import Flow, Query, Row
from relet.errors import StoreError
from tests.harness import StoreHarness, draft, half
from tests.plugin.selection import rounds
from tests.store.interleave import Background, Session

pytestmark = pytest.mark.every_store

# The fence.


def test_a_zombie_of_the_same_worker_does_not_slip_through_beside_the_live_attempt_in_one_batch(
    harness: StoreHarness,
) -> None:
    """A worker that lost a job and claimed it again holds two leases of one id. Only the newer one counts."""
    for order in (1, -1):
        old = harness.claim_new(policy={"max_attempts": 9})
        harness.later(60).reap()
        (new,) = harness.claim()
        assert new.id == old.id
        outcomes: list[tuple[Lease, Outcome]] = [
            (old.lease, Raised("the zombie's", fatal=True)),
            (new.lease, Snoozed(500.0)),
        ]
        states = harness.settle(*outcomes[::order])
        assert harness.state(new.id) is State.PENDING, "the zombie's outcome was written"
        assert states[::order] == [None, State.PENDING]


def test_a_zombie_beside_the_live_attempt_makes_no_second_successor(harness: StoreHarness) -> None:
    old = harness.claim_new(policy={"max_attempts": 9})
    harness.later(60).reap()
    (new,) = harness.claim()
    right, wrong = draft(), draft()
    states = harness.settle(
        (old.lease, Succeeded('"zombie"', continue_with=wrong)), (new.lease, Succeeded('"owner"', continue_with=right))
    )
    assert states == [None, State.SUCCEEDED]
    assert (harness.state(right.id), harness.state(wrong.id)) == (State.QUEUED, None)
    done = harness.get(new.id)
    assert done is not None
    assert done.result_json == '"owner"'


def test_a_zombie_is_told_that_it_lost_when_both_leases_are_renewed_together(harness: StoreHarness) -> None:
    old = harness.claim_new(policy={"max_attempts": 9})
    harness.later(60).reap()
    (new,) = harness.claim()
    for leases in ([old.lease, new.lease], [new.lease, old.lease]):
        harness.later(10)
        answer = harness.renew(*leases)
        expires = harness.query("select expires_at from {s}jobs")[0][0]
        stamp = expires if isinstance(expires, float | int) else expires.timestamp()
        assert stamp == harness.now + 30, "the live lease was not renewed"
        assert not answer.unknown
        assert len(answer.renewed) == 1
        assert answer.lost == [old.lease]


def test_an_owner_whose_job_was_completed_from_outside_is_told_that_it_lost(harness: StoreHarness) -> None:
    job = harness.claim_new()
    harness.run(control.complete, job.id, '"by hand"')
    assert harness.settle((job.lease, Succeeded('"by the zombie"'))) == [None]
    done = harness.get(job.id)
    assert done is not None
    assert done.result_json == '"by hand"'


def test_an_owner_whose_job_was_reaped_and_then_cancelled_is_told_that_it_lost(harness: StoreHarness) -> None:
    job = harness.claim_new()
    harness.run(control.cancel, job.id)
    harness.later(60).reap()
    assert harness.state(job.id) is State.CANCELLED
    assert harness.settle((job.lease, Succeeded())) == [None]


@pytest.mark.parametrize("outcome", [Succeeded("1"), Raised("x"), Raised("x", fatal=True), Snoozed(9.0), Released()])
def test_a_settle_repeated_after_an_unknown_commit_is_recognised_and_changes_nothing(
    harness: StoreHarness, outcome: Succeeded
) -> None:
    job = harness.claim_new()
    first = harness.settle((job.lease, outcome))
    before = harness.get(job.id)
    assert harness.settle((job.lease, outcome)) == first != [None]
    assert harness.get(job.id) == before
    assert len(harness.run(inspect.attempts, job.id)) == 1


def test_a_settle_repeated_once_others_went_on_with_the_job_changes_nothing(harness: StoreHarness) -> None:
    job = harness.claim_new()
    harness.release(job)
    (new,) = harness.claim()
    assert harness.settle((job.lease, Raised("late", fatal=True))) == [None]
    assert harness.state(new.id) is State.RUNNING


def test_a_batch_with_a_lost_lease_settles_the_others(harness: StoreHarness) -> None:
    lost = harness.claim_new(policy={"on_expired": "fail"})
    harness.later(60).reap()
    harness.enqueue(*(draft() for _ in range(3)))
    one, two, three = harness.claim()
    answers = harness.settle(
        (one.lease, Succeeded("1")), (lost.lease, Succeeded("0")), (two.lease, Raised("x")), (lost.lease, Raised("y"))
    )
    assert answers == [State.SUCCEEDED, None, State.PENDING, None]
    assert harness.state(lost.id) is State.FAILED
    assert harness.state(three.id) is State.RUNNING


def test_an_owner_past_its_expiry_that_was_not_reaped_may_renew_and_settle(harness: StoreHarness) -> None:
    job = harness.claim_new()
    assert list(harness.later(100).renew(job.lease).renewed) == [job.lease]
    assert harness.reap() == []
    assert harness.later(100).succeed(job) is State.SUCCEEDED


def test_a_reaper_does_not_overwrite_a_job_that_was_completed_meanwhile(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    pg_harness.later(60)
    pg_harness.run(maintenance.record_pulse, grace=0.0)
    owner = pg_harness.session()
    owner.leave_open(settle_flows.settle([(job.lease, Succeeded("1"))], half))
    assert Background(lambda: pg_harness.run(lease.reap, half)).result(5) == []
    owner.commit()
    assert pg_harness.run(lease.reap, half) == []
    assert pg_harness.state(job.id) is State.SUCCEEDED


def test_an_owner_whose_job_is_being_reaped_waits_and_is_told_that_it_lost(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    pg_harness.later(60)
    pg_harness.run(maintenance.record_pulse, grace=0.0)
    reaper = pg_harness.session()
    assert len(reaper.leave_open(lease.reap(half))) == 1
    answer = pg_harness.renew(job.lease)
    assert (list(answer.locked), answer.lost) == ([job.lease], [])
    settling = Background(lambda: pg_harness.settle((job.lease, Succeeded())))
    assert settling.blocked
    reaper.commit()
    assert settling.result() == [None]
    assert pg_harness.state(job.id) is State.QUEUED


def test_a_lease_renewed_while_the_reaper_looks_is_not_reaped(pg_harness: StoreHarness) -> None:
    """The reaper's snapshot still shows the old expiry: it must look again once it has the lock."""
    jobs = [pg_harness.claim_new() for _ in range(2)]
    pg_harness.later(60)
    pg_harness.run(maintenance.record_pulse, grace=0.0)
    for _ in range(50):
        renewing = Background(lambda: pg_harness.renew(*(job.lease for job in jobs)))
        reaped = pg_harness.run(lease.reap, half)
        answer = renewing.result()
        gone = {change.id for change in reaped}
        assert not gone & {one.id for one in answer.renewed}
        if gone:
            break


def test_a_settle_that_waited_for_a_renewal_goes_through(pg_harness: StoreHarness) -> None:
    """The row it deletes is newer than the snapshot that it started with."""
    job = pg_harness.claim_new(unique="k", target="x")
    beat = pg_harness.session()
    beat.leave_open(lease.renew("w", [job.lease], lease=99.0))
    settling = Background(lambda: pg_harness.succeed(job))
    assert settling.blocked
    beat.commit()
    assert settling.result() is State.SUCCEEDED
    assert (
        pg_harness.count("jobs"),
        pg_harness.count("finished"),
        pg_harness.count("keys"),
        pg_harness.count("nudges"),
    ) == (0, 1, 0, 1)


def test_renewal_of_many_against_settle_of_many_never_deadlocks(pg_harness: StoreHarness) -> None:
    pg_harness.enqueue(*(draft() for _ in range(40)))
    leases = [job.lease for job in pg_harness.claim(40)]
    outcomes: list[Outcome] = [Succeeded("1"), Raised("x")]
    over = threading.Event()
    done, enough = [0, 0], rounds(200, all=500)

    def beat() -> None:
        while not over.is_set():
            pg_harness.renew(*random.sample(leases, 40))
            done[0] += 1

    def settle() -> None:
        session = pg_harness.session()
        end = time.monotonic() + 50
        while time.monotonic() < end and min(done) < enough:
            some = [(one, random.choice(outcomes)) for one in random.sample(leases, 20)]
            session.leave_open(settle_flows.settle(some, half))
            session.roll_back()
            done[1] += 1
        over.set()

    threads = [Background(beat), Background(beat), Background(settle)]
    for thread in threads:
        thread.result(60)  # raises what a deadlock would have raised
    assert min(done) >= enough


@pytest.mark.long
def test_two_settles_of_overlapping_batches_never_deadlock(pg_harness: StoreHarness) -> None:
    pg_harness.enqueue(*(draft() for _ in range(30)))
    ends: list[Outcome] = [Succeeded("1"), Raised("x"), Snoozed(1)]
    outcomes = [(job.lease, random.choice(ends)) for job in pg_harness.claim(30)]

    def settle() -> None:
        session = pg_harness.session()
        for _ in range(rounds(120, all=300)):
            some = random.sample(outcomes, 20)
            session.leave_open(settle_flows.settle(some, half))
            session.roll_back()

    for thread in [Background(settle), Background(settle)]:
        thread.result(60)


@pytest.mark.long
def test_settles_that_say_different_things_of_the_same_leases_never_deadlock(pg_harness: StoreHarness) -> None:
    """Rows are locked in one order, that of their ids: not the successes first and then the others."""
    pg_harness.enqueue(*(draft() for _ in range(30)))
    leases = [job.lease for job in pg_harness.claim(30)]
    outcomes: list[Outcome] = [Succeeded("1"), Raised("x")]

    def settle() -> None:
        session = pg_harness.session()
        for _ in range(rounds(120, all=300)):
            some = [(one, random.choice(outcomes)) for one in random.sample(leases, 20)]
            session.leave_open(settle_flows.settle(some, half))
            session.roll_back()

    for thread in [Background(settle), Background(settle)]:
        thread.result(60)


# Claims.

PLANS = [
    "hashjoin",
    "mergejoin",
    "hashagg",
    "sort",
    "material",
    "memoize",
    "indexscan",
    "bitmapscan",
    "seqscan",
    "nestloop",
]


@pytest.mark.parametrize("off", [PLANS[:5], PLANS[:6], ["indexscan", "bitmapscan"], ["nestloop"], PLANS])
@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_a_claim_of_one_takes_one_whatever_the_plan(pg_harness: StoreHarness, off: list[str], mode: str) -> None:
    pg_harness.enqueue(*(draft() for _ in range(20)), *(draft(queue="other") for _ in range(20)))
    session = pg_harness.session()
    session.execute(f"set plan_cache_mode = {mode}")
    session.execute("set jit = off")  # a plan that is forbidden counts as dear, and would be compiled for a second
    for name in off:
        session.execute(f"set enable_{name} = off")
    for want in (1, 3, 1, 2, 1, 1, 1):
        claimed = session.leave_open(pg_harness.claim_flow(want, ("default", "other")))
        session.commit()
        assert len(claimed.jobs) == want
    assert pg_harness.count("jobs", "state = 'running'") == 10


def test_a_claim_of_several_queues_and_kinds_returns_each_job_once_and_no_more_than_asked(
    harness: StoreHarness,
) -> None:
    harness.enqueue(*(draft(policy={"max_attempts": 9}) for _ in range(3)))
    harness.claim()
    harness.later(60).reap()  # three suspects
    harness.enqueue(
        *(draft() for _ in range(2)),
        *(draft(queue="limited") for _ in range(3)),
        *(draft(queue="plain") for _ in range(2)),
    )
    harness.limit("limited", 2)
    jobs = harness.claim(8, ("default", "limited", "plain"))
    assert len(jobs) == len({job.id for job in jobs}) == 8
    assert harness.count("jobs", "state = 'running'") == 8


def test_a_cancel_at_the_moment_of_claim_is_not_lost(pg_harness: StoreHarness) -> None:
    id = pg_harness.add()
    worker = pg_harness.session()
    (job,) = worker.leave_open(pg_harness.claim_flow(1)).jobs
    cancelling = Background(lambda: pg_harness.run(control.cancel, id))
    assert cancelling.blocked
    worker.commit()
    assert cancelling.result().request == "cancel"
    assert list(pg_harness.renew(job.lease).renewed.values()) == ["cancel"]
    assert pg_harness.settle((job.lease, Raised("x"))) == [State.CANCELLED]


def test_a_claim_at_the_moment_of_cancel_passes_the_job_over(pg_harness: StoreHarness) -> None:
    id = pg_harness.add()
    person = pg_harness.session()
    person.leave_open(control.cancel(id))
    assert Background(lambda: pg_harness.claim(1)).result(5) == []
    person.commit()
    assert pg_harness.claim(1) == []
    assert pg_harness.state(id) is State.CANCELLED


@pytest.mark.read_committed
def test_a_cancel_that_began_before_its_job_was_committed_cancels_it(pg_harness: StoreHarness) -> None:
    """The look for the row, and the look for a job that is over, are two: a job may come in between."""
    new = draft()
    steps = pg_harness.session().steps(control.cancel(new.id))
    steps.after("control/lock_job")
    pg_harness.enqueue(new)
    steps.finish()
    assert pg_harness.state(new.id) is State.CANCELLED


def test_a_job_at_its_last_attempt_is_never_claimable(harness: StoreHarness) -> None:
    """Otherwise it would stand at the head of the queue for ever, and eat the demand of every claim."""
    job = harness.claim_new(policy={"max_attempts": 1})
    assert harness.settle((job.lease, Raised("x"))) == [State.FAILED]
    refused = psycopg.errors.CheckViolation if harness.on_postgres else sqlite3.IntegrityError
    with pytest.raises(refused, match=r"attempts_in_bounds|jobs_consistent"):
        harness.query("update {s}jobs set state = 'queued', stopped_at = null")


def test_a_claim_whose_answer_was_lost_is_found_by_the_next_renewal(harness: StoreHarness) -> None:
    known = harness.claim_new()
    harness.enqueue(draft(), draft())
    lost = harness.claim()
    answer = harness.renew(known.lease)
    assert sorted(answer.unknown) == sorted(job.lease for job in lost)
    assert harness.settle(*((one, Released()) for one in answer.unknown)) == [State.QUEUED] * 2
    assert {job.attempt for job in harness.claim()} == {1}


def test_a_lost_claim_of_a_job_whose_older_lease_the_worker_still_knows_is_found(harness: StoreHarness) -> None:
    old = harness.claim_new(policy={"max_attempts": 9})
    harness.later(60).reap()
    (new,) = harness.claim()  # the answer is lost: the worker knows only the old lease
    answer = harness.renew(old.lease)
    assert answer.lost == [old.lease]
    assert answer.unknown == [new.lease]


def test_a_claim_that_committed_after_its_client_had_gone_is_found(pg_harness: StoreHarness) -> None:
    pg_harness.limit("default", 1)
    pg_harness.add()
    blocker = pg_harness.session()
    blocker.execute("begin")
    pg_harness.query("select 1")
    assert isinstance(pg_harness.store, PostgresStore)
    blocker.execute(f"select 1 from {pg_harness.store.quoted}.queues for update")
    waiting = pg_harness.session()
    thread = Background(lambda: drive_and_commit(waiting, pg_harness.claim_flow(1)))
    assert thread.blocked
    blocker.roll_back()
    blocker.execute("rollback")
    thread.result()
    assert len(pg_harness.renew().unknown) == 1


def drive_and_commit(session: Session, flow: Flow[object]) -> None:
    session.leave_open(flow)
    session.commit()


def test_a_claim_returns_only_jobs_that_it_has_committed(
    pg_harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second half of a claim fails, and with it the transaction that the first half was part of."""
    pg_harness.limit("default", 5)
    pg_harness.enqueue(draft(policy={"max_attempts": 9}))
    pg_harness.claim()
    pg_harness.later(60).reap()  # a suspect, so that a claim looks twice
    pg_harness.add()
    execute, seen = postgres.OwnConnection.execute, [0]

    def fail_at_second(self: postgres.OwnConnection, query: Query) -> list[Row]:
        seen[0] += query.name == "limits/lock"
        if query.name == "limits/lock" and seen[0] == 2:
            self._raw.execute("select 1 / 0")
        return execute(self, query)

    monkeypatch.setattr(postgres.OwnConnection, "execute", fail_at_second)
    try:
        jobs = pg_harness.claim()
    except StoreError:
        jobs = []
    running = {str(row[0]) for row in pg_harness.query("select id from {s}jobs where state = 'running'")}
    assert {job.id for job in jobs} <= running, "a worker was given a job that it does not own"
