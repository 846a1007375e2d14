"""Queues at their limit: a settled job makes room, and workers that wait for it learn of that at once."""

from __future__ import annotations

import threading
import time

import pytest

from relet import App
from relet._worker import producer
from tests.databases import Database
from tests.worker.working import NEVER, until, working


@pytest.fixture
def nothing_is_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "FIRST_PAUSE", NEVER)


@pytest.mark.usefixtures("nothing_is_polled")
def test_a_queue_at_its_limit_goes_on_with_every_job_that_ends(two_apps: App) -> None:
    @two_apps.task
    async def quick() -> None: ...

    two_apps.client.limit_queue("default", max_running=2)
    two_apps.client.enqueue_many([quick.draft() for _ in range(50)])
    with working(two_apps, poll_interval=NEVER):
        until(lambda: two_apps.client.count(state=["queued", "running"]) == 0)  # `wait` would wake the worker, too


@pytest.mark.usefixtures("nothing_is_polled")
@pytest.mark.partitioned  # in the variant rows workers poll
def test_another_worker_goes_on_when_a_job_of_this_one_ends(pg_database: Database) -> None:
    """Neither knows the task of the other, so that only the other worker can claim the job that waits."""
    one, other = (App(pg_database.url, schema=pg_database.schema) for _ in range(2))
    one.client.migrate()
    go_on = threading.Event()

    @one.task
    def first() -> None:
        go_on.wait(20)

    @other.task
    async def second() -> None: ...

    one.client.limit_queue("default", max_running=1)
    with working(one, poll_interval=NEVER) as running, working(other, poll_interval=NEVER) as waiting:
        producers = [worker._sessions[0].producers[0] for worker in (running, waiting)]
        until(lambda: all(one._claim_at - time.monotonic() > 1.0 for one in producers), "both are idle")
        first.enqueue()
        until(lambda: one.client.count(state="running") == 1)
        second.enqueue()
        (its_producer,) = waiting._sessions[0].producers
        until(lambda: its_producer._claimer.limits, "it has seen the limit")
        go_on.set()
        until(lambda: one.client.count(state=["queued", "running"]) == 0)
    one.close()
    other.close()
