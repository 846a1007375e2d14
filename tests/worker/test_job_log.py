"""The log lines of a worker about its jobs, for a person who watches it."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from relet import App, Backoff, Fail, logs
from relet._system import System
from relet._worker import job_log
from relet._worker.job_log import JobLog
from relet.testing import harness

from .working import until, working


@pytest.fixture
def app() -> App:
    return App("sqlite:///:memory:")


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "relet.worker"]


def test_a_success_is_one_line_at_info(app: App, caplog: pytest.LogCaptureFixture) -> None:
    @app.task
    def work() -> None: ...

    caplog.set_level(logging.INFO, "relet.worker")
    with harness(app) as relet:
        job = work.enqueue()
        relet.drain()
    (line,) = messages(caplog)
    assert line.startswith(f"work {job.id} succeeded in ")
    assert caplog.records[-1].levelname == "INFO"


def test_a_failure_shows_its_traceback_and_the_next_try(app: App, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(max_attempts=2, backoff=Backoff(base=90, max=90, jitter=False))
    def refuse() -> None:
        raise KeyError("missing")

    with harness(app) as relet:
        job = refuse.enqueue()
        relet.drain()
        relet.advance(minutes=2)
    retried, failed = [record for record in caplog.records if record.name == "relet.worker"]
    assert (
        retried.getMessage() == f"refuse {job.id} failed (attempt 1 of 2, next try in 1 min 30 s): KeyError: 'missing'"
    )
    assert failed.getMessage() == f"refuse {job.id} failed (attempt 2 of 2, no retry): KeyError: 'missing'"
    assert (retried.levelname, failed.levelname) == ("WARNING", "ERROR")
    for record in (retried, failed):
        text = logging.Formatter(logs.TEXT.replace("%(job_mark)s", "")).format(record)
        assert 'raise KeyError("missing")' in text
        assert text.count("Traceback (most recent call last)") == 1
        shown = json.loads(logs.JsonLines().format(record))
        assert "\n" not in shown["message"]
        assert 'raise KeyError("missing")' in shown["error"]
        assert shown["job_id"] == job.id


def test_a_deliberate_failure_is_shown_as_its_text(app: App, caplog: pytest.LogCaptureFixture) -> None:
    @app.task
    def charge() -> None:
        raise Fail("card declined")

    @app.task
    def explain() -> None:
        try:
            raise KeyError("missing")
        except KeyError as error:
            raise Fail("no such card") from error

    with harness(app) as relet:
        plain, caused = charge.enqueue(), explain.enqueue()
        relet.drain()
        stored = [relet.client.get(job) for job in (plain, caused)]
    assert stored[0] is not None
    assert stored[1] is not None
    assert stored[0].error == "card declined"
    assert (stored[1].error or "").startswith("no such card\n\nKeyError: 'missing'")
    assert messages(caplog)[0] == f"charge {plain.id} failed (attempt 1 of 4, no retry): card declined"


class Clock(System):
    """A clock that the test moves."""

    now = 100.0

    def __init__(self) -> None:
        self.monotonic = lambda: self.now


class Ended:
    """The parts of an execution that the log reads."""

    def __init__(self, task: str) -> None:
        job = {"task": task, "id": "0192", "attempt": 1, "policy": type("Policy", (), {"max_attempts": 4})}
        self.job = type("Job", (), job)
        self.started_at, self.stopped_at, self.log_fields = 1.0, 1.5, dict[str, Any]()


def test_many_successes_are_counted_by_task(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "relet.worker")
    clock = Clock()
    log = JobLog(clock)
    batch: list[Any] = [Ended("mail") for _ in range(job_log.MAX_LINES + 30)]
    batch.append(Ended("charge"))
    log.succeeded(batch)
    assert len(messages(caplog)) == job_log.MAX_LINES
    assert log.flush() == pytest.approx(1.0)
    clock.now += 1.0
    assert log.flush() is None
    assert messages(caplog)[-1] == "31 jobs succeeded in the last second: mail 30, charge 1"
    log.succeeded([Ended("mail")])  # type: ignore[list-item]
    assert messages(caplog)[-1] == "mail 0192 succeeded in 500 ms"


def test_every_success_has_a_line_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "relet.worker")
    many: list[Any] = [Ended("mail") for _ in range(3 * job_log.MAX_LINES)]
    JobLog(Clock()).succeeded(many)
    assert len(messages(caplog)) == len(many)


def test_a_misspelled_queue_is_named_with_the_queue_that_is_meant(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "relet")

    @app.task(queue="mail")
    def work() -> None: ...

    with working(app, queues=["mial", "default"]):
        until(lambda: messages(caplog))
    assert messages(caplog) == ["Queue mial has no jobs, and no task of this app uses it. Did you mean mail?"]


def test_a_queue_that_only_jobs_use_is_not_called_misspelled(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "relet")

    @app.task
    def work() -> None: ...

    work.using(queue="by_sql", delay=3600).enqueue()
    with working(app, queues=["by_sql", "unused"]):
        until(lambda: messages(caplog))
    assert [line.partition(" has")[0] for line in messages(caplog)] == ["Queue unused"]
