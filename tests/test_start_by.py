"""start_by: a job that has not started by then is cancelled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from relet import App, InvalidInput
from relet._core.job import Released
from relet._store.flows import maintenance
from tests.harness import harness_of

SOON = timedelta(seconds=0.05)


def soon() -> datetime:
    return datetime.now(UTC) + SOON


def work() -> None: ...


@pytest.fixture(autouse=True)
def _task(app: App) -> None:
    app.task(work)
    app.client.migrate()


def expire(app: App, *jobs: str) -> None:
    """Run maintenance until these jobs are over."""
    give_up = datetime.now(UTC) + timedelta(seconds=20)
    while any(app.client.get(job).state != "cancelled" for job in jobs):  # type: ignore[union-attr]
        ahead = app._store().run(maintenance.work_ahead)
        if ahead.next_due is not None and ahead.next_due <= 0:
            harness_of(app).promote_all()
        assert datetime.now(UTC) < give_up


def test_jobs_that_have_not_started_are_cancelled_with_the_reason(app: App) -> None:
    moment = soon()
    task = app.tasks["work"]
    queued = task.using(start_by=moment).enqueue()
    delayed = task.using(start_by=moment, delay=3600).enqueue()
    paused = task.using(start_by=moment).enqueue()
    app.client.pause(paused)
    other = task.enqueue()
    assert queued.start_by == moment
    assert app.client.get(queued).start_by == moment  # type: ignore[union-attr]
    expire(app, queued.id, delayed.id, paused.id)
    for job in (queued, delayed, paused):
        found = app.client.get(job)
        assert found is not None
        assert found.error == f"it has not started by {moment:%Y-%m-%d %H:%M:%S} UTC"
    assert app.client.get(other).state == "queued"  # type: ignore[union-attr]


def test_no_worker_starts_a_job_after_its_start_by(app: App) -> None:
    """Even before maintenance has cancelled it; also in a queue with limits."""
    task = app.tasks["work"]
    moment = soon()
    for queue, group in (("default", None), ("limited", "a"), ("rated", None)):
        task.using(queue=queue, group=group, start_by=moment).enqueue()
    app.client.limit_queue("limited", max_running=1, group="*")
    app.client.limit_queue("rated", rate=5, per=1)
    while datetime.now(UTC) < moment + SOON:
        pass
    for queue in ("default", "limited", "rated"):
        assert harness_of(app).claim(5, queues=(queue,)) == []


def test_a_job_that_has_started_is_not_cancelled(app: App) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=1)
    job = app.tasks["work"].using(start_by=moment).enqueue()
    (claimed,) = harness_of(app).claim(1)
    harness_of(app).end(claimed, Released())
    while datetime.now(UTC) < moment + SOON:
        pass
    harness_of(app).promote_all()
    assert app.client.get(job).state == "queued"  # type: ignore[union-attr]
    assert len(harness_of(app).claim(1)) == 1


def test_a_dependent_of_a_cancelled_job_learns_of_it(app: App) -> None:
    task = app.tasks["work"]
    late = task.using(start_by=soon()).enqueue()
    dependent = task.using(depends_on=[late], on_dependency_failure="cancel").enqueue()
    expire(app, late.id, dependent.id)


def test_bad_times_are_refused(app: App) -> None:
    task = app.tasks["work"]
    with pytest.raises(InvalidInput, match="start_by must be later than run_at"):
        task.using(run_at=datetime.now(UTC), start_by=datetime.now(UTC) - timedelta(seconds=5))
    with pytest.raises(InvalidInput, match="start_by"):
        task.using(start_by=60)  # type: ignore[arg-type]
