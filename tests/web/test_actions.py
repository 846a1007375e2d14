"""Actions: the text of each confirmation, and the effect of each action."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from markupsafe import escape

from relet import App, State
from relet._web.pages import ACTIONS, CONFIRMATIONS, Outcome, act, render
from relet._web.pages.page import local_path
from tests.harness import harness_of
from tests.web import example_data
from tests.web.conftest import ask, view_of
from tests.web.test_views import read


@pytest.fixture
def app() -> Iterator[App]:
    app = example_data.shop("sqlite:///:memory:")
    app.client.migrate()
    yield app
    app.close()


def do(app: App, action: str, /, **form: str | list[str]) -> Outcome:
    values = {name: [value] if isinstance(value, str) else value for name, value in form.items()}
    return act(view_of(app), action, values)


def asked(app: App, action: str, /, **query: str | list[str]) -> str:
    """The text of the confirmation."""
    address = f"/confirm/{action}?{urlencode(query, doseq=True)}"
    page, document = ask(app, "/confirm/{action}", address, {"action": action})
    assert page.status == 200, page.context
    return " ".join("".join(read(document).text).split())


def test_every_confirmation_has_an_action() -> None:
    assert CONFIRMATIONS.keys() == ACTIONS.keys()


def test_where_there_are_more_jobs_than_a_page_reads_the_number_is_a_lower_bound(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cents in range(5):
        app.tasks["charge"].enqueue("acct-1", cents)
    assert "Cancel 5 jobs" in asked(app, "bulk", action="cancel", state="queued")
    assert "or more that match" not in ask(app, "/jobs", "/jobs?state=queued")[1]
    for module in ("confirm", "jobs"):
        monkeypatch.setattr(sys.modules[f"relet._web.pages.{module}"], "SCAN", 3)
    text = asked(app, "bulk", action="cancel", state="queued")
    assert "3 among the newest 3 jobs, and all older ones that match" in text
    assert "Cancel all jobs that match" in text
    assert "With all 3 or more that match" in " ".join(ask(app, "/jobs", "/jobs?state=queued")[1].split())


def test_the_confirmation_of_a_cancel_differs_for_a_job_that_waits_and_one_that_runs(app: App) -> None:
    waits = app.tasks["refund"].enqueue("acct-1", "A-1")
    assert "it will not run any more, and is cancelled" in asked(app, "cancel", job=waits.id)
    (claimed,) = harness_of(app).claim(1, queues=("billing",), worker="w-17")
    text = asked(app, "cancel", job=claimed.id)
    assert "running at worker w-17: its handler is asked to stop" in text
    assert "cannot be resumed" in text
    outcome = do(app, "cancel", job=claimed.id, back="/jobs?state=running")
    assert (outcome.to, outcome.succeeded) == ("/jobs?state=running", True)
    assert "asked to stop" in outcome.message
    assert app.client.get(claimed.id).request == "cancel"  # type: ignore[union-attr]


def test_a_job_is_paused_resumed_hastened_completed_and_deleted(app: App) -> None:
    client = app.client
    job = app.tasks["refund"].using(delay=900).enqueue("acct-1", "A-1")
    for action, state in (("pause", "paused"), ("resume", "pending"), ("run-now", "pending")):
        asked(app, action, job=job.id)
        assert do(app, action, job=job.id).succeeded, action
        assert client.get(job).state == state  # type: ignore[union-attr]
    asked(app, "complete", job=job.id)
    assert do(app, "complete", job=job.id, result="null").succeeded
    assert client.get(job).state is State.SUCCEEDED  # type: ignore[union-attr]
    asked(app, "delete", job=job.id)
    assert do(app, "delete", job=job.id, back=f"/jobs/{job.id}").to == "/jobs"
    assert client.get(job) is None


def test_an_action_that_is_no_longer_possible_is_reported_and_changes_nothing(app: App) -> None:
    job = app.tasks["refund"].enqueue("acct-1", "A-1")
    app.client.cancel(job)
    outcome = do(app, "pause", job=job.id, back="/jobs")
    assert not outcome.succeeded
    assert outcome.message.startswith("Nothing was changed: cannot pause job")
    assert not do(app, "complete", job=job.id, result="{").succeeded
    assert not do(app, "nonsense").succeeded


def test_who_may_only_read_cannot_act(app: App) -> None:
    job = app.tasks["refund"].enqueue("acct-1", "A-1")
    assert not act(view_of(app, role="read"), "cancel", {"job": [job.id]}).succeeded
    assert app.client.get(job).state is State.QUEUED  # type: ignore[union-attr]


def test_the_selected_jobs_are_changed_and_those_that_refuse_are_counted(app: App) -> None:
    jobs = [app.tasks["refund"].enqueue(f"acct-{n}", "A") for n in range(4)]
    app.client.cancel(jobs[0])
    ids = [job.id for job in jobs[:3]]
    assert "Pause 3 jobs?" in asked(app, "bulk", action="pause", job=ids)
    outcome = do(app, "bulk", action="pause", job=ids)
    assert outcome.message == "2 jobs: paused, or asked to stop. 1 job was left alone because of their state."
    assert app.client.count(state="paused") == 2


def test_all_that_match_are_counted_first_and_then_changed(app: App) -> None:
    for number in range(7):
        app.tasks["charge" if number < 5 else "refund"].enqueue(f"acct-{number}", 5 if number < 5 else "A")
    text = asked(app, "bulk", action="cancel", state="queued", task="charge")
    assert "All queued jobs of task charge: 5 just now." in text
    outcome = do(app, "bulk", action="cancel", state="queued", task="charge")
    assert outcome.message.startswith("5 jobs: cancelled")
    assert app.client.count(state="queued") == 2


def test_nothing_selected_and_no_filter_is_not_everything(app: App) -> None:
    app.tasks["refund"].enqueue("acct-1", "A-1")
    page, _ = ask(app, "/confirm/{action}", "/confirm/bulk?action=cancel", {"action": "bulk"})
    assert page.status == 400
    assert not do(app, "bulk", action="cancel").succeeded
    assert app.client.count(state="queued") == 1


def test_queues_are_paused_resumed_and_limited(app: App) -> None:
    asked(app, "pause-queue", queue="billing")
    do(app, "pause-queue", queue="billing")
    assert app.client.queues()[0].paused
    do(app, "resume-queue", queue="billing")
    assert not app.client.queues()[0].paused
    do(
        app,
        "limit-queue",
        queue="billing",
        max_running="7",
        rate="100",
        per="60",
        fair="yes",
        group="vip",
        group_rate="3",
        group_per="1",
    )
    (info,) = app.client.queues()
    assert (info.max_running, info.fair) == (7, True)
    assert {(one.group, one.rate, one.per) for one in info.rates} == {(None, 100, 60.0), ("vip", 3, 1.0)}
    assert "at most 7 run at once, 100 starts in 1 min" in asked(app, "limit-queue", queue="billing")
    do(app, "limit-queue", queue="billing", max_running="", rate="", per="", group="vip")
    (info,) = app.client.queues()
    assert (info.max_running, info.fair, info.rates) == (None, False, ())
    assert not do(app, "limit-queue", queue="billing", max_running="many").succeeded


def test_all_queues_together_are_limited(app: App) -> None:
    assert do(app, "limit-queue", queue="*", max_running="40").succeeded
    assert "All queues together: at most 40 run at once" in ask(app, "/queues")[1]


def test_schedules_are_paused_resumed_run_and_removed(app: App) -> None:
    app.client.schedules.put("stock", app.tasks["sync_stock"].draft("north"), every=600)
    for action in ("pause-schedule", "resume-schedule"):
        asked(app, action, name="stock")
        assert do(app, action, name="stock").succeeded
    outcome = do(app, "run-schedule", name="stock")
    assert app.client.get(outcome.to.removeprefix("/jobs/")) is not None
    assert do(app, "remove-schedule", name="stock").to == "/schedules"
    assert app.client.schedules.all() == []


def test_a_job_is_enqueued_from_a_form(app: App) -> None:
    assert "charge" in asked(app, "enqueue")
    assert "account: str, cents: int" in asked(app, "enqueue", task="charge").replace("'", "")
    outcome = do(
        app,
        "enqueue",
        task="charge",
        payload='{"account": "acct-1", "cents": 5}',
        target="acct-1",
        priority="7",
        delay="60",
    )
    job = app.client.get(outcome.to.removeprefix("/jobs/"))
    assert job is not None
    assert (job.target, job.priority, job.payload_json) == ("acct-1", 7, '{"account":"acct-1","cents":5}')


@pytest.mark.parametrize("payload", ["{", "[1]", '{"account": 5, "cents": 5}', '{"unknown": 1}'])
def test_a_form_that_is_refused_is_displayed_again_with_its_values(app: App, payload: str) -> None:
    outcome = do(app, "enqueue", task="charge", payload=payload)
    assert not outcome.succeeded
    assert "?" not in outcome.to, "what was typed is in no address"
    assert outcome.form_again is not None
    document = render(*outcome.form_again)
    assert escape(payload) in document
    assert "Nothing was changed" in document
    assert app.client.count() == 0


def test_actions_of_users_are_in_the_audit_trail(app: App) -> None:
    do(app, "pause-queue", queue="billing")
    document = ask(app, "/audit")[1]
    assert "tester" in document
    assert "pause queue" in document


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "", "/a\nb"]
)
def test_where_to_go_back_to_is_always_a_page_of_ours(back: str) -> None:
    assert local_path(back) == "/"
