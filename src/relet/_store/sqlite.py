"""Jobs in a SQLite file: one writer connection per process, group commit, reader connections, and a listener.

A transaction that writes begins with BEGIN IMMEDIATE: it either has the write lock or waits for it, and never learns
halfway through that another connection has written meanwhile. With `synchronous=FULL` a commit costs a sync of the
disk, so threads that write at the same time share one commit. A thread that finds the writer free runs its own flow and
no other flow: an exception of a signal handler is then raised in the thread that it was meant for, and undoes only the
work of that thread. Other threads queue their flows. A thread of the store, which no signal handler can interrupt, runs
all queued flows in one transaction, each in a savepoint.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import chain, repeat
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from .._core import validate
from .._system import SYSTEM
from ..errors import RowRejected, SchemaMismatch, StoreBusy, StoreError, StoreRefused, StoreUnavailable
from . import migrate, tenants, time_limit
from .interrupts import leave, mover, start, take_into
from .notify import Notifier
from .notify_sqlite import SQLiteListener, fork_lock
from .pool import LoopSemaphore, Pool, abandoned
from .query import Clock, Flow, Notify, Query, Row, Traits, as_json, render, texts, values
from .retry import HANDLER_SECONDS, Transient
from .runner import drive
from .sqlite_library import has_wal_reset_bug, how_to_upgrade, is_shared
from .store import ENDED, AsyncStoreTransaction, Store, StoreTransaction

R = TypeVar("R")

log = logging.getLogger("relet.store")

OLDEST = (3, 35, 0)  # RETURNING
NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|ncpfs|vboxsf|prl_fs|fuse\.(sshfs|glusterfs|rclone|s3fs)"
)
BUSY_FOR = 30.0
CLOSE_WITHIN = 1.0
LINGER = 1.0  # seconds that the writer thread waits for another flow before it ends
A_MOMENT = 0.0005

#: Errors that a retry would meet again: those of a value, and those of the permission to write.
_ROW = ("SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_RANGE")
_ACCESS = ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")

_warned = False


class _Connection(sqlite3.Connection):
    """Closes itself when it is garbage: Python warns of others from 3.13 on, also of those of a forgotten app."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # the file could not be opened
            self.close()


