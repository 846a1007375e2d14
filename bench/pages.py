"""Every page of the dashboard and every endpoint that reads, as the table of routes lists them, timed by the server."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Collection, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import httpx

from bench.calls import Call, Jobs, Transactions, filters, time_call
from bench.places import PostgresPlace
from relet import App
from relet._web import create_app
from relet._web.api import ENDPOINTS
from relet._web.pages import CONFIRMATIONS, PAGES, cache
from relet.errors import StoreError

TOKEN = "for-the-benchmark-only"
NEW_JOB = {"task": "task_2", "payload": {"account": "a", "cents": 1}}
#: What the endpoints that change something take, by method and path; None: no body.
BODIES: dict[str, Any] = {
    "POST /jobs": NEW_JOB,
    "POST /jobs/batch": {"jobs": [NEW_JOB] * 100},
    "POST /jobs/{id}/cancel": None,
    "POST /jobs/{id}/pause": None,
    "POST /jobs/{id}/resume": None,
    "POST /jobs/{id}/run-now": None,
    "POST /jobs/{id}/complete": {"result": "paid"},
    "POST /jobs/{id}/signal": {"name": "go"},
    "POST /jobs/{id}/rerun": {},
    "DELETE /jobs/{id}": None,
    "POST /jobs/bulk": {"action": "pause", "filter": {"queue": "queue-0005"}, "limit": 100},
    "POST /chains/{id}/cancel": None,
    "POST /chains/{id}/complete": {"result": "paid"},
    "DELETE /chains/{id}": None,
    "POST /queues/{queue}/pause": None,
    "POST /queues/{queue}/resume": None,
    "PATCH /queues/{queue}/limits": {"max_running": None},  # a limit would change what a claim costs
    "PATCH /limits": {"max_running": None},
    "POST /targets/{target}/jobs/{id}/resume": None,
    "PUT /schedules/{name}": {**NEW_JOB, "every": 86_400},
    "DELETE /schedules/{name}": None,
    "POST /schedules/{name}/pause": None,
    "POST /schedules/{name}/resume": None,
    "POST /schedules/{name}/run-now": None,
}
NEW_SCHEDULE = "new"
REFUSED = (404, 409)  # an earlier request has changed or deleted the job: that costs as much as doing it
VALUES = {"queue": "queue-0007", "target": "target-7", "name": "schedule-7", "task": "task_7"}
RANGES = ("/?range=24h", "/?range=7d", "/?range=30d", "/queues/queue-0007?range=24h", "/queues/queue-0007?range=30d")
#: The object of a confirmation: by the last word of the action, the parameter that names it.
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
    return [template.format(**VALUES | {"id": id}) for id in kinds]


def _question(action: str, ids: dict[str, str]) -> dict[str, str]:
    """The parameters with which a link opens a confirmation."""
    if action == "bulk":
        return BULK
    if action == "enqueue":
        return {"task": VALUES["task"]}
    subject = SUBJECTS.get(action.rpartition("-")[2] if "-" in action else "")
    return {subject: VALUES[subject]} if subject else {"job": ids["waiting"]}


def time_changes(app: App, place: PostgresPlace, rounds: int) -> Iterable[dict[str, Any]]:
    """Each endpoint that changes something, with another job each time."""
    jobs, steps = Jobs(place, rounds), Transactions(app._store())
    waiting, paused = jobs.where("state = 'queued' and target is null"), jobs.where("state = 'paused'")
    at_target = place.db.execute("select id::text, target from relet.jobs where holds limit 1000").fetchall()
    holders = itertools.cycle(at_target)
    with Requests(app) as requests:
        for endpoint in ENDPOINTS:
            if endpoint.method == "GET":
                continue
            name = f"{endpoint.method} {endpoint.path}".replace(":path", "")

            def ask(name: str = name) -> None:
                method, path = name.split()
                jobs_of_path = paused if "resume" in path else waiting
                id, target = next(holders) if "{target}" in path else (next(jobs_of_path), "")
                schedule = NEW_SCHEDULE if method == "DELETE" else VALUES["name"]
                path = path.format(**VALUES | {"target": target, "id": id, "name": schedule})
                requests.send(method, f"/api{path}", BODIES[name], REFUSED)

            def before(name: str = name) -> None:
                if name == "DELETE /schedules/{name}":
                    app.client.schedules.put(NEW_SCHEDULE, app.lookup("task_2").draft("a", 1), every=86_400)

            named = name.replace(" /", " /api/")
            yield time_call(place, Call(named, ask, before, steps=steps if "bulk" in name else None), rounds)


class Requests:
    """Sends requests to the web app in this process."""

    def __init__(self, app: App) -> None:
        headers, transport = {"authorization": f"Bearer {TOKEN}"}, httpx.ASGITransport(create_app(app, operate=TOKEN))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        self._runner = asyncio.Runner()

    def send(self, method: str, path: str, body: Any = None, allowed: Collection[int] = ()) -> None:
        answer = self._runner.run(self._client.request(method, path, json=body))
        if answer.status_code >= 300 and answer.status_code not in allowed:
            raise StoreError(f"{method} {path} answered {answer.status_code}: {answer.text[:300]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


def time_pages(app: App, place: PostgresPlace, ids: dict[str, str], rounds: int) -> Iterable[dict[str, Any]]:
    """Each request with empty caches, so that all of them do the work that a cache saves most."""
    names = {id: kind for kind, id in ids.items()}
    with Requests(app) as requests:
        for path in paths(ids):
            named = re.sub("|".join(names), lambda match: f"({names[match[0]]})", path)
            ask = partial(requests.send, "GET", path)
            yield time_call(place, Call(named, ask, lambda: cache._cache.forget(app._store())), rounds)
