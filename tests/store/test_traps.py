"""Leases, claims, limits and what people say: traps that each catch a design which looks right.

What must hold is the name of the test. Those with `b` run on every store; those with `pg` need two transactions at once.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from leasehold.core.errors import JobNotFound, StoreBusy
from leasehold.core.ids import make_id
from leasehold.core.job import Lease, Raised, Released, Snoozed, State, Succeeded
from leasehold.store import postgres
from leasehold.store.flows import enqueue, lease, look, steer, upkeep
from leasehold.store.postgres import PostgresStore
from tests.store.interleave import Background, Bench, bench, draft, token


@pytest.fixture
def b(store_url: str, schema: str) -> Iterator[Bench]:
    with bench(store_url, schema) as made:
        yield made


@pytest.fixture
def pg(pg_url: str, schema: str) -> Iterator[Bench]:
    with bench(pg_url, schema) as made:
        yield made


def half() -> float:
    return 0.5


# The fence.


def test_a_zombie_of_the_same_worker_does_not_slip_through_beside_the_live_attempt_in_one_batch(b: Bench) -> None:
    """A worker that lost a job and claimed it again holds two leases of one id. Only the newer one counts."""
    old = b.take(policy={"max_attempts": 9})
    b.later(60).reap()
    (new,) = b.claim()
    assert new.id == old.id
    states = b.settle((old.lease, Raised("the zombie's", fatal=True)), (new.lease, Snoozed(5.0)))
    assert states == [None, State.PENDING]
    assert b.state(new.id) is State.PENDING


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
    assert done.result == '"owner"'


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
        assert old.lease not in [Lease(id, new.token) for id in answer.renewed] and not answer.strangers
        assert len(answer.renewed) == 1
        assert answer.lost == [old.id]


def test_an_owner_whose_job_was_completed_from_outside_is_told_that_it_lost(b: Bench) -> None:
    job = b.take()
    b.run(steer.complete, job.id, '"by hand"', now=b.now)
    assert b.succeed(job, '"by the zombie"') is None
    done = b.get(job.id)
    assert done is not None
    assert done.result == '"by hand"'


def test_an_owner_whose_job_was_reaped_and_then_cancelled_is_told_that_it_lost(b: Bench) -> None:
    job = b.take()
    b.run(steer.cancel, job.id, now=b.now)
    b.later(60).reap()
    assert b.state(job.id) is State.CANCELLED
    assert b.succeed(job) is None


@pytest.mark.parametrize("outcome", [Succeeded("1"), Raised("x"), Raised("x", fatal=True), Snoozed(9.0), Released()])
def test_a_settle_repeated_after_an_unknown_commit_is_recognised_and_changes_nothing(b: Bench, outcome: Succeeded) -> None:
    job = b.take()
    first = b.settle((job.lease, outcome))
    before = b.get(job.id)
    assert b.settle((job.lease, outcome)) == first != [None]
    assert b.get(job.id) == before
    assert len(b.run(look.attempts, job.id)) == 1


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
    assert list(b.later(100).renew(job.lease).renewed) == [job.id]
    assert b.reap() == []
    assert b.later(100).succeed(job) is State.SUCCEEDED


def test_a_reaper_does_not_overwrite_what_was_completed_meanwhile(pg: Bench) -> None:
    job = pg.take()
    pg.later(60)
    pg.run(upkeep.beat, grace=0.0, now=pg.now)
    owner = pg.session()
    owner.leave_open(lease.settle([(job.lease, Succeeded("1"))], half))
    assert Background(lambda: pg.run(lease.reap, half, now=pg.now)).result(5) == []
    owner.commit()
    assert pg.run(lease.reap, half, now=pg.now) == []
    assert pg.state(job.id) is State.SUCCEEDED


def test_an_owner_whose_job_is_being_reaped_waits_and_is_told_that_it_lost(pg: Bench) -> None:
    job = pg.take()
    pg.later(60)
    pg.run(upkeep.beat, grace=0.0, now=pg.now)
    reaper = pg.session()
    assert len(reaper.leave_open(lease.reap(half, now=pg.now))) == 1
    answer = pg.renew(job.lease)
    assert (list(answer.locked), answer.lost) == ([job.id], [])
    settling = Background(lambda: pg.succeed(job))
    assert settling.blocked
    reaper.commit()
    assert settling.result() is None
    assert pg.state(job.id) is State.QUEUED


def test_a_lease_renewed_while_the_reaper_looks_is_not_reaped(pg: Bench) -> None:
    """The reaper's snapshot still shows the old expiry: it must look again once it has the lock."""
    jobs = [pg.take() for _ in range(2)]
    pg.later(60)
    pg.run(upkeep.beat, grace=0.0, now=pg.now)
    for _ in range(50):
        renewing = Background(lambda: pg.renew(*(job.lease for job in jobs)))
        reaped = pg.run(lease.reap, half, now=pg.now)
        answer = renewing.result()
        gone = {change.id for change in reaped}
        assert not gone & answer.renewed.keys()
        if gone:
            break


