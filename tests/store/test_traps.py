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

from relet._core.job import Raised, Released, Snoozed, State, Succeeded
from relet._store import postgres
from relet._store.flows import control, inspect, lease, maintenance
from relet._store.flows import settle as settle_flows
from relet._store.postgres import PostgresStore
from relet._store.query import Query, Row
from relet.errors import StoreError
from tests.store.interleave import Background, Bench, draft, half

pytestmark = pytest.mark.every_store

# The fence.


def test_a_zombie_of_the_same_worker_does_not_slip_through_beside_the_live_attempt_in_one_batch(b: Bench) -> None:
    """A worker that lost a job and claimed it again holds two leases of one id. Only the newer one counts."""
    for order in (1, -1):
        old = b.take(policy={"max_attempts": 9})
        b.later(60).reap()
        (new,) = b.claim()
        assert new.id == old.id
        outcomes = [(old.lease, Raised("the zombie's", fatal=True)), (new.lease, Snoozed(500.0))]
        states = b.settle(*outcomes[::order])
        assert b.state(new.id) is State.PENDING, "the zombie's outcome was written"
        assert states[::order] == [None, State.PENDING]


def test_a_zombie_beside_the_live_attempt_makes_no_second_successor(b: Bench) -> None:
    old = b.take(policy={"max_attempts": 9})
    b.later(60).reap()
    (new,) = b.claim()
    right, wrong = draft(), draft()
    states = b.settle(
        (old.lease, Succeeded('"zombie"', continue_with=wrong)), (new.lease, Succeeded('"owner"', continue_with=right))
    )
    assert states == [None, State.SUCCEEDED]
    assert (b.state(right.id), b.state(wrong.id)) == (State.QUEUED, None)
    done = b.get(new.id)
    assert done is not None
    assert done.result_json == '"owner"'


def test_a_zombie_is_told_that_it_lost_when_both_leases_are_renewed_together(b: Bench) -> None:
    old = b.take(policy={"max_attempts": 9})
    b.later(60).reap()
    (new,) = b.claim()
    for leases in ([old.lease, new.lease], [new.lease, old.lease]):
        b.later(10)
        answer = b.renew(*leases)
        expires = b.query("select expires_at from {s}jobs")[0][0]
        stamp = expires if isinstance(expires, float | int) else expires.timestamp()
        assert stamp == b.now + 30, "the live lease was not renewed"
        assert not answer.unknown
        assert len(answer.renewed) == 1
        assert answer.lost == [old.lease]


def test_an_owner_whose_job_was_completed_from_outside_is_told_that_it_lost(b: Bench) -> None:
    job = b.take()
    b.run(control.complete, job.id, '"by hand"')
    assert b.succeed(job, '"by the zombie"') is None
    done = b.get(job.id)
    assert done is not None
    assert done.result_json == '"by hand"'


def test_an_owner_whose_job_was_reaped_and_then_cancelled_is_told_that_it_lost(b: Bench) -> None:
    job = b.take()
    b.run(control.cancel, job.id)
    b.later(60).reap()
    assert b.state(job.id) is State.CANCELLED
    assert b.succeed(job) is None


@pytest.mark.parametrize("outcome", [Succeeded("1"), Raised("x"), Raised("x", fatal=True), Snoozed(9.0), Released()])
def test_a_settle_repeated_after_an_unknown_commit_is_recognised_and_changes_nothing(
    b: Bench, outcome: Succeeded
) -> None:
    job = b.take()
    first = b.settle((job.lease, outcome))
    before = b.get(job.id)
    assert b.settle((job.lease, outcome)) == first != [None]
    assert b.get(job.id) == before
    assert len(b.run(inspect.attempts, job.id)) == 1


def test_a_settle_repeated_once_others_went_on_with_the_job_changes_nothing(b: Bench) -> None:
    job = b.take()
    b.release(job)
    (new,) = b.claim()
    assert b.settle((job.lease, Raised("late", fatal=True))) == [None]
    assert b.state(new.id) is State.RUNNING


def test_a_batch_with_a_lost_lease_settles_the_others(b: Bench) -> None:
    lost = b.take(policy={"on_expired": "fail"})
    b.later(60).reap()
    b.enqueue(*(draft() for _ in range(3)))
    one, two, three = b.claim()
    answers = b.settle(
        (one.lease, Succeeded("1")), (lost.lease, Succeeded("0")), (two.lease, Raised("x")), (lost.lease, Raised("y"))
    )
    assert answers == [State.SUCCEEDED, None, State.PENDING, None]
    assert b.state(lost.id) is State.FAILED
    assert b.state(three.id) is State.RUNNING


def test_an_owner_past_its_expiry_that_was_not_reaped_may_renew_and_settle(b: Bench) -> None:
    job = b.take()
    assert list(b.later(100).renew(job.lease).renewed) == [job.lease]
    assert b.reap() == []
    assert b.later(100).succeed(job) is State.SUCCEEDED


