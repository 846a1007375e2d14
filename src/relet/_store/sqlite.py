"""Jobs in a SQLite file: one writer per process whose commits are shared, readers beside it, and a watch on the file.

A transaction that writes is begun IMMEDIATE: it either has the write lock or waits for it, and never finds out in the
middle that somebody else was quicker. With `synchronous=FULL` a commit costs a sync of the disk, so threads that write
at the same time share one. A thread that finds the writer free runs its own flow, and no other: an exception of a
signal handler is raised in the thread that it was meant for, and undoes only what that thread has done. The others
queue their flows, and a thread of ours, which no signal handler can interrupt, runs all of them, each in a savepoint.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import chain, repeat
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from .._core import validate
from .._system import SYSTEM
from ..errors import RowRejected, SchemaMismatch, StoreBusy, StoreError, StoreRefused, StoreUnavailable
from . import migrate, time_limit
from .interrupts import handing, leave, start, take_into
from .notify import Notifier
from .notify_sqlite import SQLiteListener, asking
from .pool import LoopSemaphore, Pool, abandoned
from .query import Clock, Flow, Notify, Query, Row, Traits, as_json, render, texts, values
from .retry import HANDLER_SECONDS, Transient
from .runner import drive
from .store import ENDED, AsyncStoreTransaction, Store, StoreTransaction

R = TypeVar("R")

log = logging.getLogger("relet.store")

OLDEST = (3, 35, 0)  # RETURNING
FIXED_WAL_RESET = (3, 51, 3)
NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|ncpfs|vboxsf|prl_fs|fuse\.(sshfs|glusterfs|rclone|s3fs)"
)
BUSY_FOR = 30.0
CLOSE_WITHIN = 1.0
LINGER = 1.0  # seconds that the thread which writes for others waits for more
A_MOMENT = 0.0005

#: Errors that come again: of the value, and of the permission to write.
_ROW = ("SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_RANGE")
_ACCESS = ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")

_warned = False


class SQLiteStore(Store):
    """Jobs in one file, or in memory for tests: there the threads of one process share them."""

    dialect = "sqlite"
    skips_locked = False
    prune_at_once = 100  # there is one lock for all

    def __init__(
        self,
        path: str | None,
        *,
        schema: str = "relet",
        synchronous: str = "FULL",
        busy_for: float = BUSY_FOR,
    ) -> None:
        self.quoted = validate.schema(schema)  # before the names of our tables: the file may hold others
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreError(f"SQLite 3.35 or newer is needed, this Python has {sqlite3.sqlite_version}")
        self.path = None if path is None else os.path.abspath(path)
        self.where = f"sqlite:///{self.path or ':memory:'}"
        super().__init__(Notifier(self).of(schema))
        self._memory = f"file:/relet-{os.getpid()}-{id(self)}?vfs=memdb" if path is None else None
        self._synchronous = synchronous
        self._busy_for = busy_for
        self._readers = Pool(self._connect, lambda c: True, most=16)
        self._openers = Pool(self._connect_at_once, lambda c: not c.in_transaction, most=100, patience=HANDLER_SECONDS)
        self._async_writer = LoopSemaphore(1, HANDLER_SECONDS)
        self._start()

    def __repr__(self) -> str:
        return f"SQLiteStore({self.where!r})"

    def _start(self) -> None:
        self._writer: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._waiting: SimpleQueue[_QueuedFlow[Any]] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None  # writes for those who wait
        self._collecting = False
        self._pid = os.getpid()

    def run_once(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        """A flow that only reads has a connection for reading, any other one the writer's."""
        self._notice_fork()
        self.ready()
        run = partial(self._drive, make, SYSTEM.monotonic(), time_limit.limit() if traits.read_only else None)
        return self._read(run) if traits.read_only and not self._memory else self._write(run)

    @contextmanager
    def begin(self) -> Iterator[StoreTransaction]:
        """A transaction on a connection of its own: whoever else writes waits until it is over."""
        self._notice_fork()
        self.ready()
        writing, held = self._writing, list[bool]()
        try:
            take_into(held, partial(writing.acquire, timeout=HANDLER_SECONDS))
            if True not in held:
                raise self._held(HANDLER_SECONDS)
            with self._openers.connection() as raw:
                try:
                    with self._ended(raw) as check:
                        for pause in self._begin_tries(raw, HANDLER_SECONDS):
                            SYSTEM.sleep(pause)
                        yield StoreTransaction(raw, SQLiteAdapter(raw, self.quoted, self.clock), check)
                finally:
                    if raw.in_transaction:
                        raw.execute("rollback")
        finally:
            if True in held:
                writing.release()

    @asynccontextmanager
    async def abegin(self) -> AsyncIterator[AsyncStoreTransaction]:
        """The same for async code: nothing in here blocks but the commit."""
        self._notice_fork()
        await self.aready()
        async with self._async_writer.acquired():  # there is one writer: the others wait where they are in nobody's way
            with self._openers.connection() as raw:
                writing, held = self._writing, list[bool]()
                try:
                    await self._begin_on_loop(raw, writing, held)
                    with self._ended(raw) as check:
                        yield AsyncStoreTransaction(raw, AsyncSQLiteAdapter(raw, self.quoted, self.clock), check)
                finally:
                    try:
                        if raw.in_transaction:
                            raw.execute("rollback")
                    finally:
                        if held:
                            writing.release()

    def notify(self, notifications: list[Notify]) -> None:
        """Other processes watch the file."""

    def listen(self) -> SQLiteListener:
        """A watch on the file."""
        with asking:
            raw = None if self._memory else self._connect()
        return SQLiteListener(raw)

    def check(self) -> None:
        """Make the schema in a new file; refuse one that this release does not work with."""
        self._refuse_network()
        self._warn_of_wal_reset()
        self._alone(self._check_alone)

    def _check_alone(self) -> None:
        found = migrate.sqlite_applied(self._open_writer(), self.quoted)
        if found.version == 0:
            self._in_transaction(self.migrate_on)
        else:
            migrate.check(found, self.where, "sqlite")

    def _applied(self) -> migrate.Applied:
        return self._alone(lambda: migrate.sqlite_applied(self._open_writer(), self.quoted))

    def migrate(self) -> list[int]:
        """Bring the file up to date. Safe when many do it at once. Returns the versions applied."""
        self._notice_fork()
        self._refuse_network()
        return super().migrate()

    def _migrate(self) -> list[int]:
        return self._alone(lambda: self._in_transaction(self.migrate_on))

    def migrate_on(self, connection: sqlite3.Connection) -> list[int]:
        """Bring the file up to date in a transaction that is open."""
        return migrate.migrate_sqlite(connection, self.quoted, self.where)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._notice_fork()
        super().close()
        self._readers.close()
        self._openers.close()
        with suppress(_Held):  # a handler may have a transaction open, for ever
            self._alone(self._close_writer, CLOSE_WITHIN)

    def _close_writer(self) -> None:
        if self._writer is not None and not self._memory:
            writer, self._writer = self._writer, None
            writer.close()

    def _notice_fork(self) -> None:
        """A connection must not be used, nor closed, on the other side of a fork; nor can its lock be trusted there."""
        if self._pid != os.getpid():
            abandoned.append(self._writer)
            self._start()

    def _drive(
        self, make: Callable[[], Flow[R]], since: float, until: float | None, connection: sqlite3.Connection
    ) -> tuple[R, list[Notify]]:
        with time_limit.ended_at(connection, until):
            waited = SYSTEM.monotonic() - since if self.clock is None else 0.0
            return drive(make(), SQLiteAdapter(connection, self.quoted, self.clock, waited))

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
        """Write here if the writer is free, else have it written along with what others want to write."""
        if not self._collecting and self._waiting.empty():
            with suppress(_Held):
                return self._alone(partial(self._in_transaction, run), 0)
        turn = _QueuedFlow(run)
        try:
            self._waiting.put(turn)
            if self._has_thread():
                if turn.wait(self._busy_for):
                    return turn.result()
                if turn.take():
                    raise Transient(self._held(self._busy_for), may_be_committed=False)
            elif turn.take():
                return self._write_without_thread(run)
            turn.wait()  # it is run just now
            return turn.result()
        except BaseException:
            turn.take()  # what has begun goes on without us
            raise

    def _write_without_thread(self, run: Callable[[sqlite3.Connection], R]) -> R:
        try:
            return self._alone(partial(self._in_transaction, run), self._busy_for)
        except _Held:
            raise Transient(self._held(self._busy_for), may_be_committed=False) from None

    def _has_thread(self) -> bool:
        """See to it that there is a thread which writes for those who wait. False: none can be started."""
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
        """Write what waits, until nothing has waited for a while. No signal handler is ever run in this thread."""
        while True:
            try:
                first = self._waiting.get(timeout=LINGER)
            except Empty:
                with self._starting:
                    if self._waiting.empty():
                        self._thread = None
                        return
                continue
            self._collecting = True  # nobody shall get in before those who wait
            turns = [first]
            try:
                self._alone(partial(self._write_together, turns))
            except BaseException as error:
                for turn in turns:
                    turn.fail(error)
            finally:
                self._collecting = False
            for turn in turns:
                turn.end()

    def _write_together(self, turns: list[_QueuedFlow[Any]]) -> None:
        """Run the flows of all who wait, in one transaction. Those who gave up waiting are left out."""
        with suppress(Empty):
            while True:
                turns.append(self._waiting.get_nowait())
        turns[:] = [turn for turn in turns if turn.take()]
        if turns:
            self._in_transaction(partial(_run_all, turns, self._meaning))

    def _alone(self, work: Callable[[], R], patience: float = -1) -> R:
        """Call while nobody else in this process writes. What an interrupt left open is undone before others write."""
        writing, held = self._writing, list[bool]()
        try:
            take_into(held, partial(writing.acquire, timeout=patience))
            if True not in held:
                raise _Held
            return work()
        finally:
            if True in held:
                try:
                    if self._writer is not None and self._writer.in_transaction:
                        self._writer.execute("rollback")
                finally:
                    writing.release()

    def _held(self, seconds: float) -> StoreBusy:
        return StoreBusy(f"{self.where}: another transaction has held the write lock for {seconds:g} s")

    def _in_transaction(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Begin, work, commit. Whatever fails is undone."""
        connection = self._open_writer()
        try:
            try:
                self._begin(connection)
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
    def _ended(self, raw: sqlite3.Connection) -> Iterator[Callable[[], None]]:
        """Around what others do in a transaction: committed if nothing is raised. Yields what raises if it is over."""

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

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Take the write lock."""
        for pause in self._begin_tries(connection, self._busy_for):
            SYSTEM.sleep(pause)

    async def _begin_on_loop(self, connection: sqlite3.Connection, writing: threading.Lock, held: list[bool]) -> None:
        """Take the turn and the write lock, both or neither: what else runs on the loop may wait for either."""
        import asyncio

        give_up = SYSTEM.monotonic() + HANDLER_SECONDS
        while True:
            mine: list[bool] = []
            hand_over = handing(mine, held.append)
            try:
                take_into(mine, partial(writing.acquire, False))
                if True in mine:
                    connection.execute("begin immediate")
                    next(hand_over)
                    return
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
            finally:
                if True in mine:
                    writing.release()
            if SYSTEM.monotonic() > give_up:
                raise self._held(HANDLER_SECONDS)
            await asyncio.sleep(A_MOMENT)

    def _begin_tries(self, connection: sqlite3.Connection, patience: float) -> Iterator[float]:
        """Try to take the write lock; how long to sleep before the next try. SQLite's own waiting is fair to nobody."""
        give_up = SYSTEM.monotonic() + patience
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
            if self._memory:  # not closed by `close`, which would empty it, but with the store
                weakref.finalize(self, self._writer.close)
        return self._writer

    def _connect(self) -> sqlite3.Connection:
        place, uri = (self._memory, True) if self._memory else (str(self.path), False)
        connection = None
        try:
            connection = sqlite3.connect(place, uri=uri, isolation_level=None, check_same_thread=False, timeout=5.0)
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
        """A connection that does not wait for locks by itself."""
        connection = self._connect()
        connection.execute("pragma busy_timeout = 0")
        return connection

    def _meaning(self, error: sqlite3.Error) -> Exception:
        """Whether trying again makes sense: it does, unless the error is known to come again."""
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
        # I/O errors and all else. What fails at COMMIT may be in the file all the same.
        return Transient(StoreUnavailable(message), may_be_committed=name.startswith("SQLITE_IOERR"))

    def _refuse_network(self) -> None:
        if self.path and NETWORK.fullmatch(kind := file_system(self.path)):
            raise StoreRefused(
                f"{self.where} lies on a network file system ({kind}), where SQLite's locks do not hold: "
                "use a local disk, or PostgreSQL"
            )

    def _warn_of_wal_reset(self) -> None:
        global _warned
        if self.path and sqlite3.sqlite_version_info < FIXED_WAL_RESET and not _warned:
            _warned = True
            log.warning(
                "SQLite %s can damage a file that several processes write at the same moment "
                "(the WAL-reset bug, rare, fixed in 3.51.3): upgrade before you run more than one on %s",
                sqlite3.sqlite_version,
                self.where,
            )


class _Held(Exception):
    """Somebody else in this process writes."""


class _QueuedFlow(Generic[R]):
    """A flow that waits to be run by another thread, and what it returned or raised."""

    def __init__(self, run: Callable[[sqlite3.Connection], R]) -> None:
        self._run = run
        self._ticket: list[None] = [None]  # whoever has it decides: to run the flow, or not
        self._over = threading.Lock()
        self._over.acquire()
        self._answer: list[R] = []
        self._error: BaseException | None = None

    def take(self) -> bool:
        """True for one only: the thread that runs it, or the one that does not want it any more."""
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True

    def wait(self, seconds: float = -1) -> bool:
        """Until it has been run. False: the time is up."""
        return self._over.acquire(timeout=seconds)

    def run_in_savepoint(self, connection: sqlite3.Connection, meaning: Callable[[sqlite3.Error], Exception]) -> None:
        """Run the flow in a transaction that it shares with others: what it raises is its own."""
        connection.execute("savepoint turn")
        try:
            self._answer.append(self._run(connection))
        except BaseException as error:
            if not connection.in_transaction:
                raise  # SQLite has rolled back all of it
            connection.execute("rollback to turn")
            self.fail(meaning(error) if isinstance(error, sqlite3.Error) else error)
        connection.execute("release turn")

    def fail(self, error: BaseException) -> None:
        """Note what went wrong; the first reason stays."""
        self._error = self._error or error

    def end(self) -> None:
        """It was run, and committed or undone."""
        self._over.release()

    def result(self) -> R:
        """What the flow returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._answer[0]


def _run_all(
    turns: list[_QueuedFlow[Any]], meaning: Callable[[sqlite3.Error], Exception], connection: sqlite3.Connection
) -> None:
    for turn in turns:
        turn.run_in_savepoint(connection, meaning)


class SQLiteAdapter:
    """A connection on which a transaction is open, or which only looks."""

    def __init__(self, raw: sqlite3.Connection, schema: str, clock: Clock | None, waited: float | None = None) -> None:
        self._raw = raw
        self._schema = schema
        self._clock = clock
        self._waited = waited  # seconds, for the transaction

    def begin(self) -> float | None:
        """It is open already."""
        return self._waited

    def execute(self, query: Query) -> list[Row]:
        """Run a script; the answer is what all of its statements return.

        Lists are bound as JSON, but in what fills a table of the connection: that runs once for each of their items.
        """
        answer: list[Row] = []
        params = values(query, self._clock)
        for text in texts(query.name, "sqlite", "named", self._schema, self._clock is not None):
            if text.sql.startswith(FILLS):
                self._fill(text.sql, [params[name] for name in text.names])
                continue
            bound = {name: _bound(params[name]) for name in text.names}
            # In one call: a statement that an interrupt leaves half read would keep its snapshot, and the writer busy.
            answer.extend(chain.from_iterable(map(self._raw.execute, (text.sql,), (bound,))))
        return answer

    def _fill(self, sql: str, columns: list[list[Any] | None]) -> None:
        rows = zip(*(repeat(None) if column is None else column for column in columns), strict=False)
        self._raw.executemany(render(sql, "qmark").sql, rows)


FILLS = "insert into temp."


def _bound(value: Any) -> Any:
    return as_json(value) if isinstance(value, list) else value


class AsyncSQLiteAdapter(SQLiteAdapter):
    """The same for async code: SQLite answers at once in a transaction that has the lock."""

    async def begin(self) -> None:  # type: ignore[override]
        """It is open already."""

    async def execute(self, query: Query) -> list[Row]:  # type: ignore[override]
        """Run a script."""
        return super().execute(query)


def is_busy(error: BaseException) -> bool:
    """Somebody else has the lock."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def file_system(path: str, mounts: str | os.PathLike[str] = "/proc/self/mountinfo") -> str:
    """The kind of file system that a path lies on, where the system tells (Linux does)."""
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
