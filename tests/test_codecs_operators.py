"""Encoded values as operators see them: no command, page or endpoint decodes them, though the app could."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relet import App
from relet._core.job import Progress
from relet._store.flows import lease
from relet.codecs import FernetCodec
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.test_redaction import COMMANDS

MARKER = "canary-7f3a"
KEY = "A" * 43 + "="
SHOP = """
from relet import App
from relet.codecs import FernetCodec

app = App({url!r}, codecs=[FernetCodec({key!r})])


@app.task(queue="billing")
def charge(account: str) -> str:
    return account
"""


@pytest.fixture(scope="module")
def encoding_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, Path, dict[str, str]]]:
    """A shop whose app has the key, with a job in each state that shows values."""
    folder = tmp_path_factory.mktemp("encoded")
    url = f"sqlite:///{folder / 'jobs.db'}"
    (folder / "shop.py").write_text(SHOP.format(url=url, key=KEY))
    with App(url, codecs=[FernetCodec(KEY)]) as app:
        app.client.migrate()

        @app.task(queue="billing")
        def charge(account: str) -> str:
            return account

        yield app, folder, _fill(app, charge)


def _fill(app: App, charge: Any) -> dict[str, str]:
    client = app.client.acting_as("ada")
    failed = client.enqueue(charge.using(target="acct-7").draft(MARKER))
    harness_of(app).promote_all()
    (claimed,) = harness_of(app).claim(1, queues=("billing",))
    harness_of(app).fail(claimed, "no money")
    client.enqueue(charge.using(target="acct-7").draft(MARKER))
    done = client.enqueue(charge.draft(MARKER))
    client.complete(done, MARKER)
    running = client.enqueue(charge.using(unique="once").draft(MARKER))
    (claimed,) = harness_of(app).claim(1, queues=("billing",))
    note = app.codecs.encode_note(MARKER, "fernet")
    app._store().run(lease.progress, {claimed.lease: Progress(1, 2, note)})
    client.signal(running, "go", MARKER)
    client.schedules.put("nightly", charge.draft(MARKER), every=3600)
    last = client.enqueue(charge.using(depends_on=[done, failed]).draft(MARKER))
    return {"FAILED": failed.id, "DONE": done.id, "RUNNING": running.id, "LAST": last.id}


MORE = (("jobs", "steps", "RUNNING"), ("jobs", "show", "RUNNING"), ("workers",))


@pytest.mark.long
@pytest.mark.parametrize("command", [*COMMANDS, *MORE], ids=" ".join)
def test_no_command_decodes(
    typed: CommandLine, encoding_shop: tuple[App, Path, dict[str, str]], command: tuple[str, ...]
) -> None:
    _, folder, ids = encoding_shop
    verb, *rest = (ids.get(word, word) for word in command)
    code, printed = typed(folder, verb, "shop:app", *rest)
    assert code in (0, 1), printed
    assert MARKER not in printed
    assert "$relet" not in printed
    if "--json" in command:
        json.loads(printed)


@pytest.mark.long
def test_commands_name_the_codec_and_encode_the_values_they_store(
    typed: CommandLine, encoding_shop: tuple[App, Path, dict[str, str]]
) -> None:
    app, folder, ids = encoding_shop
    printed = typed(folder, "jobs", "shop:app", "show", ids["RUNNING"])[1]
    assert '"encoded with fernet"' in printed
    assert "50% (1/2) encoded with fernet" in printed
    payload = json.dumps({"account": MARKER})
    printed = typed(folder, "enqueue", "shop:app", "charge", "--payload", payload, "--json")[1]
    job = json.loads(printed)
    assert job.get("payload", job["jobs"][0]["payload"] if "jobs" in job else None) == "encoded with fernet"
    (newest,) = app.client.jobs(limit=1).jobs
    assert newest.payload == {"account": MARKER}


@pytest.mark.long
def test_no_page_and_no_endpoint_decodes(encoding_shop: tuple[App, Path, dict[str, str]]) -> None:
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("starlette")
    from relet._web import create_app

    app, _, ids = encoding_shop
    lists = ["jobs", "failures", "audit", "schedules", "targets", "workers", "queues"]
    paths = ["/", *(f"/{name}" for name in lists), *(f"/api/{name}" for name in lists), "/targets/acct-7"]
    for id in ids.values():
        paths += [f"/jobs/{id}", f"/chains/{id}", f"/api/jobs/{id}", f"/api/jobs/{id}/steps", f"/api/chains/{id}"]
        paths.append(f"/confirm/rerun?job={id}")
    paths += ["/api/targets/acct-7", "/schedules/nightly", "/api/schedules/nightly"]

    async def ask() -> None:
        headers = {"authorization": "Bearer " + "o" * 32, "accept": "text/html"}
        transport = httpx.ASGITransport(create_app(app, operate="o" * 32))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            for path in paths:
                answer = await client.get(path)
                assert answer.status_code == 200, path
                assert MARKER not in answer.text, path
                assert "$relet" not in answer.text, path
            job = (await client.get(f"/api/jobs/{ids['RUNNING']}")).json()
            assert (job["payload"], job["progress"]["note"]) == ("encoded with fernet", "encoded with fernet")
            assert "encoded with fernet" in (await client.get(f"/jobs/{ids['DONE']}")).text
            body = {"task": "charge", "payload": {"account": MARKER}, "unique": "once"}
            existing = await client.post("/api/jobs", json=body)
            assert existing.status_code == 200, existing.text
            assert MARKER not in existing.text

    asyncio.run(ask())
