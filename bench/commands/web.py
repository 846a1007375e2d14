"""A worker beside a web server with twenty live pages, and every view over a million finished jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from urllib.parse import quote

from bench import browsing, cells, dashboard
from bench.cells import WARM_UP
from bench.environments import ROOT
from bench.lab import Lab
from bench.machine import cpu_seconds
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import wait_until
from bench.rows import client_app
from bench.server import free_port, is_open
from bench.statistic import median
from bench.systems import RELET

HELP = "a worker beside a dashboard with twenty live pages; every view over a million finished jobs"
ROWS = (
    Row("web", "Drain beside 20 live pages", against="alone", details=("web_cores", "views")),
    Row("views", "Views over a million finished jobs", "milliseconds", "ms", True, "", ("slowest",)),
)
BOUND = 300.0  # milliseconds
PAGES = 20
TOKEN = "for-the-benchmark-only"
VIEWS = ("/", "/queues", "/jobs", "/jobs?state=queued", "/workers", "/failures", "/targets", "/schedules")


def plan(lab: Lab) -> Plan:
    drains = [Cell("web", name, partial(drain, live=live)) for name, live in (("alone", False), ("live", True))]
    return Plan(ROWS, (*drains, Cell("views", RELET.name, views, most=1)))


def views(lab: Lab) -> Measured:
    """The median and the slowest of five requests; then the same in a browser, if there is one."""
    finished = lab.size(1_000_000, 10_000)
    with lab.postgres_place(RELET) as place, client_app(place.url) as app:
        ids = dashboard.fill(place, finished, finished // 10)
        times = asyncio.run(dashboard.ask(app, dashboard.paths(ids), 5))
        browsing.run(app, dashboard.paths(ids), BOUND)
    named = {_named(path, ids): found for path, found in times.items()}
    return {
        "views": [{"system": p, "milliseconds": median(found), "slowest": max(found)} for p, found in named.items()]
    }


def _named(path: str, ids: dict[str, str]) -> str:
    for name, id in ids.items():
        path = path.replace(id, f"({name})")
    return path


def drain(lab: Lab, live: bool) -> Measured:
    jobs = lab.size(100_000, 4_000) + WARM_UP
    with lab.postgres_place(RELET) as place:
        producer = place.start("producer")
        producer.ask(f"bulk {jobs}")
        producer.kill()
        place.checkpoint()
        with live_pages(place.url) if live else nullcontext() as pages:
            figures = cells.drain_place(place, jobs)
            return {"web": figures | (pages.figures() if pages else {})}


class LivePages:
    """A separate web server process, and connections that read its event streams."""

    def __init__(self, url: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "relet", "web", "bench.app:app", "--port", str(self.port)]
        environment = {**os.environ, "RELET_WEB_TOKEN": TOKEN, "BENCH_URL": url}
        self.server = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
        self.open = self.events = 0
        wait_until(lambda: is_open(self.port), 30.0, "the web server listens")

    def mark(self) -> None:
        self._at, self._cpu, self._events = time.monotonic(), cpu_seconds(self.server.pid), self.events

    def figures(self) -> dict[str, float]:
        cores = (cpu_seconds(self.server.pid) - self._cpu) / (time.monotonic() - self._at)
        return {"web_cores": cores, "views": self.events - self._events}

    async def read(self) -> None:
        await asyncio.gather(*(self._read(VIEWS[n % len(VIEWS)]) for n in range(PAGES)), return_exceptions=True)

    async def _read(self, view: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        path = f"/live?page={quote(view, safe='')}"
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", "", ""]
        writer.write("\r\n".join(lines).encode())
        if b" 200 " not in await reader.readline():
            raise RuntimeError(f"{path} was refused")
        self.open += 1
        while line := await reader.readline():
            self.events += line.startswith(b"event:")
        writer.close()


@contextmanager
def live_pages(url: str) -> Iterator[LivePages]:
    pages = LivePages(url)
    reader = threading.Thread(target=lambda: asyncio.run(pages.read()), daemon=True)
    reader.start()
    try:
        wait_until(lambda: pages.open == PAGES, 30.0, f"{PAGES} pages are live")
        time.sleep(2.0)  # every page has been sent once
        pages.mark()
        yield pages
    finally:
        pages.server.send_signal(signal.SIGTERM)
        pages.server.wait(30.0)
        reader.join(10.0)