def test_a_settle_that_waited_for_a_renewal_goes_through(pg: Bench) -> None:
    """The row it deletes is newer than the snapshot that it started with."""
    job = pg.take(unique="k", target="x")
    beat = pg.session()
    beat.leave_open(lease.renew("w", [job.lease], lease=99.0, now=pg.now))
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
        end = time.monotonic() + 12
        while time.monotonic() < end and rounds[1] < 2000:
            some = [(one, random.choice([Succeeded("1"), Raised("x")])) for one in random.sample(leases, 20)]
            session.leave_open(lease.settle(some, half, now=pg.now))
            session.roll_back()
            rounds[1] += 1
        over.set()

    threads = [Background(beat), Background(beat), Background(settle)]
    for thread in threads:
        thread.result(60)  # raises what a deadlock would have raised
    assert min(rounds) > 200


def test_two_settles_of_overlapping_batches_never_deadlock(pg: Bench) -> None:
    pg.enqueue(*(draft() for _ in range(30)))
    leases = [job.lease for job in pg.claim(30)]

    def settle() -> None:
        session = pg.session()
        for _ in range(300):
            some = [(one, random.choice([Succeeded("1"), Raised("x"), Snoozed(1)])) for one in random.sample(leases, 20)]
            session.leave_open(lease.settle(some, half, now=pg.now))
            session.roll_back()

    for thread in [Background(settle), Background(settle)]:
        thread.result(60)


# Claims.

PLANS = ["hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize", "indexscan", "bitmapscan", "seqscan", "nestloop"]


@pytest.mark.parametrize("off", [PLANS[:5], PLANS[:6], ["indexscan", "bitmapscan"], ["nestloop"], PLANS])
@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_a_claim_of_one_takes_one_whatever_the_plan(pg: Bench, off: list[str], mode: str) -> None:
    pg.enqueue(*(draft() for _ in range(20)), *(draft(queue="other") for _ in range(20)))
    session = pg.session()
    session.execute(f"set plan_cache_mode = {mode}")
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
    b.enqueue(*(draft() for _ in range(2)), *(draft(queue="limited") for _ in range(3)), *(draft(queue="plain") for _ in range(2)))
    b.limit("limited", 2)
    jobs = b.claim(8, ("default", "limited", "plain"))
    assert len(jobs) == len({job.id for job in jobs}) == 8
    assert b.count("jobs", "state = 'running'") == 8


def test_a_cancel_at_the_moment_of_claim_is_not_lost(pg: Bench) -> None:
    id = pg.add()
    worker = pg.session()
    (job,) = worker.leave_open(pg.claim_flow(1)).jobs
    cancelling = Background(lambda: pg.run(steer.cancel, id, now=pg.now))
    assert cancelling.blocked
    worker.commit()
    assert cancelling.result().request == "cancel"
    assert list(pg.renew(job.lease).renewed.values()) == ["cancel"]
    assert pg.settle((job.lease, Raised("x"))) == [State.CANCELLED]


