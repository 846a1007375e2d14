"""The ways in which a primary is lost, each with real servers, workers and producers."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg

from bench.failover.load import Load, figures
from tests import patroni, servers
from tests.servers import PrivateServer
from tests.store import bouncers
from tests.store.proxy import proxy_to

PROMOTED_AFTER = 2.0  # seconds from the loss of the primary
HANGS_FOR = 15.0  # seconds; two and a half leases
CUT_OFF_FOR = 3.0  # seconds that an asynchronous standby receives nothing before the primary is lost
AWAY_FOR = 3.0  # seconds without a pooler
VANISHING = "127.0.0.2"  # the address of the primary, for which the network namespace of this row drops packets
PATIENCE = 60.0
Figures = dict[str, Any]


@dataclass
class Pair:
    """A primary and its standby."""

    primary: PrivateServer
    standby: PrivateServer

    @property
    def url(self) -> str:
        return self.primary.servers.dsn_of(self.primary.name, self.standby.name)


class Fault(NamedTuple):
    """When the fault began, when another server was asked to take over, and which server has the jobs then."""

    began: float
    promoted: float | None
    server: PrivateServer


@contextmanager
def a_pair(*, synchronous: bool = True, clock: float = 0.0, address: str = "") -> Iterator[Pair]:
    kind, *_ = servers.local_names()
    with (
        servers.running() as running,
        running.private(kind, address=address) as primary,
        primary.standby(synchronous=synchronous, clock=clock) as standby,
    ):
        await_standby(primary, "sync" if synchronous else "async")
        yield Pair(primary, standby)


def await_standby(primary: PrivateServer, wanted: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while True:
        with psycopg.connect(primary.dsn) as connection:
            states = [one for (one,) in connection.execute("select sync_state from pg_stat_replication")]
        if states == [wanted]:
            return
        if time.monotonic() > give_up:
            raise RuntimeError(f"the standby does not follow: {states}")
        time.sleep(0.05)


def run(folder: Path, url: str, fail: Callable[[], Fault], workers: int = 3) -> Figures:
    load = Load(folder, url, workers)
    try:
        load.begin()
        fault = fail()
        codes = load.end(lambda: fault.server.dsn)
        return {**figures(load, fault.server.dsn, fault.began, fault.promoted), "exit codes": codes}
    finally:
        load.close()


def on_pair(fail: Callable[[Pair], Fault], folder: Path, **options: Any) -> Figures:
    with a_pair(**options) as pair:
        return run(folder, pair.url, partial(fail, pair))


def kill_primary(pair: Pair) -> Fault:
    began = time.monotonic()
    pair.primary.crash()
    time.sleep(PROMOTED_AFTER)
    return Fault(began, pair.standby.promote(), pair.standby)


def hang_standby(pair: Pair) -> Fault:
    began = time.monotonic()
    pair.standby.signal("walreceiver", signal.SIGSTOP)
    time.sleep(HANGS_FOR)
    pair.standby.signal("walreceiver", signal.SIGCONT)
    return Fault(began, None, pair.primary)


def cut_off_standby(pair: Pair) -> Fault:
    pair.standby.follow_nothing()
    time.sleep(CUT_OFF_FOR)
    return kill_primary(pair)


def demote_primary(pair: Pair) -> Fault:
    """It keeps its sessions."""
    began = time.monotonic()
    pair.primary.execute("alter system set default_transaction_read_only = on", "select pg_reload_conf()")
    return Fault(began, pair.standby.promote(), pair.standby)


def drop_packets(pair: Pair) -> Fault:
    began = time.monotonic()
    rules = f"add rule inet lost input ip daddr {VANISHING} drop; add rule inet lost input ip saddr {VANISHING} drop"
    chain = "add table inet lost; add chain inet lost input { type filter hook input priority 0; }"
    subprocess.run(["nft", f"{chain}; {rules}"], check=True)
    return Fault(began, pair.standby.promote(), pair.standby)


def vanished_host(folder: Path) -> Figures:
    """In a network namespace that this process has to itself."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with a_pair(address=VANISHING) as pair:
        url = f"postgresql://postgres@/postgres?host={VANISHING},{pair.standby.home}"
        return run(folder, url, partial(drop_packets, pair))


