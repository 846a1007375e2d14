"""Verbs of a program on a store as a whole: queues, tenants, pruning."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import time
import warnings
from pathlib import Path

import psycopg
import pytest

from relet import App
from relet._core.job import Succeeded
from relet._store.flows import settle
from tests.databases import Database, ids, inventory
from tests.harness import harness_of
from tests.test_client import echo

# queues


def test_queues_are_paused_limited_and_told(app: App) -> None:
    task = echo(app)
    task.enqueue()
    task.using(queue="slow").enqueue()
    app.client.pause_queue("default")
    app.client.limit_queue("slow", max_running=1)
    app.client.limit_queue(None, max_running=5)
    told = {info.queue: info for info in app.client.queues()}
    assert list(told) == ["*", "default", "slow"]
    assert (told["default"].paused, told["default"].queued, told["default"].max_running) == (True, 1, None)
    assert (told["slow"].paused, told["slow"].max_running, told["*"].max_running) == (False, 1, 5)
    assert harness_of(app).claim(1) == []
    app.client.resume_queue("default")
    assert len(harness_of(app).claim(1)) == 1
    app.client.limit_queue("slow", max_running=None)
    told = {info.queue: info for info in app.client.queues()}
    assert (told["default"].running, told["slow"].max_running) == (1, None)


def test_a_limit_of_none_at_all_stops_a_queue(app: App) -> None:
    task = echo(app)
    task.enqueue()
    app.client.limit_queue("default", max_running=0)
    assert harness_of(app).claim(1) == []
    app.client.limit_queue("default", max_running=1)
    assert len(harness_of(app).claim(5)) == 1


# tenants


def test_tenants_are_strangers_to_each_other(app: App, database: Database) -> None:
    task = echo(app)
    acme = app.client.tenant("acme")
    acme.migrate()
    try:
        job = task.using(tenant="acme").enqueue(1)
        assert app.client.get(job) is None
        assert acme.get(job) == job
        assert (app.client.count(), acme.count()) == (0, 1)
        assert app.client.enqueue(task.draft(2), tenant="acme").id in ids(acme.jobs().jobs)
        assert acme.enqueue(task.draft(3)).id in ids(acme.jobs().jobs)
        assert asyncio.run(app.aclient.tenant("acme").count()) == 3
        assert app.client.count() == 0
    finally:
        acme._store.close()
        if database.is_postgres:
            drop(app, f"{database.schema}_acme")


def drop(app: App, schema: str) -> None:
    with psycopg.connect(app._url) as connection:
        connection.execute(f"drop schema {schema} cascade".encode())


# prune


def test_prune_removes_jobs_that_ended_long_enough_ago(app: App) -> None:
    task = echo(app)
    jobs = [task.enqueue(n) for n in range(5)]
    app.client.complete(jobs[0])
    app.client.cancel(jobs[1])
    harness_of(app).fail(harness_of(app).claim(1)[0])
    kept = app.client.prune(keep_finished=3600, keep_failed=3600)
    assert (kept.finished, kept.failed) == (0, 0)
    time.sleep(0.01)
    gone = app.client.prune(keep_finished=0, keep_failed=0)
    assert (gone.finished, gone.failed) == (2, 1)
    assert app.client.count() == 2
    assert inventory(app._store())["attempts"] == 0, "the history goes with the job"


def test_prune_takes_as_many_steps_as_it_needs(app: App) -> None:
    task = echo(app)
    app.client.enqueue_many([task.draft(n) for n in range(2500)])
    app._store().run(
        settle.settle, [(job.lease, Succeeded("null")) for job in harness_of(app).claim(2500)], random.random
    )
    time.sleep(0.01)
    assert app.client.prune(keep_finished=0).finished == 2500
    assert app.client.count() == 0


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python warns of open connections from 3.13 on")
def test_a_forgotten_app_on_sqlite_causes_no_warning(tmp_path: Path) -> None:
    def forget() -> None:
        for url in (f"sqlite:///{tmp_path / 'jobs.db'}", "sqlite:///:memory:"):
            app = App(url)
            app.client.migrate()
            app.client.count()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        forget()
        gc.collect()
    assert [str(one.message) for one in found] == []
