"""A PostgreSQL database: the connections to it, and the one that listens. Stores in several schemas may share them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from ..errors import StoreError, StoreRefused, StoreUnavailable
from .deadlines import ANSWER_MARGIN, STATEMENT_SECONDS, watchdog
from .notify import Notifier
from .pool import IdleAsyncConnections, LoopSemaphore, Pool
from .retry import HANDLER_SECONDS, Transient
from .urls import hide, shown

#: For each host of the URL. One that vanishes must not keep us from the others for long.
CONNECT_SECONDS = 3

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


#: So that the server notices when our host vanishes: its locks are held until then. A pooler's sessions are not ours.
KEEPALIVES = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "30s",
}

#: Parts of a URL that may be lists, and what an empty place in the list stands for.
_PER_HOST = {"host": "", "hostaddr": "", "port": "5432"}

#: What the server says when it will not let us in, however often we ask.
_REFUSED = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|(role|database) .* does not exist"
    r"|permission denied for database|is not permitted to log in|does not support SSL|unsupported frontend protocol"
)


class Hosts:
    """The hosts of a URL, in the order in which they are tried: the one that answered last goes first.

    One that is away may cost the whole connect timeout with each new connection.
    """

    def __init__(self, url: str) -> None:
        self._lists = {name: value.split(",") for name, value in _of_url(url).items() if name in _PER_HOST}
        self.number = max(map(len, self._lists.values()), default=1)
        self._first = 0
        self._of: WeakKeyDictionary[psycopg.Connection[Any] | psycopg.AsyncConnection[Any], int] = WeakKeyDictionary()

    def options(self) -> dict[str, str]:
        """What the URL says of its hosts, in the order of this moment."""
        if self.number == 1:
            return {}
        first = self._first
        return {
            name: ",".join(values[first:] + values[:first])
            for name, values in self._lists.items()
            if len(values) == self.number
        }

    def answered(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """A connection was made."""
        if self.number > 1:
            for number in range(self.number):
                if self._is_at(raw, number):
                    self._of[raw] = self._first = number

    def avoid(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """The host of this connection does not answer, or no longer accepts writes: the others are tried before."""
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
    """Where the connections of one or several stores come from."""

    def __init__(self, url: str, connections: int, patience: float | None = None) -> None:
        self.url = url
        self._options = DEFAULTS if patience is None else {**DEFAULTS, **_impatient(patience)}
        #: that the server may work on a small statement
        self.statement_seconds = STATEMENT_SECONDS if patience is None else min(max(patience, 0.5), STATEMENT_SECONDS)
        self.where = shown(url)
        self._hosts = Hosts(url)
        #: Another host may take over, and we want the one that accepts writes; a URL may say otherwise.
        self._moves = self._hosts.number > 1 and "target_session_attrs" not in _of_url(url)
        self._prepare: int | None = 5
        self.pooled = True  # unless it shows that there is no pooler between
        self._reached = False
        self.pool = Pool(self.connect, self._is_usable, most=connections)
        # Handlers that have a transaction open, and call the client in it, must not wait for each other's connections.
        self.openers = Pool(self.connect_unlimited, self._is_usable, most=connections, patience=HANDLER_SECONDS)
        self.async_slots = LoopSemaphore(connections, HANDLER_SECONDS)
        self._on_loops = IdleAsyncConnections(_close_async, most=connections)
        self.notifier = Notifier(self)

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection for our own statements, which are short."""
        limits = {
            "statement_timeout": milliseconds(self.statement_seconds),
            "idle_in_transaction_session_timeout": "3s",
            # The shape of each statement decides its plan, whatever its parameters: no need to plan it each time.
            "plan_cache_mode": "force_generic_plan",
        }
        return self._connect({**KEEPALIVES, **limits})

    def connect_unlimited(self) -> psycopg.Connection[Any]:
        """A new connection for the transactions of handlers, and for what takes long."""
        return self._connect(KEEPALIVES)

    def _connect(self, settings: dict[str, str]) -> psycopg.Connection[Any]:
        connection = self.open()
        try:
            with self._meaning_of_errors(), watchdog.limit(connection, CONNECT_SECONDS):
                self.pooled = _is_pooled(connection)
                if self.pooled:
                    connection.prepare_threshold = None  # what is prepared here may be looked for, or met, elsewhere
                else:
                    _set(connection, settings)
        except BaseException:
            connection.close()
            raise
        self._reached = True
        return connection

    def open(self, **options: Any) -> psycopg.Connection[Any]:
        """A new connection on which nothing was asked yet. What the URL says goes before these options."""
        with self._meaning_of_errors():
            made = psycopg.connect(
                self.url, autocommit=True, prepare_threshold=self._prepare, **self._options_given(**options)
            )
        self._hosts.answered(made)
        return made

    async def aconnect(self) -> psycopg.AsyncConnection[Any]:
        """A connection for the event loop that runs here: one that was kept for it, or a new one."""
        kept = self._on_loops.take(asyncio.get_running_loop())
        if kept is not None:
            return kept
        with self._meaning_of_errors():
            made = await psycopg.AsyncConnection.connect(
                self.url,
                autocommit=True,
                prepare_threshold=None if self.pooled else self._prepare,
                **self._options_given(),
            )
            if not self.pooled:
                try:
                    with suppress(psycopg.DatabaseError), watchdog.limit(made, CONNECT_SECONDS):
                        await made.execute(_settings(KEEPALIVES))
                except BaseException:  # cancelled: no caller knows of it yet
                    _close_async(made)
                    raise
        self._hosts.answered(made)
        self._reached = True
        return made

    async def aclose(self, raw: psycopg.AsyncConnection[Any]) -> None:
        """Keep an async connection for the next on this loop, if it is good."""
        if self._is_usable(raw):
            self._on_loops.keep(asyncio.get_running_loop(), raw)
        else:
            await raw.close()

    def leave_loop(self) -> None:
        """Close the connections that were kept for the event loop that runs here."""
        self._on_loops.close(asyncio.get_running_loop())

    def _options_given(self, **more: Any) -> dict[str, Any]:
        given = _of_url(self.url)
        ours = {name: value for name, value in {**self._options, **more}.items() if name not in given}
        return {**ours, **self._hosts.options(), "client_encoding": "utf8"}  # parameters are sent as UTF-8

    @contextmanager
    def _meaning_of_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.ProgrammingError as error:
            interrupt = error.__context__  # psycopg replaces whatever is raised while it reads the connect timeout
            if interrupt is not None and not isinstance(interrupt, ValueError | TypeError | psycopg.Error):
                raise interrupt from None
            raise StoreError(f"this is no PostgreSQL URL: {self.where} ({hide(str(error), self.url)})") from None
        except psycopg.Error as error:
            # No chaining: what libpq says of a URL may show all of it.
            message = f"cannot connect to {self.where}: {hide(str(error), self.url).strip()}"
            if _REFUSED.search(str(error)) and not self._reached:
                raise StoreRefused(message) from None
            away = StoreUnavailable(message)
            # Who has never been there is more likely to have the wrong address than to meet an outage: told at once.
            raise (Transient(away, may_be_committed=False) if self._reached else away) from None

    def listen(self) -> PostgresListener:
        """A connection that hears notifications."""
        return PostgresListener(self.connect(), moves=self._moves)

    def prepare_no_more(self) -> None:
        """A pooler that does not know of prepared statements stands between."""
        self._prepare = None
        self.drop_idle()

    def leave(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """The server of this connection does not answer, or no longer accepts writes: the others are as bad. The next
        one may find another host."""
        self._hosts.avoid(raw)
        self.drop_idle()

    def drop_idle(self) -> None:
        """Close the connections that are not in use, and those in use when they come back."""
        self.pool.close()
        self.openers.close()
        self._on_loops.close()

    def close(self) -> None:
        """Close all idle connections, and listen no more until somebody sleeps again."""
        self.notifier.close()
        self.drop_idle()

    def _is_usable(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
        """Neither closed nor in a transaction, nor made before prepared statements were given up, nor on a server that
        was demoted meanwhile: what is read there gets old."""
        idle = not raw.closed and raw.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if not idle or (raw.prepare_threshold is not None and self._prepare is None):
            return False
        return not (self._moves and is_read_only(raw))


class PostgresListener:
    """A connection of its own that hears notifications."""

    def __init__(self, raw: psycopg.Connection[Any], *, moves: bool = False) -> None:
        self._raw = raw
        self._moves = moves  # to another host, if this one accepts no more writes
        self._channels: set[str] = set()

    def wait(self, seconds: float, channels: frozenset[str]) -> set[str]:
        """What was heard. Silence is followed by a question, so that a dead connection is noticed.

        A channel that is new counts as heard: something may have been said before we listened.
        """
        new = channels - self._channels
        with watchdog.limit(self._raw, STATEMENT_SECONDS + ANSWER_MARGIN):
            for name in new:
                self._raw.execute(f'listen "{name}"')
        self._channels |= new
        if new:
            return set(new)
        heard = {note.channel for note in self._raw.notifies(timeout=seconds, stop_after=1)}
        if not heard:
            with watchdog.limit(self._raw, STATEMENT_SECONDS + ANSWER_MARGIN):
                self._raw.execute("select 1")
            if self._moves and is_read_only(self._raw):
                raise StoreUnavailable("the server accepts no more writes, so there is nothing to hear")
        return heard

    def close(self) -> None:
        """Stop listening."""
        self._raw.close()


def is_read_only(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether the server has said that it accepts no writes. It tells so without being asked (since version 14)."""
    return raw.info.parameter_status("default_transaction_read_only") == "on"


def _of_url(url: str) -> dict[str, str]:
    """What a URL says; nothing, if it is none."""
    try:
        return {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        return {}  # connecting says what is wrong with it


def _close_async(raw: psycopg.AsyncConnection[Any]) -> None:
    """Close an idle async connection from anywhere, its event loop may be gone."""
    raw.pgconn.finish()


def _impatient(seconds: float) -> dict[str, Any]:
    """For connections on which a lease depends: one that is dead must be noticed before the lease runs out."""
    whole = min(max(int(seconds), 2), 10)
    return {"connect_timeout": whole, "tcp_user_timeout": 1000 * whole}


def _is_pooled(raw: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands between: then the server process is another than the one that greeted us."""
    (pid,) = raw.execute("select pg_backend_pid()").fetchone() or (None,)
    return bool(pid != raw.info.backend_pid)


def milliseconds(seconds: float) -> str:
    """A duration as a setting."""
    return f"{int(1000 * seconds)}ms"


def _settings(settings: dict[str, str]) -> str:
    return "; ".join(f"set {name} = '{value}'" for name, value in settings.items())


def _set(raw: psycopg.Connection[Any], settings: dict[str, str]) -> None:
    """Settings of the session; those that this server does not have are left out."""
    try:
        raw.execute(_settings(settings))
    except psycopg.Error:
        for name, value in settings.items():
            with suppress(psycopg.DatabaseError):
                raw.execute(f"set {name} = '{value}'")
