"""A worker beside a web server on which twenty pages are live, and alone."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from bench import worker
from bench.hands import Hands, cpu_seconds, wait_until
from bench.places import Place

PAGES = 20
TOKEN = "for-the-benchmark-only"  # noqa: S105
VIEWS = ["/", "/queues", "/jobs", "/jobs?state=queued", "/workers", "/failures", "/targets", "/schedules"]


def run(place: Place, hands: Hands, number: int, repeat: int) -> None:
    """By turns: the worker alone, and with so many live pages beside it."""
    alone: list[float] = []
    watched: list[float] = []
    shares: list[float] = []
    sent = 0
    for _ in range(repeat):
        alone.append(number / worker.drain(place, hands, number, 1, hands.tasks.noop.draft))
        place.tidy()
        with live_pages(PAGES) as pages:
            begin, cpu = time.perf_counter(), cpu_seconds(pages.server)
            watched.append(number / worker.drain(place, hands, number, 1, hands.tasks.noop.draft))
            shares.append((cpu_seconds(pages.server) - cpu) / (time.perf_counter() - begin))
            sent += pages.events
        place.tidy()
    a, b = statistics.median(alone), statistics.median(watched)
    print(f"{number:,} jobs that do nothing, one worker process; jobs/s, median of {repeat} (lowest, highest)")
    print(f"{'alone':22} {a:>10,.0f}  ({min(alone):,.0f}, {max(alone):,.0f})")
    print(f"{f'{PAGES} live pages':22} {b:>10,.0f}  ({min(watched):,.0f}, {max(watched):,.0f})   {b / a:.3f} of that")
    print(f"the web server used {statistics.median(shares):.1%} of a processor and sent {sent} views", flush=True)


class Pages:
    """A web server in a process of its own, and connections that read what it sends."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "leasehold", "web", "bench.tasks:app", "--port", str(self.port)]
        environment = {**os.environ, "LEASEHOLD_WEB_TOKEN": TOKEN}
        self.server = subprocess.Popen(command, cwd=Path(__file__).parent.parent, env=environment)  # noqa: S603
        self.open = 0
        self.events = 0
        wait_until(self._answers, 30)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    async def read(self, number: int) -> None:
        """As many pages as told, each until the server ends."""
        await asyncio.gather(*(self._read(VIEWS[n % len(VIEWS)]) for n in range(number)), return_exceptions=True)

    async def _read(self, view: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        ask = [f"GET /live?page={quote(view, safe='')} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}"]
        writer.write("\r\n".join([*ask, "", ""]).encode())
        assert b" 200 " in await reader.readline()  # noqa: S101
        self.open += 1
        while line := await reader.readline():
            self.events += line.startswith(b"event:")
        writer.close()


@contextmanager
def live_pages(number: int) -> Iterator[Pages]:
    """So many live pages, open when this returns."""
    pages = Pages()
    reader = threading.Thread(target=lambda: asyncio.run(pages.read(number)), daemon=True)
    reader.start()
    try:
        wait_until(lambda: pages.open == number, 30)
        time.sleep(2)  # the first round is over
        yield pages
    finally:
        pages.server.send_signal(signal.SIGTERM)
        pages.server.wait(30)
        reader.join(10)
