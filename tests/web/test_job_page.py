"""The page of a job: its error first, its steps with their outputs, and signals."""

from __future__ import annotations

import pytest

from relet import App, Attempt, Worker
from relet._web.pages import act
from relet._web.pages.job import steps_of
from tests.web.conftest import ask, view_of


@pytest.fixture
def app(app: App) -> App:
    """A handler with steps that waits for a signal."""

    @app.task
    def order(attempt: Attempt, number: int) -> str:
        attempt.step("reserve", lambda: {"lines": [number], "password": "hunter2"})
        approval: dict[str, str] = attempt.wait_for("approval", dict[str, str])
        attempt.step("pay", pay, 4900, key="visa")
        return approval["by"]

    return app


def pay(cents: int, key: str) -> str:
    return "paid"


def page_of(app: App, id: str) -> str:
    return ask(app, "/jobs/{id}", f"/jobs/{id}", {"id": id}, redact=app.redact)[1]


def test_the_error_of_a_failed_job_comes_before_everything_else(shop: App) -> None:
    job = shop.client.jobs(state="failed", task="charge", limit=1).jobs[0]
    page = page_of(shop, job.id)
    assert page.index('id="error"') < page.index('id="life"') < page.index('id="attempts"')
    assert "Why it is not running" not in page


def test_a_job_that_waits_says_why_before_everything_else(shop: App) -> None:
    job = shop.client.jobs(state="pending", task="send_receipt", limit=1).jobs[0]
    page = page_of(shop, job.id)
    assert page.index("Why it is not running") < page.index('id="life"')


def test_steps_have_outputs_and_a_signal_lets_the_job_go_on(app: App) -> None:
    job = app.tasks["order"].enqueue(7)
    Worker(app).run_sync(until_idle=True)
    page = page_of(app, job.id)
    for text in ("Send signal", "waits for signal", "reserve", "until the signal is sent", '<svg class="timeline"'):
        assert text in page
    assert "hunter2" not in page, "secrets are hidden in outputs of steps too"
    form = {"job": [job.id], "name": ["approval"], "value": ['{"by": "ada"}']}
    assert act(view_of(app), "signal", form).message == "Signal approval is sent."
    again = act(view_of(app), "signal", form | {"value": ['{"by": "eve"}']})
    assert again.message == "Signal approval was sent before: the first value is kept."
    Worker(app).run_sync(until_idle=True)
    assert app.client.result(job, timeout=0) == "ada"
    page = page_of(app, job.id)
    assert "{&#34;cents&#34;:4900,&#34;key&#34;:&#34;visa&#34;}" in page, "the arguments of a step"
    assert "Send signal" not in page


def test_a_value_that_is_not_json_keeps_the_form(app: App) -> None:
    job = app.tasks["order"].enqueue(7)
    outcome = act(view_of(app), "signal", {"job": [job.id], "name": ["approval"], "value": ["{by"]})
    assert not outcome.succeeded
    assert outcome.form_again is not None
    assert outcome.form_again[0].context["confirmation"].extra == {"name": "approval", "value": "{by"}


def test_a_step_begins_at_its_call_or_else_where_the_previous_event_ended(shop: App) -> None:
    job = shop.client.jobs(task="fulfil_order", state="succeeded", limit=1).jobs[0]
    rows = steps_of(shop.client.describe(job), view_of(shop))
    took = {(row.kind, row.name): round(row.end - row.start, 1) for row in rows}
    assert took == {
        ("step", "reserve_stock"): 1.2, ("step", "authorize_card"): 2.6, ("sleep", "time to change the order"): 300.0,
        ("step", "check_fraud"): 2.0, ("wait", "approval"): 838.7, ("signal", "approval"): 0.0,
        ("step", "capture_payment"): 2.1, ("step", "print_label"): 0.8,
    }  # fmt: skip