def test_a_claim_at_the_moment_of_cancel_passes_the_job_over(pg: Bench) -> None:
    id = pg.add()
    person = pg.session()
    person.leave_open(steer.cancel(id, now=pg.now))
    assert Background(lambda: pg.claim(1)).result(5) == []
    person.commit()
    assert pg.claim(1) == []
    assert pg.state(id) is State.CANCELLED


def test_a_cancel_of_a_job_that_is_committed_at_that_moment_is_done_or_says_that_there_is_none(pg: Bench) -> None:
    """The look for the row, and the look for a job that is over, are two: a job may come in between."""
    new = draft()
    steps = pg.session().steps(steer.cancel(new.id, now=pg.now))
    steps.after("lock")
    pg.enqueue(new)
    try:
        steps.finish()
    except JobNotFound:
        return
    assert pg.state(new.id) is State.CANCELLED, "cancel returned as if it had been done"


def test_a_job_at_its_last_attempt_is_never_claimable(b: Bench) -> None:
    """Otherwise it would stand at the head of the queue for ever, and eat the demand of every claim."""
    job = b.take(policy={"max_attempts": 1})
    assert b.settle((job.lease, Raised("x"))) == [State.FAILED]
    with pytest.raises(Exception, match=r"attempts_in_bounds"):
        b.query("update {s}jobs set state = 'queued', stopped_at = null")


def test_a_claim_whose_answer_was_lost_is_found_by_the_next_renewal(b: Bench) -> None:
    known = b.take()
    b.enqueue(draft(), draft())
    lost = b.claim()
    answer = b.renew(known.lease)
    assert sorted(answer.strangers) == sorted(job.lease for job in lost)
    assert b.settle(*((one, Released()) for one in answer.strangers)) == [State.QUEUED] * 2
    assert {job.attempt for job in b.claim()} == {1}


def test_a_lost_claim_of_a_job_whose_older_lease_the_worker_still_knows_is_found(b: Bench) -> None:
    old = b.take(policy={"max_attempts": 9})
    b.later(60).reap()
    (new,) = b.claim()  # the answer is lost: the worker knows only the old lease
    answer = b.renew(old.lease)
    assert answer.lost == [old.id]
    assert answer.strangers == [new.lease]


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
    assert len(pg.renew().strangers) == 1


def drive_and_commit(session, flow):  # type: ignore[no-untyped-def]
    session.leave_open(flow)
    session.commit()


# Limits.


def test_a_limit_for_all_leaves_room_in_queues_without_a_limit_of_their_own(b: Bench) -> None:
    b.limit("*", 10)
    b.enqueue(*(draft() for _ in range(12)))
    assert [len(b.claim(2)) for _ in range(6)] == [2, 2, 2, 2, 2, 0]


def test_limits_of_a_queue_and_of_all_hold_together(b: Bench) -> None:
    b.limit("*", 5)
    b.limit("a", 2)
    b.enqueue(*(draft(queue=queue) for queue in "aaaabbbb"))
    jobs = b.claim(8, ("a", "b"))
    assert sorted(job.queue for job in jobs) == ["a", "a", "b", "b", "b"]
    b.succeed(jobs[0])
    assert len(b.claim(8, ("a", "b"))) == 1


def test_an_expired_owner_under_a_limit_of_one_is_reaped_before_another_runs(b: Bench) -> None:
    b.limit("default", 1)
    old = b.take(policy={"max_attempts": 9})
    b.add()
    assert b.claim(1) == []
    b.later(60)
    b.run(upkeep.beat, grace=0.0, now=b.now)
    (new,) = b.claim(1)
    answer = b.renew(old.lease)
    assert (answer.lost if new.id != old.id else [old.id]) == [old.id]
    assert b.count("jobs", "state = 'running'") == 1


def test_an_expired_owner_counts_while_nobody_may_reap(b: Bench) -> None:
    b.limit("default", 1)
    old = b.take()
    b.add()
    b.later(60)  # no beat: the store was away
    assert b.claim(1) == []
    assert list(b.renew(old.lease).renewed) == [old.id]


