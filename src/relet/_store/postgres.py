"""Jobs in PostgreSQL: connections, transactions, notifications, and the translation of its errors.

The store relies on no session state, so that it works through a pooler in transaction mode: settings are local to a
transaction, times are sent and returned as numbers, and prepared statements are given up at the first sign that they
do not work.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

import psycopg
from msgspec import Struct
from psycopg import errors as pg

from .._core import validate
from .._core.ids import id_time
from .._system import SYSTEM
from ..errors import RowRejected, SchemaMismatch, StoreBusy, StoreError, StoreRefused, StoreUnavailable
from . import libpq, many_schemas, migrate, partitions, tenants, time_limit
from .deadlines import ANSWER_MARGIN, STATEMENT_SECONDS, allowed, watchdog
from .flows import maintenance
from .fragments import Dialect
from .libpq import array_text
from .notify import channel
from .postgres_pool import WORKERS_MAX_IDLE, PostgresPool, milliseconds
from .query import LONG, Clock, Flow, Notify, Query, Row, Style, Text, Traits, texts, values
from .retry import DEFAULT_RETRY, HANDLER_SECONDS, RETRY_SECONDS, RetryPolicy, StaleConnection, Transient, aretry
from .runner import drive
from .store import ENDED, SWALLOWED, AsyncStoreTransaction, Store, StoreTransaction, call_in_thread
from .urls import hide

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("relet.store")

#: A handler's transaction has no time limit.
BEGIN = "begin isolation level read committed"

#: Where the variant `rows` is used, the session's default counts: these engines differ in what they support. The store
#: is correct at any level; a conflict between transactions is repeated.
BEGINS: dict[Dialect, str] = {"postgres": BEGIN, "rows": "begin"}

#: All statements of a flow that only reads see the state at the first of them.
BEGIN_SNAPSHOT = "begin isolation level repeatable read read only"

#: Behind a pooler the session does not belong to this process, so its limits are set for each transaction. A process
#: that is stopped in the middle of a transaction must not keep locks that others wait for.
BEHIND_POOLER: dict[Dialect, str] = {
    "postgres": "; set local idle_in_transaction_session_timeout = '3s'; set local jit = off",
    "rows": "; set local idle_in_transaction_session_timeout = '3s'",
}

MIGRATION_SECONDS = 600.0
IDLE, INERROR = psycopg.pq.TransactionStatus.IDLE, psycopg.pq.TransactionStatus.INERROR
HALF_A_DAY = 43_200.0

#: The connection goes through a pooler, which has sent this statement to a different server process than those before.
UNPREPARED = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)

#: Errors by SQLSTATE. Those that a retry would meet again are listed; all others are retried on another connection.
_NO_SCHEMA = ("42P01", "3F000", "42703", "42883")
_BUSY = ("40001", "40P01", "55P03", "57014", "55006")
_ROW = ("22", "23", "54", "P0001")  # data exceptions, constraints, program limits, errors raised by a trigger
_PERMANENT = ("0A", "20", "21", "28", "2B", "2F", "34", "3D", "42", "44", "P0")
READ_ONLY = "25006"

#: "cached plan must not change result type": the table was changed since the statement was prepared. Its SQLSTATE is
#: the general one for unsupported features, and its message may be in any language: the source function identifies it.
STALE_PLAN = "RevalidateCachedQuery"

HANDLERS_COMMIT_SECONDS = 30.0
PATIENCE = 0.05  # of the threads of a worker that no job waits for
SMALL = 200_000  # bytes of parameters up to which a batch needs no more time than one row

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class PostgresStore(Store):
    """Jobs in one schema of a PostgreSQL database."""

    dialect = "postgres"
    skips_locked = True
    schemas_at_once = 50  # more would take too many of the server's locks: a statement locks all tables and indexes
    prune_at_once = 1000

    def __init__(
        self, url: str, *, schema: str = "relet", connections: int = 10, server: PostgresPool | None = None
    ) -> None:
        self._server = server or PostgresPool(url, connections)
        self.schema = validate.schema(schema)
        super().__init__(self._server.notifier.of(self.schema))
        self._url = url
        self.where = self._server.where
        self.quoted = f'"{self.schema}"'
        self._pool = self._server.pool
        self._patience = 0.0  # seconds to wait for a connection in use before another one is opened
        self._statements: Dialect | None = None

    @property
    def statements(self) -> Dialect:
        """The texts of the statements that this schema needs."""
        return self._statements or "postgres"

    @property
    def knows_statements(self) -> bool:  # type: ignore[override]
        """False: the schema has not been looked at."""
        return self._statements is not None

    @property
    def new_statements(self) -> Dialect:
        """The same for a schema that `migrate` makes."""
        return self.wanted_variant or self._server.capabilities.variant

    def learn_statements(self, found: Dialect | None) -> None:
        """The schema needs these statements. None: there is no schema yet."""
        self._statements = found

    def __repr__(self) -> str:
        return f"PostgresStore({self.where!r}, schema={self.schema!r})"

    def run_once(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        if not self._checked:
            self.ready()
        with self._pool.connection(self._patience) as raw:
            until = time_limit.limit() if traits.read_only else None
            connection = self._own(raw, traits.seconds or STATEMENT_SECONDS, failures, until=until)
            try:
                if traits.snapshot:
                    connection.begin(BEGIN_SNAPSHOT)
                result = drive(make(), connection)
                connection.commit()
            except psycopg.Error as error:
                connection.roll_back()
                raise self._failure(error, raw, connection) from error
            except BaseException:
                connection.roll_back()
                raise
            return result

    def run_each(
        self,
        policy: RetryPolicy,
        stores: Sequence[Store],
        flow: Callable[P, Flow[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> list[R]:
        if any(one.statements != "postgres" for one in stores):  # engines with that variant spread schemas over nodes
            return super().run_each(policy, stores, flow, *args, **kwargs)
        schemas = tuple(one.quoted for one in stores)
        return self.retry(policy, lambda *_: self._run_each_once(schemas, [flow(*args, **kwargs) for _ in schemas]))

    def _run_each_once(self, schemas: tuple[str, ...], flows: Sequence[Flow[R]]) -> list[R]:
        with self._pool.connection(self._patience) as raw:
            connection = self._own(raw)
            try:
                return many_schemas.run_each(partial(connection.execute, schemas=schemas), flows)
            except psycopg.Error as error:
                connection.roll_back()
                raise self._failure(error, raw, connection) from error

    def _failure(
        self, error: psycopg.Error, raw: psycopg.Connection[Any], connection: OwnConnection
    ) -> Transient | StoreError:
        if connection.was_dead:
            self._server.leave(raw)  # its other idle connections may be dead too, and each check would take time
            return StaleConnection(StoreUnavailable(str(self._store_error(error))), may_be_committed=False)
        if isinstance(error, pg.CheckViolation) and not error.diag.constraint_name:
            self._make_missing_partition(raw, error)
            return Transient(StoreBusy("a partition was missing"), may_be_committed=connection.unknown)
        return self._meaning(error, raw, unknown=connection.unknown)

    def _own(
        self,
        raw: psycopg.Connection[Any],
        seconds: float = STATEMENT_SECONDS,
        tries: int = 0,
        until: float | None = None,
    ) -> OwnConnection:
        usual = self._server.statement_seconds
        limit = usual if seconds == STATEMENT_SECONDS else seconds
        limits = Limits(limit, tries, allowed(limit, tries), None if self._server.pooled else usual, until)
        return OwnConnection(raw, self.quoted, limits, self.clock, self.statements, self._server.clock_margin)

    @contextmanager
    def begin(self) -> Iterator[StoreTransaction]:
        """A transaction on a pooled connection."""
        self.ready()
        with ExitStack() as stack:
            raw = self.retry(DEFAULT_RETRY, lambda *_: self._begun(stack))
            with self._guarded(raw) as check:
                yield StoreTransaction(raw, OwnConnection(raw, self.quoted, None, self.clock, self.statements), check)
                check()
                with watchdog.limit(raw, HANDLERS_COMMIT_SECONDS):
                    raw.execute("commit")

    @asynccontextmanager
    async def abegin(self) -> AsyncIterator[AsyncStoreTransaction]:
        """A transaction on an async connection of the running event loop."""
        await self.aready()
        async with self._server.async_slots.acquired():
            raw = await aretry(RETRY_SECONDS, self._abegun)
            try:
                with self._guarded(raw) as check:
                    yield AsyncStoreTransaction(
                        raw, OwnAsyncConnection(raw, self.quoted, self.clock, self.statements), check
                    )
                    check()
                    with watchdog.limit(raw, HANDLERS_COMMIT_SECONDS):
                        await raw.execute("commit")
            finally:
                await self._release(raw)

    def leave_loop(self) -> None:
        """Close the connections of the running event loop."""
        self._server.leave_loop()

    def prepare_to_finish(self, job_id: str) -> None:
        """Make the partition of an old job's day: it may never have been made, or may have been pruned."""
        if self.statements == "postgres" and _is_old(job_id):
            self.run(maintenance.make_partition, id_time(job_id))

    async def aprepare_to_finish(self, job_id: str) -> None:
        """Async version of `prepare_to_finish`."""
        if _is_old(job_id):
            await call_in_thread(self.prepare_to_finish, job_id)

    def notifying_statements(self, notifications: list[Notify]) -> list[Query]:
        """The statements that notify; those for new jobs notify only while a worker sleeps."""
        if self.statements == "rows":
            return []  # a statement may run on another node than the one that the listeners are connected to
        return [
            Query(
                "maintenance/notify_armed" if one.channel in ("queued", "jobs") else "maintenance/notify",
                {"channel": channel(one.channel, self.schema)},
            )
            for one in notifications
            if not one.sent
        ]

    def notify(self, notifications: list[Notify]) -> None:
        """Notify. A failure is ignored: a worker that is not notified finds the job when it polls."""
        statements = self.notifying_statements(notifications)
        if not statements:
            return
        try:
            with self._pool.connection() as raw:
                connection = self._own(raw)
                for statement in statements:
                    connection.execute(statement)
                connection.commit()
        except (psycopg.Error, StoreError, Transient) as error:
            log.debug("notifying through %s failed: %s", self.where, error)

    def check(self) -> None:
        """Raise SchemaMismatch if this release does not work with the schema."""
        migrate.check(self._applied(), f"schema {self.schema} of {self.where}")

    def _applied(self) -> migrate.Applied:
        with self._pool.connection() as raw:
            try:
                with watchdog.limit(raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                    found = migrate.postgres_applied(raw, self.quoted)
            except psycopg.Error as error:
                raise self._meaning(error, raw) from error
        self._statements = found.statements
        return found

    def _tenants(self) -> list[str]:
        with self._pool.connection() as raw:
            try:
                with watchdog.limit(raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                    return tenants.in_database(raw, self.schema)
            except psycopg.Error as error:
                raise self._meaning(error, raw) from error

    def with_own_connections(
        self, connections: int, like: Store | None = None, timeout: float | None = None
    ) -> PostgresStore:
        """A store of the same schema with separate connections, or with those of the store `like`."""
        server = like._server if isinstance(like, PostgresStore) else self._own_pool(connections, timeout)
        return self._on(server)

    def _own_pool(self, connections: int, timeout: float | None) -> PostgresPool:
        """The pool of a worker. `timeout`: of the one that renews leases, three times in each."""
        max_idle = max(WORKERS_MAX_IDLE, 4 * (timeout or 0.0))
        # Only partitions are dropped without a time limit: handlers use the connections of the app.
        return PostgresPool(self._url, connections, timeout, max_idle=max_idle, for_handlers=1)

    def patient(self) -> PostgresStore:
        store = self._on(self._server)
        store._patience = PATIENCE
        return store

    def _on(self, server: PostgresPool) -> PostgresStore:
        """A store of the same schema on the connections of this pool."""
        store = PostgresStore(self._url, schema=self.schema, server=server)
        store.clock = self.clock
        return store

    def drop_old(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> list[str]:
        """Drop partitions, if there are any, whose jobs all ended this many seconds ago or earlier."""
        self.ready()
        if self.statements == "rows":
            return []
        return self.retry(DEFAULT_RETRY, lambda *_: self._drop_old_once(seconds, stop))

    def close(self) -> None:
        """Close all idle connections."""
        self._server.close()

    def _begun(self, stack: ExitStack) -> psycopg.Connection[Any]:
        with ExitStack() as own:
            raw = own.enter_context(self._server.handler_pool.connection())
            try:
                with watchdog.limit(raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                    raw.execute(BEGIN)
            except psycopg.Error as error:
                raw.close()
                raise self._meaning(error, raw) from error
            self._refuse_demoted(raw)
            stack.push(own.pop_all())
        return raw

    async def _abegun(self) -> psycopg.AsyncConnection[Any]:
        """Begin on an idle connection. If it is dead, `aretry` tries the next idle one, and finally a new one."""
        raw = await self._server.aconnect()
        try:
            with watchdog.limit(raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                await raw.execute(BEGIN)
            self._refuse_demoted(raw)
        except BaseException as error:
            await raw.close()
            if isinstance(error, psycopg.Error):
                raise self._meaning(error, raw) from error
            raise
        return raw

    def _refuse_demoted(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """Raise Transient if the server was demoted while the connection was idle, which its answer to BEGIN shows: a
        handler's transaction would fail there."""
        if self._server.was_demoted(raw):
            raw.pgconn.finish()
            self._server.leave(raw)
            raise Transient(StoreUnavailable(f"{self.where} no longer accepts writes"), may_be_committed=False)

    async def _release(self, raw: psycopg.AsyncConnection[Any]) -> None:
        """Roll back a transaction that is still open, and return the connection to the pool.

        If the rollback fails or is cancelled, closing the connection rolls back as well.
        """
        try:
            if not raw.closed and not is_idle(raw):
                with suppress(psycopg.Error), watchdog.limit(raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                    await raw.execute("rollback")
        finally:
            await self._server.aclose(raw)

    @contextmanager
    def _guarded(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> Iterator[Callable[[], None]]:
        """Around a handler's transaction. Yields a function that raises StoreError if it can no longer be committed."""

        def check() -> None:
            if raw.info.transaction_status == INERROR:
                raise StoreError(SWALLOWED)
            if is_idle(raw):
                raise StoreError(ENDED)

        try:
            yield check
        except UNPREPARED:
            self._server.prepare_no_more()  # the next attempt will not prepare statements
            raise
        except pg.FeatureNotSupported as error:
            if error.diag.source_function == STALE_PLAN:
                raw.pgconn.finish()  # the next attempt gets another connection
            raise
        except pg.ReadOnlySqlTransaction:
            raw.pgconn.finish()  # the server was demoted: the next attempt begins on another one
            self._server.leave(raw)
            raise
        except psycopg.OperationalError as error:
            if raw.closed:  # a commit that was under way may have taken effect: only the token shows whether it did
                raise self._store_error(error) from error
            raise
        finally:
            if isinstance(raw, psycopg.Connection) and not raw.closed and not is_idle(raw):
                with suppress(psycopg.Error), watchdog.limit(raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                    raw.execute("rollback")

    def _migrate(self) -> list[int]:
        there, wanted = self._applied().statements, self.wanted_variant
        if wanted is not None and there not in (None, wanted):
            raise StoreError(f"schema {self.schema} of {self.where} is of the variant {there}, and keeps it")
        with self._server.handler_pool.connection() as raw:
            try:
                with watchdog.limit(raw, MIGRATION_SECONDS):
                    return migrate.migrate_postgres(raw, self.schema, self.quoted, self.new_statements)
            except psycopg.Error as error:
                raise self._meaning(error, raw) from error

    def _drop_old_once(self, seconds: float, stop: Callable[[], bool]) -> list[str]:
        with self._server.handler_pool.connection() as raw:
            try:
                return partitions.drop_old(raw, self.quoted, seconds, stop)
            except psycopg.Error as error:
                raise self._meaning(error, raw) from error

    def _meaning(
        self,
        error: psycopg.Error,
        raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
        *,
        unknown: bool = False,
    ) -> Transient | StoreError:
        """The exception to raise: Transient, unless a retry would meet the same error.

        `unknown`: the transaction may have been committed.
        """
        ours = self._store_error(error)
        if isinstance(error, UNPREPARED):
            self._server.prepare_no_more()
            return Transient(StoreBusy(str(ours)), may_be_committed=unknown)
        if isinstance(ours, StoreUnavailable):
            if isinstance(raw, psycopg.Connection):
                raw.close()  # the next try gets another connection
            if error.sqlstate == READ_ONLY or error.sqlstate is None:
                self._server.leave(raw)  # the server was demoted, or does not answer
        if isinstance(ours, StoreBusy | StoreUnavailable):
            return Transient(ours, may_be_committed=unknown)
        return ours

    def _store_error(self, error: psycopg.Error) -> StoreError:
        """A driver's error as a StoreError, without secrets.

        StoreBusy or StoreUnavailable, unless a retry is known to meet the same error.
        """
        message = f"{self.where}: {hide(str(error), self._url).strip()}"
        state = error.sqlstate or ""
        if state in _NO_SCHEMA:
            self._checked = False
            return SchemaMismatch(f"{message}; run app.client.migrate()")
        if state in _BUSY:
            return StoreBusy(message)
        if state == "42501":
            return StoreRefused(message)
        if state.startswith(_ROW):
            return RowRejected(message)
        if error.diag.source_function == STALE_PLAN:
            return StoreUnavailable(message)
        if state.startswith(_PERMANENT) or (not state and not isinstance(error, psycopg.OperationalError)):
            return StoreError(message)
        return StoreUnavailable(message)

    def _make_missing_partition(self, raw: psycopg.Connection[Any], error: psycopg.Error) -> None:
        """An old job finishes: the partition of its day was never made, or has been pruned."""
        found = _ID.search(error.diag.message_detail or "")  # Partition key of the failing row contains (id) = (...)
        if found is None:
            raise self._store_error(error) from error
        connection = self._own(raw, LONG)
        try:
            drive(maintenance.make_partition(id_time(found.group())), connection)
            connection.commit()
        except psycopg.Error as refused:
            connection.roll_back()
            if isinstance(refused, pg.InsufficientPrivilege):
                raise self._store_error(refused) from refused
            # Otherwise another process is making or dropping it just now: the settle is retried and finds out.


class Limits(Struct, frozen=True):
    """How long the statements of one try may take. `small`: one with few parameters, after so many failed tries.

    `session`: the limit set for the session; None: not set. `until`: when a read must end, on the monotonic clock.
    """

    seconds: float
    tries: int
    small: float
    session: float | None
    until: float | None = None

    def of(self, params: dict[str, Any]) -> float:
        """The limit of one statement, by the size of its parameters."""
        if self.until is not None:
            return time_limit.left(self.until)
        size = sum([len(value) for value in params.values() if type(value) is str])
        return self.small if size <= SMALL else allowed(self.seconds, self.tries, size)

    @property
    def is_over(self) -> bool:
        """True if a read was cancelled because its time is over, and not by an administrator."""
        return self.until is not None and SYSTEM.monotonic() >= self.until - time_limit.AGAIN_AFTER


class OwnConnection:
    """A connection of the store for one flow: each statement commits by itself until the flow begins a transaction.

    Without `limits` the connection has the open transaction of a handler.
    """

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        schema: str,
        limits: Limits | None = None,
        clock: Clock | None = None,
        statements: Dialect = "postgres",
        clock_margin: float = 0.0,
    ) -> None:
        self._clock_margin = clock_margin
        self._raw = raw
        self._schema = schema
        self._clock = clock
        self._statements = statements
        self._limits = limits
        self._limit = 0.0 if limits is None else limits.session or 0.0  # the limit in force on the server
        self._open = limits is None
        self.was_dead = False  # found out at BEGIN, before any statement was sent
        self.unknown = False  # a COMMIT, or a write that commits by itself, was sent and may have taken effect

    def begin(self, text: str | None = None) -> None:
        """Open a transaction, in one round trip with its settings."""
        if not self._open and self._limits is not None:
            limits = self._limits
            self._begin(limits.small if limits.until is None else time_limit.left(limits.until), text)

    def _begin(self, seconds: float, text: str | None = None) -> None:
        assert self._limits is not None
        text = text or BEGINS[self._statements]
        if self._limits.session is None:
            text += BEHIND_POOLER[self._statements]
        if seconds != self._limit:
            text += f"; set local statement_timeout = '{milliseconds(seconds)}'"
            self._limit = seconds
        with watchdog.limit(self._raw, STATEMENT_SECONDS + ANSWER_MARGIN):
            try:
                libpq.command(self._raw, text)
            except psycopg.OperationalError:
                self.was_dead = self._raw.closed and not self.unknown
                raise
        self._open = True

    def execute(self, query: Query, schemas: tuple[str, ...] = ()) -> list[Row]:
        """Run one statement. Results are in binary format, which is faster to read. `schemas`: run it in each."""
        params = bound(query.params if self._clock is None else values(query, self._clock))
        if self._statements == "rows":
            params = {**params, "margin": self._clock_margin if self._clock is None else 0.0}
        style: Style = "dollar" if self._limits is not None else "pyformat"
        if schemas:
            parts: tuple[Text, ...] = (many_schemas.combined(query.name, schemas, self._clock is not None),)
        else:
            parts = texts(query.name, self._statements, style, self._schema, self._clock is not None)
        if len(parts) > 1:
            self.begin()
        if self._limits is None:
            seconds = HANDLER_SECONDS
        else:
            seconds = self._limits.of(params)
            if seconds > self._limit or (self._limits.until and seconds < self._limit - time_limit.AGAIN_AFTER):
                self._set_limit(seconds)
        commits = query.writes and not self._open
        before, self.unknown = self.unknown, self.unknown or commits
        try:
            watchdog.arm(self._raw, seconds + ANSWER_MARGIN)
            if self._limits is None:
                return self._execute_for_handler(parts, params)
            return [libpq.execute(self._raw, query.name, text, params) for text in parts][-1]
        except psycopg.Error as error:
            if not _is_lost(self._raw, error):
                self.unknown = before  # the server has reported that the statement failed
            if isinstance(error, pg.QueryCanceled) and self._limits is not None and self._limits.is_over:
                raise time_limit.timed_out() from error
            raise
        finally:
            watchdog.disarm(self._raw)

    def _execute_for_handler(self, parts: tuple[Text, ...], params: dict[str, Any]) -> list[Row]:
        """Through psycopg: the handler's statements use the same connection, possibly in pipeline mode."""
        for text in parts:
            cursor = self._raw.execute(text.sql, params, binary=True)
        return cursor.fetchall() if cursor.description else []

    def _set_limit(self, seconds: float) -> None:
        if self._open:
            libpq.command(self._raw, f"set local statement_timeout = '{milliseconds(seconds)}'")
            self._limit = seconds
        else:
            self._begin(seconds)

    def commit(self) -> None:
        """Commit the transaction, if one is open."""
        if self._open:
            before, self.unknown = self.unknown, True
            with watchdog.limit(self._raw, max(self._limit, STATEMENT_SECONDS) + ANSWER_MARGIN):
                try:
                    libpq.command(self._raw, "commit")
                except psycopg.Error as error:
                    if not _is_lost(self._raw, error):
                        self.unknown = before
                    raise
            self._open = False

    def roll_back(self) -> None:
        """Roll back the transaction, if one is open. If that fails, close the connection, which rolls back as well."""
        if self._open and not self._raw.closed:
            try:
                with watchdog.limit(self._raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                    libpq.command(self._raw, "rollback")
            except psycopg.Error:
                self._raw.close()


def bound(params: dict[str, Any]) -> dict[str, Any]:
    """Pass lists as array literals: psycopg would inspect each element to find the type, which the statement states."""
    if list not in map(type, params.values()):
        return params
    return {name: array_text(value) if type(value) is list else value for name, value in params.items()}


class OwnAsyncConnection:
    """An async connection of the store with an open transaction."""

    def __init__(
        self, raw: psycopg.AsyncConnection[Any], schema: str, clock: Clock | None, statements: Dialect
    ) -> None:
        self._raw = raw
        self._schema = schema
        self._clock = clock
        self._statements = statements

    async def begin(self) -> None:
        """Do nothing: the transaction is open."""

    async def execute(self, query: Query) -> list[Row]:
        """Run one statement."""
        params = values(query, self._clock)
        for text in texts(query.name, self._statements, "pyformat", self._schema, self._clock is not None):
            with watchdog.limit(self._raw, HANDLER_SECONDS):
                cursor = await self._raw.execute(text.sql, params, binary=True)
        return await cursor.fetchall() if cursor.description else []


def _is_lost(raw: psycopg.Connection[Any], error: psycopg.Error) -> bool:
    """True if the connection was lost before the answer arrived, so that the statement may have taken effect.

    A server that ends the session reports FATAL, also while a commit waits for a synchronous standby.
    """
    return raw.closed or error.sqlstate is None or error.diag.severity_nonlocalized in ("FATAL", "PANIC")


def _is_old(job_id: str) -> bool:
    """True if maintenance may not have made the job's partition: it makes those from yesterday to a week ahead."""
    return not -HALF_A_DAY < SYSTEM.time() - id_time(job_id) < HALF_A_DAY


def is_idle(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """True if no transaction is open."""
    return raw.info.transaction_status == IDLE
