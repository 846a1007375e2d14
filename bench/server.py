"""PostgreSQL and Redis servers that live as long as one run. With a DSN, PostgreSQL is the server that it names."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from bench.machine import precise_cpu_seconds, tree_seconds
from tests import supervisor

SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "max_connections": "800",
    # Loaded for `idle`, which turns it on in its own database. It measures nothing anywhere else.
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
}
SHOWN = ("shared_buffers", "max_wal_size", "synchronous_commit", "fsync", "full_page_writes", "autovacuum")
PATIENCE = 30.0
PR_SET_PDEATHSIG = 1


class Postgres:
    """A server on which this process may create databases."""

    def __init__(self, dsn: str, pid: int | None = None) -> None:
        self.dsn = dsn
        self.pid = pid  # of the postmaster, if it runs here

    def url(self, database: str) -> str:
        return urlsplit(self.dsn)._replace(path=f"/{database}").geturl()

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.dsn)
        return parts.hostname or "127.0.0.1", parts.port or 5432

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def create(self, template: str | None = None, name: str | None = None) -> str:
        """A new database, as a copy of another one if named; returns its name."""
        name = name or f"bench_{uuid.uuid4().hex[:10]}"
        copy = f" template {template} strategy file_copy" if template else ""
        self.execute(f"create database {name}{copy}", "checkpoint")
        return name

    def has(self, name: str) -> bool:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute("select from pg_database where datname = %s", (name,)).fetchone() is not None

    def drop(self, name: str) -> None:
        self.execute(f"drop database if exists {name} with (force)")

    def cpu_seconds(self) -> float:
        """CPU time of all server processes; 0 if the server runs elsewhere."""
        return tree_seconds(self.pid) if self.pid else 0.0

    def backend_seconds(self, pid: int) -> float:
        return precise_cpu_seconds(pid) if self.pid else 0.0

    def facts(self) -> dict[str, Any]:
        with psycopg.connect(self.dsn) as connection:
            shown = {name: connection.execute(f"show {name}".encode()).fetchone() for name in SHOWN}
            version = connection.info.parameter_status("server_version")
        return {"postgresql": version, "settings": {name: row[0] for name, row in shown.items() if row}}


@contextmanager
def postgres(dsn: str | None) -> Iterator[Postgres]:
    if dsn is not None:
        yield Postgres(dsn)
        return
    installs = supervisor.installs()
    if not installs:
        raise SystemExit("No PostgreSQL found. Run ./dev setup, or name a server: --dsn postgresql://...")
    with _home() as home:
        kind = supervisor.Kind(home / "kind", next(iter(installs.values())))
        process, port = _start(kind, home)
        try:
            yield Postgres(f"postgresql://postgres@127.0.0.1:{port}/postgres", process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


@contextmanager
def _home() -> Iterator[Path]:
    """A folder on a real disk: /tmp may be in memory, where a commit costs nothing."""
    home = Path(tempfile.mkdtemp(prefix="relet-bench-", dir="/var/tmp"))
    home.chmod(0o711)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _start(kind: supervisor.Kind, home: Path) -> tuple[subprocess.Popen[bytes], int]:
    run = home / "run"
    run.mkdir()
    supervisor.give(run, kind.owner)
    kind.make_cluster(run / "data")
    port = free_port()
    settings = SETTINGS | {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": str(run)}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    process = _spawn(kind, run, options)
    _await_server(process, port, run / "log")
    return process, port


def _spawn(kind: supervisor.Kind, run: Path, options: list[str]) -> subprocess.Popen[bytes]:
    owner = kind.owner
    with (run / "log").open("ab") as log:
        return subprocess.Popen(
            [str(kind.install.bin / "postgres"), "-D", str(run / "data"), *options],
            cwd=run,
            env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the benchmark, which stops the server afterwards
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
            preexec_fn=_die_with_parent,
        )


def _die_with_parent() -> None:
    """A benchmark that is killed must not leave a server behind."""
    if os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def _await_server(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    process.kill()
    raise SystemExit(f"PostgreSQL did not start: {log.read_text()[-2000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def redis() -> Iterator[str | None]:
    """The URL of a Redis with an append-only file synced every second; None if there is no redis-server."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with _home() as home:
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(home), "--save", ""]
        durable = ["--appendonly", "yes", "--appendfsync", "everysec"]
        process = subprocess.Popen(
            [program, *options, *durable], stdout=subprocess.DEVNULL, preexec_fn=_die_with_parent
        )
        try:
            _await_port(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(PATIENCE)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _await_port(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_open(port):
        if time.monotonic() > deadline:
            raise SystemExit(f"Nothing listens on port {port}.")
        time.sleep(0.02)