def test_a_second_claim_under_a_limit_of_one_waits_and_finds_no_room(pg: Bench) -> None:
    pg.limit("default", 1)
    pg.enqueue(draft(), draft())
    first = pg.session()
    assert len(first.leave_open(pg.claim_flow(1)).jobs) == 1
    second = Background(lambda: pg.claim(1))
    assert second.blocked
    first.commit()
    assert second.result() == []


def test_a_limit_lowered_while_a_claim_waits_is_heeded(pg: Bench) -> None:
    pg.limit("default", 5)
    pg.enqueue(*(draft() for _ in range(5)))
    assert len(pg.claim(1)) == 1
    person = pg.session()
    person.leave_open(steer.set_queue("default", max_running=2))
    waiting = Background(lambda: pg.claim(5))
    assert waiting.blocked
    person.commit()
    assert len(waiting.result()) == 1


def test_a_limit_raised_lowered_and_lifted_during_claims_is_never_exceeded(pg: Bench) -> None:
    """Never more running than the largest limit of the time; nothing stuck once it is lifted."""
    pg.limit("default", 3)
    pg.enqueue(*(draft() for _ in range(60)))
    over = threading.Event()
    seen: list[int] = []

    def work() -> None:
        while not over.is_set():
            for job in pg.claim(2, worker=token()):
                pg.succeed(job)

    def watch() -> None:
        while not over.is_set():
            seen.append(pg.count("jobs", "state = 'running'"))

    threads = [Background(work) for _ in range(3)] + [Background(watch)]
    for most in [1, 2, 0, 3, 1] * 4:
        pg.limit("default", most)
        time.sleep(0.02)
    time.sleep(0.2)
    over.set()
    for thread in threads:
        thread.result()
    assert max(seen) <= 3
    pg.limit("default", None)
    assert len(pg.claim(100)) == pg.count("jobs")


def test_an_open_completion_counts_as_running_until_it_commits(pg: Bench) -> None:
    pg.limit("default", 1)
    job = pg.take()
    pg.add()
    handler = pg.session()
    handler.leave_open(lease.settle([(job.lease, Succeeded("1"))], half))
    assert Background(lambda: pg.claim(1)).result(5) == []
    handler.commit()
    assert len(pg.claim(1)) == 1


def test_a_limited_queue_is_served_beside_an_unlimited_backlog(b: Bench) -> None:
    """Whoever asks for the limited queue first must not be starved by one that is never empty."""
    b.limit("precious", 2)
    b.enqueue(*(draft(queue="bulk") for _ in range(10)), draft(queue="precious"))
    assert "precious" in {job.queue for _ in range(3) for job in b.claim(2, ("precious", "bulk"))}


# What people ask of a running job.

EXITS = {
    "retried": Raised("x"),
    "failed": Raised("x", fatal=True),
    "snoozed": Snoozed(5.0),
    "released": Released(),
    "released at shutdown": Released(pause=True),
}


@pytest.mark.parametrize("target", [None, "x"])
@pytest.mark.parametrize("exit", [*EXITS, "reaped"])
@pytest.mark.parametrize(("verb", "end"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_a_request_is_honoured_however_the_attempt_ends(b: Bench, verb: str, end: State, exit: str, target: str | None) -> None:
    job = b.take(target=target)
    assert b.run(getattr(steer, verb), job.id, now=b.now).request == verb
    b.later(60).reap() if exit == "reaped" else b.settle((job.lease, EXITS[exit]))
    found = b.get(job.id)
    assert found is not None
    assert (found.state, found.request) == (end, None)
    assert found.holds == (end is State.PAUSED and target is not None)


def test_a_cancel_outweighs_a_pause_in_either_order(b: Bench) -> None:
    for verbs in (("pause", "cancel"), ("cancel", "pause")):
        job = b.take()
        for verb in verbs:
            b.run(getattr(steer, verb), job.id, now=b.now)
        assert b.release(job) is State.CANCELLED


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "run_now", "complete", "delete"])
def test_a_verb_repeated_after_an_unknown_commit_says_what_the_first_would_have_said(b: Bench, verb: str) -> None:
    """`again` tells the flow that an earlier try may have been committed: then its effect is no reason to complain."""
    id = b.add(delay=100.0)
    if verb == "resume":
        b.run(steer.pause, id, now=b.now)
    flow = getattr(steer, verb)
    arguments = (id, '"r"') if verb == "complete" else (id,)
    first = b.run(flow, *arguments, now=b.now)
    second = b.run(flow, *arguments, now=b.now, again=True)
    assert getattr(first, "state", first) == getattr(second, "state", second)


