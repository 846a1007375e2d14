"""Queues of all sorts: jobs of tasks that a worker does not know, and thousands of names that are used once."""

from __future__ import annotations

from relet import App, State
from tests.databases import Database
from tests.worker.working import until, until_state, working


def test_jobs_of_unknown_tasks_are_passed_by_without_walking_over_them(two_databases: Database, two_apps: App) -> None:
    app, other = two_apps, two_databases.app()

    @other.task
    def unknown(number: int) -> None: ...

    @app.task
    def known() -> None: ...

    other.client.enqueue_many([unknown.draft(number) for number in range(3000)])
    with working(app) as worker:
        (producer,) = worker._sessions[0].producers
        producer._claimer.cursor._fastest = -1.0  # so that every claim counts as slow
        first = known.enqueue()
        until_state(app, first, State.SUCCEEDED)
        until(lambda: producer._claimer.foreign == {"default"})
        second = known.enqueue()
        until_state(app, second, State.SUCCEEDED)
    assert other.client.count(state=["queued"]) == 3000
    other.close()


def test_names_of_queues_that_are_out_of_use_are_forgotten(two_apps: App) -> None:
    app = two_apps

    @app.task
    def work() -> None: ...

    with working(app) as worker:
        (producer,) = worker._sessions[0].producers
        for start in range(0, 400, 100):
            names = [f"user-{number}" for number in range(start, start + 100)]
            jobs = app.client.enqueue_many([work.using(queue=name).draft() for name in names])
            app.client.wait_many(jobs, timeout=60)
        until(lambda: len(producer._claimer.queues) <= 101)
        assert "default" in producer._claimer.queues
        last = work.using(queue="user-0").enqueue()  # one that was forgotten
        app.client.wait(last, timeout=60)
