"""A value of a job that is hidden is hidden everywhere: in the dashboard, in its API, and by every command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from relet import App
from relet._core.job import Progress
from relet._core.redact import HIDDEN, redacted, redactor
from relet._store.flows import lease
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.shops import CliShop, a_cli_shop

SECRET = "hunter2"
URL = f"postgresql://ada:{SECRET}@db/shop"
NOTHING = json.dumps({"password": SECRET, "url": URL, "account": "acct-7"})
JSON = ("--json",)
COMMANDS = (
    ("jobs",), ("jobs", *JSON), ("jobs", "show", "FAILED"), ("jobs", "show", "FAILED", *JSON), ("jobs", "DONE"),
    ("jobs", "DONE", *JSON), ("explain", "FAILED"), ("explain", "FAILED", *JSON), ("jobs", "attempts", "FAILED"),
    ("jobs", "attempts", "FAILED", *JSON), ("jobs", "chain", "DONE"), ("jobs", "chain", "DONE", *JSON),
    ("jobs", "wait", "DONE"), ("jobs", "wait", "DONE", *JSON), ("jobs", "wait", "FAILED"),
    ("jobs", "dependencies", "LAST"), ("jobs", "dependencies", "LAST", *JSON), ("jobs", "dependents", "FAILED", *JSON),
    ("jobs", "show", "RUNNING", *JSON),
    ("targets",), ("targets", *JSON), ("targets", "acct-7"), ("targets", "acct-7", *JSON), ("failures",),
    ("failures", *JSON), ("audit",), ("audit", *JSON), ("schedules", *JSON), ("schedules", "show", "nightly"),
    ("schedules", "show", "nightly", *JSON), ("schedules", "pause", "nightly", *JSON), ("top", "--once"),
    ("schedules", "run", "nightly", *JSON), ("enqueue", "charge", "--payload", json.dumps({"account": NOTHING}), *JSON),
)  # fmt: skip


@pytest.fixture(scope="module")
def secret_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CliShop, dict[str, str]]]:
    """A shop whose jobs know a password, and tell it wherever they can."""
    folder = tmp_path_factory.mktemp("secrets")
    with a_cli_shop(folder, f"sqlite:///{folder / 'jobs.db'}") as shop:
        client = shop.client.acting_as("ada")
        failed = client.enqueue(shop.charge.using(target="acct-7").draft(NOTHING))
        harness_of(shop.app).promote_all()
        (claimed,) = harness_of(shop.app).claim(1, queues=("billing",))
        harness_of(shop.app).fail(claimed, f"cannot connect to {URL}\n  in {URL}")
        client.enqueue(shop.charge.using(target="acct-7").draft(NOTHING))
        done = client.enqueue(shop.charge.draft(NOTHING))
        client.complete(done, json.dumps({"token": SECRET, "where": URL}))
        running = client.enqueue(shop.charge.draft(NOTHING))
        (claimed,) = harness_of(shop.app).claim(1, queues=("billing",))
        shop.app._store().run(lease.progress, {claimed.lease: Progress(1, 2, f"reading {URL}")})
        client.schedules.put("nightly", shop.charge.draft(NOTHING), every=3600)
        last = client.enqueue(shop.sweep.using(depends_on=[done, failed]).draft())
        yield shop, {"FAILED": failed.id, "DONE": done.id, "RUNNING": running.id, "LAST": last.id}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_shows_values_that_the_dashboard_hides(
    typed: CommandLine, secret_shop: tuple[CliShop, dict[str, str]], command: tuple[str, ...]
) -> None:
    shop, ids = secret_shop
    verb, *rest = (ids.get(word, word) for word in command)
    code, printed = typed(shop.folder, verb, "shop:app", *rest)
    assert code in (0, 1), printed
    assert SECRET not in printed
    if "--json" in command:
        json.loads(printed)


def test_the_dashboard_and_its_api_show_none_of_it(secret_shop: tuple[CliShop, dict[str, str]]) -> None:
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("starlette")
    from relet._web import create_app

    shop, ids = secret_shop
    lists = ["jobs", "failures", "audit", "schedules", "targets", "workers", "queues"]
    paths = ["/", *(f"/{name}" for name in lists), *(f"/api/{name}" for name in lists), "/targets/acct-7"]
    for id in ids.values():
        paths += [f"/jobs/{id}", f"/chains/{id}", f"/api/jobs/{id}", f"/api/jobs/{id}/explain", f"/api/chains/{id}"]

    async def ask() -> None:
        headers = {"authorization": "Bearer " + "o" * 32, "accept": "text/html"}
        transport = httpx.ASGITransport(create_app(shop.app, operate="o" * 32))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            for path in [*paths, "/api/targets/acct-7", "/schedules/nightly", "/api/schedules/nightly"]:
                answer = await client.get(path)
                assert answer.status_code == 200, path
                assert SECRET not in answer.text, path

    asyncio.run(ask())


def test_the_keys_are_a_setting_of_the_app() -> None:
    app = App("sqlite:///:memory:", redact=["salary"])
    assert app.redact('{"salary": 1, "password": 2}') == f'{{"salary": "{HIDDEN}", "password": 2}}'

    @app.task
    def pay(salary: int) -> None: ...

    job = redacted(app.client.enqueue(pay.draft(5)), app.redact)
    assert json.loads(job.payload_json) == {"salary": HIDDEN}
    app.close()


def test_a_payload_that_cannot_be_read_is_hidden_and_the_answer_is_still_json() -> None:
    pytest.importorskip("starlette")
    from relet._web.api.responses import raw

    deep = '{"password": ' + "[" * 5000
    assert json.loads(bytes(raw(redactor()(deep)))) == HIDDEN
