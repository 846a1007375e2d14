"""`./dev bench peer-faults`: peers and scenarios, some at a time, and the tables."""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from bench.environments import CACHE, Unavailable
from bench.peer_faults import report
from bench.peer_faults.peers import PEERS, Peer
from bench.peer_faults.scenarios import SCENARIOS, Figures
from bench.peer_faults.testbed import Stuck, Testbed
from tests import servers
from tests.servers import Servers

HELP = "Relet and its peers under the same faults: kills, stopped workers, lost answers, restarts of the server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--peer", action="append", choices=PEERS, default=[], help="only this one; repeatable")
    add("--scenario", action="append", choices=SCENARIOS, default=[], help="only this one; repeatable")
    add("--seed", type=int, default=1, help="of the durations of the jobs and the moments of the faults (default 1)")
    add("--at-once", type=int, default=2, metavar="N", help="so many at a time, each with its own server (default 2)")


def main(options: argparse.Namespace) -> int:
    peers = [PEERS[name] for name in options.peer or PEERS]
    scenarios = options.scenario or list(SCENARIOS)
    peers = [peer for peer in peers if _is_available(peer)]
    cells = [(peer, scenario) for scenario in scenarios for peer in peers]
    with servers.running() as running, ThreadPoolExecutor(options.at_once) as pool:
        futures = {cell: pool.submit(_measure, running, *cell, options.seed) for cell in cells}
        try:
            found = {cell: future.result() for cell, future in futures.items()}
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("bench: interrupted; those that run are being finished.", file=sys.stderr)
            return 130
    print(report.settings(peers))
    for scenario in scenarios:
        print(f"\n{report.results(scenario, {peer.name: found[peer, scenario] for peer in peers})}")
    return 1 if any(isinstance(figures, str) for figures in found.values()) else 0


def _is_available(peer: Peer) -> bool:
    """Installs it, if necessary."""
    try:
        peer.version()
    except Unavailable as reason:
        print(f"bench: skipping {peer.name}: {reason}", file=sys.stderr)
        return False
    return True


def _measure(running: Servers, peer: Peer, scenario: str, seed: int) -> Figures | str:
    began = time.monotonic()
    try:
        figures = measure(running, peer, scenario, seed)
    except Stuck as error:
        print(f"bench: ERROR in {scenario}, {peer.name}: {error}", file=sys.stderr, flush=True)
        return "did not run"
    seconds = time.monotonic() - began
    print(f"bench: {scenario}, {peer.name}, {seconds:.0f} s: {json.dumps(figures)}", file=sys.stderr, flush=True)
    return figures


def measure(running: Servers, peer: Peer, scenario: str, seed: int) -> Figures:
    CACHE.mkdir(exist_ok=True)
    kind, *_ = servers.local_names()
    with running.private(kind) as server, Testbed(peer, server, scenario) as bed:
        return SCENARIOS[scenario](bed, seed)
