"""The same backlog drained by a worker behind a gateway, and by one with a connection to the database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench import cells
from bench.environments import ROOT
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.programs import wait_until
from bench.server import free_port, is_open
from bench.systems import RELET

HELP = "drain of one worker behind a gateway, relative to a worker with a connection to the database"
DIRECT, BEHIND = "direct", "behind a gateway"
TOKEN = "token-of-the-benchmark"
ROWS = (Row("gateway", "Drain behind a gateway", against=DIRECT, details=("cpu_us", "server_us")),)


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, tuple(Cell("gateway", name, partial(drain, name=name)) for name in (DIRECT, BEHIND)))


def drain(lab: Lab, name: str) -> Measured:
    jobs = lab.size(30_000, 1_000)
    with lab.postgres_place(RELET) as place:
        producer = place.start("producer")
        producer.ask(f"bulk {jobs}")
        producer.kill()
        place.checkpoint()
        if name == DIRECT:
            return {"gateway": cells.drain_place(place, jobs)}
        with serving(place.url) as url:
            env = {"BENCH_GATEWAY": url, "RELET_GATEWAY_TOKEN": TOKEN}
            return {"gateway": cells.drain_place(place, jobs, env=env)}


@contextmanager
def serving(url: str) -> Iterator[str]:
    """`relet gateway` as a process; its URL."""
    port = free_port()
    command = [sys.executable, "-m", "relet", "gateway", url, "--port", str(port), "--log-level", "error"]
    env = {**os.environ, "RELET_GATEWAY_TOKEN": TOKEN}
    process = subprocess.Popen(command, env=env, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_open(port), 60.0, "the gateway listens")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
