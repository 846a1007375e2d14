"""Live views: their events, their limits, and their behaviour while the store does not answer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")

from relet import App
from relet._web import create_app, endpoints, sse
from relet._web.auth import TokenAuth
from relet._web.problems import Refusal
from relet._web.security import SecurityMiddleware
from relet._web.sse import Live

TOKEN = "o" * 32
BEARER = [(b"authorization", b"Bearer " + TOKEN.encode())]


@pytest.fixture
def app() -> Iterator[App]:
    app = App("sqlite:///:memory:")
    app.client.migrate()
    yield app
    app.close()


class Stream:
    """A client that opens a live page and disconnects after the first event."""

    def __init__(self, web: SecurityMiddleware, headers: list[tuple[bytes, bytes]] = BEARER) -> None:
        self.web, self.headers = web, headers

    async def ask(self, path: str, page: str = "", method: str = "GET") -> tuple[int, str]:
        sent: list[Any] = []
        seen, body = asyncio.Event(), [b""]

        async def receive() -> Any:
            if body:
                body.pop()
                return {"type": "http.request", "body": b"", "more_body": False}
            await asyncio.wait_for(seen.wait(), 20)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if b"event:" in message.get("body", b""):
                seen.set()

        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
            "method": method, "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": f"page={page}".encode(), "headers": [(b"host", b"localhost"), *self.headers],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        await asyncio.wait_for(self.web(scope, receive, send), 30)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()


def test_a_page_and_its_live_view_are_of_the_same_target(app: App) -> None:
    @app.task
    def charge() -> None: ...

    name = "100% of #7?"
    app.client.enqueue(charge.using(target=name).draft())

    async def run() -> None:
        stream = Stream(create_app(app, operate=TOKEN))
        _, page = await stream.ask(f"/targets/{name}")
        address = page.split('data-live="')[1].split('"')[0].replace("&amp;", "&")
        assert address.startswith("/live?page=")
        _, events = await stream.ask("/live", address.removeprefix("/live?page="))
        assert f"Target {name}" in events
        assert "charge" in events

    asyncio.run(run())


def test_the_live_response_of_an_endpoint_is_still_json(app: App) -> None:
    @app.task
    def charge(text: str) -> None: ...

    text = "a\u2028b\x85c\u2029d\x1ee"
    job = app.client.enqueue(charge.draft(text))

    async def run() -> str:
        return (await Stream(create_app(app, operate=TOKEN)).ask("/live", f"/api/jobs/{job.id}"))[1]

    (event,) = [part for part in asyncio.run(run()).split("\n\n") if part.startswith("event:")]
    lines = [line.removeprefix("data: ") for line in event.split("\n") if line.startswith("data: ")]
    assert json.loads("\n".join(lines))["payload"]["text"] == text


def test_a_text_that_is_no_address_is_refused(app: App) -> None:
    async def run(page: str, method: str = "GET") -> tuple[int, str]:
        return await Stream(create_app(app, operate=TOKEN)).ask("/live", page, method)

    assert asyncio.run(run("http://["))[0] == 400
    assert asyncio.run(run("/live"))[0] == 404
    assert asyncio.run(run("/", "HEAD")) == (200, "")


def test_a_store_that_was_slow_once_is_read_again_before_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MIN_INTERVAL", 0.01)
    monkeypatch.setattr(sse, "MAX_INTERVAL", 0.2)
    slow = [True]

    async def run() -> str:
        if slow.pop() if slow else False:
            await asyncio.sleep(0.5)  # then it would rest for 12 seconds
            raise TimeoutError
        return "seen"

    async def first() -> str:
        async for event in Live().stream("ada", "key", run, "main"):
            if event.startswith("event"):
                return event
        raise AssertionError

    assert "seen" in asyncio.run(asyncio.wait_for(first(), 5))


def test_abandoned_calls_still_occupy_their_slot(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "TIME_LIMIT", 0.1)
    stuck, running = threading.Event(), []

    def work() -> None:
        running.append(1)
        stuck.wait(20)

    async def ask() -> None:
        web = endpoints.Endpoints(app, None, (), TokenAuth(operate="o" * 32))
        for _ in range(3):
            refused = await asyncio.gather(*[web.call("operate", work) for _ in range(5)], return_exceptions=True)
            assert all(isinstance(one, Refusal) for one in refused)
        assert len(running) == endpoints.MAX_CONCURRENT
        stuck.set()
        while len(running) < 2 * endpoints.MAX_CONCURRENT:  # and there is room again
            await asyncio.gather(web.call("operate", work), return_exceptions=True)

    asyncio.run(asyncio.wait_for(ask(), 20))


def test_however_much_readers_ask_for_there_is_a_slot_for_operators(app: App) -> None:
    stuck = threading.Event()

    async def ask() -> None:
        web = endpoints.Endpoints(app, None, (), TokenAuth(operate="o" * 32))
        readers = [asyncio.create_task(web.call("read", stuck.wait, 60)) for _ in range(3 * endpoints.MAX_CONCURRENT)]
        await asyncio.sleep(0)
        assert await web.call("operate", lambda: "acted") == "acted"
        stuck.set()
        assert all(await asyncio.gather(*readers))

    asyncio.run(asyncio.wait_for(ask(), 60))


def test_no_more_streams_than_there_may_be_from_the_first_on(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_STREAMS", 3)

    async def open_many() -> list[int]:
        web = create_app(app, operate=TOKEN)
        statuses = []
        tasks = []
        for number in range(6):
            started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            async def receive(first: list[int] = [1]) -> Any:  # noqa: B006
                if first:
                    first.pop()
                    return {"type": "http.request", "body": b"", "more_body": False}
                return await asyncio.sleep(60)

            async def send(message: Any, started: asyncio.Future[int] = started) -> None:
                if "status" in message and not started.done():
                    started.set_result(message["status"])

            scope = {
                "type": "http", "method": "GET", "path": "/live", "query_string": f"page=/jobs?x={number}".encode(),
                "headers": [(b"host", b"localhost"), *BEARER], "root_path": "", "scheme": "http", "asgi": {},
            }  # fmt: skip
            tasks.append(asyncio.create_task(web(scope, receive, send)))
            statuses.append(await asyncio.wait_for(started, 20))
            await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return statuses

    assert asyncio.run(open_many()) == [200] * 3 + [429] * 3
