"""PostgreSQL in lockstep: one statement runs at a time, and the scheduler decides between two statements who is next.

A statement that waits for a lock stays with the server, which knows for whom it waits; the others go on. A statement
that ends may let others go on: they run to their end, or to their next lock, before the scheduler chooses again.
"""

from __future__ import annotations

import math
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from greenlet import GreenletExit
from psycopg.pq import TransactionStatus

from relet._store import deadlines
from relet._store.deadlines import STATEMENT_SECONDS
from relet._store.fragments import Dialect
from relet._store.open import open_store
from relet._store.postgres import BEGIN_SNAPSHOT, OwnConnection, PostgresStore
from relet._store.query import Flow, Notify, Query, Row, Traits
from relet._store.runner import drive
from relet._store.store import StoreTransaction
from relet._torture.record import postgres_statements
from relet.errors import StoreUnavailable
from tests.schemas import EMPTIED
from tests.simulation.database import TRIP, Database, SimStore
from tests.simulation.kernel import Kernel, Process

R = TypeVar("R")
LOCK_TIMEOUT = 300  # milliseconds, for the transactions of handlers: no other thread runs while they wait
USUAL = 0.01  # seconds within which most statements end
ANSWER_WITHIN = 30.0  # seconds
#: The sessions that keep another one waiting. One whose transaction has ended is not among them, though the server may
#: name it for a moment longer.
BLOCKERS = (
    "select from pg_stat_activity where pid = any(pg_blocking_pids(%s)) "
    "and (state like 'idle in transaction%%' or wait_event_type = 'Lock')"
)
IDLE_TIMEOUT = 3.0  # seconds: `idle_in_transaction_session_timeout`, as the store sets it
POLL = 0.01  # seconds of virtual time between two looks at a statement that waits for a lock


class Schema:
    """A schema for one seed after another, with the triggers that record, and a connection that watches the others."""

    def __init__(self, url: str, name: str) -> None:
        mark = "&" if "?" in url else "?"
        self.url, self.name = f"{url}{mark}options=-c%20lock_timeout%3D{LOCK_TIMEOUT}", name
        self.raw = psycopg.connect(url, autocommit=True)
        store = open_store(url, schema=name)
        store.migrate()
        store.close()
        for statement in postgres_statements(f"{name}."):
            self.raw.execute(statement)

    def empty(self) -> None:
        tables = ", ".join(f"{self.name}.{table}" for table in (*EMPTIED, "torture_records", "torture_ledger"))
        self.raw.execute(f"truncate {tables} restart identity cascade")

    def close(self) -> None:
        self.raw.execute(f"drop schema {self.name} cascade")
        self.raw.close()


class Session:
    """A connection, the thread that waits for its answers, and the process that uses it."""

    def __init__(self, raw: psycopg.Connection[Any], process: Process) -> None:
        self.raw, self.process = raw, process
        self.pid = raw.info.backend_pid
        self.thread = ThreadPoolExecutor(1)
        self.is_free = True
        self.used_at = 0.0  # the virtual time of its last answer
        self.answer: Future[Any] | None = None
        self.is_blocked = False  # it waited for a lock when it was last asked

    def close(self) -> None:
        self.raw.close()
        self.thread.shutdown(wait=False)