def silent_proxy(folder: Path) -> Figures:
    """Behind a proxy that takes connections and passes nothing on: no packet is lost, and no answer arrives."""
    with a_pair() as pair, proxy_to(pair.primary.dsn) as proxy:
        at = urlsplit(proxy.url)
        url = f"postgresql://postgres@/postgres?host={at.hostname},{pair.standby.home}&port={at.port},5432"

        def fail() -> Fault:
            began = time.monotonic()
            proxy.vanish()
            return Fault(began, pair.standby.promote(), pair.standby)

        return run(folder, url, fail)


def switch_over(cluster: patroni.Cluster) -> None:
    cluster.switch_over()


def kill_leader(cluster: patroni.Cluster) -> None:
    cluster.leader.kill()


def on_cluster(fail: Callable[[patroni.Cluster], None], folder: Path) -> Figures:
    with patroni.cluster() as cluster:
        load = Load(folder, cluster.url, 3)
        try:
            load.begin()
            began = time.monotonic()
            fail(cluster)
            time.sleep(patroni.TTL)  # after a switchover too, so that the former leader is a standby by then
            codes = load.end(lambda: cluster.url)
            return {**figures(load, cluster.url, began, None), "exit codes": codes}
        finally:
            load.close()


def pooler_away(folder: Path) -> Figures:
    """Four workers behind PgBouncer in transaction mode, with few connections to the server."""
    kind, *_ = servers.local_names()
    with (
        servers.running() as running,
        running.private(kind) as server,
        bouncers.Bouncer(server.dsn, "transaction", 20) as bouncer,
    ):

        def fail() -> Fault:
            began = time.monotonic()
            bouncer.kill()
            time.sleep(AWAY_FOR)
            bouncer.start()
            return Fault(began, None, server)

        return run(folder, bouncer.url, fail, workers=4)


def needs(*programs: str) -> Callable[[], str]:
    def missing() -> str:
        return ", ".join(name for name in programs if shutil.which(name, path=patroni.PATH) is None)

    return missing


def private_network() -> str:
    """Why a process here cannot have a network to itself; empty if it can."""
    if absent := needs("unshare", "nft", "ip")():
        return absent
    probe = subprocess.run(["unshare", "--net", "nft", "list", "ruleset"], capture_output=True, check=False)
    return "" if probe.returncode == 0 else "the rights to make a network namespace"


class Scenario(NamedTuple):
    title: str
    measure: Callable[[Path], Figures]
    missing: Callable[[], str] = needs()
    prefix: tuple[str, ...] = ()  # of the command that measures it


SCENARIOS = {
    "sync": Scenario("synchronous standby; primary killed, promotion after 2 s", partial(on_pair, kill_primary)),
    "ahead": Scenario(
        "the same, the standby's clock 120 s ahead", partial(on_pair, kill_primary, clock=120.0), needs("faketime")
    ),
    "behind": Scenario(
        "the same, the standby's clock 120 s behind", partial(on_pair, kill_primary, clock=-120.0), needs("faketime")
    ),
    "hang": Scenario("synchronous standby hangs for 15 s", partial(on_pair, hang_standby)),
    "async": Scenario(
        "asynchronous standby, cut off 3 s before the primary is killed",
        partial(on_pair, cut_off_standby, synchronous=False),
    ),
    "switchover": Scenario("Patroni, etcd and HAProxy: switchover", partial(on_cluster, switch_over), patroni.missing),
    "leader": Scenario(
        f"the same, leader killed, TTL {patroni.TTL} s", partial(on_cluster, kill_leader), patroni.missing
    ),
    "pooler": Scenario("PgBouncer in transaction mode, killed for 3 s", pooler_away, needs("pgbouncer")),
    "vanished": Scenario(
        "host of the primary vanishes, standby promoted at once", vanished_host, private_network, ("unshare", "--net")
    ),
    "silent": Scenario("the same, behind a proxy that passes nothing on any more", silent_proxy),
    "read-only": Scenario(
        "primary becomes read-only and keeps its sessions, standby promoted at once", partial(on_pair, demote_primary)
    ),
}
