"""Queries of a program: pages of jobs, their number, and why one is not running."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from relet import App, Job, State
from relet._core.job import Raised
from relet._tasks.task import PlainTask
from relet.errors import InvalidInput, JobNotFound
from relet.types import JobDetails
from tests.harness import harness_of


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    @app.task
    def work(value: Any = None) -> Any:
        return value

    task: PlainTask[..., Any] = work
    return task


@pytest.fixture
def other(app: App) -> PlainTask[..., Any]:
    @app.task(queue="other")
    def other(value: Any = None) -> Any:
        return value

    task: PlainTask[..., Any] = other
    return task


def one_of_each(app: App, task: PlainTask[..., Any]) -> dict[State, Job[Any]]:
    """A job in every state there is."""
    running, failed, paused, queued, succeeded, cancelled = app.client.enqueue_many([task.draft(n) for n in range(6)])
    held = {job.id: job for job in harness_of(app).claim(2)}
    harness_of(app).fail(held[failed.id])
    app.client.pause(paused)
    app.client.complete(succeeded)
    app.client.cancel(cancelled)
    pending = task.using(delay=60).enqueue()
    found = {job.state: job for job in app.client.jobs().jobs}
    assert {job.id for job in found.values()} == {
        job.id for job in (running, failed, paused, queued, succeeded, cancelled, pending)
    }
    return found


# pages


def walk(app: App, limit: int, **which: Any) -> list[str]:
    seen: list[str] = []
    cursor = None
    while True:
        page = app.client.jobs(limit=limit, cursor=cursor, **which)
        assert len(page.jobs) <= limit
        seen += [job.id for job in page.jobs]
        if page.cursor is None:
            return seen
        assert page.jobs, "a page with a next one is not empty"
        cursor = page.cursor


@pytest.mark.long
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20, 21, 1000])
def test_pages_have_no_gaps_and_no_repeats(app: App, task: PlainTask[..., Any], limit: int) -> None:
    jobs = app.client.enqueue_many([task.draft(n) for n in range(21)])
    for job in jobs[::3]:
        app.client.complete(job)
    for job in jobs[1::5]:
        app.client.pause(job) if app.client.get(job).state is State.QUEUED else None  # type: ignore[union-attr]
    assert walk(app, limit) == sorted((job.id for job in jobs), reverse=True)


def test_jobs_that_come_meanwhile_do_not_disturb_the_walk(app: App, task: PlainTask[..., Any]) -> None:
    jobs = app.client.enqueue_many([task.draft(n) for n in range(10)])
    first = app.client.jobs(limit=5)
    task.enqueue("newer")
    app.client.complete(first.jobs[-1], "it moves to the other table")
    rest = app.client.jobs(limit=50, cursor=first.cursor)
    seen = [job.id for job in (*first.jobs, *rest.jobs)]
    assert seen == sorted((job.id for job in jobs), reverse=True)
    assert rest.cursor is None


def test_filters_restrict_jobs_and_count_alike(
    app: App,
    task: PlainTask[..., Any],
    other: PlainTask[..., Any],
) -> None:
    each = one_of_each(app, task)
    elsewhere = other.using(target="t").enqueue()
    app.client.complete(done := other.using(target="u", queue="third").enqueue())
    everything = {job.id for job in (*each.values(), elsewhere, done)}

    def check(expected: set[str], **which: Any) -> None:
        assert {job.id for job in app.client.jobs(**which).jobs} == expected
        assert app.client.count(**which) == len(expected)
        assert set(walk(app, 2, **which)) == expected

    check(everything)
    for state, job in each.items():
        check({job.id}, state=state, task="work")
        check({job.id}, state=str(state), queue="default")
    check({each[State.FAILED].id, each[State.CANCELLED].id}, state=["failed", State.CANCELLED])
    check(everything, state=list(State))
    check(everything, state=[])
    check({elsewhere.id, done.id}, task="other")
    check({elsewhere.id}, queue="other")
    check({done.id}, target="u")
    check({elsewhere.id}, target="t", queue="other", task="other", state="pending")
    check(set(), target="t", queue="third")
    check(set(), task="never heard of")


def test_moments_restrict_by_when_a_job_was_made(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    done = app.client.complete(task.enqueue())
    made = min(job.created_at, done.created_at)
    hour = timedelta(hours=1)
    assert app.client.count(created_from=made - hour, created_to=made + hour) == 2
    assert app.client.count(created_from=made + hour) == 0
    assert app.client.count(created_to=made - hour) == 0
    elsewhere = made.astimezone(ZoneInfo("America/St_Johns"))
    assert app.client.count(created_from=elsewhere - hour, created_to=elsewhere + hour) == 2


def test_the_moment_that_a_job_tells_is_the_moment_it_is_found_by(app: App, task: PlainTask[..., Any]) -> None:
    """`created_from` includes it, `created_to` does not, to the microsecond."""
    for job in [task.enqueue(n) for n in range(30)]:
        assert job.id in [one.id for one in app.client.jobs(created_from=job.created_at).jobs]
        assert job.id not in [one.id for one in app.client.jobs(created_to=job.created_at).jobs]


def test_counting_stops_where_it_is_told_to(app: App, task: PlainTask[..., Any]) -> None:
    app.client.enqueue_many([task.draft(n) for n in range(9)])
    app.client.complete(app.client.jobs(limit=1).jobs[0])
    assert [app.client.count(limit=most) for most in (0, 1, 8, 9, 10, None)] == [0, 1, 8, 9, 9, 9]


def test_awkward_names_are_found(app: App, task: PlainTask[..., Any]) -> None:
    target = """it's 100% "so" :name %(x)s \\ $1 日本"""
    job = task.using(target=target, unique=target).enqueue()
    assert [one.id for one in app.client.jobs(target=target).jobs] == [job.id]
    assert app.client.get(job).target == app.client.get(job).unique == target  # type: ignore[union-attr]