class SQLiteStore(Store):
    """Jobs in one file; or, for tests, in memory, which only the threads of one process share."""

    dialect = "sqlite"
    skips_locked = False
    is_file = True
    prune_at_once = 100  # few: the file has a single write lock

    def __init__(
        self,
        path: str | None,
        *,
        schema: str = "relet",
        synchronous: str = "FULL",
        busy_for: float = BUSY_FOR,
    ) -> None:
        self.quoted = validate.schema(schema)  # the prefix of Relet's tables: the file may hold other tables
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreError(f"SQLite 3.35 or newer is needed; this Python has {sqlite3.sqlite_version}: upgrade it")
        self.path = None if path is None else os.path.abspath(path)
        self.where = f"sqlite:///{self.path or ':memory:'}"
        super().__init__(Notifier(self).of(schema))
        self._memory = f"file:/relet-{os.getpid()}-{id(self)}?vfs=memdb" if path is None else None
        self._synchronous = synchronous
        self._busy_for = busy_for
        self._readers = Pool(self._connect, lambda c: not c.in_transaction, limit=16)
        self._handler_pool = Pool(
            self._connect_at_once, lambda c: not c.in_transaction, limit=100, timeout=HANDLER_SECONDS
        )
        self._async_writer = LoopSemaphore(1, HANDLER_SECONDS)
        self._start()

    def __repr__(self) -> str:
        return f"SQLiteStore({self.where!r})"

    def _start(self) -> None:
        self._writer: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._waiting: SimpleQueue[_QueuedFlow[Any]] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None  # runs queued flows
        self._collecting = False
        self._pid = os.getpid()

    def run_once(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        """Run a read-only flow on a reader connection, any other flow on the writer connection."""
        self._notice_fork()
        if not self._checked:
            self.ready()
        run = partial(self._drive, make, SYSTEM.monotonic(), time_limit.limit() if traits.read_only else None)
        if not traits.read_only or self._memory:
            return self._write(run)
        return self._read(partial(_in_snapshot, run) if traits.snapshot else run)

    @contextmanager
    def begin(self) -> Iterator[StoreTransaction]:
        """A transaction on a separate connection: all other writes wait until it ends."""
        self._notice_fork()
        self.ready()
        writing, acquired = self._writing, list[bool]()
        try:
            take_into(acquired, partial(writing.acquire, timeout=HANDLER_SECONDS))
            if True not in acquired:
                raise self._lock_timeout(HANDLER_SECONDS)
            with self._handler_pool.connection() as raw:
                try:
                    with self._commit_at_end(raw) as check:
                        for pause in self._begin_retries(raw, HANDLER_SECONDS):
                            SYSTEM.sleep(pause)
                        yield StoreTransaction(raw, SQLiteAdapter(raw, self.quoted, self.clock), check)
                finally:
                    if raw.in_transaction:
                        raw.execute("rollback")
        finally:
            if True in acquired:
                writing.release()

    @asynccontextmanager
    async def abegin(self) -> AsyncIterator[AsyncStoreTransaction]:
        """Async version of `begin`: nothing in it blocks except the commit."""
        self._notice_fork()
        await self.aready()
        async with self._async_writer.acquired():  # one writer: other tasks wait without blocking the loop
            with self._handler_pool.connection() as raw:
                writing, acquired = self._writing, list[bool]()
                try:
                    await self._begin_on_loop(raw, writing, acquired)
                    with self._commit_at_end(raw) as check:
                        yield AsyncStoreTransaction(raw, AsyncSQLiteAdapter(raw, self.quoted, self.clock), check)
                finally:
                    try:
                        if raw.in_transaction:
                            raw.execute("rollback")
                    finally:
                        if acquired:
                            writing.release()

    def notify(self, notifications: list[Notify]) -> None:
        """Nothing to do: other processes poll the file."""

    @property
    def sends_notifications(self) -> bool:
        """True: a change of the file is one."""
        return True

    def listen(self) -> SQLiteListener:
        """A listener that polls the file."""
        with fork_lock:
            raw = None if self._memory else self._connect()
        return SQLiteListener(raw)

    def check(self) -> None:
        """Create the schema in a new file. Raise SchemaMismatch if this release does not work with an existing one."""
        self._refuse_network()
        self._exclusively(self._check_exclusively)
        self._warn_of_wal_reset()

    def _check_exclusively(self) -> None:
        found = migrate.sqlite_applied(self._open_writer(), self.quoted)
        if found.version == 0:
            self._in_transaction(self.migrate_on)
        else:
            migrate.check(found, self.where, "sqlite")

    def _applied(self) -> migrate.Applied:
        return self._exclusively(lambda: migrate.sqlite_applied(self._open_writer(), self.quoted))

    def _tenants(self) -> list[str]:
        return [] if self.path is None else tenants.beside(self.path, self.quoted)

    def migrate(self) -> list[int]:
        """Bring the file up to date. Several processes may do so at once. Returns the versions applied."""
        self._notice_fork()
        self._refuse_network()
        return super().migrate()

    def _migrate(self) -> list[int]:
        return self._exclusively(lambda: self._in_transaction(self.migrate_on))

    def migrate_on(self, connection: sqlite3.Connection) -> list[int]:
        """Bring the file up to date in the open transaction of this connection."""
        return migrate.migrate_sqlite(connection, self.quoted, self.where)

    def copy_into(self, path: str) -> None:
        """Write all that is committed now to a new or empty file. Programs that use this file need not wait."""
        self._notice_fork()
        self.ready()
        self._read(lambda connection: connection.execute("vacuum into ?", [path]))

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._notice_fork()
        super().close()
        self._readers.close()
        self._handler_pool.close()
        with suppress(_WriterBusy):  # a handler may keep a transaction open for ever
            self._exclusively(self._close_writer, CLOSE_WITHIN)

    def state_of_file(self) -> object:
        """Times and sizes of the file and of its log, which a commit changes."""
        return None if self.path is None else (_state_of(self.path), _state_of(f"{self.path}-wal"))

    def close_if_unused(self) -> None:
        """Close the connections, unless something in this process waits for a change of the file."""
        if not self.notifier.subscriptions:
            self.close()

    def _close_writer(self) -> None:
        if self._writer is not None and not self._memory:  # else all jobs would be gone
            writer, self._writer = self._writer, None
            writer.close()

    def _notice_fork(self) -> None:
        """Start anew in a forked process.

        The parent's connection must be neither used nor closed there, and the state of its lock is not reliable.
        """
        if self._pid != os.getpid():
            abandoned.append(self._writer)
            self._start()

    def _drive(
        self, make: Callable[[], Flow[R]], since: float, until: float | None, connection: sqlite3.Connection
    ) -> tuple[R, list[Notify]]:
        waited = SYSTEM.monotonic() - since if self.clock is None else 0.0
        adapter = SQLiteAdapter(connection, self.quoted, self.clock, waited)
        if until is None:
            return drive(make(), adapter)
        with time_limit.ended_at(connection, until):
            return drive(make(), adapter)

    def _read(self, run: Callable[[sqlite3.Connection], R]) -> R:
        block = self._readers.connection()
        try:
            with block as connection:
                return run(connection)
        except sqlite3.Error as error:
            raise self._meaning(error) from error
        finally:
            leave(block)

    def _write(self, run: Callable[[sqlite3.Connection], R]) -> R:
        """Run the flow in this thread if the writer is free; else queue it for the writer thread."""
        if not self._collecting and self._waiting.empty():
            with suppress(_WriterBusy):
                return self._exclusively(partial(self._in_transaction, run), 0)
        queued = _QueuedFlow(run)
        try:
            self._waiting.put(queued)
            if self._has_thread():
                if queued.wait_until_done(self._busy_for):
                    return queued.result()
                if queued.take_ticket():
                    raise Transient(self._lock_timeout(self._busy_for), may_be_committed=False)
            elif queued.take_ticket():
                return self._write_without_thread(run)
            queued.wait_until_done()  # the writer thread has taken the ticket and runs the flow now
            return queued.result()
        except BaseException:
            queued.take_ticket()  # so that it does not start; a flow that has started runs to its end without us
            raise

    def _write_without_thread(self, run: Callable[[sqlite3.Connection], R]) -> R:
        try:
            return self._exclusively(partial(self._in_transaction, run), self._busy_for)
        except _WriterBusy:
            raise Transient(self._lock_timeout(self._busy_for), may_be_committed=False) from None

    def _has_thread(self) -> bool:
        """Make sure that the writer thread runs. False: no thread can be started."""
        with self._starting:
            if self._thread is None:
                thread = SYSTEM.thread("writer", self._write_for_others)
                try:
                    start(thread)
                except RuntimeError:
                    return False
                self._thread = thread
        return True

    def _write_for_others(self) -> None:
        """Run queued flows until none has been queued for a while.

        This is the writer thread. Python never runs a signal handler in it.
        """
        while True:
            try:
                first = self._waiting.get(timeout=LINGER)
            except Empty:
                with self._starting:
                    if self._waiting.empty():
                        self._thread = None
                        return
                continue
            self._collecting = True  # no other thread may write before the queued flows
            batch = [first]
            try:
                self._exclusively(partial(self._write_together, batch))
            except BaseException as error:
                for queued in batch:
                    queued.fail(error)
            finally:
                self._collecting = False
            for queued in batch:
                queued.mark_done()

    def _write_together(self, batch: list[_QueuedFlow[Any]]) -> None:
        """Add all queued flows to the batch and run it in one transaction, without flows whose callers gave up."""
        with suppress(Empty):
            while True:
                batch.append(self._waiting.get_nowait())
        batch[:] = [queued for queued in batch if queued.take_ticket()]
        if batch:
            self._in_transaction(partial(_run_all, batch, self._meaning))

    def _exclusively(self, work: Callable[[], R], timeout: float = -1) -> R:
        """Call `work` while no other thread of this process writes.

        A transaction that an interrupt has left open is rolled back before another thread writes.
        """
        writing, acquired = self._writing, list[bool]()
        try:
            take_into(acquired, partial(writing.acquire, timeout=timeout))
            if True not in acquired:
                raise _WriterBusy
            return work()
        finally:
            if True in acquired:
                try:
                    if self._writer is not None and self._writer.in_transaction:
                        self._writer.execute("rollback")
                finally:
                    writing.release()

    def _lock_timeout(self, seconds: float) -> StoreBusy:
        return StoreBusy(f"{self.where}: another transaction has held the write lock for {seconds:g} s; try again")

    def _in_transaction(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Begin, work, commit. On any exception, roll back."""
        connection = self._writer or self._open_writer()
        try:
            try:
                for pause in self._begin_retries(connection, self._busy_for):
                    SYSTEM.sleep(pause)
                result = work(connection)
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise
        except sqlite3.Error as error:
            raise self._meaning(error) from error
        return result

    @contextmanager
    def _commit_at_end(self, raw: sqlite3.Connection) -> Iterator[Callable[[], None]]:
        """Around a handler's transaction: commit at the end of the block.

        Yields a function that raises StoreError if the handler has ended the transaction itself.
        """

        def check() -> None:
            if not raw.in_transaction:
                raise StoreError(ENDED)

        try:
            yield check
            check()
            raw.execute("commit")
        except sqlite3.OperationalError as error:
            meaning = self._meaning(error) if is_busy(error) else error
            raise (meaning.error if isinstance(meaning, Transient) else meaning) from None

    async def _begin_on_loop(
        self, connection: sqlite3.Connection, writing: threading.Lock, acquired: list[bool]
    ) -> None:
        """Take the lock of this process and the write lock of the file, both or neither.

        Another task of the loop may wait for either lock: this one must not keep one while it waits for the other.
        """
        import asyncio

        give_up = SYSTEM.monotonic() + HANDLER_SECONDS
        while True:
            trying: list[bool] = []
            pass_on = mover(trying, acquired.append)
            try:
                take_into(trying, partial(writing.acquire, False))
                if True in trying:
                    connection.execute("begin immediate")
                    next(pass_on)
                    return
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
            finally:
                if True in trying:
                    writing.release()
            if SYSTEM.monotonic() > give_up:
                raise self._lock_timeout(HANDLER_SECONDS)
            await asyncio.sleep(A_MOMENT)

    def _begin_retries(self, connection: sqlite3.Connection, timeout: float) -> Iterator[float]:
        """Try to take the write lock. Yields how long to sleep before the next try.

        SQLite's own busy handler is not used: it gives no waiting connection a fair chance.
        """
        give_up = SYSTEM.monotonic() + timeout
        pause = 0.0005
        while True:
            try:
                connection.execute("begin immediate")
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or SYSTEM.monotonic() >= give_up:
                    raise
            yield SYSTEM.random() * pause
            pause = min(pause * 1.5, 0.02)

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = self._connect()
        return self._writer

    def _connect(self) -> sqlite3.Connection:
        database, uri = (self._memory, True) if self._memory else (str(self.path), False)
        connection = None
        try:
            connection = sqlite3.connect(
                database, uri=uri, isolation_level=None, check_same_thread=False, timeout=5.0, factory=_Connection
            )
            if not self._memory:
                connection.execute("pragma journal_mode = wal")
                connection.execute(f"pragma synchronous = {self._synchronous}")
            connection.execute("pragma busy_timeout = 50")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise self._meaning(error) from error
        return connection

    def _connect_at_once(self) -> sqlite3.Connection:
        """A connection on which SQLite itself does not wait for locks."""
        connection = self._connect()
        connection.execute("pragma busy_timeout = 0")
        return connection

    def _meaning(self, error: sqlite3.Error) -> Exception:
        """The exception to raise: Transient, unless a retry is known to fail in the same way."""
        message = f"{self.where}: {error}"
        name = getattr(error, "sqlite_errorname", None)
        if is_busy(error):
            return Transient(StoreBusy(f"{message}; another process holds the write lock"), may_be_committed=False)
        if name is None:  # an error of the Python module: a closed connection, a wrong parameter
            return StoreError(message)
        if name.startswith(_ROW):
            return RowRejected(message)
        if name.startswith(_ACCESS):
            return StoreRefused(f"{message}; nothing was stored: check the permissions of the file and its directory")
        if name.startswith("SQLITE_CANTOPEN"):
            return StoreRefused(f"{message}; does the directory exist, and may it be written?")
        if name.startswith("SQLITE_ERROR") and str(error).startswith(("no such table", "no such column")):
            return SchemaMismatch(f"{message}; run app.client.migrate()")
        if name.startswith(("SQLITE_ERROR", "SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return StoreError(message)
        if name.startswith("SQLITE_FULL"):
            return Transient(StoreUnavailable(f"{message}; nothing was stored"), may_be_committed=False)
        # I/O errors and all others. A transaction whose COMMIT failed may be in the file nevertheless.
        return Transient(StoreUnavailable(message), may_be_committed=name.startswith("SQLITE_IOERR"))

    def _refuse_network(self) -> None:
        if self.path and NETWORK.fullmatch(kind := file_system(self.path)):
            raise StoreRefused(
                f"{self.where} lies on a network file system ({kind}), where SQLite's locks do not hold: "
                "use a local disk, or PostgreSQL"
            )

    def _warn_of_wal_reset(self) -> None:
        global _warned
        if self.path and not _warned and has_wal_reset_bug() and is_shared(self.path):
            _warned = True
            log.warning(
                "Another process uses %s, and SQLite %s can damage a file that two processes write at the same moment "
                "(the WAL-reset bug, rare, fixed in 3.51.3). Run one process only, use PostgreSQL, or %s.",
                self.where,
                sqlite3.sqlite_version,
                how_to_upgrade(),
            )


class _WriterBusy(Exception):
    """Another thread of this process writes."""


def _state_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


class _QueuedFlow(Generic[R]):
    """A flow that waits to be run by the writer thread, and then its result or exception."""

    def __init__(self, run: Callable[[sqlite3.Connection], R]) -> None:
        self._run = run
        self._ticket: list[None] = [None]  # the thread that takes it decides whether the flow is run
        self._done = threading.Lock()
        self._done.acquire()
        self._answer: list[R] = []
        self._error: BaseException | None = None

    def take_ticket(self) -> bool:
        """True for one caller only: the thread that runs the flow, or the thread that no longer wants it."""
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True

    def wait_until_done(self, timeout: float = -1) -> bool:
        """Wait until the flow has been run. False: the timeout has passed."""
        return self._done.acquire(timeout=timeout)

    def run_in_savepoint(self, connection: sqlite3.Connection, meaning: Callable[[sqlite3.Error], Exception]) -> None:
        """Run the flow in a transaction that it shares with others. Its exception does not affect the others."""
        connection.execute("savepoint flow")
        try:
            self._answer.append(self._run(connection))
        except BaseException as error:
            if not connection.in_transaction:
                raise  # SQLite has rolled back the whole transaction
            connection.execute("rollback to flow")
            self.fail(meaning(error) if isinstance(error, sqlite3.Error) else error)
        connection.execute("release flow")

    def fail(self, error: BaseException) -> None:
        """Record the exception; the first one is kept."""
        self._error = self._error or error

    def mark_done(self) -> None:
        """Wake the waiting thread: the flow was run, and committed or rolled back."""
        self._done.release()

    def result(self) -> R:
        """Return the flow's result, or raise its exception."""
        if self._error is not None:
            raise self._error
        return self._answer[0]


def _run_all(
    batch: list[_QueuedFlow[Any]], meaning: Callable[[sqlite3.Error], Exception], connection: sqlite3.Connection
) -> None:
    for queued in batch:
        queued.run_in_savepoint(connection, meaning)


def _in_snapshot(run: Callable[[sqlite3.Connection], R], connection: sqlite3.Connection) -> R:
    """Read in one transaction: all statements see the state at the first of them."""
    try:
        connection.execute("begin")
        return run(connection)
    finally:
        connection.rollback()


class SQLiteAdapter:
    """A connection that has an open transaction, or that only reads."""

    def __init__(self, raw: sqlite3.Connection, schema: str, clock: Clock | None, waited: float | None = None) -> None:
        self._raw = raw
        self._schema = schema
        self._clock = clock
        self._waited = waited  # seconds, for the transaction

    def begin(self) -> float | None:
        """Do nothing: the transaction is open. Returns how many seconds the caller waited for it."""
        return self._waited

    def execute(self, query: Query) -> list[Row]:
        """Run a script. Returns the rows of all its statements.

        Lists are bound as JSON, except in a statement that fills a temporary table: it runs once for each list item.
        """
        answer: list[Row] = []
        params = query.params if self._clock is None else values(query, self._clock)
        for text in texts(query.name, "sqlite", "named", self._schema, self._clock is not None):
            if text.sql.startswith(FILLS):
                self._fill(text.sql, [params[name] for name in text.names])
                continue
            bound = {name: as_json(value) if type(value := params[name]) is list else value for name in text.names}
            # In one call into C: a statement that an interrupt leaves half read would keep its snapshot, and would keep
            # the writer busy.
            answer.extend(chain.from_iterable(map(self._raw.execute, (text.sql,), (bound,))))
        return answer

    def _fill(self, sql: str, columns: list[list[Any] | None]) -> None:
        rows = zip(*(repeat(None) if column is None else column for column in columns), strict=False)
        self._raw.executemany(render(sql, "qmark").sql, rows)


FILLS = "insert into temp."


class AsyncSQLiteAdapter(SQLiteAdapter):
    """The adapter for async code: SQLite does not block in a transaction that has the write lock."""

    async def begin(self) -> None:  # type: ignore[override]
        """Do nothing: the transaction is open."""

    async def execute(self, query: Query) -> list[Row]:  # type: ignore[override]
        """Run a script."""
        return super().execute(query)


def is_busy(error: BaseException) -> bool:
    """True if another connection has the lock."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def file_system(path: str, mounts: str | os.PathLike[str] = "/proc/self/mountinfo") -> str:
    """The type of the file system of a path, or "unknown" if the operating system does not tell (Linux does)."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return "unknown"
    real, best, kind = os.path.realpath(path), "", "unknown"
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), before.split()[4])
        inside = mount == "/" or real == mount or real.startswith(mount + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, after.split()[0]
    return kind
