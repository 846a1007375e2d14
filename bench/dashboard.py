"""A large store for the dashboard, and every view of it, timed by the server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import httpx

from bench.places import PostgresPlace
from bench.rows import Copier, enqueue_one
from relet import App
from relet._web import create_app

TOKEN = "for-the-benchmark-only"
FAILED = 500  # as many as one bulk action resumes on a slow machine
SPREAD = {
    "queue": "(array['mail', 'billing', 'media', 'reports'])[1 + n % 4]",
    "task": "'task_' || n % 12",
}
VIEWS = ("queues", "workers", "schedules", "failures", "audit", "targets", "targets/account-1", "metrics", "health")
RANGES = ("/", "/?range=24h", "/?range=7d", "/?range=30d")
API = ("queues", "jobs?limit=200", "jobs?task=never", "jobs/count?queue=mail", "failures", "totals")


def fill(place: PostgresPlace, finished: int, waiting: int) -> dict[str, str]:
    """Finished, waiting and failed jobs in four queues and twelve tasks; returns the id of one of each."""
    _run_some(place)
    ids = {
        "finished": place.value("select id::text from relet.finished limit 1"),
        "failed": place.value("select id::text from relet.jobs where state = 'failed' limit 1"),
        "waiting": enqueue_one(place.url, queue="mail").id,
    }
    Copier(place, "relet.finished", ids["finished"]).multiply(finished, SPREAD)
    Copier(place, "relet.jobs", ids["waiting"]).multiply(waiting, SPREAD)
    Copier(place, "relet.jobs", ids["failed"]).multiply(FAILED, SPREAD)
    for table in ("relet.finished", "relet.jobs"):
        place.db.execute(f"vacuum analyze {table}".encode())
    return ids


def _run_some(place: PostgresPlace) -> None:
    """A worker writes the rows that are copied: a job that succeeds, and one that fails for good."""
    for feature in ("plain", "failing"):
        producer = place.start("producer", {"BENCH_FEATURE": feature})
        producer.ask("bulk 1")
        producer.kill()
    worker = place.start("worker")
    worker.go()
    while not place.value("select count(*) = 1 from relet.jobs where state = 'failed'"):
        worker.check()
        time.sleep(0.05)
    worker.kill()


def paths(ids: Mapping[str, str]) -> list[str]:
    """Every view, and filters that find little."""
    days_ago = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    filters = [
        "", "state=failed", "state=succeeded", "state=queued", "state=cancelled", "task=never", "error=no+such+words",
        "error=ConnectionError", "queue=mail&state=running", f"cursor={ids['finished']}", f"created_to={days_ago}",
    ]  # fmt: skip
    return [
        *RANGES,
        *(f"/{view}" for view in VIEWS),
        *(f"/jobs?{one}" for one in filters),
        *(f"/jobs/{ids[name]}" for name in ("finished", "failed", "waiting")),
        f"/chains/{ids['finished']}",
        "/confirm/bulk?action=resume&state=failed",
        *(f"/api/{path}" for path in API),
        f"/api/jobs/{ids['failed']}",
    ]


async def ask(app: App, paths: Sequence[str], times: int) -> dict[str, list[float]]:
    """By path: milliseconds of so many requests, as the server measures them. A first one compiles the templates."""
    headers, transport = {"authorization": f"Bearer {TOKEN}"}, httpx.ASGITransport(create_app(app, operate=TOKEN))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        return {path: [await _ask(client, path) for _ in range(times + 1)][1:] for path in paths}


async def _ask(client: httpx.AsyncClient, path: str) -> float:
    answer = await client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path} answered {answer.status_code}: {answer.text[:300]}")
    return float(answer.headers["server-timing"].partition("dur=")[2])
