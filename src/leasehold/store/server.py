"""A PostgreSQL database: the connections to it, and the one that listens. Stores in several schemas may share them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from ..core.errors import StoreError, StoreUnavailable
from .pool import Idle, Places, Pool
from .store import PATIENCE_OF_HANDLERS, Transient
from .urls import hide, shown
from .wakes import Wakes

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


class Server:
    """Where the connections of one or several stores come from."""

    def __init__(self, url: str, connections: int, patience: float | None = None) -> None:
        self.url = url
        self._options = DEFAULTS if patience is None else {**DEFAULTS, **_impatient(patience)}
        self.where = shown(url)
        self._prepare: int | None = 5
        self._pooled = True  # unless it shows that there is no pooler between
        self._reached = False
        self.pool = Pool(self.connect, self._is_usable, most=connections)
        # Handlers that have a transaction open, and call the client in it, must not wait for each other's connections.
        self.openers = Pool(self.connect, self._is_usable, most=connections, patience=PATIENCE_OF_HANDLERS)
        self.places = Places(connections, PATIENCE_OF_HANDLERS)
        self._on_loops = Idle(_close_async, most=connections)
        self.wakes = Wakes(self)

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection, set up as all of ours are."""
        connection = self.open()
        with self._meaning_of_errors():
            self._pooled = _is_pooled(connection)
            if self._pooled:
                connection.prepare_threshold = None  # what is prepared here may be looked for, or met, elsewhere
        self._reached = True
        return connection

    def open(self, **options: Any) -> psycopg.Connection[Any]:
        """A new connection on which nothing was asked yet. What the URL says goes before these options."""
        with self._meaning_of_errors():
            return psycopg.connect(
                self.url, autocommit=True, prepare_threshold=self._prepare, **self._options_given(**options)
            )

    async def aconnect(self) -> psycopg.AsyncConnection[Any]:
        """A connection for the event loop that runs here: one that was kept for it, or a new one."""
        kept = self._on_loops.take(asyncio.get_running_loop())
        if kept is not None:
            return kept
        with self._meaning_of_errors():
            made = await psycopg.AsyncConnection.connect(
                self.url,
                autocommit=True,
                prepare_threshold=None if self._pooled else self._prepare,
                **self._options_given(),
            )
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
        given = psycopg.conninfo.conninfo_to_dict(self.url)
        return {name: value for name, value in {**self._options, **more}.items() if name not in given}

    @contextmanager
    def _meaning_of_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.ProgrammingError as error:
            raise StoreError(f"this is no PostgreSQL URL: {self.where} ({hide(str(error), self.url)})") from None
        except psycopg.Error as error:
            # No chaining: what libpq says of a URL may show all of it.
            away = StoreUnavailable(f"cannot connect to {self.where}: {hide(str(error), self.url).strip()}")
            # Who has never been there is more likely to have the wrong address than to meet an outage: told at once.
            raise (Transient(away, unknown=False) if self._reached else away) from None

    def listen(self) -> PostgresListener:
        """A connection that hears notifications."""
        return PostgresListener(self.connect())

    def prepare_no_more(self) -> None:
        """A pooler that does not know of prepared statements stands between."""
        self._prepare = None
        self.pool.close()
        self.openers.close()
        self._on_loops.close()

    def close(self) -> None:
        """Close all idle connections, and listen no more until somebody sleeps again."""
        self.wakes.close()
        self.pool.close()
        self.openers.close()
        self._on_loops.close()

    def _is_usable(self, raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
        """Neither closed nor in a transaction, nor made before prepared statements were given up."""
        idle = not raw.closed and raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        return idle and (raw.prepare_threshold is None or self._prepare is not None)


class PostgresListener:
    """A connection of its own that hears notifications."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._raw = raw
        self._channels: set[str] = set()

    def wait(self, seconds: float, channels: frozenset[str]) -> set[str]:
        """What was heard. Silence is followed by a question, so that a dead connection is noticed.

        A channel that is new counts as heard: something may have been said before we listened.
        """
        new = channels - self._channels
        for name in new:
            self._raw.execute(f'listen "{name}"')
        self._channels |= new
        if new:
            return set(new)
        heard = {note.channel for note in self._raw.notifies(timeout=seconds, stop_after=1)}
        if not heard:
            self._raw.execute("select 1")
        return heard

    def close(self) -> None:
        """Stop listening."""
        self._raw.close()


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
