"""A PostgreSQL database: the connections to it, and the one that listens. Stores in several schemas may share them."""

from __future__ import annotations

from typing import Any

import psycopg

from ..core.errors import StoreError, StoreUnavailable
from .pool import Pool
from .store import Transient
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
        self._reached = False
        self.pool = Pool(self.connect, self._is_usable, most=connections)
        self.wakes = Wakes(self)

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection, set up as all of ours are."""
        try:
            given = psycopg.conninfo.conninfo_to_dict(self.url)
            options: dict[str, Any] = {name: value for name, value in self._options.items() if name not in given}
            connection = psycopg.connect(self.url, autocommit=True, prepare_threshold=self._prepare, **options)
            if _is_pooled(connection):
                connection.prepare_threshold = None  # what is prepared here may be looked for, or met, elsewhere
        except psycopg.ProgrammingError as error:
            raise StoreError(f"this is no PostgreSQL URL: {self.where} ({hide(str(error), self.url)})") from None
        except psycopg.Error as error:
            # No chaining: what libpq says of a URL may show all of it.
            away = StoreUnavailable(f"cannot connect to {self.where}: {hide(str(error), self.url).strip()}")
            # Who has never been there is more likely to have the wrong address than to meet an outage: told at once.
            raise (Transient(away, unknown=False) if self._reached else away) from None
        self._reached = True
        return connection

    def listen(self) -> PostgresListener:
        """A connection that hears notifications."""
        return PostgresListener(self.connect())

    def prepare_no_more(self) -> None:
        """A pooler that does not know of prepared statements stands between."""
        self._prepare = None
        self.pool.close()

    def close(self) -> None:
        """Close all idle connections, and listen no more until somebody sleeps again."""
        self.wakes.close()
        self.pool.close()

    def _is_usable(self, raw: psycopg.Connection[Any]) -> bool:
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


def _impatient(seconds: float) -> dict[str, Any]:
    """For connections on which a lease depends: one that is dead must be noticed before the lease runs out."""
    whole = min(max(int(seconds), 2), 10)
    return {"connect_timeout": whole, "tcp_user_timeout": 1000 * whole}


def _is_pooled(raw: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands between: then the server process is another than the one that greeted us."""
    (pid,) = raw.execute("select pg_backend_pid()").fetchone() or (None,)
    return bool(pid != raw.info.backend_pid)
