"""A database that all simulated processes share: SQLite in memory. Faults strike between a process and the database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

from relet._core.job import Lease, Succeeded
from relet._store.flows import settle
from relet._store.fragments import Dialect
from relet._store.query import Conflict, Flow, Notify, Traits
from relet._store.retry import Transient
from relet._store.sqlite import SQLiteStore
from relet._store.store import AsyncStoreTransaction, Store, StoreTransaction
from relet._torture.record import sqlite_statements
from relet.errors import RowRejected, StoreError, StoreUnavailable
from tests.simulation.kernel import Kernel, Process
from tests.simulation.system import without_sweeper

R = TypeVar("R")
LATE = 0.8  # seconds by which a transaction is late at most
SETTLES = (settle.settle, settle.settle_succeeded)
TRIP = 0.002  # seconds that a statement and its answer take at most


class Database:
    def __init__(self, kernel: Kernel, real: Store) -> None:
        self.kernel, self.real = kernel, real
        self.server = Process("server", 2)
        self.is_down_until = 0.0
        self.notifications_lost_until = 0.0
        self.may_have_changed = True  # since the owner of the simulation last read it
        self.rejected: set[Lease] = set()  # whose successes it rejects for good
        self.subscriptions: list[tuple[Process, frozenset[str], Callable[[], None]]] = []

    def install(self) -> None:
        """Make missing tables, and triggers that record."""

    def store(self, process: Process, link: Link) -> SimStore:
        """The store as one process sees it."""
        return SimStore(self, process, link)

    def moment_of(self, recorded: float) -> float:
        """The virtual time of a time that a trigger has recorded."""
        return recorded

    def forget(self, process: Process) -> None:
        """The process is dead."""

    def can_be_late(self, fate: str) -> bool:
        """Whether a client can meet this: the server of a database in this process runs nothing late."""
        return fate != "late"

    def select(self, query: str) -> list[Any]:
        raise NotImplementedError

    def end_sessions(self) -> None:
        """The simulation is over."""

    def close(self) -> None:
        self.real.close()


class SQLiteDatabase(Database):
    """In memory. A transaction is one step, because SQLite has one writer."""

    real: SQLiteStore

    def __init__(self, kernel: Kernel) -> None:
        self._recording = _recording(os.getpid())
        super().__init__(kernel, self._recording.store)

    def install(self) -> None:
        self._recording.empty()
        self._recording.now = lambda: self.kernel.now

    def select(self, query: str) -> list[Any]:
        return self._recording.writer.execute(query).fetchall()

    def close(self) -> None:
        """The store stays open for the next simulation, and must not keep this one."""
        self.real.clock = None
        self._recording.now = float


class _Recording:
    """A store with triggers that record. All simulations of a process use it one after the other, because each new
    connection has to prepare a hundred statements."""

    def __init__(self) -> None:
        self.store = SQLiteStore(None)
        self.now: Callable[[], float] = float
        self.store.migrate()
        self.store._checked = True
        self.writer = self.store._open_writer()
        self._tables = [name for (name,) in self.writer.execute(TABLES)]
        self._first_rows = {name: self.writer.execute(f"select * from {name}").fetchall() for name in self._tables}
        for statement in sqlite_statements("relet_", "torture_now()"):
            self.writer.execute(statement)
        with self.store._handler_pool.connection() as raw:
            for connection in (self.writer, raw):
                connection.create_function("torture_now", 0, lambda: self.now())

    def empty(self) -> None:
        """Make every table as it was after the migrations. The triggers record the deletes: their table comes last."""
        self.writer.execute("begin")
        for table in (*self._tables, "relet_torture_ledger", "relet_torture_records", "sqlite_sequence"):
            self.writer.execute(f"delete from {table}")
        for table, rows in self._first_rows.items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                self.writer.executemany(f"insert into {table} values ({marks})", rows)
        self.writer.execute("commit")


TABLES = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"


@cache
def _recording(pid: int) -> _Recording:
    """That of a process. Its pools start no thread, which would close connections by the clock of the machine."""
    with without_sweeper():
        return _Recording()


class Link:
    """The connection of one process. `fates`: what happens to its next transactions, `fates_of_outcomes` to the next
    that settle; `cut_until`: none passes; `rejects`: for each of its next successes that the database rejects, whether
    it rejects it for good."""

    def __init__(self) -> None:
        self.fates: list[str] = []
        self.fates_of_outcomes: list[str] = []
        self.rejects: list[bool] = []
        self.cut_until = 0.0
        self.delay = 0.0


class SimNotifier:
    """Wakes subscribers of all processes, a little later, unless notifications are being lost."""

    def __init__(self, database: Database, process: Process) -> None:
        self._database, self._process = database, process
        self.is_heard = False  # all subscribers are notified

    @contextmanager
    def subscribe(self, *kinds: str, wake: Callable[[], None], key: int | None = None) -> Iterator[None]:
        one = (self._process, frozenset(kinds), wake)
        self._database.subscriptions.append(one)
        try:
            yield
        finally:
            self._database.subscriptions.remove(one)

    def publish(self, kinds: set[str]) -> None:
        kernel = self._database.kernel
        if self._database.notifications_lost_until > kernel.now:
            return
        for process, wanted, wake in self._database.subscriptions:
            if wanted & kinds and process.is_alive:
                wake()

    def close(self) -> None:
        return


class SimStore(Store):
    """The store as one process sees it."""

    dialect: Dialect = "sqlite"
    skips_locked = False
    prune_at_once = 100

    def __init__(self, database: Database, process: Process, link: Link) -> None:
        super().__init__(SimNotifier(database, process))  # type: ignore[arg-type]
        self._database, self._process, self._link = database, process, link
        self.quoted = database.real.quoted
        self.where = "simulated"
        self.clock = database.real.clock
        self._checked = True

    def run_once(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        flow = getattr(make, "func", None)
        fate = self._travel(settles=flow in SETTLES)
        if fate == "late":
            self._run_late(make, traits, failures)
        if flow in SETTLES:
            self._reject(flow, make.args[0])  # type: ignore[attr-defined]
        answer = self._run_and_note(make, traits, failures)
        self._return(fate)
        return answer

    def _reject(self, flow: object, outcomes: Sequence[Any]) -> None:
        """Raise an error if the database rejects one of these successes."""
        is_plain, rejected = flow is settle.settle_succeeded, self._database.rejected
        leases = outcomes if is_plain else [lease for lease, outcome in outcomes if isinstance(outcome, Succeeded)]
        if is_plain and self._link.rejects:
            if not self._link.rejects.pop(0):
                raise RowRejected("simulated: the database rejects it once")
            rejected.add(leases[0])
        if not rejected.isdisjoint(leases):
            raise RowRejected("simulated: the database rejects it")

    def _run_and_note(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        try:
            return self._run(make, traits, failures)
        finally:
            self._database.may_have_changed = True

    def _run(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        return self._database.real.run_once(make, traits, failures)

    def _run_late(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> None:
        """The client gives up waiting, and the server runs the transaction all the same, a little later."""
        database = self._database
        late = database.store(database.server, Link())

        def run() -> None:
            database.kernel.sleep(database.kernel.random.random() * LATE)
            with suppress(Transient, StoreError, Conflict):
                late._run_and_note(make, traits, failures)

        database.kernel.spawn(database.server, "late", run)
        database.kernel.sleep(database.kernel.random.random() * 0.05)
        raise Transient(StoreUnavailable("simulated: no answer in time"), may_be_committed=True)

    def _travel(self, settles: bool) -> str:
        """The way to the database. Returns the fate of the answer."""
        kernel, link = self._database.kernel, self._link
        kernel.sleep(kernel.random.random() * TRIP + link.delay)
        fates = link.fates_of_outcomes if settles and link.fates_of_outcomes else link.fates
        fate = fates.pop(0) if fates else ""
        if fate == "lose request" or max(self._database.is_down_until, link.cut_until) > kernel.now:
            kernel.sleep(kernel.random.random() * 0.05)
            raise Transient(StoreUnavailable("simulated: lost on the way"), may_be_committed=False)
        kernel.note(f"statement {self._process.name}")
        return fate

    def _return(self, fate: str) -> None:
        kernel = self._database.kernel
        kernel.sleep(kernel.random.random() * TRIP + self._link.delay)
        if fate == "lose answer" or max(self._database.is_down_until, self._link.cut_until) > kernel.now:
            raise Transient(StoreUnavailable("simulated: the answer is lost"), may_be_committed=True)

    @contextmanager
    def begin(self) -> Iterator[StoreTransaction]:
        """A transaction of a handler. No thread runs in between."""
        kernel = self._database.kernel
        kernel.sleep(kernel.random.random() * TRIP + self._link.delay)
        if max(self._database.is_down_until, self._link.cut_until) > kernel.now:
            raise StoreUnavailable("simulated: lost on the way")
        kernel.note(f"transaction {self._process.name}")
        self._database.may_have_changed = True
        with self._database.real.begin() as transaction:
            yield transaction

    def abegin(self) -> AbstractAsyncContextManager[AsyncStoreTransaction]:
        raise NotImplementedError

    def notify(self, notifications: list[Notify]) -> None:
        return

    def check(self) -> None:
        return

    def _migrate(self) -> list[int]:
        raise NotImplementedError

    def _applied(self) -> Any:
        raise NotImplementedError
