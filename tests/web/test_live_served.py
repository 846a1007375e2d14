"""Live views: changes are sent to every open page, at a bounded cost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("uvicorn")

import uvicorn

from relet import App
from relet._web import create_app
from relet._web.sse import MAX_STREAMS, MAX_STREAMS_PER_TOKEN, SHARE, Live, TooMany
from tests.test_cli_web import free_port

OPERATE, READ = "o" * 32, "r" * 32


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.task
    def greet(name: str) -> str:
        return name

    yield app
    app.close()


@pytest.fixture
def url(app: App) -> Iterator[str]:
    port = free_port()
    web = create_app(app, operate=OPERATE, read=READ)
    server = uvicorn.Server(uvicorn.Config(web, port=port, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def events(response: httpx.Response) -> Iterator[tuple[str, str]]:
    name, data = "", []
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and name:
            yield name, "\n".join(data)
            name, data = "", []


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.long
def test_a_page_and_an_answer_are_sent_again_when_something_has_changed(app: App, url: str) -> None:
    for page, kind in (("/jobs", "main"), ("/api/queues", "data")):
        with httpx.stream("GET", f"{url}/live", params={"page": page}, headers=bearer(READ), timeout=20) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            seen = events(response)
            name, first = next(seen)
            job = app.tasks["greet"].using(queue=f"q-{kind}").enqueue("Ada")
            name, second = next(seen)
            assert name == kind
            assert first != second
            assert f"q-{kind}" in second
            assert "<html" not in second
            app.client.delete(job)


@pytest.mark.long
def test_a_page_without_a_live_view_is_refused(url: str) -> None:
    for page, status in {
        "/nothing": 404,
        "/confirm/cancel": 404,
        "/act/cancel": 404,
        "/api/nothing": 404,
        "//x": 404,
    }.items():
        answer = httpx.get(f"{url}/live", params={"page": page}, headers=bearer(OPERATE))
        assert answer.status_code == status, page
    assert httpx.get(f"{url}/live", params={"page": "/jobs"}).status_code == 401


@pytest.mark.long
def test_however_many_streams_share_a_view_it_is_rendered_once_and_rarely() -> None:
    made: list[float] = []

    async def render() -> str:
        made.append(time.monotonic())
        await asyncio.sleep(0.05)  # so long it takes
        return f"view {len(made)}"

    async def read(live: Live) -> list[str]:
        found = []
        async for event in live.stream("ada", "the same", render, "main"):
            if event.startswith("event"):
                found.append(event)
            if len(found) == 2:
                break
        return found

    async def all_of_them() -> list[list[str]]:
        live = Live()
        return await asyncio.gather(*(read(live) for _ in range(20)))

    seen = asyncio.run(all_of_them())
    assert len(made) == 2
    assert made[1] - made[0] >= 0.05 / SHARE * 0.9
    assert all(one == ["event: main\ndata: view 1\n\n", "event: main\ndata: view 2\n\n"] for one in seen)


def test_nothing_is_left_of_those_who_have_gone_and_too_many_are_refused() -> None:
    async def render() -> str:
        return "view"

    async def crowd() -> None:
        live = Live()
        people = [f"person {n}" for n in range(MAX_STREAMS // MAX_STREAMS_PER_TOKEN)]
        streams: list[Any] = []
        for who in people:
            for n in range(MAX_STREAMS_PER_TOKEN):
                streams.append(live.stream(who, f"view {n}", render, "main"))
                assert await anext(streams[-1]) == "retry: 3000\n\n"
            with pytest.raises(TooMany):
                live.stream(who, "one more", render, "main")
        with pytest.raises(TooMany):
            live.stream("another token", "one more", render, "main")
        for stream in streams:
            await stream.aclose()
        assert live._views == {}
        assert await anext(live.stream("ada", "one more", render, "main")) == "retry: 3000\n\n"

    asyncio.run(crowd())