class LockstepDatabase(Database):
    real: PostgresStore

    def __init__(self, kernel: Kernel, schema: Schema) -> None:
        store = open_store(schema.url, schema=schema.name)
        assert isinstance(store, PostgresStore)
        super().__init__(kernel, store)
        self.schema = schema
        self._sessions: list[Session] = []
        self._moments: list[tuple[float, float]] = []  # the real time at which statements began, and the virtual one

    def store(self, process: Process, link: Any) -> LockstepStore:
        return LockstepStore(self, process, link)

    @contextmanager
    def session(self, process: Process) -> Iterator[Session]:
        session = next((one for one in self._sessions if one.is_free and one.process is process), None)
        if session is None:
            session = Session(psycopg.connect(self.schema.url, autocommit=True), process)
            self._sessions.append(session)
        session.is_free = False
        try:
            yield session
        finally:
            session.is_free = True
            if session.raw.closed:
                self._drop(session)

    def statement(self, session: Session, call: Callable[[], R]) -> R:
        """Run one statement. If it waits for a lock, other threads run meanwhile."""
        self.kernel.sleep(self.kernel.random.random() * TRIP)
        self.note_time()
        session.answer = answer = session.thread.submit(call)
        while not self._is_over(session):
            self.kernel.note(f"{session.process.name} waits for a lock")
            self.kernel.sleep(POLL)
            self._end_idle_transactions()
        session.answer, session.used_at = None, self.kernel.now
        for other in self._sessions:  # it may have held their lock
            if other.answer is not None:
                self._is_over(other)
        return answer.result()

    def _end_idle_transactions(self) -> None:
        """As the server does by its own clock: a process that is stopped must not keep its locks."""
        for session in self._sessions:
            is_idle = session.answer is None and session.raw.info.transaction_status == TransactionStatus.INTRANS
            if is_idle and self.kernel.now - session.used_at > IDLE_TIMEOUT:
                self.kernel.note(f"{session.process.name} was idle in a transaction")
                self._terminate(session)

    def _terminate(self, session: Session) -> None:
        self.schema.raw.execute("select pg_terminate_backend(%s, 5000)", [session.pid])

    def note_time(self) -> None:
        """The triggers record the real time. `moment_of` translates it."""
        self._moments.append((time.time(), self.kernel.now))

    def moment_of(self, recorded: float) -> float:
        return self._moments[max(bisect(self._moments, (recorded, math.inf)) - 1, 0)][1]

    def _is_over(self, session: Session) -> bool:
        """Wait until a statement has ended or waits for a lock; whether it has ended."""
        assert session.answer is not None
        for _ in range(int(ANSWER_WITHIN / USUAL)):
            if wait([session.answer], 0.0 if session.is_blocked else USUAL).done:
                session.is_blocked = False
                return True
            session.is_blocked = self.schema.raw.execute(BLOCKERS, [session.pid]).fetchone() is not None
            if session.is_blocked:
                return False
        raise TimeoutError("a statement does not end, and waits for no lock")

    def can_be_late(self, fate: str) -> bool:
        return True

    def forget(self, process: Process) -> None:
        """The process is dead: the server ends its sessions."""
        for session in [one for one in self._sessions if one.process is process]:
            self._end(session)

    def end_sessions(self) -> None:
        for session in list(self._sessions):
            self._end(session)

    def close(self) -> None:
        self.end_sessions()
        super().close()

    def _end(self, session: Session) -> None:
        self._terminate(session)
        self._drop(session)

    def _drop(self, session: Session) -> None:
        if session in self._sessions:
            self._sessions.remove(session)
            session.close()

    def select(self, query: str) -> list[Any]:
        return self.schema.raw.execute(query.replace("relet_", f"{self.schema.name}.")).fetchall()


class LockstepConnection:
    """The connection of a flow, whose statements take turns with those of other threads."""

    def __init__(self, database: LockstepDatabase, session: Session, connection: OwnConnection) -> None:
        self._database, self._session, self._connection = database, session, connection

    def begin(self, *text: str) -> None:
        self._database.statement(self._session, lambda: self._connection.begin(*text))

    def execute(self, query: Query) -> list[Row]:
        return self._database.statement(self._session, lambda: self._connection.execute(query))

    def commit(self) -> None:
        if self._connection._open:
            self._database.statement(self._session, self._connection.commit)


class LockstepStore(SimStore):
    dialect: Dialect = "postgres"
    skips_locked = True
    _database: LockstepDatabase

    def _run(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        database = self._database
        with database.session(self._process) as session:
            own = database.real._own(session.raw, traits.seconds or STATEMENT_SECONDS, failures)
            connection = LockstepConnection(database, session, own)
            try:
                if traits.snapshot:
                    connection.begin(BEGIN_SNAPSHOT)
                result = drive(make(), connection)
                connection.commit()
            except psycopg.Error as error:
                own.roll_back()
                raise database.real._failure(error, session.raw, own) from error
            except GreenletExit:
                raise
            except BaseException:
                own.roll_back()
                raise
            return result

    @contextmanager
    def begin(self) -> Iterator[StoreTransaction]:
        self._database.note_time()
        try:
            with super().begin() as transaction:
                yield transaction
        except psycopg.Error as error:
            raise StoreUnavailable(str(error)) from error

    def prepare_to_finish(self, job_id: str) -> None:
        self._database.real.prepare_to_finish(job_id)

    def drop_old(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> list[str]:
        return []


class _NoWatchdog:
    """Deadlines by the real clock, which has no meaning here."""

    def arm(self, *_: object) -> None: ...

    def disarm(self, *_: object) -> None: ...

    @contextmanager
    def limit(self, *_: object) -> Iterator[None]:
        yield


@contextmanager
def without_watchdog() -> Iterator[None]:
    from relet._store import postgres, postgres_pool

    modules = [one for one in (deadlines, postgres, postgres_pool) if hasattr(one, "watchdog")]
    real = deadlines.watchdog
    for module in modules:
        module.watchdog = _NoWatchdog()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            with suppress(AttributeError):
                module.watchdog = real  # type: ignore[attr-defined]
