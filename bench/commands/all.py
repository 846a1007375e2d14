"""Every row that has a bar, in one interleaved run that can be interrupted and continued."""

from __future__ import annotations

from bench.commands import features, flat, idle, latency, memory, network, peers, soak, sqlite, start
from bench.lab import Lab
from bench.plan import Plan, join

HELP = "every row that has a bar, in one run; continues after Ctrl-C; takes hours"
PARTS = {
    "peers": peers, "latency": latency, "features": features, "network": network, "sqlite": sqlite, "start": start,
    "idle": idle, "flat": flat, "memory": memory, "soak": soak,
}  # fmt: skip


def plan(lab: Lab) -> Plan:
    return join([part.plan(lab) for name, part in PARTS.items() if name not in lab.options.without])
