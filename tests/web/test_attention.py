"""The problems of the overview: each is found, has the action that fixes it, and disappears with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest

from relet import App
from relet._core.worker import WorkerFacts
from relet._store.flows import worker_reports
from relet._tasks.task import new_id
from relet._web.app_path import app_path
from relet._web.pages import PageContext, act, attention, cache
from tests.databases import Database
from tests.harness import harness_of
from tests.templates import fill_in
from tests.web import example_data
from tests.web.conftest import ask, view_of


@pytest.fixture
def app(database: Database) -> Iterator[App]:
    app = example_data.shop(database.url, database.schema)
    fill_in(app._store())
    yield app
    app.close()


def problems_of(view: PageContext) -> list[attention.Problem]:
    queues = [one for one in view.client.queues() if one.queue != "*"]
    return list(attention.problems(view, queues, view.client.workers()))


def found(app: App) -> list[attention.Problem]:
    view = view_of(app, app_path="shop:app")
    cache.forget(view)
    return problems_of(view)


def titles(app: App) -> list[str]:
    return [one.title for one in found(app)]


def report(app: App, *queues: str, tasks: tuple[str, ...] | None = None, at: float | None = None) -> None:
    """A worker reports that it runs."""
    known = tuple(sorted(app.tasks)) if tasks is None else tasks
    facts = WorkerFacts("w:1:a", "w", 1, queues or None, 4, known, 30.0, "1")
    example_data.ExampleData(app, 0.0, None).run(  # type: ignore[arg-type]
        worker_reports.report, new_id(), facts, 0, False, at=at
    )


def late(app: App, task: str, seconds: float, **options: Any) -> Any:
    """A job that has been due for so many seconds."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds)
    return app.tasks[task].using(run_at=moment, **options)


def test_nothing_needs_attention_in_an_empty_store(empty: App) -> None:
    assert "Nothing needs attention" in ask(empty, "/")[1]


def test_jobs_without_any_worker_have_the_command_that_starts_one(app: App) -> None:
    late(app, "charge", 60).enqueue("acct-7", 500)
    (one,) = found(app)
    assert (one.title, one.level, one.command) == ("No worker is running", "bad", "relet worker shop:app")
    report(app)
    assert found(app) == []


def test_a_queue_that_no_worker_serves_and_a_task_that_none_knows(app: App) -> None:
    late(app, "charge", 60).enqueue("acct-7", 500)
    late(app, "sync_stock", 60).enqueue()
    report(app, "billing", "reports", tasks=("charge",))
    (one,) = found(app)
    assert one.title == "No worker runs sync_stock in queue reports"
    assert "No running worker knows the task" in one.text
    cancel = one.buttons[0]
    act(view_of(app), cancel.action, {name: [value] for name, value in cancel.parameters.items()})
    assert found(app) == []
    late(app, "sync_stock", 60, queue="new").enqueue()
    report(app, "billing", "reports")
    (one,) = found(app)
    assert (one.title, one.command) == (
        "No worker runs sync_stock in queue new", "relet worker shop:app -q new",
    )  # fmt: skip


def test_a_failed_holder_blocks_its_target_until_it_is_resumed(app: App) -> None:
    first = app.tasks["charge"].using(target="account/7").enqueue("7", 1)
    app.tasks["charge"].using(target="account/7").enqueue("7", 2)
    harness = harness_of(app)
    harness.promote_until_idle()
    (job,) = harness.claim(1, queues=("billing",))
    harness.fail(job, "CardExpired: no")
    one = next(one for one in found(app) if one.title == "Target account/7 is blocked")
    assert one.text == f"1 job waits behind charge {first.id[-8:]}, which has failed: CardExpired: no"
    resume = one.buttons[0]
    act(view_of(app), resume.action, {name: [value] for name, value in resume.parameters.items()})
    assert "Target account/7 is blocked" not in titles(app)


def test_a_paused_job_at_the_head_of_a_line_blocks_its_target(app: App) -> None:
    first, *_ = [app.tasks["charge"].using(target="x").enqueue("7", number) for number in range(3)]
    app.client.pause(first)
    (one,) = found(app)
    assert (one.title, one.text) == (
        "Target x is blocked",
        f"2 jobs wait behind charge {first.id[-8:]}, which is paused",
    )


def test_failures_are_grouped_and_only_the_first_are_listed(app: App) -> None:
    harness = harness_of(app)
    harness.stop_clock()
    for error in ("A: 1", "B: 2", "B: 3", "C: 4", "D: 5"):
        harness.now += 1
        app.tasks["sync_stock"].enqueue()
        (job,) = harness.claim(1, queues=("reports",))
        harness.fail(job, error)
    assert sorted(titles(app)) == ["1 job of sync_stock failed", "1 job of sync_stock failed", "3 more jobs failed"]


def test_a_late_queue_names_its_limit(app: App) -> None:
    late(app, "charge", 600).enqueue("acct-7", 500)
    report(app)
    (one,) = found(app)
    assert one.title == "Queue billing is late"
    assert "The workers that serve it have 4 slots" in one.text
    app.client.limit_queue("billing", max_running=0)
    (one,) = found(app)
    assert "Its limit of 0 running jobs is reached." in one.text


def test_a_paused_queue_is_resumed_from_the_overview(app: App) -> None:
    app.client.pause_queue("billing")
    assert found(app) == []
    late(app, "charge", 5).enqueue("acct-7", 500)
    (one,) = found(app)
    assert (one.title, one.level) == ("Queue billing is paused", "paused")
    act(view_of(app), "resume-queue", {"queue": ["billing"]})
    assert titles(app) == []


def test_a_lost_worker_is_named_with_its_host(app: App) -> None:
    report(app, at=datetime.now(UTC).timestamp() - 60)
    (one,) = found(app)
    assert one.title == "Worker w:1:a is lost"
    assert "Check process 1 on host w." in one.text


def test_readers_see_problems_without_actions(shop: App) -> None:
    assert "Resume it" in ask(shop, "/")[1]
    document = ask(shop, "/", role="read")[1]
    assert "Target account/acct-17 is blocked" in document
    assert "Resume it" not in document


def test_an_action_is_visible_at_once_although_problems_are_shared(app: App) -> None:
    app.client.pause_queue("billing")
    late(app, "charge", 5).enqueue("acct-7", 500)
    view = view_of(app)
    cache.forget(view)
    assert problems_of(view)
    app.client.resume_queue("billing")
    assert problems_of(view), "read a moment ago"
    act(view, "pause-queue", {"queue": ["mail"]})
    assert problems_of(view) == []


def test_the_import_path_of_an_app(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    assert app_path(app) == "module:app"
    module = ModuleType("shop.queue_of_the_shop")
    module.jobs = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert app_path(app) == "shop.queue_of_the_shop:jobs"
