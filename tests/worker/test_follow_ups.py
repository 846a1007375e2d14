"""Follow-ups: a job that is enqueued when another has failed for good, in the same transaction."""

from __future__ import annotations

from typing import Any

import pytest

from relet import App, Attempt, Backoff, Fail, InvalidInput
from relet._core.job import Raised, Succeeded
from relet._store.flows import lease
from relet.types import FailedJob
from tests.harness import harness_of


def defined(app: App) -> tuple[Any, Any]:
    @app.task(queue="alerts", priority=7, max_attempts=2)
    def report(failure: FailedJob) -> None: ...

    @app.task(max_attempts=2, backoff=Backoff(base=0.001, max=0.001), follow_up=report)
    def work(number: int) -> None: ...

    app.client.migrate()
    return report, work


def reports(app: App) -> list[FailedJob]:
    return [FailedJob(**job.payload["failure"]) for job in app.client.jobs(task="report").jobs]


def test_a_job_that_fails_for_good_is_followed_up_once(app: App) -> None:
    _, work = defined(app)
    job = work.using(group="acme", tags=["vip"]).enqueue(1)
    harness_of(app).end(harness_of(app).claim(1)[0], Raised("ValueError: once"))
    assert reports(app) == []
    promoted: list[str] = []
    while not promoted:
        promoted = harness_of(app).promote_all()
    (again,) = harness_of(app).claim(1)
    harness_of(app).end(again, Raised("ValueError: twice"))
    assert reports(app) == [FailedJob(job.id, "work", "default", "ValueError: twice", 2, None, "acme")]
    (stored,) = app.client.jobs(task="report").jobs
    assert (stored.queue, stored.priority, stored.max_attempts, stored.state) == ("alerts", 7, 2, "queued")
    assert stored.tags == ("vip",), "so that the two are erased together"


def test_the_answer_to_a_settle_that_is_repeated_adds_no_second_follow_up(app: App) -> None:
    _, work = defined(app)
    work.enqueue(1)
    (claimed,) = harness_of(app).claim(1)
    for _ in range(2):
        harness_of(app).fail(claimed)
    assert len(reports(app)) == 1


def test_a_job_that_succeeds_or_is_cancelled_is_not_followed_up(app: App) -> None:
    _, work = defined(app)
    work.enqueue(1)
    harness_of(app).succeed(harness_of(app).claim(1)[0])
    job = work.enqueue(2)
    (claimed,) = harness_of(app).claim(1)
    app.client.cancel(job)
    harness_of(app).fail(claimed)
    assert app.client.get(job).state == "cancelled"  # type: ignore[union-attr]
    assert reports(app) == []


def test_a_worker_that_does_not_know_the_task_follows_up_when_it_reaps(app: App) -> None:
    _, work = defined(app)
    job = work.using(on_expired="fail").enqueue(1)
    harness_of(app).claim(1, lease=0.001)
    app._tasks.clear()
    changes: list[Any] = []
    while not changes:
        harness_of(app).record_pulse()
        changes = app._store().run(lease.reap, lambda: 0.5)
    (failure,) = reports(app)
    assert (failure.id, failure.attempt) == (job.id, 1)
    assert failure.error.startswith("worker lost")


def test_a_resumed_job_that_fails_again_is_followed_up_again(app: App) -> None:
    _, work = defined(app)
    job = work.enqueue(1)
    harness_of(app).fail(harness_of(app).claim(1)[0])
    app.client.resume(job)
    harness_of(app).promote_all()
    harness_of(app).fail(harness_of(app).claim(1)[0])
    assert len(reports(app)) == 2


def test_a_single_job_may_have_its_own_follow_up_or_none(app: App) -> None:
    report, work = defined(app)
    other = app.task(name="other")(plain)
    work.using(follow_up=None).enqueue(1)
    harness_of(app).fail(harness_of(app).claim(1)[0])
    assert reports(app) == []
    other.using(follow_up=report.using(queue="urgent")).enqueue()
    harness_of(app).fail(harness_of(app).claim(1)[0])
    (stored,) = app.client.jobs(task="report").jobs
    assert stored.queue == "urgent"


def test_the_handler_receives_the_failed_job(relet_app: Any) -> None:
    app: App = relet_app.app
    seen: list[tuple[FailedJob, str]] = []

    @app.task
    def report(attempt: Attempt, failure: FailedJob) -> None:
        seen.append((failure, attempt.job.task))

    @app.task(follow_up=report)
    def work() -> None:
        raise Fail("card declined")

    job = work.enqueue()
    relet_app.drain()
    assert seen == [(FailedJob(job.id, "work", "default", "card declined", 1), "report")]


def test_only_a_task_of_one_failure_can_follow_up() -> None:
    app = App("sqlite:///:memory:")
    two = app.task(name="two")(takes_two)
    with pytest.raises(InvalidInput, match="follow_up must be a task, not"):
        app.task(follow_up=plain)(takes_two)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="it must take one argument, of type"):
        app.task(name="three", follow_up=two)(plain)  # type: ignore[arg-type]


def plain() -> None: ...


def takes_two(one: int, two: int) -> None: ...


def test_a_success_after_a_failed_attempt_adds_nothing(app: App) -> None:
    _, work = defined(app)
    work.enqueue(1)
    harness_of(app).end(harness_of(app).claim(1)[0], Raised("no"))
    promoted: list[str] = []
    while not promoted:
        promoted = harness_of(app).promote_all()
    harness_of(app).end(harness_of(app).claim(1)[0], Succeeded("null"))
    assert reports(app) == []
