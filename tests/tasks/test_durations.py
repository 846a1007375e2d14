"""Durations are numbers of seconds, or timedeltas. Options of other queues are answered with the option to use."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from relet import App, Backoff, InvalidInput, Retry, Snooze, Worker


@pytest.fixture
def app() -> App:
    return App("sqlite:///:memory:")


def test_every_duration_of_a_task_or_job_takes_a_timedelta(app: App) -> None:
    @app.task(timeout=timedelta(minutes=2), lease=timedelta(seconds=10))
    def work() -> None: ...

    assert (work.policy.timeout, work.policy.lease) == (120.0, 10.0)
    draft = work.using(delay=timedelta(hours=1), unique="k", unique_for=timedelta(days=1)).draft()
    assert (draft.delay, draft.unique_for) == (3600.0, 86400.0)
    assert work.using(timeout=timedelta(milliseconds=1500)).draft().policy.timeout == 1.5


def test_the_delays_of_a_handler_and_of_a_backoff_take_timedeltas() -> None:
    assert (Snooze(timedelta(minutes=1)).delay, Retry(delay=timedelta(seconds=2)).delay) == (60.0, 2.0)
    assert Backoff(base=timedelta(seconds=1), max=timedelta(minutes=1)) == Backoff(base=1, max=60)
    with pytest.raises(InvalidInput, match="backoff max must be a number from 0"):
        Backoff(max=timedelta(seconds=-1))


def test_a_duration_out_of_bounds_is_refused_as_a_number_is(app: App) -> None:
    with pytest.raises(InvalidInput, match="delay must be seconds from 0"):
        app.task(_work).using(delay=timedelta(seconds=-1))


def test_text_is_no_duration_and_the_error_names_the_types_that_are(app: App) -> None:
    with pytest.raises(InvalidInput, match="delay must be seconds from 0 to 316224000, not '5m'; a timedelta will do"):
        app.task(_work).using(delay="5m")  # type: ignore[arg-type]


def test_a_worker_takes_timedeltas(app: App) -> None:
    app.task(_work)
    worker = Worker(
        app, lease=timedelta(seconds=5), poll_interval=timedelta(seconds=2), keep_finished=timedelta(days=1)
    )
    assert (worker._settings.lease, worker._settings.poll_interval) == (5.0, 2.0)
    assert worker._settings.keep_finished == 86400.0


def test_the_client_takes_timedeltas(app: App) -> None:
    job = app.task(_work).enqueue()
    assert app.client.prune(keep_finished=timedelta(days=1), keep_failed=timedelta(days=2)).finished == 0
    app.client.limit_queue("default", rate=5, per=timedelta(minutes=1))
    (queue,) = app.client.queues()
    assert [(rate.rate, rate.per) for rate in queue.rates] == [(5, 60.0)]
    app.client.complete(job)
    assert app.client.wait(job, timeout=timedelta(seconds=5)).state == "succeeded"


def _work() -> None: ...


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("countdown", "use delay=, in seconds"),
        ("eta", "use run_at="),
        ("queue_name", "use queue="),
        ("run_after", "use run_at="),
        ("after", "use depends_on="),
        ("max_retries", "retries \\+ 1"),
        ("autoretry_for", "use retry_on="),
        ("throws", "use fail_on="),
    ],
)
def test_an_option_of_another_queue_is_answered_with_ours(app: App, option: str, hint: str) -> None:
    options: Any = {option: 5}
    with pytest.raises(InvalidInput, match=hint):
        app.task(_work).using(**options)


def test_an_unknown_option_names_those_there_are(app: App) -> None:
    options: Any = {"colour": "red"}
    with pytest.raises(InvalidInput, match=r"has no option colour; there are backoff"):
        app.task(_work).using(**options)
