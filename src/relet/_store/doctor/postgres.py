"""Checks of a store in PostgreSQL over a separate connection, read-only, whatever the version of its schema.

Each check is a short transaction with a timeout. None takes a lock that another transaction could wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from select import select
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.pq import ExecStatus

from ..._core.finding import Finding
from ..._system import SYSTEM
from ...errors import StoreError
from .. import capabilities, migrate
from ..flows import doctor
from ..fragments import Dialect
from ..postgres import OwnConnection, PostgresStore
from ..postgres_pool import PostgresPool
from ..query import Flow, read
from ..runner import drive
from ..urls import hide
from . import common, expected, judge, judge_server, judge_tables
from .common import Check, ConnectionLost
from .judge_server import Connections, Holder, ServerFacts
from .judge_tables import Autovacuum, Index, Object, Partition, Privilege, Table

R = TypeVar("R")

CONNECT_WITHIN = 5.0
FIRST_ANSWER_WITHIN = 5.0
POOL_ANSWERS_WITHIN = 2.0
POOL_ROUNDS = 4
SMALLEST_INDEX = 1000  # pages: a smaller index is not worth a finding
OPEN = (
    "begin isolation level read committed read only; "
    "set local statement_timeout = '3s'; set local lock_timeout = '500ms'; "
    # As programs have it: the server would compile for a second. Other engines do not know the setting.
    "select set_config(name, 'off', true) from pg_settings where name = 'jit'"
)


def examine(store: PostgresStore) -> list[Finding]:
    """All findings, in the order of the checks."""
    return list(_Examination(store).findings())


class _Examination:
    """One run of all checks on one store."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._server = PostgresPool(store._url, 1, CONNECT_WITHIN)
        self._raw: psycopg.Connection[Any]
        self._statements: Dialect = "postgres"

    def findings(self) -> Iterator[Finding]:
        """Connect to the server, then run the checks."""
        try:
            self._raw = self._connect()
        except StoreError as error:
            advice = "check host, port, database, user and password, and that the server runs"
            yield Finding("connection", "error", str(error), advice)
            return
        with closing(self._raw):
            self._raw.prepare_threshold = None
            pid = _answer(self._raw, FIRST_ANSWER_WITHIN)
            if pid is None:
                text = f"{self._server.where} accepted the connection, but did not answer in {FIRST_ANSWER_WITHIN:g} s"
                advice = "if this is a pooler, its pool is exhausted; otherwise check what the server is busy with"
                yield Finding("connection", "error", text, advice)
                return
            yield Finding("connection", "ok", f"{self._server.where} answers")
            with suppress(psycopg.DatabaseError):  # the checks of the schema say what is wrong
                self._statements = migrate.postgres_statements(self._raw, self._store.quoted)
            yield from common.run_checks(self._checks(pid), self._run, self._describe)

    def _connect(self) -> psycopg.Connection[Any]:
        """Connect to the server that programs would use; if none accepts writes, to any server."""
        began = SYSTEM.monotonic()
        try:
            return self._server.open()
        except StoreError:
            # A quick error is a refusal of a server. One that is down is not waited for a second time.
            if SYSTEM.monotonic() - began < CONNECT_WITHIN / 2:
                with suppress(StoreError):
                    return self._server.open(target_session_attrs="any")
            raise

    def _checks(self, pid: int) -> Iterator[Check]:
        """The checks in order. The version of the schema decides which checks follow."""
        yield Check("pooler", partial(self._pooler, pid))
        if pid == self._raw.info.backend_pid:  # a pooler may keep a second connection waiting
            yield Check("capabilities", self._capabilities)
        yield Check("server", server)
        yield Check("clock", clock)
        yield Check("connections", connections)
        yield Check("notifications", notifications)
        yield Check("old_transactions", holders)
        found: list[doctor.Version] = []
        yield Check("schema", partial(_version, found))
        if found and found[0].number:
            wanted = expected.in_postgres(self._store.quoted, found[0].number, self._statements)
            yield from _of_schema(self._store.quoted, wanted, found[0].age)
            if self._statements == "postgres":
                yield Check("partitions", partial(partitions, self._store.quoted))
            yield Check("privileges", partial(privileges, self._store.quoted))
            yield from common.JOBS

    def _run(self, flow: Callable[[], Flow[R]]) -> R:
        """Run a check in a transaction that is rolled back."""
        try:
            self._raw.execute(OPEN)
            own = OwnConnection(self._raw, self._store.quoted, None, self._store.clock, self._statements)
            return drive(flow(), own)[0]
        except psycopg.Error as error:
            if "statement pooling" in str(error):
                text = "the pooler is in statement mode, which refuses transactions: no job can be enqueued"
                advice = "PgBouncer: set pool_mode = transaction, or session"
                raise ConnectionLost(Finding("pooler", "error", text, advice)) from None
            if self._raw.closed:
                raise self._lost(f"the connection was lost: {self._describe(error)}") from None
            raise
        finally:
            if not self._raw.closed:
                with suppress(psycopg.Error):
                    self._raw.execute("rollback")

    def _capabilities(self) -> Flow[list[Finding]]:
        """Ask on a connection outside of any transaction."""
        yield from ()
        self._raw.execute("rollback")
        with closing(self._server.open(target_session_attrs="any")) as raw:
            _, found = capabilities.find(raw, self._server.open)
            locks = capabilities.has_advisory_locks(raw)
        return judge_server.capabilities(found, locks, self._statements)

    def _lost(self, text: str) -> ConnectionLost:
        advice = "check the log of the server, or of the pooler, and run the checks again"
        return ConnectionLost(Finding("connection", "error", text, advice))

    def _describe(self, error: Exception) -> str:
        if isinstance(error, pg.QueryCanceled):
            return "it took longer than 3 s"
        if isinstance(error, pg.LockNotAvailable):
            return "another transaction has locked a table that it reads"
        return hide(str(error), self._store._url)

    def _pooler(self, pid: int) -> Flow[list[Finding]]:
        """Query two connections in turn. In session mode each keeps its server process, also outside of transactions.

        Our own transaction is ended before that, so that another process may answer next.
        """
        yield from ()
        if pid == self._raw.info.backend_pid:
            return judge_server.pooler(False, [pid], [])
        self._raw.execute("rollback")
        ours: list[int] = [pid]
        others: list[int | None] = []
        with closing(self._server.open(target_session_attrs="any")) as other:
            for _ in range(POOL_ROUNDS):
                others.append(_answer(other, POOL_ANSWERS_WITHIN))
                if others[-1] is None:
                    break
                again = _answer(self._raw, POOL_ANSWERS_WITHIN)
                if again is None:
                    raise self._lost(f"the pooler did not answer within {POOL_ANSWERS_WITHIN:g} s")
                ours.append(again)
        return judge_server.pooler(True, ours, others)


