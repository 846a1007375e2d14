"""Suspects and limited queues beside a backlog that fills every claim: they are looked for all the same."""

from __future__ import annotations

import pytest

from relet import App, Job, State
from tests.databases import Database
from tests.worker.working import over, run_sql, until, working

BACKLOG = 20_000
SOON = BACKLOG // 2  # jobs that may start before; without a look it would be all of them


def started_before(app: App, job: Job[None], others: list[Job[None]]) -> int:
    """How many of the others, a sample of the backlog, had started when this one did; scaled to the backlog."""
    found = app.client.get(job)
    assert found is not None
    moment = found.started_at
    assert moment is not None
    sample = [app.client.get(one) for one in others[:: BACKLOG // 200]]
    earlier = sum(one is not None and one.started_at is not None and one.started_at < moment for one in sample)
    return earlier * BACKLOG // 200


def enqueue_backlog(app: App) -> list[Job[None]]:
    @app.task
    async def quick() -> None: ...

    return app.client.enqueue_many([quick.draft() for _ in range(BACKLOG)])


@pytest.mark.long
def test_a_suspect_runs_while_a_backlog_lasts(two_databases: Database, two_apps: App) -> None:
    backlog = enqueue_backlog(two_apps)
    suspect = two_apps.lookup("quick").enqueue()
    run_sql(two_databases, two_apps, f"update {{t}}jobs set losses = 1, suspect = 1 where id = '{suspect.id}'")
    with working(two_apps, lease=30.0):
        (done,) = over(two_apps, suspect, timeout=60)
        until(lambda: two_apps.client.count(state=["queued", "running"]) == 0, seconds=60)
    assert done.state is State.SUCCEEDED
    assert started_before(two_apps, suspect, backlog) < SOON


@pytest.mark.long
def test_a_queue_with_a_limit_is_served_while_a_backlog_lasts(two_apps: App) -> None:
    backlog = enqueue_backlog(two_apps)
    limited = two_apps.lookup("quick").using(queue="limited").enqueue()
    two_apps.client.limit_queue("limited", max_running=1)
    with working(two_apps, lease=30.0, queues=["default", "limited"]):
        (done,) = over(two_apps, limited, timeout=60)
        until(lambda: two_apps.client.count(state=["queued", "running"]) == 0, seconds=60)
    assert done.state is State.SUCCEEDED
    assert started_before(two_apps, limited, backlog) < SOON


def test_a_new_queue_is_found_while_a_backlog_lasts(two_apps: App) -> None:
    """By a worker that serves every queue, and has not heard of this one."""
    two_apps.task(_quick)
    with working(two_apps, lease=30.0) as worker:
        (producer,) = worker._sessions[0].producers
        producer._wait_after = lambda found: producer._go_on()  # type: ignore[method-assign]  # as under a backlog
        late = two_apps.lookup("_quick").using(queue="new").enqueue()
        (done,) = over(two_apps, late, timeout=60)
    assert done.state is State.SUCCEEDED


async def _quick() -> None: ...
