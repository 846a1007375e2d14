"""A cluster of two PostgreSQL servers under Patroni, with etcd, and HAProxy in front of the leader.

All of them are programs of Debian's packages, started for one test or measurement and stopped after it.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.supervisor import DEBIAN, give, unprivileged

PROGRAMS = ("patroni", "etcd", "haproxy")
PATH = "/usr/bin:/usr/sbin:/bin:/sbin"
TTL = 20  # seconds without a sign of the leader after which another one is chosen; Patroni's minimum
START_WITHIN = 90.0
PR_SET_PDEATHSIG = 1

NODE = """\
scope: relet
name: {name}
restapi: {{listen: "127.0.0.1:{api}", connect_address: "127.0.0.1:{api}"}}
etcd3: {{host: "127.0.0.1:{etcd}"}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {{max_connections: 200}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}, {{auth: trust}}]
postgresql:
  listen: "127.0.0.1:{port}"
  connect_address: "127.0.0.1:{port}"
  data_dir: {home}/data
  bin_dir: {bin}
  pgpass: {home}/pgpass
  parameters: {{unix_socket_directories: {home}}}
  authentication: {{superuser: {{username: postgres}}, replication: {{username: postgres}}}}
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
"""

HAPROXY = """\
defaults
  mode tcp
  timeout connect 2s
  timeout check 2s
  timeout client 30m
  timeout server 30m
listen primary
  bind 127.0.0.1:{port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
"""


def missing() -> str:
    """What is not installed here; empty if the cluster can be started."""
    programs = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return ", ".join(programs + ["Debian's postgresql"] * (_bin() is None))


def _bin() -> Path | None:
    """The newest server of Debian's packages: Patroni is of the same release."""
    found = sorted(DEBIAN.glob("*/bin/postgres"), key=lambda path: int(path.parents[1].name))
    return found[-1].parent if found else None


def versions() -> str:
    """In words."""
    patroni = subprocess.run(["patroni", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    folder = _bin()
    assert folder is not None
    return f"Patroni {patroni}, PostgreSQL {folder.parent.name}"


@dataclass
class Node:
    """One Patroni, and the PostgreSQL that it starts."""

    name: str
    home: Path
    port: int
    api: int
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Patroni and all processes of its server at once, as the loss of the machine does."""
        postmaster = int((self.home / "data" / "postmaster.pid").read_text().split()[0])
        for pid in (self.process.pid, postmaster):
            os.kill(pid, signal.SIGSTOP)  # or they would start others
        for pid in (self.process.pid, postmaster, *_children(postmaster)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Cluster:
    """`url` leads to the leader, whichever it is."""

    def __init__(self, home: Path, nodes: Mapping[str, Node], proxy: int) -> None:
        self.home, self.nodes = home, nodes
        self.url = f"postgresql://postgres@127.0.0.1:{proxy}/postgres"

    def roles(self) -> dict[str, str]:
        """The role of each node that is in order, as any of the nodes reports it."""
        for node in self.nodes.values():
            with suppress(OSError):
                members = json.loads(_ask(node.api, "GET", "/cluster"))["members"]
                return {one["name"]: one["role"] for one in members if one["state"] in ("running", "streaming")}
        return {}

    @property
    def leader(self) -> Node:
        names = [name for name, role in self.roles().items() if role == "leader"]
        return self.nodes[names[0]]

    def is_complete(self) -> bool:
        """Whether there are a leader and its synchronous standby, and the proxy passes connections on."""
        if sorted(self.roles().values()) != ["leader", "sync_standby"]:
            return False
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def switch_over(self) -> None:
        """Have the standby take over, in an orderly way; returns when it has."""
        leader = self.leader
        _ask(leader.api, "POST", "/switchover", json.dumps({"leader": leader.name}))

    def logs(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in sorted(self.home.glob("*.log")))


@contextmanager
def cluster() -> Iterator[Cluster]:
    home = Path(tempfile.mkdtemp(prefix="relet-patroni-", dir="/var/tmp"))
    home.chmod(0o711)
    owner = unprivileged()
    give(home, owner)
    running: list[subprocess.Popen[bytes]] = []
    try:
        made = _start(home, running)
        _await(made)
        yield made
    finally:
        for process in running[1:] + running[:1]:  # etcd last
            process.send_signal(signal.SIGCONT)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20.0)
            process.kill()
            process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _start(home: Path, running: list[subprocess.Popen[bytes]]) -> Cluster:
    etcd, peer, proxy, *ports = _free_ports(7)
    urls = {"client": f"http://127.0.0.1:{etcd}", "peer": f"http://127.0.0.1:{peer}"}
    listen = [f"--listen-{kind}-urls={url}" for kind, url in urls.items()]
    options = [f"--advertise-client-urls={urls['client']}", f"--initial-advertise-peer-urls={urls['peer']}"]
    first = f"--initial-cluster=default={urls['peer']}"
    running.append(_spawn(home, "etcd", f"--data-dir={home}/etcd", first, *listen, *options))
    nodes = {}
    for number in range(2):
        node = _node(home, f"node{number}", ports[2 * number], ports[2 * number + 1], etcd)
        running.append(node.process)
        nodes[node.name] = node
    lines = [f"  server {one.name} 127.0.0.1:{one.port} check port {one.api}\n" for one in nodes.values()]
    config = home / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=proxy) + "".join(lines))
    running.append(_spawn(home, "haproxy", "-db", "-f", str(config)))
    return Cluster(home, nodes, proxy)


def _node(home: Path, name: str, port: int, api: int, etcd: int) -> Node:
    own = home / name
    own.mkdir(mode=0o700)
    give(own, unprivileged())
    config = home / f"{name}.yml"
    facts = {"name": name, "home": own, "port": port, "api": api, "etcd": etcd, "ttl": TTL, "bin": _bin()}
    config.write_text(NODE.format(**facts))
    return Node(name, own, port, api, _spawn(home, "patroni", str(config), log=name))


def _spawn(home: Path, program: str, *arguments: str, log: str = "") -> subprocess.Popen[bytes]:
    owner = unprivileged()
    with (home / f"{log or program}.log").open("ab") as output:
        return subprocess.Popen(
            [str(shutil.which(program, path=PATH)), *arguments],
            cwd=home,
            env={"LC_ALL": "C.UTF-8", "PATH": PATH, "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
            preexec_fn=_end_with_parent,
        )


def _end_with_parent() -> None:
    """A test run that is killed must not leave servers behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _await(made: Cluster) -> None:
    give_up = time.monotonic() + START_WITHIN
    while not made.is_complete():
        if time.monotonic() > give_up:
            raise RuntimeError(f"the cluster did not start: {made.roles()}\n{made.logs()}")
        time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _children(pid: int) -> list[int]:
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    return [int(child) for child, parent in rows if int(parent) == pid]


def _ask(port: int, method: str, path: str, body: str | None = None) -> bytes:
    """Patroni's REST interface."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)) as connection:
        connection.request(method, path, body)
        return connection.getresponse().read()