def test_a_reaper_does_not_overwrite_what_was_completed_meanwhile(pg: Bench) -> None:
    job = pg.take()
    pg.later(60)
    pg.run(maintenance.record_pulse, grace=0.0)
    owner = pg.session()
    owner.leave_open(settle_flows.settle([(job.lease, Succeeded("1"))], half))
    assert Background(lambda: pg.run(lease.reap, half)).result(5) == []
    owner.commit()
    assert pg.run(lease.reap, half) == []
    assert pg.state(job.id) is State.SUCCEEDED


def test_an_owner_whose_job_is_being_reaped_waits_and_is_told_that_it_lost(pg: Bench) -> None:
    job = pg.take()
    pg.later(60)
    pg.run(maintenance.record_pulse, grace=0.0)
    reaper = pg.session()
    assert len(reaper.leave_open(lease.reap(half))) == 1
    answer = pg.renew(job.lease)
    assert (list(answer.locked), answer.lost) == ([job.lease], [])
    settling = Background(lambda: pg.succeed(job))
    assert settling.blocked
    reaper.commit()
    assert settling.result() is None
    assert pg.state(job.id) is State.QUEUED


def test_a_lease_renewed_while_the_reaper_looks_is_not_reaped(pg: Bench) -> None:
    """The reaper's snapshot still shows the old expiry: it must look again once it has the lock."""
    jobs = [pg.take() for _ in range(2)]
    pg.later(60)
    pg.run(maintenance.record_pulse, grace=0.0)
    for _ in range(50):
        renewing = Background(lambda: pg.renew(*(job.lease for job in jobs)))
        reaped = pg.run(lease.reap, half)
        answer = renewing.result()
        gone = {change.id for change in reaped}
        assert not gone & {one.id for one in answer.renewed}
        if gone:
            break


def test_a_settle_that_waited_for_a_renewal_goes_through(pg: Bench) -> None:
    """The row it deletes is newer than the snapshot that it started with."""
    job = pg.take(unique="k", target="x")
    beat = pg.session()
    beat.leave_open(lease.renew("w", [job.lease], lease=99.0))
    settling = Background(lambda: pg.succeed(job))
    assert settling.blocked
    beat.commit()
    assert settling.result() is State.SUCCEEDED
    assert (pg.count("jobs"), pg.count("finished"), pg.count("keys"), pg.count("nudges")) == (0, 1, 0, 1)


def test_renewal_of_many_against_settle_of_many_never_deadlocks(pg: Bench) -> None:
    pg.enqueue(*(draft() for _ in range(40)))
    leases = [job.lease for job in pg.claim(40)]
    over = threading.Event()
    rounds = [0, 0]

    def beat() -> None:
        while not over.is_set():
            pg.renew(*random.sample(leases, 40))
            rounds[0] += 1

    def settle() -> None:
        session = pg.session()
        end = time.monotonic() + 50
        while time.monotonic() < end and min(rounds) < 500:
            some = [(one, random.choice([Succeeded("1"), Raised("x")])) for one in random.sample(leases, 20)]
            session.leave_open(settle_flows.settle(some, half))
            session.roll_back()
            rounds[1] += 1
        over.set()

    threads = [Background(beat), Background(beat), Background(settle)]
    for thread in threads:
        thread.result(60)  # raises what a deadlock would have raised
    assert min(rounds) >= 500


def test_two_settles_of_overlapping_batches_never_deadlock(pg: Bench) -> None:
    pg.enqueue(*(draft() for _ in range(30)))
    outcomes = [(job.lease, random.choice([Succeeded("1"), Raised("x"), Snoozed(1)])) for job in pg.claim(30)]

    def settle() -> None:
        session = pg.session()
        for _ in range(300):
            some = random.sample(outcomes, 20)
            session.leave_open(settle_flows.settle(some, half))
            session.roll_back()

    for thread in [Background(settle), Background(settle)]:
        thread.result(60)


def test_settles_that_say_different_things_of_the_same_leases_never_deadlock(pg: Bench) -> None:
    """Rows are locked in one order, that of their ids: not the successes first and then the others."""
    pg.enqueue(*(draft() for _ in range(30)))
    leases = [job.lease for job in pg.claim(30)]

    def settle() -> None:
        session = pg.session()
        for _ in range(300):
            some = [(one, random.choice([Succeeded("1"), Raised("x")])) for one in random.sample(leases, 20)]
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
def test_a_claim_of_one_takes_one_whatever_the_plan(pg: Bench, off: list[str], mode: str) -> None:
    pg.enqueue(*(draft() for _ in range(20)), *(draft(queue="other") for _ in range(20)))
    session = pg.session()
    session.execute(f"set plan_cache_mode = {mode}")
    session.execute("set jit = off")  # a plan that is forbidden counts as dear, and would be compiled for a second
    for name in off:
        session.execute(f"set enable_{name} = off")
    for want in (1, 3, 1, 2, 1, 1, 1):
        claimed = session.leave_open(pg.claim_flow(want, ("default", "other")))
        session.commit()
        assert len(claimed.jobs) == want
    assert pg.count("jobs", "state = 'running'") == 10


