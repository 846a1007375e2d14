"""How long `import relet` takes, and how soon a new `relet worker` runs its first job."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from bench.environments import ROOT
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.rows import client_app
from bench.statistic import median
from bench.systems import RELET

HELP = "the time of `import relet`, and from `relet worker` to its first handler call"
ROWS = (Row("start", "From `relet worker` to the first handler call", "first_claim_s", "s", True, "", ("import_s",)),)
IMPORT = "import time; begin = time.perf_counter(); import relet; print(time.perf_counter() - begin)"


def plan(lab: Lab) -> Plan:
    return Plan(ROWS, (Cell("start", RELET.name, start),))


def start(lab: Lab) -> Measured:
    times = lab.size(5, 2) if lab.options.jobs is None else 2
    imports = [_import_seconds() for _ in range(times + 1)][1:]  # the first may compile modules
    with lab.postgres_place(RELET) as place:
        claims = [_first_claim(place.url) for _ in range(times + 1)][1:]
    return {"start": {"import_s": median(imports), "first_claim_s": median(claims)}}


def _import_seconds() -> float:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True, cwd=ROOT)
    return float(done.stdout)


def _first_claim(url: str) -> float:
    """A job waits already; its handler returns the time."""
    command = [sys.executable, "-m", "relet", "worker", "bench.app:app", "--log-level", "error"]
    with client_app(url) as app:

        @app.task
        async def stamp(sent: float) -> float:
            return sent

        begin = time.time()
        job = stamp.enqueue(begin)
        begin = time.time()
        worker = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "BENCH_URL": url})
        try:
            return app.client.result(job, timeout=30.0) - begin
        finally:
            worker.terminate()
            worker.wait(30.0)