# explain


def test_a_queued_job_waits_for_a_worker(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    assert app.client.explain(job) == [
        "it is ready to run, but no worker is running: start a worker that serves queue default and knows task work"
    ]


def test_a_job_that_is_over_says_so(app: App, task: PlainTask[..., Any]) -> None:
    assert app.client.explain(app.client.complete(task.enqueue())) == ["it is succeeded"]
    assert app.client.explain(app.client.cancel(task.enqueue())) == ["it is cancelled"]


def test_a_running_job_names_its_worker(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    harness_of(app).claim(1, worker="box-7")
    (reason,) = app.client.explain(job)
    assert reason.startswith("it runs: worker box-7 holds its lease until 20")
    assert reason.endswith(" UTC")
    app.client.pause(job)
    assert app.client.explain(job)[0].endswith("; asked to pause")


def test_the_explanation_of_a_failed_job_has_its_error_and_the_command(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    harness_of(app).fail(harness_of(app).claim(1)[0], "ValueError: no\n  second line")
    assert app.client.explain(job) == ["it has failed after 1 of 4 attempts: ValueError: no; resume or cancel it"]


def test_a_paused_job_says_since_when(app: App, task: PlainTask[..., Any]) -> None:
    job = app.client.pause(task.enqueue())
    (reason,) = app.client.explain(job)
    assert reason.startswith("it is paused since 20")
    assert reason.endswith("; resume or cancel it")


def test_a_job_whose_time_is_ahead_says_when(app: App, task: PlainTask[..., Any]) -> None:
    when = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert app.client.explain(task.using(run_at=when).enqueue()) == ["its time is ahead: 2031-02-03 04:05:06 UTC"]


def test_a_job_that_waits_for_a_retry_tells_why(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    harness_of(app).end(harness_of(app).claim(1)[0], Raised("TimeoutError: slow", delay=60))
    (reason,) = app.client.explain(job)
    assert reason.startswith("its time is ahead: 20")
    assert reason.endswith(", after attempt 1 failed: TimeoutError: slow")


def test_a_job_that_is_due_is_not_said_to_be_ahead_of_its_time(app: App, task: PlainTask[..., Any]) -> None:
    resumed = app.client.pause(task.enqueue())
    app.client.resume(resumed)
    hurried = task.using(delay=3600).enqueue()
    app.client.run_now(hurried)
    for job in (resumed, hurried):
        (reason,) = app.client.explain(job)
        assert "ahead" not in reason
        assert "maintenance will queue it" in reason


def test_a_job_that_waits_for_others_names_those_that_are_not_over(app: App, task: PlainTask[..., Any]) -> None:
    done, failed, queued, gone = app.client.enqueue_many([task.using(priority=-n).draft(n) for n in range(4)])
    held = {job.id: job for job in harness_of(app).claim(2)}
    job = task.using(depends_on=[done, failed, queued, gone]).enqueue()
    harness_of(app).fail(held[failed.id])
    app.client.complete(done)
    app.client.delete(gone)
    harness_of(app).promote_all()
    assert app.client.explain(job) == [
        f"it waits for {failed.id}, which is failed",
        f"it waits for {queued.id}, which is queued",
        f"it waits for {gone.id}, which is deleted",
    ]


def test_a_job_behind_its_target_names_the_holder(app: App, task: PlainTask[..., Any]) -> None:
    first, second, third = (task.using(target="acct-7").enqueue(n) for n in range(3))
    assert "which is free" in app.client.explain(first)[0]
    harness_of(app).promote_all()
    assert app.client.explain(first)[0].startswith("it is ready to run")
    assert app.client.explain(third) == [
        f"target acct-7 is held by job {first.id}, which is queued",
        "1 in line before it",
    ]
    harness_of(app).fail(harness_of(app).claim(1)[0])
    assert app.client.explain(second) == [
        f"target acct-7 is held by job {first.id}, which is failed; resume or cancel that one",
        "0 in line before it",
    ]


def test_a_job_of_a_paused_or_full_queue_says_so(
    app: App, task: PlainTask[..., Any], other: PlainTask[..., Any]
) -> None:
    running, job = task.enqueue(), task.enqueue()
    harness_of(app).claim(1)
    app.client.pause_queue("default")
    app.client.limit_queue("default", max_running=1)
    app.client.limit_queue(None, max_running=1)
    assert app.client.explain(job) == [
        "queue default is paused; resume_queue('default') lets it go on",
        "queue default may run 1, and 1 run",
        "all queues may run 1, and 1 run",
    ]
    assert app.client.explain(other.enqueue()) == ["all queues may run 1, and 1 run"]
    app.client.complete(running)
    app.client.resume_queue("default")
    assert app.client.explain(job)[0].startswith("it is ready to run")


def test_blockers_of_a_plain_job_are_none(app: App, task: PlainTask[..., Any]) -> None:
    assert app.client.dependencies(task.enqueue()) == []
    assert list(app.client.chain(only := task.enqueue())) == [only]


@pytest.mark.parametrize("no_id", ["42", "", "{0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1}", 5, None])
def test_get_of_something_that_is_no_id_returns_none(app: App, no_id: Any) -> None:
    assert app.client.get(no_id) is None
    assert asyncio.run(app.aclient.get(no_id)) is None


# describe


def test_a_description_has_all_that_the_single_calls_return(app: App, task: PlainTask[..., Any]) -> None:
    first, second = task.enqueue(1), task.enqueue(2)
    for claimed in harness_of(app).claim(2):
        harness_of(app).fail(claimed)
    app.client.resume(first)
    harness_of(app).promote_all()
    (claimed,) = harness_of(app).claim(1)
    harness_of(app).fail(claimed)
    waiting = task.using(depends_on=[first, second]).enqueue(3)
    app.client.complete(second, continue_with=task.draft(4))
    for job in (first, second, waiting):
        details = app.client.describe(job)
        assert details.job == app.client.get(job)
        assert details.attempts == app.client.attempts(job)
        assert details.chain == app.client.chain(job)
        assert details.dependencies == app.client.dependencies(job)
        assert details.dependents == app.client.dependents(job)
        assert details.explanation == app.client.explain(job)
    assert len(app.client.describe(second).chain) == 2
    assert [one.id for one in app.client.describe(second).dependents] == [waiting.id]
    assert [one.chain for one in app.client.describe(waiting).dependencies] == [first.id, second.id]
    assert len(app.client.describe(first).attempts) == 2


def test_a_job_that_does_not_exist_has_no_description(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    app.client.delete(job)
    with pytest.raises(JobNotFound):
        app.client.describe(job)
    with pytest.raises(InvalidInput, match="UUIDv7"):
        app.client.describe("nonsense")


async def _described(app: App, job: Job[Any]) -> JobDetails:
    return await app.aclient.describe(job)


def test_the_async_client_describes_a_job_alike(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    assert asyncio.run(_described(app, job)) == app.client.describe(job)
