"""Requests to every route: none is served without a token, and readers change nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette")

from starlette.routing import Route, Router

from relet import App
from relet._web import create_app
from relet._web.api import ENDPOINTS, RESUME_AT_TARGET, ApiRoute
from tests.harness import harness_of

OPERATE, READ = "o" * 32, "r" * 32
AN_ID = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.task
    def greet(name: str) -> str:
        return name

    yield app
    app.close()


def routes(web: Any) -> list[tuple[str, str]]:
    """Every method and path, with sample values for its parameters."""
    assert isinstance(web.application, Router)
    plain = [route for route in web.application.routes if isinstance(route, Route)]
    others = [route for route in web.application.routes if not isinstance(route, Route)]
    assert all(isinstance(route, ApiRoute) for route in others)
    there = [(method, route.path) for route in plain for method in sorted(route.methods or ())]
    there += [(one.method, f"/api{one.template}") for one in ENDPOINTS]
    there += [("POST", f"{RESUME_AT_TARGET.template}/")]
    found = [(method, re.sub(r"\{\w+\}", "some", path.replace("{id}", AN_ID))) for method, path in there]
    return [*found, ("POST", "/login"), ("POST", "/logout"), ("GET", "/nothing"), ("DELETE", "/"), ("OPTIONS", "/jobs")]


def walk(web: Any, headers: dict[str, str]) -> dict[tuple[str, str], httpx.Response]:
    async def all_of_them() -> dict[tuple[str, str], httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://localhost") as client:
            return {
                (method, path): await client.request(method, path, headers=headers)
                for method, path in routes(web)
                if path != "/live"
            } | {("GET", "/live"): await _begin_of(client, headers)}

    return asyncio.run(all_of_them())


async def _begin_of(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    """Live views never end, so a request for one that would be accepted is not sent here."""
    return await client.get("/live", params={"page": "/nothing"}, headers=headers)


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer " + "x" * 32}, {"cookie": "relet_session=1.2.3.4"}, {"accept": "text/html"}],
)
def test_every_route_answers_401_without_credentials(app: App, headers: dict[str, str]) -> None:
    web = create_app(app, operate=OPERATE, read=READ)
    answers = walk(web, headers)
    assert len(answers) > 50
    limited = [answer for answer in answers.values() if answer.status_code == 429]
    assert not limited or headers.get("authorization"), "wrong tokens are counted, and then not even compared"
    assert {answer.status_code for answer in answers.values()} - {429} == {401}


def test_who_may_only_read_is_refused_wherever_something_changes(app: App) -> None:
    web = create_app(app, operate=OPERATE, read=READ)
    answers = walk(web, {"authorization": f"Bearer {READ}"})
    for (method, path), answer in answers.items():
        if path in ("/login", "/logout", "/nothing", "/") or method == "OPTIONS":
            continue
        if method in ("GET", "HEAD") and not path.startswith("/confirm/"):
            assert answer.status_code in (200, 400, 404, 422), (method, path, answer.status_code)
        else:
            assert answer.status_code == 403, (method, path, answer.status_code)


def test_health_is_open_only_where_that_was_asked_for(app: App) -> None:
    assert walk(create_app(app, operate=OPERATE), {})["GET", "/health"].status_code == 401
    answers = walk(create_app(app, operate=OPERATE, open_health=True), {})
    assert answers["GET", "/health"].text == "ok\n"
    assert {answer.status_code for (_, path), answer in answers.items() if path != "/health"} == {401}


def test_a_token_is_generated_and_printed_once_if_none_is_configured(
    app: App, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RELET_WEB_TOKEN", "RELET_WEB_READ_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    web = create_app(app)
    token = capsys.readouterr().err.split()[-1]
    assert len(token) >= 32
    assert web.auth.by_token(token)
    monkeypatch.setenv("RELET_WEB_TOKEN", OPERATE)
    assert create_app(app).auth.by_token(OPERATE)
    assert capsys.readouterr().err == ""


def test_an_unreachable_store_is_reported_everywhere_without_its_address(caplog: pytest.LogCaptureFixture) -> None:
    away = App("postgresql://ada:canary@127.0.0.1:1/shop?connect_timeout=2")
    web = create_app(away, operate=OPERATE, open_health=True)
    page = {"authorization": f"Bearer {OPERATE}", "accept": "text/html"}
    for path, headers in (("/", page), ("/jobs", page), ("/metrics", page | {"accept": "*/*"}), ("/health", {})):
        answer = asyncio.run(_get(web, path, headers))
        assert answer.status_code == 503, f"{path}: {answer.text}"
        assert "the store is unreachable" in answer.text.lower()
        assert "127.0.0.1" not in answer.text
        assert "ada" not in answer.text
    assert "127.0.0.1" in caplog.text
    assert "Traceback" not in caplog.text
    assert "canary" not in caplog.text


async def _get(web: Any, path: str, headers: dict[str, str]) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://localhost") as client:
        return await client.get(path, headers=headers)


def test_a_password_in_a_url_is_redacted_everywhere(app: App) -> None:
    """Those that cannot connect like to tell where to, in their errors too."""
    url = "postgresql://ada:canary@db/x"
    job = app.tasks["greet"].using(target="t", max_attempts=1).enqueue(url)
    harness_of(app).promote_all()
    (claimed,) = harness_of(app).claim(1)
    harness_of(app).fail(claimed, f"OperationalError: no answer from {url}\n\nTraceback ... {url}")
    web = create_app(app, operate=OPERATE)
    pages = ["", "jobs", f"jobs/{job.id}", "failures", "targets/t", f"confirm/resume?job={job.id}"]
    paths = ["jobs", f"jobs/{job.id}", f"jobs/{job.id}/explain", f"jobs/{job.id}/attempts", "failures", "targets"]
    for path in (*pages, *[f"api/{path}" for path in paths]):
        answer = asyncio.run(_get(web, f"/{path}", {"authorization": f"Bearer {OPERATE}"}))
        assert answer.status_code == 200, path
        assert "canary" not in answer.text, path
        assert ("…db/x" if path in ("", "failures", "api/failures") else "ada:[hidden]@db/x") in answer.text, path