def test_a_paused_job_with_spent_attempts_can_be_resumed(b: Bench) -> None:
    """Every row that a legal history makes must pass the checks of the schema on its way on."""
    job = b.take(policy={"max_attempts": 1}, target="x")
    b.run(steer.pause, job.id, now=b.now)
    assert b.settle((job.lease, Raised("x"))) == [State.PAUSED]
    b.run(steer.resume, job.id, now=b.now)
    b.promote()
    assert [one.attempt for one in b.claim()] == [1]


def test_a_job_that_loses_workers_at_its_last_attempt_runs_alone_before_it_fails(b: Bench) -> None:
    job = b.take(policy={"max_attempts": 1})
    for losses in (1, 2, 3):
        b.later(100).reap()
        b.later(100).promote()
        (job,) = b.claim(alone=losses == 3)
        assert (job.attempt, job.losses) == (1, losses)
    b.later(100).reap()
    assert b.state(job.id) is State.FAILED


# An open transaction of a handler, and processes that stop in the middle.


def test_an_open_completion_holds_up_neither_renewal_nor_reaping_nor_cancel(pg: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.store.store.PATIENCE", 0.1)
    pg.enqueue(*(draft() for _ in range(3)))
    mine, *others = pg.claim()
    handler = pg.session()
    handler.leave_open(lease.settle([(mine.lease, Succeeded("1"))], half))
    answer = Background(lambda: pg.later(60).renew(*(job.lease for job in [mine, *others]))).result(5)
    assert (list(answer.locked), sorted(answer.renewed), answer.lost) == ([mine.id], sorted(job.id for job in others), [])
    assert Background(pg.reap).result(5) == []
    with pytest.raises(StoreBusy):
        Background(lambda: pg.store.run_for(0.1, steer.cancel, mine.id, now=pg.now)).result(8)
    handler.commit()
    assert pg.state(mine.id) is State.SUCCEEDED


def test_a_zombie_that_completes_in_its_transaction_is_told_inside_it(pg: Bench) -> None:
    job = pg.take()
    handler = pg.session()
    handler.execute("begin")
    pg.later(60).reap()
    (settled,) = handler.leave_open(lease.settle([(job.lease, Succeeded("1"))], half))
    assert settled.state is None


def test_a_completion_that_rolled_back_leaves_the_job_as_it_was(pg: Bench) -> None:
    job = pg.take(unique="k", target="x")
    handler = pg.session()
    handler.leave_open(lease.settle([(job.lease, Succeeded("1", continue_with=draft()))], half))
    handler.roll_back()
    assert (pg.count("jobs"), pg.count("finished"), pg.count("keys")) == (1, 0, 1)
    assert list(pg.renew(job.lease).renewed) == [job.id]
    assert pg.settle((job.lease, Raised("completion rolled back"))) == [State.PENDING]


STOPPED = """
import os, signal, sys
from leasehold.store import postgres
from leasehold.store.query import Query
from tests.store.interleave import Bench, PostgresStore, promote
postgres.OPEN = postgres.OPEN.replace("10s", "1s")
bench = Bench(PostgresStore(sys.argv[1], schema=sys.argv[2]))
execute = postgres.OwnConnection.execute
def stop_after(self, query):
    rows = execute(self, query)
    if query.name == sys.argv[3] and not os.environ.pop("STOPPED", ""):
        os.environ["STOPPED"] = "1"
        print("stopped", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        postgres.OwnConnection.execute = execute
    return rows
postgres.OwnConnection.execute = stop_after
print(len(bench.promote().promoted) if sys.argv[3] == "take_nudges" else len(bench.claim(1)), flush=True)
"""


@pytest.mark.parametrize("point", ["take_nudges", "limits"])
def test_a_process_stopped_in_the_middle_of_a_transaction_does_not_stop_the_others(
    pg_url: str, schema: str, pg: Bench, point: str
) -> None:
    """The server ends its transaction; and once it goes on, it tries again rather than give up."""
    pg.limit("default", 5)
    pg.enqueue(draft(target="x"), draft())
    command = [sys.executable, "-c", STOPPED, pg_url, schema, point]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "stopped\n", process.stderr.read()
            started = time.monotonic()
            if point == "limits":
                assert len(Background(lambda: pg.claim(1)).result(8)) == 1
                pg.add()
            else:
                assert len(Background(pg.promote).result(8).promoted) == 1
                pg.enqueue(draft(target="y"))
            assert time.monotonic() - started < 5
            process.send_signal(signal.SIGCONT)
            assert process.wait(20) == 0, process.stderr.read()
            assert process.stdout.read() == "1\n"
        finally:
            process.kill()


# Rows that the database refuses, and partitions.


def test_a_batch_with_a_row_that_the_database_refuses_changes_nothing_and_its_parts_go_through(pg: Bench) -> None:
    pg.enqueue(*(draft() for _ in range(3)))
    one, bad, two = pg.claim()
    outcomes = [(one.lease, Succeeded("1")), (bad.lease, Succeeded("{not json")), (two.lease, Raised("x"))]
    with pytest.raises(Exception, match="json"):
        pg.settle(*outcomes)
    assert {pg.state(job.id) for job in (one, bad, two)} == {State.RUNNING}
    assert pg.settle(outcomes[0]) + pg.settle(outcomes[2]) == [State.SUCCEEDED, State.PENDING]
    assert pg.settle((bad.lease, Raised("result refused", fatal=True))) == [State.FAILED]


@pytest.mark.parametrize("text", ["nul \x00 in it", "\ud800 alone", "\N{SNOWMAN}" * 100_000])
def test_a_settle_never_fails_because_of_the_text_of_an_error(b: Bench, text: str) -> None:
    job = b.take()
    assert b.settle((job.lease, Raised(text, fatal=True))) == [State.FAILED]


def test_a_settle_makes_the_partition_that_is_missing(pg: Bench) -> None:
    for days in (-400, 40):
        id = make_id(time.time() + days * 86400, os.urandom(10))
        pg.enqueue(draft(id=id))
        (job,) = pg.claim()
        assert pg.succeed(job) is State.SUCCEEDED
        assert pg.state(id) is State.SUCCEEDED


def test_a_missing_partition_is_made_whatever_language_the_server_speaks(pg: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides is the error's code, not its words."""
    original = psycopg.Error.__str__
    monkeypatch.setattr(psycopg.Error, "__str__", lambda error: original(error).replace("no partition", "keine Partition"))
    pg.enqueue(draft(id=make_id(time.time() - 99 * 86400, os.urandom(10))))
    (job,) = pg.claim()
    assert pg.succeed(job) is State.SUCCEEDED


def test_a_reap_a_cancel_and_a_promote_make_the_partition_that_is_missing(pg: Bench) -> None:
    old = [make_id(time.time() - days * 86400, os.urandom(10)) for days in (100, 101, 102)]
    pg.enqueue(draft(id=old[0]))
    (job,) = pg.claim()
    pg.run(steer.cancel, job.id, now=pg.now)
    pg.later(60).reap()
    pg.enqueue(draft(id=old[1]))
    pg.run(steer.cancel, old[1], now=pg.now)
    blocker = pg.take()
    pg.enqueue(draft(id=old[2], after=(blocker.id,), policy={"on_blocker_failure": "cancel"}))
    pg.fail(blocker)
    pg.settle_down()
    assert [pg.state(id) for id in old] == [State.CANCELLED] * 3


def test_dropping_old_partitions_does_not_lose_a_job_that_finishes_in_one_at_that_moment(pg: Bench) -> None:
    assert isinstance(pg.store, PostgresStore)
    store = pg.store
    old = time.time() - 30 * 86400
    pg.enqueue(draft(id=make_id(old, os.urandom(10))), draft(id=make_id(old, os.urandom(10))))
    first, second = pg.claim()
    pg.succeed(first)  # makes the partition
    pg.query("update {s}finished set finished_at = now() - interval '30 days'")
    handler = pg.session()
    handler.leave_open(lease.settle([(second.lease, Succeeded("1"))], half))
    dropping = Background(lambda: store.drop_old(7 * 86400.0))
    _ = dropping.blocked
    handler.commit()
    dropping.result()
    assert pg.state(second.id) is State.SUCCEEDED


def test_settles_go_on_while_a_partition_is_dropped_under_an_open_completion(pg: Bench) -> None:
    assert isinstance(pg.store, PostgresStore)
    store = pg.store
    old = time.time() - 30 * 86400
    pg.enqueue(*(draft(id=make_id(old, os.urandom(10))) for _ in range(3)), draft())
    jobs = {job.id: job for job in pg.claim()}
    first, second, third, fresh = (jobs[id] for id in sorted(jobs))
    pg.succeed(first)
    pg.query("update {s}finished set finished_at = now() - interval '30 days'")
    handler = pg.session()
    handler.leave_open(lease.settle([(second.lease, Succeeded("1"))], half))
    dropping = Background(lambda: store.drop_old(7 * 86400.0))
    assert dropping.blocked
    assert Background(lambda: pg.succeed(fresh)).result(5) is State.SUCCEEDED
    assert Background(lambda: pg.succeed(third)).result(5) is State.SUCCEEDED
    handler.commit()
    dropping.result()
    assert pg.state(third.id) is State.SUCCEEDED


# Ids.


def test_an_enqueue_repeated_with_the_id_of_a_finished_job_returns_it(b: Bench) -> None:
    job = b.take()
    b.succeed(job)
    (again,) = b.enqueue(draft(id=job.id, fresh=False))
    assert (again.existing, again.state) == (True, State.SUCCEEDED)
    assert b.count("jobs") == 0


def test_an_id_that_lives_and_finishes_between_two_statements_of_an_enqueue_is_not_revived(pg: Bench) -> None:
    blocker = pg.take(queue="elsewhere")
    new = draft(fresh=False, unique="k", target="x", after=(blocker.id,))
    steps = pg.session().steps(enqueue.enqueue([new], now=pg.now))
    steps.before("take_keys")
    pg.enqueue(new)
    pg.run(steer.complete, new.id, None, now=pg.now)
    (job,) = steps.finish()
    assert (job.existing, job.state) == (True, State.SUCCEEDED)
    assert (pg.count("jobs", "queue = 'default'"), pg.count("keys")) == (0, 0)
    pg.settle_down()


def test_an_enqueue_repeated_while_its_job_is_completed_in_an_open_transaction_is_not_a_second_job(pg: Bench) -> None:
    new = draft(fresh=False)
    steps = pg.session().steps(enqueue.enqueue([new], now=pg.now))
    steps.before("enqueue")
    pg.enqueue(new)
    (job,) = pg.claim()
    handler = pg.session()
    handler.leave_open(lease.settle([(job.lease, Succeeded("1"))], half))
    repeating = Background(steps.finish)
    assert repeating.blocked
    handler.commit()
    assert repeating.result()[0].state is State.SUCCEEDED
    assert pg.count("jobs") == 0


# SQLite.


def test_two_threads_on_one_memory_store_claim_each_job_once(sqlite_url: str, schema: str) -> None:
    with bench(sqlite_url, schema) as b:
        b.enqueue(*(draft() for _ in range(200)))
        found: list[str] = []

        def work() -> None:
            while jobs := b.claim(3, worker=token()):
                found.extend(job.id for job in jobs)
                b.settle(*((job.lease, Succeeded("1")) for job in jobs))

        for thread in [Background(work) for _ in range(4)]:
            thread.result(60)
        assert len(found) == len(set(found)) == 200
        assert postgres is not None
