"""Stores for the pages: a full one, an empty one, and one whose every field is hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from relet import App
from relet._web.pages import PAGES, Page, PageContext, respond
from tests.web import example_data, hostile

PageAndHtml = tuple[Page, str]


@pytest.fixture(scope="session")
def shop() -> Iterator[App]:
    """The example shop. Tests must not change it."""
    app = example_data.build("sqlite:///:memory:")
    yield app
    app.close()


@pytest.fixture
def empty() -> Iterator[App]:
    """A shop that has not opened yet."""
    app = example_data.shop("sqlite:///:memory:")
    app.client.migrate()
    yield app
    app.close()


@pytest.fixture(scope="session")
def hostile_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A store in which every text is an attack."""
    path: Path = tmp_path_factory.mktemp("hostile") / "shop.db"
    app = hostile.build(path)
    yield app
    app.close()


def view_of(app: App, address: str = "/", **changes: Any) -> PageContext:
    """The context of a URL, as the web app makes it."""
    pairs = parse_qsl(urlsplit(address).query)
    several: dict[str, list[str]] = {}
    for name, value in pairs:
        several.setdefault(name, []).append(value)
    fields: dict[str, Any] = {
        "client": app.client.acting_as("tester"),
        "query": dict(pairs),
        "role": "operate",
        "who": "tester",
        "root": "",
        "csrf": "token",
        "redact": lambda text: text,
        "now": datetime.now(UTC),
        "query_lists": several,
        "tasks": app.tasks,
        "here": address,
    }
    return PageContext(**(fields | changes))


def ask(
    app: App, path: str, address: str | None = None, params: Mapping[str, str] | None = None, **changes: Any
) -> PageAndHtml:
    """The page of a path of `PAGES`, and the document that it is rendered to."""
    function: Callable[..., Page] = dict(PAGES)[path]
    view = view_of(app, address or path, **changes)
    return respond(function, view, params or {})


def walk(app: App) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every kind of page that a store has something to show on: path, address, parameters."""
    for path in ("/", "/queues", "/jobs", "/targets", "/workers", "/schedules", "/failures", "/audit"):
        yield path, path, {}
    for span in ("1h", "24h", "7d", "30d", "nonsense"):
        yield "/", f"/?range={span}", {}
    for state in ("pending", "queued", "running", "paused", "failed", "succeeded", "cancelled"):
        yield "/jobs", f"/jobs?state={state}", {}
        for job in app.client.jobs(state=state, limit=2).jobs:
            yield "/jobs/{id}", f"/jobs/{job.id}", {"id": job.id}
            yield "/chains/{id}", f"/chains/{job.id}", {"id": job.id}
            for action in ("cancel", "pause", "resume", "run-now", "complete", "delete", "rerun"):
                yield "/confirm/{action}", f"/confirm/{action}?job={job.id}", {"action": action}
    for one in app.client.targets().targets:
        yield "/targets/{target}", "/targets/x", {"target": one.target}
    for info in app.client.schedules.all():
        yield "/schedules/{name}", "/schedules/x", {"name": info.name}
    for query in ("action=cancel&state=failed", "action=resume&state=failed&task=charge"):
        yield "/confirm/{action}", f"/confirm/bulk?{query}", {"action": "bulk"}
    for queue in app.client.queues():
        if queue.queue != "*":
            yield "/queues/{queue}", "/queues/x", {"queue": queue.queue}
        for action in ("pause-queue", "resume-queue", "limit-queue"):
            yield "/confirm/{action}", f"/confirm/{action}?queue={queue.queue}", {"action": action}
    yield "/confirm/{action}", "/confirm/enqueue", {"action": "enqueue"}
    yield "/confirm/{action}", "/confirm/enqueue?task=charge", {"action": "enqueue"}
