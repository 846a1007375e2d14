"""Every view of the dashboard over a million finished jobs and a hundred thousand waiting ones, timed by the server,
and then in a browser, with the actions.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg

from bench import driving
from bench.hands import Hands, percentile
from bench.places import Place
from leasehold.core.ids import make_id
from leasehold.core.worker import WorkerFacts
from leasehold.store.flows import reports, stats
from leasehold.store.flows.stats import Count
from leasehold.store.postgres import PostgresStore
from leasehold.tasks import new_id
from leasehold.web import create_app

TOKEN = "for-the-benchmark-only"  # noqa: S105
BOUND = 300.0  # milliseconds
FINISHED_SHARE = 10  # finished jobs to a waiting one
FAILED = 2_000
QUEUES = ("mail", "billing", "media", "reports")
DAYS = 6
TIMES = 5

FINISHED = (
    "id", "state", "queue", "task", "priority", "target", "payload", "result", "attempt", "max_attempts", "losses",
    "version", "worker", "token", "chain", "position", "created_at", "run_at", "started_at", "finished_at",
)  # fmt: skip
JOBS = (
    "id", "state", "wait", "queue", "task", "priority", "target", "holds", "payload", "run_at", "max_attempts",
    "attempt", "error", "chain", "created_at", "stopped_at",
)  # fmt: skip


def run(place: Place, hands: Hands, waiting: int, repeat: int) -> None:
    """A line for each view: the middle and the slowest of some requests, as the server times them."""
    app = create_app(hands.app, operate=TOKEN)
    begin = time.perf_counter()
    some = fill(place, waiting)
    spent = time.perf_counter() - begin
    print(f"{waiting * FINISHED_SHARE:,} finished and {waiting:,} waiting jobs, made in {spent:.0f} s")
    slowest = 0.0
    for path in paths(some):
        times = asyncio.run(asked(app, path, max(repeat, TIMES)))
        slowest = max(slowest, max(times))
        mark = "" if max(times) < BOUND else "   beyond the bound"
        print(f"{path[:72]:72} {percentile(times, 0.5):8.1f} {max(times):8.1f} ms{mark}", flush=True)
    print(f"the slowest answer took {slowest:.0f} ms, {slowest / BOUND:.2f} of the bound of {BOUND:.0f} ms")
    driving.run(hands.app, paths(some), BOUND)


def paths(some: dict[str, str]) -> list[str]:
    """Every view, and the ways of asking that find little."""
    days_ago = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    views = ["queues", "workers", "schedules", "failures", "audit", "targets", "targets/account-1", "metrics", "health"]
    ranges = ["/", "/?range=24h", "/?range=7d", "/?range=30d"]
    filters = [
        "", "state=failed", "state=succeeded", "state=queued", "state=cancelled", "task=never", "error=no+such+words",
        "error=ConnectionError", "queue=mail&state=running", f"before={some['middle']}", f"created_to={days_ago}",
    ]  # fmt: skip
    jobs = [f"/jobs/{some[name]}" for name in ("finished", "failed", "waiting")]
    ways = ["queues", "jobs?limit=200", "jobs?task=never", "jobs/count?queue=mail", "failures", "totals"]
    return [
        *ranges,
        *[f"/{view}" for view in views],
        *[f"/jobs?{one}" for one in filters],
        *jobs,
        f"/chains/{some['finished']}",
        "/confirm/bulk?action=resume&state=failed",
        *[f"/api/{way}" for way in ways],
        f"/api{jobs[1]}",
    ]


async def asked(app: Any, path: str, times: int) -> list[float]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers
    ) as client:
        found = []
        for _ in range(times):
            answer = await client.get(path)
            if answer.status_code != 200:
                raise SystemExit(f"{path} answered {answer.status_code}: {answer.text[:300]}")
            found.append(float(answer.headers["server-timing"].partition("dur=")[2]))
        return found


def fill(place: Place, waiting: int) -> dict[str, str]:
    """Jobs, workers and statistics; returns the ids of some."""
    now, dice = time.time(), random.Random(7)  # noqa: S311
    if isinstance(place.store, PostgresStore):
        place.raw.execute(f"select {place.store.quoted}.make_partitions(current_date - {DAYS + 1}, current_date + 1)")
    finished = list(_finished(now, waiting * FINISHED_SHARE, dice))
    _insert(place, "finished", FINISHED, finished)
    live = [*_waiting(now, waiting, dice), *_failed(now, dice)]
    _insert(place, "jobs", JOBS, live)
    for number in range(20):
        facts = WorkerFacts(f"host-{number}:1", f"host-{number}", 1, None, 10, ("noop",), 30.0, "1")
        place.store.run(reports.report, new_id(), facts, 3, False)
    for minute in range(180):
        counts = [Count(queue, "succeeded", 100) for queue in QUEUES] + [
            Count(queue, "gauge.queued", minute, peak=True) for queue in QUEUES
        ]
        place.store.run(stats.add, counts, now=now - 60 * minute)
    if isinstance(place.store, PostgresStore):
        place.raw.execute(f"analyze {place.store.quoted}.jobs, {place.store.quoted}.finished")
    ids = {"finished": finished[len(finished) // 3][0], "middle": finished[len(finished) // 2][0]}
    return ids | {"failed": live[-1][0], "waiting": live[0][0]}


def _finished(now: float, number: int, dice: random.Random) -> Iterator[tuple[Any, ...]]:
    for n in range(number):
        moment = now - DAYS * 86400 * (n + 1) / number
        id = make_id(moment, os.urandom(10))
        queue, state = QUEUES[n % 4], "cancelled" if n % 50 == 0 else "succeeded"
        payload = json.dumps({"order": n, "to": f"customer-{n}@example.com", "lines": [1, 2, 3]})
        yield (id, state, queue, f"task_{n % 12}", 0, None, payload, '{"sent": true}', 1, 4, 0, 1, "host-1:1",
               str(id), id, 0, moment, moment, moment + 1, moment + 1 + dice.random())  # fmt: skip


def _waiting(now: float, number: int, dice: random.Random) -> Iterator[tuple[Any, ...]]:
    for n in range(number):
        moment = now - 3600 * dice.random()
        id = make_id(moment, os.urandom(10))
        target = f"account-{n % 10}" if n % 20 == 0 else None
        wait = "target" if target else "time" if n % 4 == 0 else None
        state, due = ("pending" if wait else "queued"), now + 86400 if wait == "time" else moment
        yield (id, state, wait, QUEUES[n % 4], f"task_{n % 12}", 0, target, False, json.dumps({"order": n}), due, 4, 0,
               None, id, moment, None)  # fmt: skip


def _failed(now: float, dice: random.Random) -> Iterator[tuple[Any, ...]]:
    for n in range(FAILED):
        moment = now - 86400 * dice.random()
        id = make_id(moment, os.urandom(10))
        kind = dice.choice(["ConnectionError", "ValueError", "TimeoutError"])
        error = f"{kind}: attempt {n} of host {n % 40}\n\nTraceback ..."
        yield (id, "failed", None, QUEUES[n % 4], f"task_{n % 12}", 0, None, False, json.dumps({"order": n}), moment,
               4, 4, error, id, moment, moment + 30)  # fmt: skip


def _insert(place: Place, table: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    moments = {column for column in columns if column.endswith("_at")}
    if isinstance(place.store, PostgresStore):
        raw: psycopg.Connection[Any] = place.raw
        into = f"copy {place.store.quoted}.{table} ({', '.join(columns)}) from stdin"
        with raw.cursor() as cursor, cursor.copy(into) as copy:
            for row in rows:
                copy.write_row([
                    datetime.fromtimestamp(value, UTC) if column in moments and value is not None else value
                    for column, value in zip(columns, row, strict=True)
                ])  # fmt: skip
        return
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    place.raw.execute("begin immediate")
    if table == "jobs":
        names, marks, rows = names + ", seq", marks + ", ?", [(*row, n + 1) for n, row in enumerate(rows)]
        place.raw.execute(f"update {place.store.quoted}_sequence set last = {len(rows)}")  # noqa: S608
    place.raw.executemany(f"insert into {place.store.quoted}_{table} ({names}) values ({marks})", rows)  # noqa: S608
    place.raw.execute("commit")
