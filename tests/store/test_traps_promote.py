"""Promotion, targets, dependencies and chains: traps that each catch a design which looks right."""

from __future__ import annotations

import random
import threading

import pytest

from relet._core.job import Raised, State, Succeeded
from relet._store.flows import control, enqueue, inspect, promote, settle
from relet.errors import ReletError
from tests.store.interleave import Background, Bench, draft, half

# Nothing waits for ever.


@pytest.mark.parametrize("behind", ["target", "after"])
@pytest.mark.parametrize("end", ["succeed", "cancel", "complete", "delete"])
def test_a_job_enqueued_in_a_transaction_that_outlives_what_it_waits_for_is_promoted(
    pg: Bench, behind: str, end: str
) -> None:
    first = pg.take(target="x")
    options = (
        {"target": "x"}
        if behind == "target"
        else {"depends_on": (first.id,), "policy": {"on_dependency_failure": "run"}}
    )
    caller = pg.session()
    (second,) = caller.leave_open(enqueue.enqueue([draft(**options)]))
    if end == "succeed":
        pg.succeed(first)
    else:
        pg.release(first)
        arguments = (first.id, None) if end == "complete" else (first.id,)
        pg.run(getattr(control, end), *arguments)
    pg.settle_down()
    caller.commit()
    pg.settle_down()
    assert pg.state(second.id) is State.QUEUED


@pytest.mark.parametrize("when", ["before the completion commits", "after it"])
def test_a_promote_during_an_open_completion_of_the_blocker_loses_nothing(pg: Bench, when: str) -> None:
    blocker = pg.take()
    dependent = pg.add(depends_on=(blocker.id,))
    handler = pg.session()
    handler.leave_open(settle.settle([(blocker.lease, Succeeded('"r"'))], half))
    done = Background(pg.promote).result(5)
    assert done.promoted == []
    if when == "after it":
        handler.commit()
        pg.settle_down()
    else:
        Background(pg.promote).result(5)
        handler.commit()
        pg.settle_down()
    assert pg.state(dependent) is State.QUEUED
    assert [one.result_json for one in pg.run(inspect.dependencies, dependent)] == ['"r"']


def test_a_promote_during_an_open_completion_of_a_watched_blocker_loses_nothing(pg: Bench) -> None:
    blocker = pg.take()
    first = pg.add(depends_on=(blocker.id,))
    pg.settle_down()  # now it is watched
    handler = pg.session()
    handler.leave_open(settle.settle([(blocker.lease, Succeeded('"r"'))], half))
    second = pg.add(depends_on=(blocker.id,))
    Background(pg.promote).result(5)
    handler.commit()
    pg.settle_down()
    assert [pg.state(id) for id in (first, second)] == [State.QUEUED] * 2


def test_a_chain_that_continues_while_promote_looks_keeps_its_dependents_informed(pg: Bench) -> None:
    blocker = pg.take()
    dependent = pg.add(depends_on=(blocker.id,), queue="elsewhere")
    successor = draft()
    handler = pg.session()
    handler.leave_open(settle.settle([(blocker.lease, Succeeded(None, continue_with=successor))], half))
    Background(pg.promote).result(5)
    handler.commit()
    pg.settle_down()
    assert pg.state(dependent) is State.PENDING
    (job,) = pg.claim()
    pg.succeed(job, '"last"')
    pg.settle_down()
    assert pg.state(dependent) is State.QUEUED
    assert [one.result_json for one in pg.run(inspect.dependencies, dependent)] == ['"last"']


