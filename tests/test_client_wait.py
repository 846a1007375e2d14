"""Waiting for a job's chain: woken by the process that ends it, and by polling where no notification comes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest

from relet import App, JobCancelled, JobFailed, JobNotFound, State, WaitTimeout
from relet._tasks.task import PlainTask
from tests import forks
from tests.databases import Database
from tests.harness import harness_of
from tests.plugin.apps import Later

pytestmark = pytest.mark.every_store

SOON = 3.0  # generous: it takes milliseconds


@dataclass
class Receipt:
    number: int


def test_the_result_of_a_job_that_is_over_comes_at_once(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    app.client.complete(job, {"x": [1]})
    assert app.client.result(job, timeout=0) == {"x": [1]}
    assert app.client.wait(job.id, timeout=0).state is State.SUCCEEDED


def test_the_result_has_the_type_of_the_annotation(app: App) -> None:
    @app.task
    def buy() -> Receipt:
        return Receipt(7)

    job = buy.enqueue()
    app.client.complete(job, Receipt(8))
    assert app.client.result(job) == Receipt(8)


def test_a_result_of_nothing_is_none(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    harness_of(app).succeed(harness_of(app).claim(1)[0], "null")
    assert app.client.result(job) is None


def test_the_result_of_a_task_that_this_app_does_not_know_is_plain(
    app: App, database: Database, task: PlainTask[..., Any]
) -> None:
    if database.kind == "memory":
        pytest.skip("another app has another memory")
    job = task.enqueue()
    app.client.complete(job, {"number": 8})
    stranger = database.app()
    assert stranger.client.result(job) == {"number": 8}
    stranger.close()


def test_a_waiting_caller_is_woken(app: App, meanwhile: Later, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    (claimed,) = harness_of(app).claim(1)
    ended: list[float] = []

    def end() -> None:
        harness_of(app).succeed(claimed, '"done"')
        ended.append(time.monotonic())

    meanwhile(end)
    assert app.client.result(job, timeout=10) == "done"
    woken = time.monotonic()
    assert not ended or woken - ended[0] < SOON  # it may well be woken before the other one knows that it is done


def test_many_who_wait_are_all_woken(app: App, meanwhile: Later, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    meanwhile(lambda: app.client.complete(job, "done"))

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(app.aclient.result(job, timeout=20) for _ in range(15)))

    began = time.monotonic()
    assert asyncio.run(all_of_them()) == ["done"] * 15
    assert time.monotonic() - began < 0.2 + 2 * SOON


@pytest.mark.parametrize("verb", ["cancel", "fail", "delete"])
def test_an_end_without_a_result_is_an_error(app: App, meanwhile: Later, task: PlainTask[..., Any], verb: str) -> None:
    job = task.enqueue()
    if verb == "fail":
        (claimed,) = harness_of(app).claim(1)
        meanwhile(lambda: harness_of(app).fail(claimed, "ValueError: no"))
        with pytest.raises(JobFailed, match=f"job {job.id} failed: ValueError: no") as caught:
            app.client.result(job, timeout=10)
        assert (caught.value.job_id, caught.value.error) == (job.id, "ValueError: no")
    else:
        meanwhile(lambda: getattr(app.client, verb)(job))
        with pytest.raises(JobCancelled if verb == "cancel" else JobNotFound, match=job.id):
            app.client.result(job, timeout=10)


def test_waiting_ends_when_the_time_is_up(app: App, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    began = time.monotonic()
    with pytest.raises(WaitTimeout, match=f"job {job.id} is still queued after 0.3 s"):
        app.client.wait(job, timeout=0.3)
    assert 0.3 <= time.monotonic() - began < SOON
    with pytest.raises(TimeoutError):
        asyncio.run(app.aclient.result(job, timeout=0))
    assert app.client.get(job).state is State.QUEUED  # type: ignore[union-attr]


def test_the_result_of_a_chain_is_its_last_jobs(app: App, meanwhile: Later, task: PlainTask[..., Any]) -> None:
    first = task.enqueue(1)
    second = task.draft(2)

    def go_on() -> None:
        app.client.complete(first, "not this", continue_with=second)
        meanwhile(lambda: app.client.complete(second.id, "this"), 0.3)

    meanwhile(go_on, 0.1)
    assert app.client.result(first, timeout=10) == "this"
    assert app.client.wait(first).id == second.id
    assert app.client.wait(second.id).id == second.id


def test_a_chain_whose_last_job_failed_has_failed(app: App, task: PlainTask[..., Any]) -> None:
    first = task.enqueue(1)
    second = task.draft(2)
    app.client.complete(first, continue_with=second)
    harness_of(app).fail(harness_of(app).claim(1)[0], "no")
    with pytest.raises(JobFailed, match=second.id):
        app.client.result(first)


@pytest.mark.usefixtures("no_notifications")
def test_polling_stands_behind_the_notification(app: App, meanwhile: Later, task: PlainTask[..., Any]) -> None:
    job = task.enqueue()
    meanwhile(lambda: app.client.complete(job, "done"))
    began = time.monotonic()
    assert app.client.result(job, timeout=10) == "done"
    assert time.monotonic() - began < 0.2 + SOON


@pytest.mark.long
def test_an_end_in_another_process_wakes_too(
    app: App, meanwhile: Later, database: Database, task: PlainTask[..., Any]
) -> None:
    if database.kind == "memory":
        pytest.skip("memory is not shared")
    job = task.enqueue()
    script = f"""
import sys, time
from relet import App
app = App({database.url!r}, schema={database.schema!r})
app.client.count()
print("ready", flush=True)
sys.stdin.readline()
app.client.complete({job.id!r}, time.time())
"""
    with forks.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        stdin = other.stdin
        meanwhile(lambda: (stdin.write("go\n"), stdin.flush()), 1.5)  # by then the polls are a second apart
        ended = app.client.result(job, timeout=20)
        assert time.time() - ended < SOON
