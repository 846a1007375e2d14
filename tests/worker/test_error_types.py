"""The class of the exception that ended an attempt is stored beside the text of its error."""

from __future__ import annotations

import asyncio

import pytest

from relet import App, Attempt, Backoff, Fail, Retry
from relet.testing import harness
from tests.harness import harness_of
from tests.worker.working import until, working


class Refused(Exception):
    """An exception of the program."""


def attempts_of(app: App, id: str) -> list[tuple[str, str | None]]:
    return [(one.outcome, one.error_type) for one in app.client.attempts(id)]


@pytest.mark.every_store
def test_an_attempt_and_its_job_have_the_class_of_the_exception(store_url: str, schema: str) -> None:
    app = App(store_url, schema=schema)
    app.client.migrate()

    @app.task(max_attempts=4, backoff=Backoff(base=0.001, max=0.001))
    def work(attempt: Attempt) -> None:
        if attempt.job.attempt == 3:
            raise SystemExit(1)
        if attempt.job.attempt == 4:
            raise Fail("in vain")
        raise (Retry("later") if attempt.job.attempt == 2 else Refused("no"))

    with app:
        id = work.enqueue().id
        with working(app):
            until(lambda: app.client.count(state="failed") == 1)
        found = app.client.get(id)
        assert found is not None
        assert (found.error, found.error_type) == ("in vain", "relet.errors.Fail")
        mine = f"{__name__}.Refused"
        assert attempts_of(app, id) == [
            ("retried", mine),
            ("retried", "relet.errors.Retry"),
            ("retried", "builtins.SystemExit"),
            ("failed", "relet.errors.Fail"),
        ]
        assert [job.error_type for job in app.client.jobs().jobs] == ["relet.errors.Fail"]
        app.client.cancel(id)  # moves the job to another table
        assert app.client.describe(id).job.error_type == "relet.errors.Fail"


@pytest.mark.every_store
@pytest.mark.usefixtures("no_notifications")  # one could abort the handler before it raises
def test_a_job_that_is_cancelled_while_it_runs_keeps_the_class_of_its_exception(store_url: str, schema: str) -> None:
    app = App(store_url, schema=schema)
    app.client.migrate()

    @app.task
    def work(attempt: Attempt) -> None:
        app.client.cancel(attempt.job.id)
        raise Refused

    with app:
        id = work.enqueue().id
        with working(app):
            until(lambda: app.client.count(state="cancelled") == 1)
        assert attempts_of(app, id) == [("cancelled", f"{__name__}.Refused")]
        found = app.client.get(id)
        assert found is not None
        assert found.error_type == f"{__name__}.Refused"


def test_a_timeout_is_a_timeout_error_and_a_success_has_none() -> None:
    app = App("sqlite:///:memory:")
    app.client.migrate()

    @app.task(timeout=0.05, max_attempts=1)
    async def slow(seconds: float) -> None:
        await asyncio.sleep(seconds)

    with app:
        late, early = slow.enqueue(60).id, slow.enqueue(0).id
        with working(app):
            until(lambda: app.client.count(state=["failed", "succeeded"]) == 2)
        assert attempts_of(app, late) == [("failed", "builtins.TimeoutError")]
        assert attempts_of(app, early) == [("succeeded", None)]


@pytest.mark.every_store
def test_a_lost_worker_raised_nothing(store_url: str, schema: str) -> None:
    app = App(store_url, schema=schema)
    app.client.migrate()

    @app.task(max_attempts=1, on_expired="fail")
    def work() -> None: ...

    with app:
        id = work.enqueue().id
        steps = harness_of(app)
        steps.claim(lease=0.001)
        until(lambda: bool(steps.reap()))
        assert attempts_of(app, id) == [("lost", None)]


def test_a_class_whose_name_is_no_plain_text_is_stored_all_the_same() -> None:
    app = App("sqlite:///:memory:")
    strange = type("Strange", (Exception,), {})
    strange.__qualname__ = "A\0" + "x" * 1000

    @app.task(max_attempts=1)
    def work() -> None:
        raise strange

    with harness(app) as steps:
        id = work.enqueue().id
        steps.drain()
        (record,) = steps.client.attempts(id)
        assert record.error_type is not None
        assert record.error_type.startswith(f"{__name__}.A\ufffdx")
        assert len(record.error_type) == 512
