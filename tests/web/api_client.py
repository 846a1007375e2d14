"""Shared by the tests of the API: an app with a few tasks, and an HTTP client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from relet import App, Job
from tests.conftest import PG_KINDS
from tests.databases import Database, shared_schema

OPERATE, READ = "o" * 32, "r" * 32


@pytest.fixture(scope="module", params=["memory", *PG_KINDS])
def _api_schema(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "memory":
        yield Database("memory", "sqlite:///:memory:", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture
def api_database(_api_schema: Database) -> Iterator[Database]:
    """One store of each kind. The tests of the store cover all of them."""
    yield _api_schema
    if _api_schema.is_postgres:
        _api_schema.empty()


@pytest.fixture
def api_app(api_database: Database) -> Iterator[App]:
    """An app in an empty store."""
    app = api_database.app()

    @app.task(queue="billing", max_attempts=2)
    def charge(account: str, cents: int, tags: tuple[str, ...] = ()) -> int:
        """Take money from an account."""
        return cents

    @app.task
    def total(*numbers: int, **names: str) -> int:
        return sum(numbers)

    app._store().ready()
    yield app
    app.close()


class ApiClient:
    """An HTTP client of the API that returns JSON."""

    def __init__(self, runner: asyncio.Runner, web: Any) -> None:
        self._runner = runner
        self._web = web

    def request(self, method: str, path: str, **more: Any) -> Any:
        """The bare answer, to a path with all of it."""
        import httpx

        async def asked() -> Any:
            transport, headers = httpx.ASGITransport(self._web), {"authorization": f"Bearer {OPERATE}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
                return await client.request(method, path, **more)

        return self._runner.run(asked())

    def __call__(self, method: str, path: str, body: Any = None, *, status: int = 200, **more: Any) -> Any:
        sent = {"json": body} if body is not None else {}
        answer = self.request(method, f"/api{path}", **sent, **more)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == status
        return answer.json() if answer.content else None

    def enqueue(self, **more: Any) -> Any:
        asked = {"task": "charge", "payload": {"account": "acct-7", "cents": 500}, **more}
        return self("POST", "/jobs", asked, status=201)


@pytest.fixture
def ask(api_app: App) -> Iterator[ApiClient]:
    """A client with an operator token."""
    from relet._web import create_app

    with asyncio.Runner() as runner:
        yield ApiClient(runner, create_app(api_app, operate={"ann": OPERATE}, read={"ben": READ}))


def charge(app: App, cents: int = 500, **options: Any) -> Job[Any]:
    return app.tasks["charge"].using(**options).enqueue("acct-7", cents)
