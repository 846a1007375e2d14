"""Lists of jobs with their arguments, and the page of a queue."""

from __future__ import annotations

import sys

import pytest

from relet import App, Worker
from relet._web.pages.filters import arguments
from relet._web.pages.formatting import arguments_line
from relet.errors import InvalidInput
from tests.web.conftest import ask


@pytest.fixture
def app(app: App) -> App:
    @app.task(queue="billing")
    def charge(account: str, cents: int, token: str = "") -> None: ...

    return app


def test_the_arguments_of_a_job_are_one_line_without_secrets(app: App) -> None:
    job = app.tasks["charge"].enqueue("acct-7", 500, "s3cr3t")
    line = arguments_line(job, app.redact)
    assert line.startswith('account="acct-7", cents=500, token=')
    assert "s3cr3t" not in line
    assert len(arguments_line(job, str, limit=12)) == 12
    page = ask(app, "/jobs", redact=app.redact)[1]
    assert "account=&#34;acct-7&#34;, cents=500" in page
    assert "s3cr3t" not in page


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("account=acct-7", 1),
        ('account="acct-7", cents=500', 1),
        ('{"cents": 500}', 2),
        ("cents=501", 0),
        ('cents="500"', 0),
    ],
)
def test_jobs_are_found_by_their_arguments(app: App, text: str, found: int) -> None:
    for account in ("acct-7", "acct-8"):
        app.tasks["charge"].enqueue(account, 500)
    assert app.client.count(**arguments({"payload": text})) == found


def test_arguments_that_cannot_be_read_are_refused(app: App) -> None:
    with pytest.raises(InvalidInput, match="arguments must be such as account=7"):
        arguments({"payload": "acct-7"})
    page, document = ask(app, "/jobs", "/jobs?payload=acct-7")
    assert page.status == 400
    assert "arguments must be such as account=7" in document


def test_a_queue_has_a_page_with_its_tasks_workers_and_jobs(app: App) -> None:
    job = app.tasks["charge"].enqueue("acct-7", 500)
    Worker(app).run_sync(until_idle=True)
    app.tasks["charge"].enqueue("acct-8", 500)
    page, document = ask(app, "/queues/{queue}", "/queues/billing", {"queue": "billing"}, app_path="shop:app")
    assert page.status == 200
    (task,) = page.context["tasks"]
    assert (task.task, task.number) == ("charge", 1)
    assert page.context["counts"]["queued"] == 1
    assert job.id in document
    assert "relet worker shop:app -q billing" in document
    assert ask(app, "/queues", "/queues?name=billing")[0].template == "queue.html"


def test_the_queues_come_in_pages(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["relet._web.pages.queues"], "AT_ONCE", 2)
    for name in "edcba":
        app.tasks["charge"].using(queue=name).enqueue("acct-7", 500)
    seen, address = list[str](), "/queues"
    while True:
        page, document = ask(app, "/queues", address)
        seen += [row["info"].queue for row in page.context["queues"]]
        if page.context["next_cursor"] is None:
            break
        address = f"/queues?cursor={page.context['next_cursor']}"
        assert address in document
    assert seen == list("abcde")
    assert "No more queues" in ask(app, "/queues", "/queues?cursor=z")[1]


@pytest.mark.parametrize("name", ["unknown", "*"])
def test_a_queue_that_does_not_exist_is_a_404(app: App, name: str) -> None:
    assert ask(app, "/queues/{queue}", "/queues/x", {"queue": name})[0].status == 404


def test_a_new_store_says_how_to_run_the_first_job(app: App) -> None:
    document = ask(app, "/", app_path="shop.queue:jobs")[1]
    for text in ("Run your first job", "charge.enqueue(...)", "relet worker shop.queue:jobs"):
        assert text in document
    app.tasks["charge"].enqueue("acct-7", 500)
    assert "Run your first job" not in ask(app, "/")[1]
