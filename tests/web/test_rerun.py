"""A job is run again from its page, with arguments that the user may edit first."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("starlette")

from relet import App, Job, new_id
from relet._web import create_app
from relet._web.pages.formatting import json_source
from relet.codecs import FernetCodec, ZlibCodec
from tests.harness import harness_of
from tests.web.api_client import OPERATE, READ, ApiClient, charge

PASSWORD = "canary-7f3a"


@pytest.fixture
def failed(api_app: App) -> Job[Any]:
    job = charge(api_app, group="acme")
    harness_of(api_app).fail(harness_of(api_app).claim(1, ("billing",))[0])
    return job


def page(ask: ApiClient, path: str, status: int = 200, **more: Any) -> str:
    answer = ask.request("GET", path, **more)
    assert answer.status_code == status, answer.text
    return str(answer.text)


def rerun(ask: ApiClient, job: str, arguments: str | None = None, **more: Any) -> Any:
    """The answer to the form."""
    fields = {"job": job} | ({} if arguments is None else {"arguments": arguments})
    headers = {"content-type": "application/x-www-form-urlencoded", **more}
    return ask.request("POST", "/act/rerun", content=urlencode(fields), headers=headers)


def form(ask: ApiClient, job: str) -> str | None:
    """The text of the field with the arguments, if the form has it."""
    found = re.search(r'<textarea name="arguments"[^>]*>(.*?)</textarea>', page(ask, f"/confirm/rerun?job={job}"), re.S)
    return None if found is None else unescape(found[1])


def the_new_job(answer: Any, app: App) -> Job[Any]:
    assert answer.status_code == 303, answer.text
    job = app.client.get(answer.headers["location"].removeprefix("/jobs/"))
    assert job is not None
    return job


def test_a_failed_job_is_run_again_with_edited_arguments(ask: ApiClient, api_app: App, failed: Job[Any]) -> None:
    assert "Run again" in page(ask, f"/jobs/{failed.id}")
    arguments = json.loads(form(ask, failed.id) or "")
    assert arguments == {"account": "acct-7", "cents": 500}
    new = the_new_job(rerun(ask, failed.id, json.dumps(arguments | {"cents": 7})), api_app)
    assert (new.rerun_of, new.payload, new.group) == (failed.id, {"account": "acct-7", "cents": 7}, "acme")
    assert f'<a class="mono" href="/jobs/{failed.id}">' in page(ask, f"/jobs/{new.id}")
    assert api_app.client.get(failed).state == "failed"  # type: ignore[union-attr]
    (entry,) = api_app.client.audit().entries
    assert (entry.who, entry.what, entry.subject) == ("web:ann", "rerun", failed.id)
    assert entry.detail == {"job": new.id, "edited": ["cents"]}


def test_a_job_that_succeeded_is_run_again_unchanged(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    assert "Run again" not in page(ask, f"/jobs/{job.id}"), "it has yet to run"
    harness_of(api_app).succeed(harness_of(api_app).claim(1, ("billing",))[0])
    assert "Run again" in page(ask, f"/jobs/{job.id}")
    new = the_new_job(rerun(ask, job.id, form(ask, job.id)), api_app)
    assert new.payload == job.payload
    assert api_app.client.audit().entries[0].detail["edited"] == []
    assert the_new_job(rerun(ask, job.id), api_app).payload == job.payload


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("{", "The text of the field arguments is not JSON"),
        ("[1]", "The field arguments must be a JSON object"),
        ('{"account": "acct-7", "cents": "many"}', "charge(cents): Expected `int`, got `str`"),
        ('{"account": "acct-7", "cents": 500, "coins": 5}', "coins is no parameter"),
        ('{"account": "acct-7"}', "Missing: cents."),
        ('{"account": "acct-7", "cents": NaN}', "the arguments.cents: nan is not JSON"),
        ('{"account": "acct-7", "cents": 1e999}', "the arguments.cents: inf is not JSON"),
        ('{"account": "\\ud800", "cents": 5}', "the arguments.account: contains a lone surrogate"),
        ('{"account": "[hidden]", "cents": 5}', "account contains [hidden]"),
    ],
)
def test_arguments_that_are_refused_come_back_and_create_nothing(
    ask: ApiClient, api_app: App, failed: Job[Any], typed: str, problem: str
) -> None:
    answer = rerun(ask, failed.id, typed)
    text = unescape(answer.text)
    assert answer.status_code == 422
    assert "Nothing was changed: " in text
    assert problem in text
    assert typed in text, "the user need not type it anew"
    assert (api_app.client.count(), api_app.client.audit().entries) == (1, [])


def test_a_reader_is_offered_no_rerun_and_refused_one(ask: ApiClient, api_app: App, failed: Job[Any]) -> None:
    reader = {"authorization": f"Bearer {READ}"}
    assert "Run again" not in page(ask, f"/jobs/{failed.id}", headers=reader)
    page(ask, f"/confirm/rerun?job={failed.id}", 403, headers=reader)
    assert rerun(ask, failed.id, **reader).status_code == 403
    assert api_app.client.count() == 1


def test_a_job_that_is_gone_is_not_run_again(ask: ApiClient, api_app: App, failed: Job[Any]) -> None:
    api_app.client.delete(failed)
    for id in (failed.id, new_id(), "nonsense"):
        page(ask, f"/confirm/rerun?job={id}", 404)
        assert rerun(ask, id, "{}").headers["location"] == "/"
    assert api_app.client.count() == 0


def test_a_job_without_its_arguments_cannot_be_run_again(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    harness_of(api_app).succeed(harness_of(api_app).claim(1, ("billing",))[0])
    api_app.client.prune(keep_payloads=0)
    assert "Run again" not in page(ask, f"/jobs/{job.id}")
    assert "are no longer stored" in page(ask, f"/confirm/rerun?job={job.id}", 400)
    assert rerun(ask, job.id, "{}").status_code == 303
    assert api_app.client.count() == 1


def test_the_new_job_waits_for_the_target_of_the_failed_one(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app, target="acct-7")
    harness_of(api_app).promote_all()
    harness_of(api_app).fail(harness_of(api_app).claim(1, ("billing",))[0])
    assert "The new job waits for target acct-7, which this job holds." in page(ask, f"/confirm/rerun?job={job.id}")


# Arguments that the form does not contain as they are


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[App, ApiClient]]]:
    """Serves an app with this task."""
    apps: list[App] = []

    with asyncio.Runner() as runner:

        def served(task: Any, **options: Any) -> tuple[App, ApiClient]:
            app = App("sqlite:///:memory:", **options)
            apps.append(app)
            app.client.migrate()
            app.task(task)
            return app, ApiClient(runner, create_app(app, operate={"ann": OPERATE}))

        yield served
    for app in apps:
        app.close()


def connect(url: str, password: str, more: dict[str, Any]) -> None: ...


def test_secrets_are_hidden_in_the_form_and_stay(serve: Callable[..., tuple[App, ApiClient]]) -> None:
    app, ask = serve(connect)
    stored = {"url": f"postgresql://ada:{PASSWORD}@db/x", "password": PASSWORD, "more": {"token": PASSWORD, "n": 1}}
    job = app.tasks["connect"].enqueue(**stored)
    harness_of(app).fail(harness_of(app).claim(1)[0])
    text = form(ask, job.id) or ""
    assert PASSWORD not in page(ask, f"/confirm/rerun?job={job.id}")
    assert text.count("[hidden]") == 3
    new = the_new_job(rerun(ask, job.id, text), app)
    assert new.payload == stored

    arguments = json.loads(text)
    answer = rerun(ask, job.id, json.dumps(arguments | {"more": {"token": "[hidden]", "n": 2}}))
    assert "more contains [hidden], which stands for a value that the dashboard hides" in answer.text
    assert app.client.count() == 2
    new = the_new_job(rerun(ask, job.id, json.dumps(arguments | {"password": "another"})), app)
    assert new.payload == stored | {"password": "another"}


def pay(card: str, cents: int) -> None: ...


@pytest.mark.parametrize("codec", [FernetCodec("A" * 43 + "="), ZlibCodec()], ids=lambda codec: codec.name)
def test_encoded_arguments_are_not_displayed_and_can_be_replaced(
    serve: Callable[..., tuple[App, ApiClient]], codec: Any
) -> None:
    app, ask = serve(pay, codecs=[codec])
    card = PASSWORD * 200  # ZlibCodec leaves short values alone
    job = app.tasks["pay"].enqueue(card, 5)
    harness_of(app).fail(harness_of(app).claim(1)[0])
    asked = page(ask, f"/confirm/rerun?job={job.id}")
    assert f"The arguments are encoded with {codec.name} and not displayed." in asked
    assert "$relet" not in asked
    assert form(ask, job.id) == "{}"
    assert the_new_job(rerun(ask, job.id, "{}"), app).payload == {"card": card, "cents": 5}
    new = the_new_job(rerun(ask, job.id, '{"cents": 6}'), app)
    assert new.payload == {"card": card, "cents": 6}
    assert PASSWORD not in new.payload_json
    refused = rerun(ask, job.id, '{"cents": "many"}')
    assert (refused.status_code, PASSWORD in refused.text, app.client.count()) == (422, False, 3)


def keep(value: Any) -> None: ...


def test_long_arguments_are_not_edited_but_the_job_runs_again(serve: Callable[..., tuple[App, ApiClient]]) -> None:
    app, ask = serve(keep)
    job = app.tasks["keep"].enqueue("x" * 100_000)
    app.client.cancel(job)
    assert form(ask, job.id) is None
    assert "The new job has the same arguments" in page(ask, f"/confirm/rerun?job={job.id}")
    assert the_new_job(rerun(ask, job.id), app).payload == job.payload


@pytest.mark.parametrize("value", [1, 1.0, True, 2**63 - 1, 0.1, "\u202e\x1b\n\u00fc\U000e0001", {"b": 1, "a": None}])
def test_arguments_that_the_user_does_not_change_stay_to_the_letter(
    serve: Callable[..., tuple[App, ApiClient]], value: object
) -> None:
    app, ask = serve(keep)
    job = app.tasks["keep"].enqueue(value)
    app.client.cancel(job)
    text = form(ask, job.id) or ""
    assert json.loads(text) == {"value": value}
    new = the_new_job(rerun(ask, job.id, text.replace("\n", "\r\n")), app)
    assert new.payload_json == job.payload_json
    assert app.client.audit().entries[0].detail["edited"] == []


def test_a_number_of_another_type_is_another_argument(serve: Callable[..., tuple[App, ApiClient]]) -> None:
    app, ask = serve(keep)
    job = app.tasks["keep"].enqueue(1)
    app.client.cancel(job)
    assert the_new_job(rerun(ask, job.id, '{"value": true}'), app).payload_json == '{"value":true}'


def test_invisible_characters_are_escaped_in_the_form() -> None:
    text = json_source({"a": "\u202e\x7f\u00a0\u00fc \U000e0001"})
    assert text == '{\n  "a": "\\u202e\\u007f\\u00a0\u00fc \\udb40\\udc01"\n}'
