"""The web app inside others: mounted in FastAPI, Starlette and Django, everything stays below its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette")

from relet import App
from relet._web import create_app
from tests.djangos import configure

TOKEN = "t" * 32


def in_fastapi(ours: Any) -> Any:
    from fastapi import FastAPI

    site = FastAPI()
    site.mount("/queue", ours)
    return site


def in_starlette(ours: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/queue", ours)])


def in_django(ours: Any) -> Any:
    configure()
    from django.core.asgi import get_asgi_application

    theirs = get_asgi_application()

    async def site(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/queue/"):
            await ours({**scope, "root_path": "/queue"}, receive, send)
        else:
            await theirs(scope, receive, send)

    return site


@pytest.mark.parametrize("mount", [in_fastapi, in_starlette, in_django])
def test_the_dashboard_and_the_api_work_below_their_mount_point(mount: Callable[[Any], Any], tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.task
    def greet(name: str) -> str:
        return name

    job = greet.enqueue("Ada")
    site = mount(create_app(app, operate=TOKEN, hosts=["shop.example"]))

    async def visit() -> None:
        headers = {"authorization": f"Bearer {TOKEN}", "accept": "text/html"}
        transport = httpx.ASGITransport(site)
        async with httpx.AsyncClient(transport=transport, base_url="https://shop.example", headers=headers) as client:
            page = await client.get("/queue/jobs")
            assert page.status_code == 200
            assert f'href="/queue/jobs/{job.id}"' in page.text
            assert 'href="/jobs' not in page.text
            found = await client.get(f"/queue/api/jobs/{job.id}", headers={"accept": "application/json"})
            assert (found.status_code, found.json()["task"]) == (200, "greet")
            static = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0].replace("&amp;", "&")
            assert (await client.get(static)).status_code == 200
            nothing = await client.get("/queue/nothing", headers={"accept": "*/*"})
            assert (nothing.status_code, nothing.headers["content-type"]) == (404, "application/problem+json")
            assert (await client.get("/queue/jobs", headers={"authorization": "Bearer no"})).status_code == 401

    asyncio.run(visit())
    app.close()
