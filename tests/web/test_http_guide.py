"""The guide to the API is correct: its requests are sent as written, in order, and do what it says."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

pytest.importorskip("starlette")

from relet import App
from tests.pages import DOCS, SHELL, blocks, new_module, run_python

GUIDE = DOCS / "guides" / "http.md"
VARIABLES = {"$API": "http://localhost:8470/api", "$TOKEN": "Authorization: Bearer a-token-of-at-least-16-characters"}


class Request(NamedTuple):
    method: str
    url: str
    body: str | None
    status: int  # 0: a good one


def requests() -> list[Request]:
    commands = "\n".join(block["code"] for block in SHELL.finditer(GUIDE.read_text()))
    return [request_of(command) for command in re.findall(r"(?ms)^curl .*?(?=^curl |^export |^relet |\Z)", commands)]


def request_of(command: str) -> Request:
    status = re.search(r"  # (\d+)$", command.strip())
    for name, value in VARIABLES.items():
        command = command.replace(name, value)
    words = shlex.split(command, comments=True)[1:]
    options: dict[str, str] = {}
    urls = []
    while words:
        word = words.pop(0)
        if word in ("-H", "-X", "--json"):
            options[word] = words.pop(0)
        else:
            urls.append(word)
    (url,) = urls
    method = options.get("-X", "POST" if "--json" in options else "GET")
    return Request(method, url, options.get("--json"), int(status[1]) if status else 0)


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RELET_URL", f"sqlite:///{tmp_path}/relet.db")
    monkeypatch.chdir(tmp_path)
    module = new_module()
    with asyncio.Runner() as runner:
        for block in blocks(GUIDE):
            run_python(block, GUIDE, module, runner)
    app: App = module.__dict__["app"]
    app._store().ready()
    yield module.__dict__["web"]
    app.close()


def test_every_request_of_the_guide_is_answered_as_it_says(web: Any) -> None:
    name, _, value = VARIABLES["$TOKEN"].partition(": ")

    async def send() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(web), headers={name: value}) as client:
            kind = {"content-type": "application/json"}
            return [
                await client.request(one.method, one.url, content=one.body, headers=kind if one.body else {})
                for one in requests()
            ]

    answers = asyncio.run(send())
    assert len(answers) > 25
    for request, answer in zip(requests(), answers, strict=True):
        good = answer.status_code == request.status if request.status else answer.status_code < 300
        assert good, f"{request}: {answer.status_code} {answer.text}"
    (example,) = re.findall(r"(?ms)^```json\n(.*?)^```$", GUIDE.read_text())
    assert json.loads(example) == next(answer.json() for answer in answers if answer.status_code == 422)