def test_a_settle_that_waited_for_promote_to_watch_its_job_tells_the_dependents(pg: Bench) -> None:
    """The row that it deletes was marked after its snapshot: it must read the mark from the newer version."""
    for successor in (None, draft()):
        blocker = pg.take()
        dependent = pg.add(depends_on=(blocker.id,), queue="elsewhere")
        promoter = pg.session()
        promoter.leave_open(promote.promote())
        settling = Background(lambda blocker=blocker, successor=successor: pg.succeed(blocker, continue_with=successor))
        assert settling.blocked
        promoter.commit()
        assert settling.result() is State.SUCCEEDED
        pg.settle_down()
        if successor:
            assert pg.state(dependent) is State.PENDING
            (job,) = pg.claim()
            pg.succeed(job)
            pg.settle_down()
        assert pg.state(dependent) is State.QUEUED


def test_a_promote_while_the_head_of_a_line_is_locked_calls_it_later_or_the_next_one(pg: Bench) -> None:
    head, second = (pg.add(target="x") for _ in range(2))
    person = pg.session()
    person.leave_open(control.cancel(head))
    assert Background(pg.promote).result(5).promoted == []
    person.commit()
    pg.settle_down()
    assert (pg.state(head), pg.state(second)) == (State.CANCELLED, State.QUEUED)


def test_a_head_completed_in_an_open_transaction_does_not_hold_up_other_targets(pg: Bench) -> None:
    head, second = (pg.add(target="x") for _ in range(2))
    other = pg.add(target="y")
    caller = pg.session()
    caller.leave_open(control.complete(head, None))
    assert Background(pg.promote).result(5).promoted == [other]
    caller.roll_back()
    pg.settle_down()
    assert (pg.state(head), pg.state(second)) == (State.QUEUED, State.PENDING)


def test_two_promoters_at_once_make_one_holder(pg: Bench) -> None:
    for _ in range(5):
        pg.enqueue(draft(target="x"), draft(target="y"))
    first = pg.session()
    assert len(first.leave_open(promote.promote()).promoted) == 2
    second = Background(pg.promote)
    assert second.blocked
    first.commit()
    assert second.result().promoted == []
    assert pg.count("jobs", "holds") == 2


def test_two_promoters_at_once_unblock_a_job_of_two_blockers_once(pg: Bench) -> None:
    one, two = pg.take(), pg.take()
    dependent = pg.add(depends_on=(one.id, two.id))
    pg.settle_down()
    pg.succeed(one)
    first = pg.session()
    first.leave_open(promote.promote())
    pg.succeed(two)
    second = Background(pg.promote)
    assert second.blocked
    first.commit()
    second.result()
    pg.settle_down()
    assert pg.state(dependent) is State.QUEUED
    assert pg.query("select waits from {s}jobs")[0][0] == 0


def test_two_open_transactions_enqueue_for_targets_in_opposite_order_without_waiting(pg: Bench) -> None:
    one, two = pg.session(), pg.session()
    for session, target in ((one, "x"), (two, "y"), (one, "y"), (two, "x")):
        blocker = pg.add(target=target)
        drafts = [draft(target=target), draft(target=target, depends_on=(blocker,))]
        Background(lambda session=session, drafts=drafts: session.leave_open(enqueue.enqueue(drafts))).result(5)
        Background(pg.promote).result(5)
    one.commit()
    two.commit()
    drain(pg)


def test_settle_against_cancel_of_one_target_never_deadlocks(pg: Bench) -> None:
    for _ in range(100):
        job = pg.take(target="x")
        waiting = pg.add(target="x")
        threads = [
            Background(lambda job=job: pg.succeed(job)),
            Background(lambda waiting=waiting: pg.run(control.cancel, waiting)),
            Background(pg.promote),
        ]
        for thread in threads:
            thread.result()
        pg.settle_down()
        assert pg.count("jobs") == 0


def drain(b: Bench) -> list[str]:
    """Run all there is; the ids in the order in which they ran."""
    ran = []
    for _ in range(200):
        b.settle_down()
        jobs = b.claim(1)
        if not jobs:
            break
        b.succeed(jobs[0])
        ran.append(jobs[0].id)
    assert b.count("jobs") == 0, b.query("select id, state, wait, target, waits from {s}jobs")
    return ran