def test_a_claim_of_several_queues_and_kinds_returns_each_job_once_and_no_more_than_asked(b: Bench) -> None:
    b.enqueue(*(draft(policy={"max_attempts": 9}) for _ in range(3)))
    b.claim()
    b.later(60).reap()  # three suspects
    b.enqueue(
        *(draft() for _ in range(2)),
        *(draft(queue="limited") for _ in range(3)),
        *(draft(queue="plain") for _ in range(2)),
    )
    b.limit("limited", 2)
    jobs = b.claim(8, ("default", "limited", "plain"))
    assert len(jobs) == len({job.id for job in jobs}) == 8
    assert b.count("jobs", "state = 'running'") == 8


def test_a_cancel_at_the_moment_of_claim_is_not_lost(pg: Bench) -> None:
    id = pg.add()
    worker = pg.session()
    (job,) = worker.leave_open(pg.claim_flow(1)).jobs
    cancelling = Background(lambda: pg.run(control.cancel, id))
    assert cancelling.blocked
    worker.commit()
    assert cancelling.result().request == "cancel"
    assert list(pg.renew(job.lease).renewed.values()) == ["cancel"]
    assert pg.settle((job.lease, Raised("x"))) == [State.CANCELLED]


def test_a_claim_at_the_moment_of_cancel_passes_the_job_over(pg: Bench) -> None:
    id = pg.add()
    person = pg.session()
    person.leave_open(control.cancel(id))
    assert Background(lambda: pg.claim(1)).result(5) == []
    person.commit()
    assert pg.claim(1) == []
    assert pg.state(id) is State.CANCELLED


def test_a_cancel_that_began_before_its_job_was_committed_cancels_it(pg: Bench) -> None:
    """The look for the row, and the look for a job that is over, are two: a job may come in between."""
    new = draft()
    steps = pg.session().steps(control.cancel(new.id))
    steps.after("control/lock_job")
    pg.enqueue(new)
    steps.finish()
    assert pg.state(new.id) is State.CANCELLED


def test_a_job_at_its_last_attempt_is_never_claimable(b: Bench) -> None:
    """Otherwise it would stand at the head of the queue for ever, and eat the demand of every claim."""
    job = b.take(policy={"max_attempts": 1})
    assert b.settle((job.lease, Raised("x"))) == [State.FAILED]
    refused = psycopg.errors.CheckViolation if b.on_postgres else sqlite3.IntegrityError
    with pytest.raises(refused, match=r"attempts_in_bounds|jobs_consistent"):
        b.query("update {s}jobs set state = 'queued', stopped_at = null")


def test_a_claim_whose_answer_was_lost_is_found_by_the_next_renewal(b: Bench) -> None:
    known = b.take()
    b.enqueue(draft(), draft())
    lost = b.claim()
    answer = b.renew(known.lease)
    assert sorted(answer.unknown) == sorted(job.lease for job in lost)
    assert b.settle(*((one, Released()) for one in answer.unknown)) == [State.QUEUED] * 2
    assert {job.attempt for job in b.claim()} == {1}


def test_a_lost_claim_of_a_job_whose_older_lease_the_worker_still_knows_is_found(b: Bench) -> None:
    old = b.take(policy={"max_attempts": 9})
    b.later(60).reap()
    (new,) = b.claim()  # the answer is lost: the worker knows only the old lease
    answer = b.renew(old.lease)
    assert answer.lost == [old.lease]
    assert answer.unknown == [new.lease]


def test_a_claim_that_committed_after_its_client_had_gone_is_found(pg: Bench) -> None:
    pg.limit("default", 1)
    pg.add()
    blocker = pg.session()
    blocker.execute("begin")
    pg.query("select 1")
    assert isinstance(pg.store, PostgresStore)
    blocker.execute(f"select 1 from {pg.store.quoted}.queues for update")
    waiting = pg.session()
    thread = Background(lambda: drive_and_commit(waiting, pg.claim_flow(1)))
    assert thread.blocked
    blocker.roll_back()
    blocker.execute("rollback")
    thread.result()
    assert len(pg.renew().unknown) == 1


def drive_and_commit(session, flow):  # type: ignore[no-untyped-def]
    session.leave_open(flow)
    session.commit()


def test_a_claim_returns_only_what_it_has_committed(pg: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second half of a claim fails, and with it the transaction that the first half was part of."""
    pg.limit("default", 5)
    pg.enqueue(draft(policy={"max_attempts": 9}))
    pg.claim()
    pg.later(60).reap()  # a suspect, so that a claim looks twice
    pg.add()
    execute, seen = postgres.OwnConnection.execute, [0]

    def fail_at_second(self: postgres.OwnConnection, query: Query) -> list[Row]:
        seen[0] += query.name == "limits/lock"
        if query.name == "limits/lock" and seen[0] == 2:
            self._raw.execute("select 1 / 0")
        return execute(self, query)

    monkeypatch.setattr(postgres.OwnConnection, "execute", fail_at_second)
    try:
        jobs = pg.claim()
    except StoreError:
        jobs = []
    running = {str(row[0]) for row in pg.query("select id from {s}jobs where state = 'running'")}
    assert {job.id for job in jobs} <= running, "a worker was given a job that it does not own"
