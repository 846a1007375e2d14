"""Jobs in PostgreSQL: connections, transactions, notifications, and what its errors mean.

No session state is used, so that a pooler in transaction mode may stand between: settings are local to a transaction,
times go in and come out as numbers, and prepared statements are given up as soon as they turn out not to work.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from ..core import names
from ..core.errors import SchemaMismatch, StoreBusy, StoreError, StoreRefused, StoreUnavailable
from ..core.ids import id_time
from . import migrate, partitions
from .pool import Pool
from .query import Flow, Query, Row, Wake, texts
from .runner import drive
from .store import PATIENCE, Limited, Store, Transient
from .urls import hide, shown

R = TypeVar("R")

log = logging.getLogger("leasehold.store")

#: A process that is stopped in the middle of a transaction must not hold locks that others wait for.
OPEN = "begin isolation level read committed; set local idle_in_transaction_session_timeout = '3s'"

DEFAULTS = {
    "application_name": "leasehold",
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "target_session_attrs": "read-write",
    "client_encoding": "utf8",
}

CHANNELS = ("jobs", "done", "request")

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class PostgresStore(Store):
    """Jobs in one schema of a PostgreSQL database."""

    dialect = "postgres"

    def __init__(self, url: str, *, schema: str = "leasehold", connections: int = 10) -> None:
        super().__init__()
        self._url = url
        self.where = shown(url)
        self.schema = names.schema(schema)
        self.quoted = f'"{self.schema}"'
        self._prepare: int | None = 5
        self._reached = False
        self._pool = Pool(self._connect, self._is_usable, most=connections)

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

    def listen(self) -> PostgresListener:
        """A connection that hears notifications."""
        return PostgresListener(self._connect(), self.schema)

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

    def beside(self, connections: int) -> PostgresStore:
        """The same schema with connections of its own."""
        return PostgresStore(self._url, schema=self.schema, connections=connections)

    def drop_old(self, seconds: float) -> list[str]:
        """Drop partitions whose jobs have all been over for so long."""
        self.ready()
        return self.patiently(Limited(PATIENCE), lambda _: self._drop_old_once(seconds))

    def close(self) -> None:
        """Close all idle connections."""
        super().close()
        self._pool.close()

    def _migrate_once(self) -> list[int]:
        with self._pool.connection() as raw:
            try:
                return migrate.migrate_postgres(raw, self.schema, self.quoted)
            except psycopg.Error as error:
                raise self._meaning(error) from error

    def _drop_old_once(self, seconds: float) -> list[str]:
        with self._pool.connection() as raw:
            try:
                return partitions.drop_old(raw, self.quoted, seconds)
            except psycopg.Error as error:
                raise self._meaning(error) from error

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            given = psycopg.conninfo.conninfo_to_dict(self._url)
            options: dict[str, Any] = {name: value for name, value in DEFAULTS.items() if name not in given}
            connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=self._prepare, **options)
            if _is_pooled(connection):
                connection.prepare_threshold = None  # what is prepared here may be looked for, or met, elsewhere
        except psycopg.ProgrammingError as error:
            raise StoreError(f"this is no PostgreSQL URL: {self.where} ({hide(str(error), self._url)})") from None
        except psycopg.Error as error:
            # No chaining: what libpq says of a URL may show all of it.
            away = StoreUnavailable(f"cannot connect to {self.where}: {hide(str(error), self._url).strip()}")
            # Who has never been there is more likely to have the wrong address than to meet an outage: told at once.
            raise (Transient(away, unknown=False) if self._reached else away) from None
        self._reached = True
        return connection

    def _is_usable(self, raw: psycopg.Connection[Any]) -> bool:
        """Neither closed nor in a transaction, nor made before prepared statements were given up."""
        idle = not raw.closed and raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        return idle and (raw.prepare_threshold is None or self._prepare is not None)

    def _meaning(self, error: psycopg.Error, wrote: bool = False) -> Exception:
        """Whether trying again makes sense. `wrote`: a part of the flow has been committed already."""
        ours = self._shown(error)
        if isinstance(error, pg.InvalidSqlStatementName | pg.DuplicatePreparedStatement):
            self._prepare = None  # a pooler that does not know of prepared statements
            self._pool.close()
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
        moment = id_time(found.group())
        OwnConnection(raw, self.quoted).execute(Query("make_partition", {"moment": moment}))


class OwnConnection:
    """A connection of ours, for one flow: each statement commits by itself until the flow begins a transaction."""

    def __init__(self, raw: psycopg.Connection[Any], schema: str) -> None:
        self._raw = raw
        self._schema = schema
        self._open = False
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


class PostgresListener:
    """A connection of its own that hears notifications."""

    def __init__(self, raw: psycopg.Connection[Any], schema: str) -> None:
        self._raw = raw
        self._channels = {channel(kind, schema): kind for kind in CHANNELS}
        for name in self._channels:
            raw.execute(f'listen "{name}"')

    def wait(self, seconds: float) -> set[str]:
        """What was heard. Silence is followed by a question, so that a dead connection is noticed."""
        heard = {self._channels[note.channel] for note in self._raw.notifies(timeout=seconds, stop_after=1)}
        if not heard:
            self._raw.execute("select 1")
        return heard

    def close(self) -> None:
        """Stop listening."""
        self._raw.close()


def channel(kind: str, schema: str) -> str:
    """The name of a notification channel: at most 63 bytes, as a schema's name has at most 48."""
    return f"{schema}.{kind}"


def _is_pooled(raw: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands between: then the server process is another than the one that greeted us."""
    (pid,) = raw.execute("select pg_backend_pid()").fetchone() or (None,)
    return bool(pid != raw.info.backend_pid)
