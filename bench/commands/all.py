"""Every row that has a bar, in one interleaved run that can be interrupted and continued."""

from __future__ import annotations

from bench.commands import features, flat, idle, latency, memory, network, peers, soak, sqlite, start
from bench.lab import Lab
from bench.plan import Plan, join

HELP = "every row that has a bar, in one run; continues after Ctrl-C; takes hours"
PARTS = (peers, latency, features, network, sqlite, start, idle, flat, memory, soak)


def plan(lab: Lab) -> Plan:
    return join([part.plan(lab) for part in PARTS])
