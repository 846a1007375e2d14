"""Log records say which job they belong to."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from relet import App, Backoff
from relet.logs import TEXT, JobContext, JsonLines
from tests.worker.working import over, working


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """The output of a user's logger, with a handler that knows of jobs."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(JobContext())
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("users")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)


def deep() -> None:
    logging.getLogger("users.own").info("hello from %s", "afar")


def test_records_of_handlers_carry_job_task_and_attempt(memory_app: App, stream: io.StringIO) -> None:
    @memory_app.task
    async def on_loop() -> None:
        await asyncio.sleep(0.01)
        deep()

    @memory_app.task
    def in_thread() -> None:
        deep()

    @memory_app.task
    async def via_thread() -> None:
        await asyncio.to_thread(deep)

    with working(memory_app):
        jobs = {task.name: task.enqueue().id for task in (on_loop, in_thread, via_thread)}
        over(memory_app, *jobs.values())
        deep()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {(line.get("task"), line.get("job_id"), line.get("attempt")) for line in lines} == {
        (None, None, None),
        *((task, job, 1) for task, job in jobs.items()),
    }
    assert {line["message"] for line in lines} == {"hello from afar"}
    assert {line["logger"] for line in lines} == {"users.own"}


def test_one_job_does_not_log_in_the_name_of_another(memory_app: App, stream: io.StringIO) -> None:
    @memory_app.task
    async def on_loop(number: int) -> None:
        await asyncio.sleep(0.001 * (number % 3))
        logging.getLogger("users").info("%d", number)

    @memory_app.task
    def in_thread(number: int) -> None:
        logging.getLogger("users").info("%d", number)

    drafts = [(on_loop if n % 2 else in_thread).draft(n) for n in range(60)]
    with working(memory_app, concurrency=4):
        over(memory_app, *memory_app.client.enqueue_many(drafts))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {int(line["message"]): line["job_id"] for line in lines} == {n: one.id for n, one in enumerate(drafts)}


def test_a_line_says_whose_job_it_is_and_who_runs_it(memory_app: App, stream: io.StringIO) -> None:
    @memory_app.task(queue="mail")
    def work() -> None:
        deep()

    memory_app.client.tenant("acme").migrate()
    with working(memory_app, tenants={"acme": 1}) as worker:
        job = memory_app.client.enqueue(work.draft(), tenant="acme")
        memory_app.client.tenant("acme").wait(job, timeout=20)
    (line,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert line.items() >= {"queue": "mail", "tenant": "acme", "worker": worker.id, "job_id": job.id}.items()


def test_log_lines_of_the_worker_about_a_job_are_marked_likewise(memory_app: App, stream: io.StringIO) -> None:
    logger = logging.getLogger("relet.worker")
    logger.addHandler(logging.getLogger("users").handlers[-1])
    logger.setLevel("INFO")

    @memory_app.task(max_attempts=2, backoff=Backoff(base=0, max=0))
    def work() -> None:
        raise ValueError("no")

    try:
        with working(memory_app) as worker:
            job = work.enqueue()
            over(memory_app, job)
    finally:
        logger.handlers.pop()
        logger.setLevel("NOTSET")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    about = [line for line in lines if " failed (attempt" in line["message"]]
    assert [(line["job_id"], line["task"], line["attempt"], line["level"]) for line in about] == [
        (job.id, "work", 1, "warning"),
        (job.id, "work", 2, "error"),
    ]
    assert {line["worker"] for line in lines} == {worker.id}


def test_extra_is_in_the_line_and_cannot_break_it(stream: io.StringIO) -> None:
    circle: list[object] = []
    circle.append(circle)
    logging.getLogger("users").info("mine", extra={"order": 7, "cents": {"a": [1]}, "place": io})
    logging.getLogger("users").info("odd", extra={"part": float("nan"), "circle": circle, "lone": "\udc80"})
    mine, odd = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert mine.items() >= {"order": 7, "cents": {"a": [1]}, "place": str(io)}.items()
    assert (odd["part"], odd["circle"]) == ("nan", "[[...]]")


def test_readable_lines_end_with_the_job(memory_app: App, stream: io.StringIO) -> None:
    logging.getLogger("users").handlers[-1].setFormatter(logging.Formatter(TEXT))

    @memory_app.task
    def work() -> None:
        deep()

    with working(memory_app):
        job = work.enqueue()
        over(memory_app, job)
        deep()
    inside, outside = stream.getvalue().splitlines()
    assert inside.endswith(f"users.own: hello from afar [work {job.id} attempt 1]")
    assert outside.endswith("users.own: hello from afar")


def test_values_of_a_record_under_these_names_stay(stream: io.StringIO) -> None:
    logging.getLogger("users").info("mine", extra={"job_id": "other", "task": "else"})
    (line,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (line["job_id"], line["task"]) == ("other", "else")


def test_json_lines_show_errors(stream: io.StringIO) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("users").exception("it broke")
    (line,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (line["level"], line["message"]) == ("error", "it broke")
    assert "ValueError: no" in line["error"]
