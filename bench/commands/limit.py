"""The rate of this machine and server without a queue, and the share of it that relet reaches."""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial

from bench.commands import enqueue, peers
from bench.environments import CACHE
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan, Row
from bench.systems import RAW, RELET

HELP = "bare loops, COPY, INSERT and fsync on this machine, and relet's share of them"
ROWS = (Row("fsync", "Small writes, each synced to disk", unit="writes/s", against="fsync"),)


def plan(lab: Lab) -> Plan:
    pair = (RAW, RELET)
    drains = [
        Cell(f"drain{processes}", system.name, partial(peers.drain, system=system, processes=processes))
        for processes in (1, 2)
        for system in pair
    ]
    names = {system.name for system in pair} | {"INSERT", "COPY"}
    singles = [cell for cell in peers.plan(lab).cells if cell.name in ("single", "bulk") and cell.system in names]
    return Plan((*peers.ROWS, enqueue.ROWS[0], *ROWS), (*drains, *singles, Cell("fsync", "fsync", fsync)))


def fsync(lab: Lab) -> Measured:
    """8 KiB appended and synced, as a commit does."""
    number = lab.size(1_000, 50)
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryFile(dir=CACHE) as file:
        begin = time.perf_counter()
        for _ in range(number):
            os.write(file.fileno(), b"x" * 8192)
            os.fdatasync(file.fileno())
        return {"fsync": {"rate": number / (time.perf_counter() - begin)}}
