"""Jobs in PostgreSQL: connections, transactions, notifications, and what its errors mean.

No session state is used, so that a pooler in transaction mode may stand between: settings are local to a transaction,
times go in and come out as numbers, and prepared statements are given up as soon as they turn out not to work.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from ..core import names
from ..core.errors import SchemaMismatch, StoreBusy, StoreError, StoreRefused, StoreUnavailable
from ..core.ids import id_time
from . import migrate, partitions
from .flows import upkeep
from .query import Flow, Query, Row, Wake, texts
from .runner import drive
from .server import Server
from .store import ENDED, PATIENCE, SWALLOWED, AsyncOpened, Limited, Opened, Store, Transient, call_in_thread
from .urls import hide
from .wakes import channel

R = TypeVar("R")

log = logging.getLogger("leasehold.store")

#: A process that is stopped in the middle of a transaction must not hold locks that others wait for.
OPEN = "begin isolation level read committed; set local idle_in_transaction_session_timeout = '3s'"

#: A handler's own work in a transaction may take its time.
FOR_OTHERS = "begin isolation level read committed"
IDLE, INERROR = psycopg.pq.TransactionStatus.IDLE, psycopg.pq.TransactionStatus.INERROR
HALF_A_DAY = 43_200.0

#: A pooler stands between, and has passed the statements on to another server process than those before.
UNPREPARED = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class PostgresStore(Store):
    """Jobs in one schema of a PostgreSQL database."""

    dialect = "postgres"
    skips_locked = True
    prune_at_once = 1000

    def __init__(
        self, url: str, *, schema: str = "leasehold", connections: int = 10, server: Server | None = None
    ) -> None:
        self._server = server or Server(url, connections)
        self.schema = names.schema(schema)
        super().__init__(self._server.wakes.of(self.schema))
        self._url = url
        self.where = self._server.where
        self.quoted = f'"{self.schema}"'
        self._pool = self._server.pool

    def __repr__(self) -> str:
        return f"PostgresStore({self.where!r}, schema={self.schema!r})"

    def attempt(self, make: Callable[[], Flow[R]], *, looks: bool = False) -> tuple[R, list[Wake]]:
        """Run a flow once on a connection of ours."""
        self.ready()
        with self._pool.connection() as raw:
            connection = OwnConnection(raw, self.quoted)
            try:
                result = drive(make(), connection)
                connection.commit()
            except psycopg.Error as error:
                connection.roll_back()
                if isinstance(error, pg.CheckViolation) and not error.diag.constraint_name:
                    self._make_missing_partition(raw, error)
                    raise Transient(StoreBusy("a partition was missing"), unknown=connection.wrote) from error
                raise self._meaning(error, connection.wrote) from error
            except BaseException:
                connection.roll_back()
                raise
            return result

    @contextmanager
    def opened(self) -> Iterator[Opened]:
        """A transaction on a pooled connection."""
        self.ready()
        with ExitStack() as stack:
            raw = self.patiently(Limited(PATIENCE), lambda _: self._begun(stack))
            with self._ended(raw) as check:
                yield Opened(raw, OwnConnection(raw, self.quoted, is_open=True), check)
                check()
                raw.execute("commit")

    @asynccontextmanager
    async def aopened(self) -> AsyncIterator[AsyncOpened]:
        """A transaction on an async connection of this event loop's."""
        await self.aready()
        async with self._server.places.place():
            raw = await self.apatiently(PATIENCE, self._abegun)
            try:
                with self._ended(raw) as check:
                    yield AsyncOpened(raw, OwnAsyncConnection(raw, self.quoted), check)
                    check()
                    await raw.execute("commit")
            finally:
                await self._let_go(raw)

    def leave_loop(self) -> None:
        """Close what was kept for it."""
        self._server.leave_loop()

    def prepare_to_finish(self, job_id: str) -> None:
        """The partition of an old job's day may never have been made, or be pruned by now."""
        if _is_old(job_id):
            self.run(upkeep.make_partition, id_time(job_id))

    async def aprepare_to_finish(self, job_id: str) -> None:
        """The same for async code."""
        if _is_old(job_id):
            await call_in_thread(self.prepare_to_finish, job_id)

    def notifications(self, wakes: list[Wake]) -> list[Query]:
        """Workers are told of jobs only while one of them sleeps; the statement sees to that."""
        return [
            Query(
                "notify_jobs" if wake.channel == "jobs" else "notify", {"channel": channel(wake.channel, self.schema)}
            )
            for wake in wakes
        ]

    def wake(self, wakes: list[Wake]) -> None:
        """Notify. Nothing hangs on it: a worker that is not reached finds the job when it polls."""
        try:
            with self._pool.connection() as raw:
                for statement in self.notifications(wakes):
                    OwnConnection(raw, self.quoted).execute(statement)
        except (psycopg.Error, StoreError, Transient) as error:
            log.debug("notifying through %s failed: %s", self.where, error)

    def check(self) -> None:
        """Refuse a schema that is not the one this version works with."""
        with self._pool.connection() as raw:
            try:
                migrate.check(migrate.postgres_version(raw, self.quoted), f"schema {self.schema} of {self.where}")
            except psycopg.Error as error:
                raise self._meaning(error) from error

    def migrate(self) -> list[int]:
        """Bring the schema up to date. Safe when many do it at once. Returns the versions applied."""
        return self.patiently(Limited(PATIENCE), lambda _: self._migrate_once())

    def beside(self, connections: int, like: Store | None = None, patience: float | None = None) -> PostgresStore:
        """The same schema with connections of its own, or with those of another store that has some."""
        server = like._server if isinstance(like, PostgresStore) else Server(self._url, connections, patience)
        return PostgresStore(self._url, schema=self.schema, connections=connections, server=server)

    def drop_old(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> list[str]:
        """Drop partitions whose jobs have all been over for so long."""
        self.ready()
        return self.patiently(Limited(PATIENCE), lambda _: self._drop_old_once(seconds, stop))

    def close(self) -> None:
        """Close all idle connections."""
        self._server.close()

    def _begun(self, stack: ExitStack) -> psycopg.Connection[Any]:
        with ExitStack() as own:
            raw = own.enter_context(self._server.openers.connection())
            try:
                raw.execute(FOR_OTHERS)
            except psycopg.Error as error:
                raw.close()
                raise self._meaning(error) from error
            stack.push(own.pop_all())
        return raw

    async def _abegun(self) -> psycopg.AsyncConnection[Any]:
        """A connection that was kept may be dead by now: then the next is tried, and in the end a new one."""
        raw = await self._server.aconnect()
        try:
            await raw.execute(FOR_OTHERS)
        except BaseException as error:
            await raw.close()
            if isinstance(error, psycopg.Error):
                raise self._meaning(error) from error
            raise
        return raw

    async def _let_go(self, raw: psycopg.AsyncConnection[Any]) -> None:
        """Roll back what is still open. Closing undoes it too: if that fails, or somebody has no time for it."""
        try:
            if not raw.closed and not is_idle(raw):
                with suppress(psycopg.Error):
                    await raw.execute("rollback")
        finally:
            await self._server.aclose(raw)

    @contextmanager
    def _ended(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> Iterator[Callable[[], None]]:
        """Around what others do in a transaction. Yields what raises if there is nothing that can be committed."""

        def check() -> None:
            if raw.info.transaction_status == INERROR:
                raise StoreError(SWALLOWED)
            if is_idle(raw):
                raise StoreError(ENDED)

        try:
            yield check
        except UNPREPARED:
            self._server.prepare_no_more()  # the next attempt will do without
            raise
        except psycopg.OperationalError as error:
            if raw.closed:  # nobody knows whether a commit that was under way came through; the token does
                raise self._shown(error) from error
            raise
        finally:
            if isinstance(raw, psycopg.Connection) and not raw.closed and not is_idle(raw):
                with suppress(psycopg.Error):
                    raw.execute("rollback")

    def _migrate_once(self) -> list[int]:
        with self._pool.connection() as raw:
            try:
                return migrate.migrate_postgres(raw, self.schema, self.quoted)
            except psycopg.Error as error:
                raise self._meaning(error) from error

    def _drop_old_once(self, seconds: float, stop: Callable[[], bool]) -> list[str]:
        with self._pool.connection() as raw:
            try:
                return partitions.drop_old(raw, self.quoted, seconds, stop)
            except psycopg.Error as error:
                raise self._meaning(error) from error

    def _meaning(self, error: psycopg.Error, wrote: bool = False) -> Exception:
        """Whether trying again makes sense. `wrote`: a part of the flow has been committed already."""
        ours = self._shown(error)
        if isinstance(error, UNPREPARED):
            self._server.prepare_no_more()
            return Transient(StoreBusy(str(ours)), unknown=wrote)
        if isinstance(ours, StoreBusy | StoreUnavailable):
            return Transient(ours, unknown=wrote or isinstance(ours, StoreUnavailable))
        return ours

    def _shown(self, error: psycopg.Error) -> StoreError:
        """An error of the driver as one of ours, without secrets."""
        message = f"{self.where}: {hide(str(error), self._url).strip()}"
        state = error.sqlstate or ""
        if isinstance(error, pg.UndefinedTable | pg.InvalidSchemaName | pg.UndefinedColumn | pg.UndefinedFunction):
            self._checked = False
            return SchemaMismatch(f"{message}; run app.client.migrate()")
        if state in ("40001", "40P01", "55P03", "57014") or isinstance(error, pg.FeatureNotSupported):
            return StoreBusy(message)
        if state == "25006" or (state.startswith(("53", "42501")) and state != "53300"):
            return StoreRefused(message)
        if state.startswith(("08", "57P", "53300", "25P03")) or (
            not state and isinstance(error, psycopg.OperationalError)
        ):
            return StoreUnavailable(message)
        return StoreError(message)

    def _make_missing_partition(self, raw: psycopg.Connection[Any], error: psycopg.Error) -> None:
        """An old job finishes: the partition of its day was never made, or is pruned by now."""
        found = _ID.search(error.diag.message_detail or "")  # Partition key of the failing row contains (id) = (...)
        if found is None:
            raise self._shown(error) from error
        drive(upkeep.make_partition(id_time(found.group())), OwnConnection(raw, self.quoted))


class OwnConnection:
    """A connection of ours, for one flow: each statement commits by itself until the flow begins a transaction."""

    def __init__(self, raw: psycopg.Connection[Any], schema: str, *, is_open: bool = False) -> None:
        self._raw = raw
        self._schema = schema
        self._open = is_open
        self.wrote = False  # something that was committed by itself

    def begin(self) -> None:
        """Open a transaction, in one round trip with its settings."""
        if not self._open:
            self._raw.execute(OPEN)
            self._open = True

    def execute(self, query: Query) -> list[Row]:
        """Run one statement; results come in binary, which is quicker to read."""
        (text,) = texts(query.name, "postgres", "pyformat", self._schema)
        cursor = self._raw.execute(text.sql, query.params, binary=True)
        self.wrote |= query.writes and not self._open
        return cursor.fetchall() if cursor.description else []

    def commit(self) -> None:
        """Commit what was begun."""
        if self._open:
            self._raw.execute("commit")
            self._open = False

    def roll_back(self) -> None:
        """Undo what was begun; a connection on which that fails is closed, which undoes it too."""
        if self._open and not self._raw.closed:
            try:
                self._raw.execute("rollback")
            except psycopg.Error:
                self._raw.close()


class OwnAsyncConnection:
    """An async connection of ours on which a transaction is open."""

    def __init__(self, raw: psycopg.AsyncConnection[Any], schema: str) -> None:
        self._raw = raw
        self._schema = schema

    async def begin(self) -> None:
        """It is open already."""

    async def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        (text,) = texts(query.name, "postgres", "pyformat", self._schema)
        cursor = await self._raw.execute(text.sql, query.params, binary=True)
        return await cursor.fetchall() if cursor.description else []


def _is_old(job_id: str) -> bool:
    """Upkeep sees to the partitions of yesterday and a week to come; not to those before."""
    return not -HALF_A_DAY < time.time() - id_time(job_id) < HALF_A_DAY


def is_idle(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """No transaction is open."""
    return raw.info.transaction_status == IDLE
