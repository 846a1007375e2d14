"""The connections to a PostgreSQL database, and the one that listens. Stores of several schemas may share them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from .._system import SYSTEM
from ..errors import StoreError, StoreRefused, StoreUnavailable
from .capabilities import Capabilities, find, is_pooled
from .deadlines import ANSWER_MARGIN, STATEMENT_SECONDS, watchdog
from .notify import Notifier
from .pool import MAX_IDLE, IdleAsyncConnections, LoopSemaphore, Pool
from .retry import HANDLER_SECONDS, Transient
from .urls import hide, redacted

#: Seconds after which unused connections of a worker are closed. An idle worker keeps two: one listens.
WORKERS_MAX_IDLE = 15.0

#: For each host of the URL: a host that has vanished must not delay the attempt to reach the others for long.
CONNECT_SECONDS = 3

CHECK_LISTENER_EVERY = 10.0  # seconds without a notification

DEFAULTS = {
    "application_name": "relet",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": int(1000 * (STATEMENT_SECONDS + ANSWER_MARGIN)),
    "target_session_attrs": "read-write",
}


#: Session settings by which the server notices that our host has vanished: it keeps our locks until then. Not set
#: behind a pooler, whose sessions other clients use as well.
KEEPALIVES = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "30s",
}

#: Parts of a URL that may be lists, and the value that an empty list item stands for.
#: Settings that only PostgreSQL's own planner has.
PLANNING = ("plan_cache_mode", "jit")

_PER_HOST = {"host": "", "hostaddr": "", "port": "5432"}

#: Messages of a server that refuses the connection, so that a retry would be refused as well.
_REFUSED = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|(role|database) .* does not exist"
    r"|permission denied for database|is not permitted to log in|does not support SSL|unsupported frontend protocol"
)


class Hosts:
    """The hosts of a URL, in the order in which they are tried: the host that answered last is the first.

    A host that does not answer may cost the whole connect timeout for each new connection.
    """

    def __init__(self, url: str) -> None:
        self._lists = {name: value.split(",") for name, value in _url_options(url).items() if name in _PER_HOST}
        self.number = max(map(len, self._lists.values()), default=1)
        self._first = 0
        self._of: WeakKeyDictionary[psycopg.Connection[Any] | psycopg.AsyncConnection[Any], int] = WeakKeyDictionary()

    def options(self) -> dict[str, str]:
        """The hosts of the URL as connection parameters, in the current order."""
        if self.number == 1:
            return {}
        first = self._first
        return {
            name: ",".join(values[first:] + values[:first])
            for name, values in self._lists.items()
            if len(values) == self.number
        }

    def answered(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """Record the host of a new connection, and try it first from now on."""
        if self.number > 1:
            for number in range(self.number):
                if self._is_at(raw, number):
                    self._of[raw] = self._first = number

    def avoid(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """Try the other hosts first: that of this connection does not answer, or no longer accepts writes."""
        if self._of.get(raw) == self._first:
            self._first = (self._first + 1) % self.number

    def _is_at(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], number: int) -> bool:
        facts = {"host": raw.info.host, "hostaddr": raw.info.hostaddr, "port": str(raw.info.port)}
        return all(
            facts[name] == (values[number] or _PER_HOST[name])
            for name, values in self._lists.items()
            if len(values) == self.number
        )


class PostgresPool:
    """The connection pools of one or several stores. `timeout`: see `Store.with_own_connections`. `max_idle`: seconds
    after which unused connections are closed. `for_handlers`: connections for handlers' transactions; None: as many."""

    def __init__(
        self,
        url: str,
        connections: int,
        timeout: float | None = None,
        *,
        max_idle: float = MAX_IDLE,
        for_handlers: int | None = None,
    ) -> None:
        self.url = url
        self._options = DEFAULTS if timeout is None else {**DEFAULTS, **_short_timeouts(timeout)}
        #: How long the server may work on a small statement.
        self.statement_seconds = STATEMENT_SECONDS if timeout is None else min(max(timeout, 0.5), STATEMENT_SECONDS)
        self.where = redacted(url)
        self._hosts = Hosts(url)
        #: Another host may take over, and we follow to the one that accepts writes, unless the URL states otherwise.
        self._moves = self._hosts.number > 1 and "target_session_attrs" not in _url_options(url)
        self._prepare: int | None = 5
        self.pooled = True  # until a connection proves that it does not go through a pooler
        self._reached = False
        self._capabilities: Capabilities | None = None
        self.clock_margin = 0.0  # of the server that was asked last
        self.pool = Pool(self.connect, self._is_usable, limit=connections, max_idle=max_idle)
        # Handlers that have a transaction open, and call the client in it, must not wait for each other's connections.
        for_handlers = for_handlers or connections
        self.handler_pool = Pool(self.connect_unlimited, self._is_usable, limit=for_handlers, timeout=HANDLER_SECONDS)
        self.async_slots = LoopSemaphore(connections, HANDLER_SECONDS)
        self._on_loops = IdleAsyncConnections(_close_async, limit=connections)
        self.notifier = Notifier(self)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the server. Connects if no connection was made yet."""
        if self._capabilities is None:
            with self.pool.connection():
                pass
        return self._capabilities or Capabilities()

    @property
    def sends_notifications(self) -> bool:
        """False: it is known that no notification would arrive."""
        return self._capabilities is None or self._capabilities.notifications

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection for the store's own statements, which are short."""
        limits = {
            "statement_timeout": milliseconds(self.statement_seconds),
            "idle_in_transaction_session_timeout": "3s",
            # The best plan of each statement is the same for all parameters: no need to plan it each time.
            "plan_cache_mode": "force_generic_plan",
            # With millions of jobs the planner expects any search to be long, and would compile it for a second each
            # time, although it stops after a few rows.
            "jit": "off",
        }
        return self._connect({**KEEPALIVES, **limits})

    def connect_unlimited(self) -> psycopg.Connection[Any]:
        """A new connection without time limits: for handlers' transactions, migrations and dropping partitions."""
        return self._connect(KEEPALIVES)

    def _connect(self, settings: dict[str, str]) -> psycopg.Connection[Any]:
        connection = self.open()
        try:
            with self._meaning_of_errors(), watchdog.limit(connection, CONNECT_SECONDS):
                found = self._capabilities
                if found is None:
                    self.pooled, found = find(connection, self.open)
                else:
                    self.pooled = is_pooled(connection)
                if not found.generic_plans:
                    settings = {name: value for name, value in settings.items() if name not in PLANNING}
                if self.pooled:
                    # A statement prepared in this session may be missing, or clash, in the next one.
                    connection.prepare_threshold = None
                else:
                    _set(connection, settings)
        except BaseException:
            connection.close()
            raise
        self._reached = True
        self._capabilities, self.clock_margin = found, found.clock_margin
        return connection

    def open(self, **options: Any) -> psycopg.Connection[Any]:
        """A new connection on which no statement has been run. Options in the URL override these options."""
        with self._meaning_of_errors():
            made = psycopg.connect(
                self.url, autocommit=True, prepare_threshold=self._prepare, **self._connect_options(**options)
            )
        self._hosts.answered(made)
        return made

    async def aconnect(self) -> psycopg.AsyncConnection[Any]:
        """A connection for the running event loop: an idle one, or a new one."""
        kept = self._on_loops.take(asyncio.get_running_loop())
        if kept is not None:
            return kept
        with self._meaning_of_errors():
            made = await psycopg.AsyncConnection.connect(
                self.url,
                autocommit=True,
                prepare_threshold=None if self.pooled else self._prepare,
                **self._connect_options(),
            )
            if not self.pooled:
                try:
                    with suppress(psycopg.DatabaseError), watchdog.limit(made, CONNECT_SECONDS):
                        await made.execute(_settings(KEEPALIVES))
                except BaseException:  # for example cancelled: no caller has this connection yet
                    _close_async(made)
                    raise
        self._hosts.answered(made)
        self._reached = True
        return made

    async def aclose(self, raw: psycopg.AsyncConnection[Any]) -> None:
        """Keep an async connection for the next caller on this loop, if it is usable; else close it."""
        if self._is_usable(raw):
            self._on_loops.keep(asyncio.get_running_loop(), raw)
        else:
            await raw.close()

    def leave_loop(self) -> None:
        """Close the idle connections of the running event loop."""
        self._on_loops.close(asyncio.get_running_loop())

    def _connect_options(self, **more: Any) -> dict[str, Any]:
        of_url = _url_options(self.url)
        ours = {name: value for name, value in {**self._options, **more}.items() if name not in of_url}
        return {**ours, **self._hosts.options(), "client_encoding": "utf8"}  # parameters are sent as UTF-8

    @contextmanager
    def _meaning_of_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.ProgrammingError as error:
            interrupt = error.__context__  # psycopg replaces any exception raised while it reads connect_timeout
            if interrupt is not None and not isinstance(interrupt, ValueError | TypeError | psycopg.Error):
                raise interrupt from None
            raise StoreError(f"invalid PostgreSQL URL: {self.where} ({hide(str(error), self.url)})") from None
        except psycopg.Error as error:
            # Not chained: a message of libpq may contain the whole URL.
            message = f"cannot connect to {self.where}: {hide(str(error), self.url).strip()}"
            if _REFUSED.search(str(error)) and not self._reached:
                raise StoreRefused(message) from None
            unavailable = StoreUnavailable(message)
            # If no connection was ever made, a wrong address is more likely than an outage: raised without a retry.
            raise (Transient(unavailable, may_be_committed=False) if self._reached else unavailable) from None

    def listen(self) -> PostgresListener:
        """A connection that receives notifications."""
        return PostgresListener(self.connect(), moves=self._moves)

    def prepare_no_more(self) -> None:
        """Prepare no more statements: the connections go through a pooler that does not support them."""
        self._prepare = None
        self.drop_idle()

    def leave(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """Close all idle connections: the server of this one does not answer, or no longer accepts writes.

        The next connection may reach another host.
        """
        self._hosts.avoid(raw)
        self._capabilities = None  # another host may be another kind of server
        self.drop_idle()

    def drop_idle(self) -> None:
        """Close idle connections now, and those in use when they are returned."""
        self.pool.close()
        self.handler_pool.close()
        self._on_loops.close()

    def close(self) -> None:
        """Close all idle connections, and stop listening until the next subscription."""
        self.notifier.close()
        self.drop_idle()

    def _is_usable(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
        """True if it is open, in no transaction, not made before prepared statements were given up, and if its server
        was not demoted meanwhile: a standby would return stale rows."""
        idle = not raw.closed and raw.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if not idle or (raw.prepare_threshold is not None and self._prepare is None):
            return False
        return not self.was_demoted(raw)

    def was_demoted(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
        """True if the server has reported that it accepts no writes any more, and another host may."""
        return self._moves and is_read_only(raw)


class PostgresListener:
    """A separate connection that receives notifications."""

    def __init__(self, raw: psycopg.Connection[Any], *, moves: bool = False) -> None:
        self._raw = raw
        self._checked_at = SYSTEM.monotonic()
        self._moves = moves  # reconnect to another host if this one no longer accepts writes
        self._channels: set[str] = set()

    def wait(self, seconds: float, channels: frozenset[str]) -> set[str]:
        """Wait for notifications; returns their channels. If none arrives for long, run a query to notice a dead
        connection.

        A new channel counts as notified: a notification may have been sent before we listened to it.
        """
        new = channels - self._channels
        with watchdog.limit(self._raw, STATEMENT_SECONDS + ANSWER_MARGIN):
            if new:
                self._raw.execute("; ".join(f'listen "{name}"' for name in sorted(new)))
        self._channels |= new
        if new:
            return set(new)
        heard = {note.channel for note in self._raw.notifies(timeout=seconds, stop_after=1)}
        if heard:
            self._checked_at = SYSTEM.monotonic()
        elif SYSTEM.monotonic() - self._checked_at >= CHECK_LISTENER_EVERY:
            with watchdog.limit(self._raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                self._raw.execute("select 1")
            self._checked_at = SYSTEM.monotonic()
        if self._moves and is_read_only(self._raw):
            raise StoreUnavailable("the server no longer accepts writes, so it sends no notifications")
        return heard

    def close(self) -> None:
        """Stop listening."""
        self._raw.close()


def is_read_only(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """True if the server has reported that it accepts no writes. Servers report this unasked since version 14."""
    return raw.info.parameter_status("default_transaction_read_only") == "on"


def _url_options(url: str) -> dict[str, str]:
    """The options in a URL; none if it is invalid."""
    try:
        return {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        return {}  # connecting raises an error that says what is wrong


def _close_async(raw: psycopg.AsyncConnection[Any]) -> None:
    """Close an idle async connection from any thread: its event loop may be closed."""
    raw.pgconn.finish()


def _short_timeouts(seconds: float) -> dict[str, Any]:
    """Options of connections that renew leases: a dead one must be noticed before the lease expires."""
    whole = min(max(int(seconds), 2), 10)
    return {"connect_timeout": whole, "tcp_user_timeout": 1000 * whole}


def milliseconds(seconds: float) -> str:
    """A duration as the value of a server setting."""
    return f"{int(1000 * seconds)}ms"


def _settings(settings: dict[str, str]) -> str:
    return "; ".join(f"set {name} = '{value}'" for name, value in settings.items())


def _set(raw: psycopg.Connection[Any], settings: dict[str, str]) -> None:
    """Change settings of the session, except those that this server does not have."""
    try:
        raw.execute(_settings(settings))
    except psycopg.Error:
        for name, value in settings.items():
            with suppress(psycopg.DatabaseError):
                raw.execute(f"set {name} = '{value}'")
