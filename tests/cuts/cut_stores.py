"""Stores on which calls are cut: in a SQLite file an error in place of a statement or after it, on PostgreSQL a proxy
that cuts the connection before a message reaches the server or before its answer reaches the client."""

from __future__ import annotations

import socket
import sqlite3
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psycopg

from relet import Client
from relet._store.flows import maintenance
from relet._store.postgres import PostgresStore
from relet._store.sqlite import SQLiteStore
from relet._store.store import Store
from tests.cuts import verbs
from tests.cuts.outcomes import Tables
from tests.cuts.verbs import Actor
from tests.store.proxy import accepted, listening, server_socket
from tests.worker.proxy import ProxiedConnection

Kind = Literal["before", "after", "undone", "busy"]

TABLES = (
    "jobs", "finished", "keys", "dependencies", "attempts", "steps", "signals", "nudges", "queues", "rates", "starts",
    "schedules", "ticks", "audit", "operations",
)  # fmt: skip
TIMEOUT = 30.0


@dataclass
class Plan:
    """The fate of the messages of one call. They are counted from 0.

    `cut`: which one is cut, and how; then the rival acts before the client can send another. Without a cut it acts
    before the message `rival_at`. `boundaries`: the messages that were sent while no transaction was open.
    """

    rival: Callable[[], Any]
    cut: tuple[int, Kind] | None = None
    rival_at: int | None = None
    sent: list[str] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)
    was_cut: bool = False
    _acted: bool = False
    rival_said: Any = None

    def next(self, text: str, *, in_transaction: bool) -> Kind | None:
        """Count a message, and tell how it is to be cut."""
        number = len(self.sent)
        self.sent.append(text)
        if not in_transaction:
            self.boundaries.append(number)
            if self.was_cut or number == self.rival_at:
                self.act()
        if self.cut is None or self.cut[0] != number:
            return None
        self.was_cut = True
        return self.cut[1]

    def act(self) -> None:
        """The rival acts, once."""
        if not self._acted:
            self._acted = True
            try:
                self.rival_said = self.rival()
            except Exception as error:
                self.rival_said = error


class CutStore(ABC):
    """A store with a client whose calls are cut, and a rival, which is another client."""

    kinds: tuple[Kind, ...]

    def __init__(self, ours: Store, theirs: Store) -> None:
        self.named: dict[str, str] = {}
        self.ours = Actor(Client(verbs.app, lambda _: ours), self.named)
        self.theirs = Actor(Client(verbs.app, lambda _: theirs), self.named)
        self.plan: Plan | None = None

    @abstractmethod
    def begin(self, verb: verbs.Verb) -> None:
        """A store with the jobs that the verb needs, and nothing else."""

    @abstractmethod
    def tables(self) -> Tables:
        """Every row."""

    def can_be(self, text: str, kind: Kind) -> bool:
        """Whether a message can be cut so."""
        return True

    def run(self, verb: verbs.Verb, plan: Plan) -> Any:
        """Make the call, as planned. Returns its answer."""
        self.begin(verb)
        self.plan = plan
        try:
            return verb.call(self.ours)
        except Exception as error:
            return error
        finally:
            self.plan = None
            plan.act()


class _CutConnection:
    """A connection to SQLite whose statements can fail."""

    def __init__(self, raw: sqlite3.Connection, cut_store: Callable[[], Plan | None]) -> None:
        self._raw = raw
        self._plan = cut_store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, sql: str, *args: Any) -> Any:
        plan = self._plan()
        kind = None if plan is None else plan.next(sql, in_transaction=self._raw.in_transaction)
        if kind is None:
            return self._raw.execute(sql, *args)
        if kind == "after":
            self._raw.execute(sql, *args).fetchall()
        if kind == "undone" and self._raw.in_transaction:  # as SQLite does by itself after some errors
            self._raw.execute("rollback")
        name = "SQLITE_BUSY" if kind == "busy" else "SQLITE_IOERR_WRITE"
        error = sqlite3.OperationalError(f"{name}: cut {kind} {sql[:60]!r}")
        error.sqlite_errorname = name
        raise error


class _CutSQLite(SQLiteStore):
    plan: Callable[[], Plan | None] = staticmethod(lambda: None)

    def _connect(self) -> sqlite3.Connection:
        return _CutConnection(super()._connect(), lambda: self.plan())  # type: ignore[return-value]