def _answer(raw: psycopg.Connection[Any], seconds: float) -> int | None:
    """The server process that answers; None: no answer in time. A pooler may keep a statement waiting for long."""
    conn, pid = raw.pgconn, None
    give_up = SYSTEM.monotonic() + seconds
    try:
        conn.send_query(b"select pg_backend_pid()")
        while conn.is_busy():
            if not select([conn.socket], [], [], max(give_up - SYSTEM.monotonic(), 0))[0]:
                return None
            conn.consume_input()
        while result := conn.get_result():
            if result.status == ExecStatus.TUPLES_OK:
                pid = int(result.get_value(0, 0) or 0)
    except psycopg.OperationalError:
        return None
    return pid


def _version(found: list[doctor.Version]) -> Flow[list[Finding]]:
    found.append((yield from doctor.version()))
    return common.schema(found[0], "postgres")


def clock(here: Callable[[], float] = SYSTEM.time) -> Flow[list[Finding]]:
    """The fastest of a few answers is the most accurate."""
    samples = []
    for _ in range(3):
        before = here()
        ((server_time,),) = yield read("inspect/clock")
        samples.append((before, server_time, here()))
    return judge.clock(*min(samples, key=lambda one: one[2] - one[0]))


def server() -> Flow[list[Finding]]:
    """The server's version, whether it accepts writes, and durability."""
    (row,) = yield read("doctor/server")
    return judge_server.server(ServerFacts(*row))


def connections() -> Flow[list[Finding]]:
    """How many more connections are allowed."""
    (row,) = yield read("doctor/connections")
    return judge_server.connections(Connections(*row))


def notifications() -> Flow[list[Finding]]:
    """How full the notification queue is."""
    ((used,),) = yield read("doctor/notifications")
    return judge_server.notifications(used)


def holders() -> Flow[list[Finding]]:
    """Transactions, slots and standbys that hold back vacuum."""
    return judge_server.holders([Holder(*row) for row in (yield read("doctor/lock_holders"))])


def _of_schema(quoted: str, wanted: expected.Objects, age: float | None) -> Iterator[Check]:
    """The checks of one schema."""
    known: list[tuple[Autovacuum, list[Table]]] = []

    def facts() -> Flow[tuple[Autovacuum, list[Table]]]:
        """About all tables: three checks judge them, and they are read once."""
        if not known:
            known.append(((yield from _autovacuum()), (yield from _tables())))
        return known[0]

    def objects() -> Flow[list[Finding]]:
        found = [Object(*row) for row in (yield read("doctor/objects"))]
        return judge_tables.objects(found, wanted, quoted)

    def autovacuum() -> Flow[list[Finding]]:
        on, tables = yield from facts()
        return judge_tables.autovacuum(on, tables, wanted, quoted)

    def dead_rows() -> Flow[list[Finding]]:
        on, tables = yield from facts()
        return judge_tables.dead_rows(tables, on, age, quoted)

    def bloat() -> Flow[list[Finding]]:
        _, tables = yield from facts()
        indexes = [Index(*row) for row in (yield read("doctor/indexes", pages=SMALLEST_INDEX))]
        return judge_tables.bloat(tables, indexes, quoted)

    yield Check("indexes", objects)
    yield Check("autovacuum", autovacuum)
    yield Check("dead_rows", dead_rows)
    yield Check("bloat", bloat)


def partitions(quoted: str) -> Flow[list[Finding]]:
    """Whether the partitions of the coming days are there."""
    return judge_tables.partitions([Partition(*row) for row in (yield read("doctor/partitions"))], quoted)


def privileges(quoted: str) -> Flow[list[Finding]]:
    """The rights of the role of this connection."""
    (facts,) = yield read("doctor/server")
    found = yield read("doctor/privileges")
    having = [Privilege(*row) for row in found]
    return judge_tables.privileges(having, ServerFacts(*facts).role, quoted)


def _autovacuum() -> Flow[Autovacuum]:
    (row,) = yield read("doctor/autovacuum")
    return Autovacuum(*row)


def _tables() -> Flow[list[Table]]:
    rows = yield read("doctor/tables")
    return [Table(*row) for row in rows]
