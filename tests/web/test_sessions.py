"""Signing out ends a session on the server: for every process, and after a restart."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette")

from relet import App
from relet._store.flows import web_sessions
from relet._web import create_app, sse
from relet._web.auth import Principal, TokenAuth
from relet.errors import StoreUnavailable
from tests.clocks import at
from tests.databases import Database

TOKEN = "o" * 32
PAGE = {"accept": "text/html"}


def http_client(web: Any, cookie: str = "") -> httpx.AsyncClient:
    headers = PAGE | ({"cookie": cookie} if cookie else {})
    return httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://localhost", headers=headers)


async def signed_in(web: Any) -> str:
    async with http_client(web) as browser:
        answer = await browser.post("/login", data={"token": TOKEN})
        return answer.headers["set-cookie"].partition(";")[0]


async def sign_out(web: Any, cookie: str) -> httpx.Response:
    async with http_client(web, cookie) as browser:
        page = (await browser.get("/queues")).text
        form = re.search(r'name="csrf" value="([^"]+)"', page)
        assert form is not None
        return await browser.post("/logout", data={"csrf": form[1]})


async def status(web: Any, cookie: str, path: str = "/queues") -> int:
    async with http_client(web, cookie) as browser:
        return (await browser.get(path)).status_code


def test_a_copy_of_the_cookie_is_worth_nothing_after_signing_out(app: App) -> None:
    async def go() -> None:
        web, beside = create_app(app, operate=TOKEN), create_app(app, operate=TOKEN)
        mine, another = await signed_in(web), await signed_in(web)
        assert await status(web, mine) == 200
        answer = await sign_out(web, mine)
        assert (answer.status_code, "Max-Age=0" in answer.headers["set-cookie"]) == (303, True)
        for server in (web, beside, create_app(app, operate=TOKEN)):  # another process, and one after a restart
            assert [await status(server, mine, path) for path in ("/queues", "/api/queues", "/live")] == [401] * 3
            assert await status(server, another) == 200, "another session of the same token goes on"

    asyncio.run(go())


def test_a_live_page_ends_with_its_session(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE", 0.05)

    async def go() -> None:
        web = create_app(app, operate=TOKEN)
        cookie = await signed_in(web)
        begun, over = asyncio.Event(), asyncio.Event()
        body = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            if not body:
                await asyncio.sleep(3600)
            return body.pop()

        async def send(message: Any) -> None:
            if message.get("body"):
                begun.set()
            if message["type"] == "http.response.body" and not message.get("more_body"):
                over.set()

        headers = [(b"host", b"localhost"), (b"cookie", cookie.encode())]
        scope = {"type": "http", "method": "GET", "path": "/live", "query_string": b"page=/queues", "headers": headers}
        stream = asyncio.create_task(web(scope, receive, send))
        await asyncio.wait_for(begun.wait(), 60)
        assert not over.is_set()
        await sign_out(web, cookie)
        await asyncio.wait_for(over.wait(), 60)
        stream.cancel()

    asyncio.run(go())


def test_signing_out_that_cannot_be_stored_is_not_reported_as_done(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        web = create_app(app, operate=TOKEN)
        cookie = await signed_in(web)

        def away(*_: Any) -> None:
            raise StoreUnavailable("gone")

        monkeypatch.setattr("relet._client.web_sessions.EndedSessions.add", away)
        answer = await sign_out(web, cookie)
        assert (answer.status_code, "set-cookie" in answer.headers) == (503, False)

    asyncio.run(go())


def test_ended_sessions_are_forgotten_when_they_would_be_over_in_any_case(app: App, database: Database) -> None:
    store = app._store()
    with at(store, 1000.0):
        for number in range(5):
            store.run(web_sessions.end, f"mark {number}", 100.0)
    assert store.run(web_sessions.has_ended, "mark 0")
    with at(store, 1050.0):
        store.run(web_sessions.end, "mark 0", 100.0)  # again, by another tab
    with at(store, 1101.0):
        store.run(web_sessions.end, "later", 100.0)
    assert not store.run(web_sessions.has_ended, "mark 0")
    assert store.run(web_sessions.has_ended, "later")


def test_the_stored_mark_of_a_session_opens_nothing() -> None:
    auth = TokenAuth(operate=TOKEN, clock=lambda: 1000.0)
    value = auth.open_session(Principal("operate", "operate"))
    principal = auth.by_session(value)
    assert principal is not None
    assert principal.session is not None
    mark, seconds = auth.end_mark(principal.session)
    assert re.fullmatch("[0-9a-f]{64}", mark)
    assert auth.by_session(mark) is None
    assert seconds > 12 * 3600, "however wrong the clock of the store may be"
