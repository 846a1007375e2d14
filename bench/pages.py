"""Every page of the dashboard and every endpoint that reads, as the table of routes lists them, timed by the server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

import httpx

from bench.calls import Call, filters, time_call
from bench.places import PostgresPlace
from relet import App
from relet._web import create_app
from relet._web.api import ENDPOINTS
from relet._web.pages import CONFIRMATIONS, PAGES, cache
from relet.errors import StoreError

TOKEN = "for-the-benchmark-only"
VALUES = {"queue": "queue-0007", "target": "target-7", "name": "schedule-7", "task": "task_7"}
RANGES = ("/?range=24h", "/?range=7d", "/?range=30d", "/queues/queue-0007?range=24h", "/queues/queue-0007?range=30d")
#: What a confirmation asks about: by the last word of the action, the parameter that names it.
SUBJECTS = {"queue": "queue", "schedule": "name"}
BULK = {"action": "cancel", "state": "queued", "queue": "queue-0007"}


def paths(ids: dict[str, str]) -> list[str]:
    """Each page and endpoint, those of a job for a job of each kind; confirmations; the lists by each filter."""
    found = list(RANGES)
    for template, _ in PAGES:
        found += _filled(template, ids)
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET":
            found += _filled(f"/api{endpoint.path}".replace(":path", ""), ids)
    found += [f"/confirm/{action}?{urlencode(_question(action, ids))}" for action in CONFIRMATIONS]
    found += [f"/jobs?{urlencode(which)}" for which in filters() if "payload" not in which]
    found += ["/api/jobs?queue=queue-0007", "/api/jobs/count?queue=queue-0007", "/metrics", "/health"]
    return list(dict.fromkeys(found))


def _filled(template: str, ids: dict[str, str]) -> list[str]:
    if "{action}" in template:
        return []
    kinds = [ids[kind] for kind in ("waiting", "finished", "failed", "in line")] if "{id}" in template else [""]
    return [re.sub(r"{(\w+)}", lambda match, id=id: {**VALUES, "id": id}[match[1]], template) for id in kinds]


def _question(action: str, ids: dict[str, str]) -> dict[str, str]:
    """The parameters with which a link opens a confirmation."""
    if action == "bulk":
        return BULK
    if action == "enqueue":
        return {"task": VALUES["task"]}
    subject = SUBJECTS.get(action.rpartition("-")[2] if "-" in action else "")
    return {subject: VALUES[subject]} if subject else {"job": ids["waiting"]}


def time_pages(app: App, place: PostgresPlace, ids: dict[str, str], rounds: int) -> Iterable[dict[str, Any]]:
    """Each request with empty caches, so that all of them do the work that a cache saves most."""
    names = {id: kind for kind, id in ids.items()}
    headers, transport = {"authorization": f"Bearer {TOKEN}"}, httpx.ASGITransport(create_app(app, operate=TOKEN))
    with asyncio.Runner() as runner:
        client = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        for path in paths(ids):

            def ask(path: str = path) -> None:
                answer = runner.run(client.get(path))
                if answer.status_code != 200:
                    raise StoreError(f"{path} answered {answer.status_code}: {answer.text[:300]}")

            named = re.sub("|".join(names), lambda match: f"({names[match[0]]})", path)
            yield time_call(place, Call(named, ask, lambda: cache._cache.forget(app._store())), rounds)
        runner.run(client.aclose())