def test_a_storm_of_enqueue_promote_settle_and_cancel_leaves_nothing_waiting(pg: Bench) -> None:
    """Threads that do everything at once on few targets; then no more faults: all of it comes to an end."""
    over = threading.Event()
    errors: list[BaseException] = []
    known: list[str] = []

    def guarded(work):  # type: ignore[no-untyped-def]
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
            known.append(pg.add(depends_on=some, target=target, policy=policy, delay=random.choice([None, 0.0])))

    def work() -> None:
        for job in pg.claim(3):
            following = draft(target=random.choice([None, "x"]), policy={"max_attempts": 1000})
            outcome = Succeeded("1", continue_with=following if random.random() < 0.2 else None)
            pg.settle((job.lease, outcome if random.random() < 0.8 else Raised("x", delay=0.0)))

    def steering() -> None:
        if known:
            pg.run(random.choice([control.cancel, control.delete]), random.choice(known[-30:]))
            over.wait(0.01)

    threads = [guarded(work) for work in (add, add, work, work, pg.promote, pg.promote, steering)]
    over.wait(6)
    over.set()
    for thread in threads:
        thread.result(30)
    assert errors == []
    for _ in range(2000):
        pg.promote()
        jobs = pg.claim(100)
        if not jobs and not pg.promote().promoted:
            break
        pg.settle(*((job.lease, Succeeded("1")) for job in jobs))
    assert pg.query("select id, state, wait, target, waits from {s}jobs") == []


# Order.


def test_jobs_of_a_target_run_one_at_a_time_in_the_order_of_enqueue(b: Bench) -> None:
    ids = [b.add(target="x") for _ in range(5)]
    assert drain(b) == ids


def test_jobs_due_at_one_moment_are_promoted_in_the_order_of_enqueue(b: Bench) -> None:
    ids = [b.add(delay=60.0) for _ in range(4)]
    b.run(control.pause, ids[0])
    b.run(control.resume, ids[0])  # the row has moved; its place has not
    b.later(60).promote()
    assert [job.id for job in b.claim()] == ids


def test_a_job_whose_time_is_ahead_is_not_in_line_unless_it_holds(b: Bench) -> None:
    later = b.add(target="x", delay=60.0)
    now = b.take(target="x")
    b.settle((now.lease, Raised("x", delay=100.0)))  # holds while it waits for its retry
    b.later(60).settle_down()
    assert b.state(later) is State.PENDING
    b.later(60).settle_down()
    (job,) = b.claim()
    assert job.id == now.id
    b.succeed(job)
    b.settle_down()
    assert b.state(later) is State.QUEUED


@pytest.mark.parametrize("how", ["fail", "pause", "release to pause", "reap to fail"])
def test_a_stopped_holder_keeps_its_target_until_it_is_resumed_cancelled_or_deleted(b: Bench, how: str) -> None:
    for verb in ("resume", "cancel", "delete", "complete"):
        job = b.take(target="x", policy={"on_expired": "fail"})
        second = b.add(target="x")
        if how == "fail":
            b.fail(job)
        elif how == "reap to fail":
            b.later(60).reap()
        else:
            b.run(control.pause, job.id)
            b.release(job) if how == "pause" else b.settle((job.lease, Raised("x")))
        b.settle_down()
        assert b.state(second) is State.PENDING
        arguments = (job.id, None) if verb == "complete" else (job.id,)
        b.run(getattr(control, verb), *arguments)
        assert drain(b) == ([job.id, second] if verb == "resume" else [second])


def test_a_failed_job_that_let_its_target_go_stands_in_line_again_when_resumed(b: Bench) -> None:
    first = b.take(target="x", policy={"on_failure": "continue"})
    second = b.add(target="x")
    b.fail(first)
    b.settle_down()
    assert b.state(second) is State.QUEUED
    b.run(control.resume, first.id)
    b.settle_down()
    assert (b.state(first.id), b.state(second)) == (State.PENDING, State.QUEUED)
    assert drain(b) == [second, first.id]
