"""`client.steps` lists durable steps, sleeps, waits and signals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from relet import App, Attempt, Job, JobNotFound, SignalTimeout, new_id
from relet.testing import Harness, harness
from tests.conftest import PG_KINDS, SERVERS


@pytest.fixture(params=["memory", *PG_KINDS])
def relet(request: pytest.FixtureRequest) -> Iterator[Harness]:
    url = "sqlite:///:memory:"
    if request.param != "memory":
        url = request.config.stash[SERVERS].get(request.param).dsn
    with harness(App("sqlite:///:memory:"), url) as testing:
        yield testing


@pytest.fixture
def job(relet: Harness) -> Job[Any]:
    """A job that has done a step, slept, waited in vain, and waits again."""

    @relet.app.task
    def order(attempt: Attempt, number: int) -> str:
        attempt.step("charge", lambda: {"cents": number})
        attempt.sleep("cool off", 60)
        try:
            attempt.wait_for("approval", timeout=60)
        except SignalTimeout:
            return str(attempt.wait_for("approval"))
        return "approved in time"

    made = order.enqueue(7)
    relet.advance(seconds=121)
    return made


def test_steps_are_listed_in_order(relet: Harness, job: Job[Any]) -> None:
    charge, sleep, *_ = found = relet.client.steps(job)
    assert [(one.kind, one.name) for one in found] == [
        ("step", "charge"),
        ("sleep", "cool off"),
        ("wait", "approval"),
        ("missed", "approval"),
    ]
    assert (charge.result, charge.result_json, charge.until) == ({"cents": 7}, '{"cents":7}', None)
    assert sleep.until is not None
    assert timedelta(seconds=59) < sleep.until - sleep.at < timedelta(seconds=61)
    assert relet.client.describe(job).steps == found
    assert asyncio.run(relet.app.aclient.steps(job)) == found


def test_a_signal_is_shown_with_its_value(relet: Harness, job: Job[Any]) -> None:
    relet.client.signal(job, "approval", {"by": "Ada"})
    last = relet.client.steps(job)[-1]
    assert (last.kind, last.name, last.result) == ("signal", "approval", {"by": "Ada"})


def test_a_job_without_steps_has_none_and_no_job_is_an_error(relet: Harness) -> None:
    @relet.app.task
    def work() -> None: ...

    assert relet.client.steps(work.enqueue()) == []
    with pytest.raises(JobNotFound):
        relet.client.steps(new_id())


def test_a_step_has_its_arguments_and_the_time_of_its_call(relet: Harness) -> None:
    @relet.app.task
    def order(attempt: Attempt, number: int) -> None:
        attempt.step("charge", charge, number, key="visa")
        attempt.step("log in", log_in, "ada", password="hunter2")
        attempt.step("no arguments", lambda: None)
        attempt.step("no JSON", lambda stream: None, object())
        attempt.step("too long", len, "x" * 20_000)

    made = order.enqueue(7)
    relet.drain()
    found = {one.name: one for one in relet.client.steps(made)}
    assert found["charge"].input == {"number": 7, "key": "visa"}
    assert found["log in"].input == {"user": "ada", "password": "[hidden]"}, "it is never stored"
    assert [found[name].input_json for name in ("no arguments", "no JSON", "too long")] == [None] * 3
    charged = found["charge"]
    assert charged.started_at is not None
    assert charged.started_at <= charged.at


def charge(number: int, key: str) -> None: ...


def log_in(user: str, password: str) -> None: ...


def test_secrets_in_results_are_hidden_from_operators(relet: Harness) -> None:
    from relet._core.redact import redacted

    @relet.app.task
    def work(attempt: Attempt) -> None:
        attempt.step("sign in", lambda: {"password": "hunter2"})

    made = work.enqueue()
    relet.drain()
    (step,) = redacted(relet.client.steps(made), relet.app.redact)
    assert "hunter2" not in json.dumps(step.result)