class SQLiteCutStore(CutStore):
    """A file. It is filled once for each verb, and the tables that a call has changed are restored before the next."""

    _kept: Tables  # the rows before each call
    _now: Tables  # those after the last one

    def __init__(self, folder: Path, kinds: tuple[Kind, ...] = ("before", "after", "undone", "busy")) -> None:
        self.kinds = kinds
        self._path = folder / "cuts.db"
        ours = _CutSQLite(str(self._path), synchronous="OFF")
        ours.plan = lambda: self.plan
        self._theirs = SQLiteStore(str(self._path), synchronous="OFF")
        super().__init__(ours, self._theirs)
        self._ours = ours
        ours.migrate()
        self.ours.client.queues()  # its connections are there, to write and to read
        self._raw = sqlite3.connect(self._path, isolation_level=None)
        self._raw.execute("pragma synchronous = off")
        self._raw.row_factory = sqlite3.Row
        self._raw.execute("attach ':memory:' as kept")
        prefix = ours.quoted
        self._columns: dict[str, str] = {}
        for name in TABLES:
            columns = ", ".join(row["name"] for row in self._raw.execute(f"pragma table_info({prefix}_{name})"))
            self._columns[name] = columns  # without those that are generated
            self._raw.execute(f"create table kept.{name} as select {columns} from {prefix}_{name}")
        self._for: str | None = None

    def begin(self, verb: verbs.Verb) -> None:
        prefix = self._ours.quoted
        if self._for != verb.name:
            self._copy({f"{prefix}_{name}": None for name in TABLES})
            self.named.clear()
            verb.prepare(self.theirs)
            self._copy(
                {
                    f"kept.{name}": f"{self._columns[name]}) select {self._columns[name]} from {prefix}_{name}"
                    for name in TABLES
                }
            )
            self._for = verb.name
            self._kept = self._now = self._read()
            return
        changed = [name for name in TABLES if self._now[name] != self._kept[name]]
        self._copy({f"{prefix}_{name}": f"{self._columns[name]}) select * from kept.{name}" for name in changed})

    def _copy(self, rows: dict[str, str | None]) -> None:
        """Have tables hold these rows, and no others."""
        self._raw.execute("begin immediate")
        for table, source in rows.items():
            self._raw.execute(f"delete from {table}")
            if source is not None:
                self._raw.execute(f"insert into {table} ({source}")
        self._raw.execute("commit")

    def can_be(self, text: str, kind: Kind) -> bool:
        """Only BEGIN meets a lock of others, and there is nothing to undo before it."""
        return text.startswith("begin") == (kind == "busy") or kind in ("before", "after")

    def tables(self) -> Tables:
        self._now = self._read()
        return self._now

    def _read(self) -> Tables:
        prefix = self._ours.quoted
        return {name: [dict(row) for row in self._raw.execute(f"select * from {prefix}_{name}")] for name in TABLES}

    def close(self) -> None:
        for one in (self._ours, self._theirs, self._raw):
            one.close()


class PostgresCutStore(CutStore):
    """A schema of a server. It is filled once for each verb, and its rows are copied for each call."""

    kinds = ("before", "after")

    def __init__(self, dsn: str, schema: str, proxy: CutProxy) -> None:
        direct = f"{dsn}{'&' if '?' in dsn else '?'}options=-c%20synchronous_commit%3Doff"
        ours, theirs = (PostgresStore(url, schema=schema) for url in (proxy.url, direct))
        super().__init__(ours, theirs)
        self._ours, self._theirs = ours, theirs
        ours._server.prepare_no_more()  # the same call sends the same messages each time
        proxy.plan = lambda: self.plan
        theirs.migrate()
        self._raw = proxy.raw = psycopg.connect(direct, autocommit=True)
        self._schema = schema
        self._for: str | None = None
        self._kept: dict[str, str] = {}

    def begin(self, verb: verbs.Verb) -> None:
        if self._for != verb.name:
            self._copy({f"{self._schema}.{name}": None for name in TABLES})
            self.named.clear()
            verb.prepare(self.theirs)
            self._copy({f"kept_{name}": f"{columns} from {self._schema}.{name}" for name, columns in self._columns()})
            self._for = verb.name
        else:
            self._copy({f"{self._schema}.{name}": f"{columns} from kept_{name}" for name, columns in self._columns()})
        self._ours.run(maintenance.probe)  # the connection is there

    def _columns(self) -> Iterator[tuple[str, str]]:
        """Of each table, without those that are generated."""
        if not self._kept:
            found = self._raw.execute(
                "select table_name, string_agg(quote_ident(column_name), ', ' order by ordinal_position)"
                " from information_schema.columns where table_schema = %s and is_generated = 'NEVER' group by 1",
                (self._schema,),
            )
            self._kept = {name: columns for name, columns in found.fetchall() if name in TABLES}
            for name, columns in self._kept.items():
                query = f"create temp table kept_{name} as select {columns} from {self._schema}.{name} where false"
                self._raw.execute(query.encode())
        yield from self._kept.items()

    def _copy(self, rows: dict[str, str | None]) -> None:
        """Have tables hold these rows, and no others."""
        statements = [f"delete from {table}" for table in rows]
        for table, source in rows.items():
            if source is not None:
                columns = source.partition(" from ")[0]
                statements.append(f"insert into {table} ({columns}) overriding system value select {source}")
        self._raw.execute("; ".join(statements).encode())

    def tables(self) -> Tables:
        parts = (f"(select coalesce(json_agg(t), '[]') from {self._schema}.{name} t)" for name in TABLES)
        found = self._raw.execute(f"select {', '.join(parts)}".encode()).fetchone()
        assert found is not None
        return dict(zip(TABLES, found, strict=True))

    def close(self) -> None:
        for one in (self._ours, self._theirs, self._raw):
            one.close()


