"""Promotion, targets, dependencies and chains: traps that each catch a design which looks right."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial

import pytest

from relet._core.job import Raised, State, Succeeded
from relet._store.flows import control, enqueue, inspect, promote, settle
from relet._store.query import Flow
from relet.errors import ReletError
from tests.harness import StoreHarness, draft, half
from tests.plugin.selection import rounds
from tests.store.interleave import Background

# Nothing waits for ever.


@pytest.mark.parametrize("behind", ["target", "after"])
@pytest.mark.parametrize("end", ["succeed", "cancel", "complete", "delete"])
def test_a_job_enqueued_in_a_transaction_that_outlives_its_blocker_is_promoted(
    pg_harness: StoreHarness, behind: str, end: str
) -> None:
    first = pg_harness.claim_new(target="x")
    options = (
        {"target": "x"}
        if behind == "target"
        else {"depends_on": (first.id,), "policy": {"on_dependency_failure": "run"}}
    )
    caller = pg_harness.session()
    (second,) = caller.leave_open(enqueue.enqueue([draft(**options)]))
    if end == "succeed":
        pg_harness.succeed(first)
    else:
        pg_harness.release(first)
        arguments = (first.id, None) if end == "complete" else (first.id,)
        pg_harness.run(getattr(control, end), *arguments)
    pg_harness.promote_until_idle()
    caller.commit()
    pg_harness.promote_until_idle()
    assert pg_harness.state(second.id) is State.QUEUED


@pytest.mark.parametrize("when", ["before the completion commits", "after it"])
def test_a_promote_during_an_open_completion_of_the_blocker_loses_nothing(pg_harness: StoreHarness, when: str) -> None:
    blocker = pg_harness.claim_new()
    dependent = pg_harness.add(depends_on=(blocker.id,))
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(blocker.lease, Succeeded('"r"'))], half))
    done = Background(pg_harness.promote).result(5)
    assert done.promoted == []
    if when == "after it":
        handler.commit()
        pg_harness.promote_until_idle()
    else:
        Background(pg_harness.promote).result(5)
        handler.commit()
        pg_harness.promote_until_idle()
    assert pg_harness.state(dependent) is State.QUEUED
    assert [one.result_json for one in pg_harness.run(inspect.dependencies, dependent)] == ['"r"']


def test_a_promote_during_an_open_completion_of_a_watched_blocker_loses_nothing(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.claim_new()
    first = pg_harness.add(depends_on=(blocker.id,))
    pg_harness.promote_until_idle()  # now it is watched
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(blocker.lease, Succeeded('"r"'))], half))
    second = pg_harness.add(depends_on=(blocker.id,))
    Background(pg_harness.promote).result(5)
    handler.commit()
    pg_harness.promote_until_idle()
    assert [pg_harness.state(id) for id in (first, second)] == [State.QUEUED] * 2


def test_a_chain_that_continues_while_promote_looks_keeps_its_dependents_informed(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.claim_new()
    dependent = pg_harness.add(depends_on=(blocker.id,), queue="elsewhere")
    successor = draft()
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(blocker.lease, Succeeded(None, continue_with=successor))], half))
    Background(pg_harness.promote).result(5)
    handler.commit()
    pg_harness.promote_until_idle()
    assert pg_harness.state(dependent) is State.PENDING
    (job,) = pg_harness.claim()
    pg_harness.succeed(job, '"last"')
    pg_harness.promote_until_idle()
    assert pg_harness.state(dependent) is State.QUEUED
    assert [one.result_json for one in pg_harness.run(inspect.dependencies, dependent)] == ['"last"']


def test_a_settle_that_waited_for_promote_to_watch_its_job_tells_the_dependents(pg_harness: StoreHarness) -> None:
    """The row that it deletes was marked after its snapshot: it must read the mark from the newer version."""
    for successor in (None, draft()):
        blocker = pg_harness.claim_new()
        dependent = pg_harness.add(depends_on=(blocker.id,), queue="elsewhere")
        promoter = pg_harness.session()
        promoter.leave_open(promote.promote())
        settling = Background(partial(pg_harness.succeed, blocker, continue_with=successor))
        assert settling.blocked
        promoter.commit()
        assert settling.result() is State.SUCCEEDED
        pg_harness.promote_until_idle()
        if successor:
            assert pg_harness.state(dependent) is State.PENDING
            (job,) = pg_harness.claim()
            pg_harness.succeed(job)
            pg_harness.promote_until_idle()
        assert pg_harness.state(dependent) is State.QUEUED


def test_a_promote_while_the_head_of_a_line_is_locked_calls_it_later_or_the_next_one(pg_harness: StoreHarness) -> None:
    head, second = (pg_harness.add(target="x") for _ in range(2))
    person = pg_harness.session()
    person.leave_open(control.cancel(head))
    assert Background(pg_harness.promote).result(5).promoted == []
    person.commit()
    pg_harness.promote_until_idle()
    assert (pg_harness.state(head), pg_harness.state(second)) == (State.CANCELLED, State.QUEUED)


def test_a_head_completed_in_an_open_transaction_does_not_hold_up_other_targets(pg_harness: StoreHarness) -> None:
    head, second = (pg_harness.add(target="x") for _ in range(2))
    other = pg_harness.add(target="y")
    caller = pg_harness.session()
    caller.leave_open(control.complete(head, None))
    assert Background(pg_harness.promote).result(5).promoted == [other]
    caller.roll_back()
    pg_harness.promote_until_idle()
    assert (pg_harness.state(head), pg_harness.state(second)) == (State.QUEUED, State.PENDING)


def test_two_promoters_at_once_make_one_holder(pg_harness: StoreHarness) -> None:
    for _ in range(5):
        pg_harness.enqueue(draft(target="x"), draft(target="y"))
    first = pg_harness.session()
    assert len(first.leave_open(promote.promote()).promoted) == 2
    second = Background(pg_harness.promote)
    assert second.blocked
    first.commit()
    assert second.result().promoted == []
    assert pg_harness.count("jobs", "holds") == 2


def test_two_promoters_at_once_unblock_a_job_of_two_blockers_once(pg_harness: StoreHarness) -> None:
    one, two = pg_harness.claim_new(), pg_harness.claim_new()
    dependent = pg_harness.add(depends_on=(one.id, two.id))
    pg_harness.promote_until_idle()
    pg_harness.succeed(one)
    first = pg_harness.session()
    first.leave_open(promote.promote())
    pg_harness.succeed(two)
    second = Background(pg_harness.promote)
    assert second.blocked
    first.commit()
    second.result()
    pg_harness.promote_until_idle()
    assert pg_harness.state(dependent) is State.QUEUED
    assert pg_harness.query("select waits from {s}jobs")[0][0] == 0


def test_two_open_transactions_enqueue_for_targets_in_opposite_order_without_waiting(pg_harness: StoreHarness) -> None:
    one, two = pg_harness.session(), pg_harness.session()
    for session, target in ((one, "x"), (two, "y"), (one, "y"), (two, "x")):
        blocker = pg_harness.add(target=target)
        drafts = [draft(target=target), draft(target=target, depends_on=(blocker,))]
        Background(partial(session.leave_open, enqueue.enqueue(drafts))).result(5)
        Background(pg_harness.promote).result(5)
    one.commit()
    two.commit()
    drain(pg_harness)


@pytest.mark.long
def test_settle_against_cancel_of_one_target_never_deadlocks(pg_harness: StoreHarness) -> None:
    for _ in range(rounds(40, all=100)):
        job = pg_harness.claim_new(target="x")
        waiting = pg_harness.add(target="x")
        threads = [
            Background(partial(pg_harness.succeed, job)),
            Background(partial(pg_harness.run, control.cancel, waiting)),
            Background(pg_harness.promote),
        ]
        for thread in threads:
            thread.result()
        pg_harness.promote_until_idle()
        assert pg_harness.count("jobs") == 0


def drain(harness: StoreHarness) -> list[str]:
    """Run all there is; the ids in the order in which they ran."""
    ran = []
    for _ in range(200):
        harness.promote_until_idle()
        jobs = harness.claim(1)
        if not jobs:
            break
        harness.succeed(jobs[0])
        ran.append(jobs[0].id)
    assert harness.count("jobs") == 0, harness.query("select id, state, wait, target, waits from {s}jobs")
    return ran


def test_a_storm_of_enqueue_promote_settle_and_cancel_leaves_nothing_waiting(pg_harness: StoreHarness) -> None:
    """Threads that do everything at once on few targets; then no more faults: all of it ends."""
    over = threading.Event()
    errors: list[BaseException] = []
    known: list[str] = []

    def guarded(work: Callable[[], object]) -> Background:
        def loop() -> None:
            while not over.is_set():
                try:
                    work()
                except ReletError:
                    pass  # a person's verb came too late
                except BaseException as error:
                    errors.append(error)
                    raise

        return Background(loop)

    def add() -> None:
        if len(known) < 400:
            some = tuple(set(random.sample(known, min(len(known), 2)))) if random.random() < 0.4 else ()
            target = random.choice([None, "x", "y", "z"])
            policy = {"on_dependency_failure": "run", "max_attempts": 1000}
            known.append(
                pg_harness.add(depends_on=some, target=target, policy=policy, delay=random.choice([None, 0.0]))
            )

    def work() -> None:
        for job in pg_harness.claim(3):
            following = draft(target=random.choice([None, "x"]), policy={"max_attempts": 1000})
            outcome = Succeeded("1", continue_with=following if random.random() < 0.2 else None)
            pg_harness.settle((job.lease, outcome if random.random() < 0.8 else Raised("x", delay=0.0)))

    def steering() -> None:
        if known:
            verbs: list[Callable[..., Flow[object]]] = [control.cancel, control.delete]
            pg_harness.run(random.choice(verbs), random.choice(known[-30:]))
            over.wait(0.01)

    threads = [guarded(work) for work in (add, add, work, work, pg_harness.promote, pg_harness.promote, steering)]
    over.wait(rounds(2, all=6))  # seconds
    over.set()
    for thread in threads:
        thread.result(30)
    assert errors == []
    for _ in range(2000):
        pg_harness.promote()
        jobs = pg_harness.claim(100)
        if not jobs and not pg_harness.promote().promoted:
            break
        pg_harness.settle(*((job.lease, Succeeded("1")) for job in jobs))
    assert pg_harness.query("select id, state, wait, target, waits from {s}jobs") == []


# Order.


def test_jobs_of_a_target_run_one_at_a_time_in_the_order_of_enqueue(harness: StoreHarness) -> None:
    ids = [harness.add(target="x") for _ in range(5)]
    assert drain(harness) == ids


def test_jobs_due_at_one_moment_are_promoted_in_the_order_of_enqueue(harness: StoreHarness) -> None:
    ids = [harness.add(delay=60.0) for _ in range(4)]
    harness.run(control.pause, ids[0])
    harness.run(control.resume, ids[0])  # the row has moved; its place has not
    harness.later(60).promote()
    assert [job.id for job in harness.claim()] == ids


def test_a_job_whose_time_is_ahead_does_not_wait_for_its_target_unless_it_holds_it(harness: StoreHarness) -> None:
    later = harness.add(target="x", delay=60.0)
    now = harness.claim_new(target="x")
    harness.settle((now.lease, Raised("x", delay=100.0)))  # holds while it waits for its retry
    harness.later(60).promote_until_idle()
    assert harness.state(later) is State.PENDING
    harness.later(60).promote_until_idle()
    (job,) = harness.claim()
    assert job.id == now.id
    harness.succeed(job)
    harness.promote_until_idle()
    assert harness.state(later) is State.QUEUED


@pytest.mark.parametrize("how", ["fail", "pause", "release to pause", "reap to fail"])
def test_a_stopped_holder_keeps_its_target_until_it_is_resumed_cancelled_or_deleted(
    harness: StoreHarness, how: str
) -> None:
    for verb in ("resume", "cancel", "delete", "complete"):
        job = harness.claim_new(target="x", policy={"on_expired": "fail"})
        second = harness.add(target="x")
        if how == "fail":
            harness.fail(job)
        elif how == "reap to fail":
            harness.later(60).reap()
        else:
            harness.run(control.pause, job.id)
            harness.release(job) if how == "pause" else harness.settle((job.lease, Raised("x")))
        harness.promote_until_idle()
        assert harness.state(second) is State.PENDING
        arguments = (job.id, None) if verb == "complete" else (job.id,)
        harness.run(getattr(control, verb), *arguments)
        assert drain(harness) == ([job.id, second] if verb == "resume" else [second])


@pytest.mark.long
def test_a_failed_job_that_let_its_target_go_waits_for_it_again_when_resumed(harness: StoreHarness) -> None:
    first = harness.claim_new(target="x", policy={"on_failure": "continue"})
    second = harness.add(target="x")
    harness.fail(first)
    harness.promote_until_idle()
    assert harness.state(second) is State.QUEUED
    harness.run(control.resume, first.id)
    harness.promote_until_idle()
    assert (harness.state(first.id), harness.state(second)) == (State.PENDING, State.QUEUED)
    assert drain(harness) == [second, first.id]