class CutProxy:
    """Between a client and PostgreSQL. A message is what the client sends before it waits for an answer."""

    def __init__(self, dsn: str, port: int) -> None:
        with psycopg.connect(dsn) as connection:
            user, name = connection.info.user, connection.info.dbname
        self.url = f"postgresql://{user}@127.0.0.1:{port}/{name}?sslmode=disable&gssencmode=disable"
        self.plan: Callable[[], Plan | None] = lambda: None
        self.raw: psycopg.Connection[Any] | None = None  # to the server, for the proxy itself
        self._dsn = dsn
        self._links: list[CutConnection] = []

    def serve(self, listener: socket.socket) -> None:
        for client in accepted(listener):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links = [link for link in self._links if not link.over]
            link = CutConnection(self, client, server_socket(self._dsn))
            self._links.append(link)
            for work in (link.upwards, link.downwards):
                threading.Thread(target=work, daemon=True).start()

    def await_end(self, pid: int) -> None:
        """Until the server has noticed that its client is gone, and has rolled its transaction back."""
        give_up = time.monotonic() + TIMEOUT
        assert self.raw is not None
        while self.raw.execute("select from pg_stat_activity where pid = %s", (pid,)).fetchone() is not None:
            assert time.monotonic() < give_up, f"server process {pid} goes on"
            time.sleep(0.001)

    def close(self) -> None:
        for link in self._links:
            link.close()


class CutConnection(ProxiedConnection):
    """One connection of the client, and the one to the server that it stands for."""

    def __init__(self, proxy: CutProxy, client: socket.socket, server: socket.socket) -> None:
        self._cuts = proxy
        self._client, self._server = client, server
        self._ready = threading.Event()
        self._deaf = self._greeted = self.over = False
        self._pid = 0
        self._status = b"I"  # T: a transaction is open

    def upwards(self) -> None:
        try:
            self._greet()
            while (message := self._whole()) is not None and not self._is_cut(message):
                self._server.sendall(message)
        except OSError:
            pass
        self.close()

    def downwards(self) -> None:
        data = b""
        try:
            while more := self._server.recv(65536):
                data = self._note(data + more)
                if not self._deaf:
                    self._client.sendall(more)
        except OSError:
            pass
        if not self._deaf:  # else the rival acts before the client may notice
            self.close()

    def close(self) -> None:
        self.over = True
        super().close()

    def _whole(self) -> bytes | None:
        """Everything up to the message that asks for an answer."""
        message = self._message()
        return None if message is None else message + self._rest(message) if message[:1] != b"X" else message

    def _note(self, data: bytes) -> bytes:
        """Read the messages of the server. Returns the rest, which is not complete yet."""
        while len(data) >= 5 and len(data) > (size := struct.unpack("!i", data[1:5])[0]):
            kind, body, data = data[:1], data[5 : size + 1], data[size + 1 :]
            if kind == b"K":
                (self._pid,) = struct.unpack("!i", body[:4])
            if kind == b"Z":
                self._status = body
                self._ready.set()
        return data

    def _is_cut(self, message: bytes) -> bool:
        plan = self._cuts.plan()
        if plan is None or message[:1] == b"X":
            return False
        kind = plan.next(_text(message), in_transaction=self._status != b"I")
        if kind is None:
            return False
        if kind == "after":
            self._deaf = True
            self._ready.clear()
            self._server.sendall(message)
            assert self._ready.wait(TIMEOUT)
        self._deaf = True
        self._server.shutdown(socket.SHUT_RDWR)
        self._cuts.await_end(self._pid)
        plan.act()
        return True


def _text(message: bytes) -> str:
    """The statement in it, for people."""
    return message[5:].replace(b"\0", b" ").decode(errors="replace").strip()[:60]


@contextmanager
def postgres_cut_store(dsn: str, schema: str) -> Iterator[PostgresCutStore]:
    with ExitStack() as stack:
        listener, port = stack.enter_context(listening())
        proxy = CutProxy(dsn, port)
        stack.callback(proxy.close)
        threading.Thread(target=proxy.serve, args=(listener,), daemon=True).start()
        cut_store = PostgresCutStore(dsn, schema, proxy)
        stack.callback(cut_store.close)
        yield cut_store
