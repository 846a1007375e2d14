"""The capabilities of the server behind a connection, found by trying, not by its version.

The first connection of a pool finds out, and the first one after a failover to another host does so again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, cast, get_args

import psycopg
from msgspec import Struct

from .._core.variants import Variant
from ..errors import StoreError
from .deadlines import watchdog

ANSWERS_WITHIN = 2.0  # seconds; a pooler whose servers are all in use does not answer at all

#: How far the clocks of two nodes may be apart unless the operator of the cluster allows more. Both YugabyteDB
#: (max_clock_skew_usec) and CockroachDB (--max-offset) stop a node whose clock differs by more than that.
USUAL_MARGIN = 0.5
GREATEST_MARGIN = 1.0

JSON = '{"b": 1.0, "a": 1}'

# Settings that this server does not have are null. The functions and the schema belong to engines whose nodes each have
# a clock. Settings that begin with `relet.` come from the URL: options=-c relet.variant=rows.
_FACTS = """
select pg_backend_pid(), %(json)s::json::text, current_setting('transaction_isolation', true),
       current_setting('relet.variant', true), current_setting('relet.clock_margin', true),
       current_setting('citus.enable_schema_based_sharding', true),
       (select count(*) from pg_catalog.pg_proc where proname = 'yb_servers')
       + (select count(*) from pg_catalog.pg_namespace where nspname = 'crdb_internal')
"""

_PARTITIONED = b"create table relet_probe (id uuid primary key) partition by range (id)"


class Capabilities(Struct, frozen=True):
    """The capabilities of the server.

    `notifications`: LISTEN works through this connection. `json_text`: JSON is stored as the text that was sent.
    `clock_margin`: how many seconds the clocks of its nodes may be apart; 0: there is one clock. `cached_sequences`:
    each node or connection takes its numbers in blocks. `isolation`: of a transaction that does not ask for one.
    `spreads_schemas`: None: the server does not spread schemas over nodes (Citus); False: only those that an operator
    distributes; True: all that are made. `wanted`: the variant that the URL asks for.
    """

    notifications: bool = True
    partitions: bool = True
    json_text: bool = True
    clock_margin: float = 0.0
    cached_sequences: bool = False
    isolation: str = "read committed"
    spreads_schemas: bool | None = None
    wanted: Variant | None = None

    @property
    def variant(self) -> Variant:
        """The variant of a new schema."""
        if self.wanted is not None:
            return self.wanted
        fits = self.partitions and self.json_text and not self.clock_margin and not self.spreads_schemas
        return "postgres" if fits else "rows"

    @property
    def generic_plans(self) -> bool:
        """Whether one plan fits all parameters. The node that a statement belongs to is found by its parameters."""
        return self.spreads_schemas is None and not self.clock_margin


def is_pooled(raw: psycopg.Connection[Any]) -> bool:
    """True if the connection goes through a pooler: the query runs in another process than the one we connected to."""
    return _backend(raw) != raw.info.backend_pid


def find(raw: psycopg.Connection[Any], other: Callable[[], psycopg.Connection[Any]]) -> tuple[bool, Capabilities]:
    """Whether the connection goes through a pooler, and what the server can do: four round trips.

    `other`: opens a second connection, to see what a pooler does.
    """
    try:
        facts = raw.execute(_FACTS, {"json": JSON}).fetchall()
    except psycopg.DatabaseError:
        if raw.closed:
            raise
        return is_pooled(raw), Capabilities()  # an unknown engine, of which nothing is known
    ((pid, json, isolation, wanted, margin, spreads, nodes),) = facts
    pooled = pid != raw.info.backend_pid
    return pooled, Capabilities(
        notifications=_keeps_session(raw, other) if pooled else _notifies(raw),
        partitions=_can_parse(raw, _PARTITIONED),
        json_text=json == JSON,
        clock_margin=_margin(margin) if margin else USUAL_MARGIN if nodes or spreads == "on" else 0.0,
        cached_sequences=bool(nodes),
        isolation=isolation or "unknown",
        spreads_schemas=None if spreads is None else spreads == "on",
        wanted=_variant(wanted),
    )


def has_advisory_locks(raw: psycopg.Connection[Any]) -> bool:
    """Whether an advisory lock is one: some engines accept it without effect. Nothing depends on it."""
    query = """
        select case when (select pg_try_advisory_xact_lock(7102026)) then (
            select count(*) from pg_catalog.pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) > 0 end
    """
    with suppress(psycopg.DatabaseError), raw.transaction():
        (found,) = raw.execute(query).fetchone() or (None,)
        return bool(found)
    return False


def _backend(raw: psycopg.Connection[Any]) -> int | None:
    (pid,) = raw.execute("select pg_backend_pid()").fetchone() or (None,)
    return pid


def _can_parse(raw: psycopg.Connection[Any], statement: bytes) -> bool:
    """Whether the server knows this syntax. A statement that is only prepared makes nothing."""
    result = raw.pgconn.prepare(b"", statement)
    return bool(result.status == psycopg.pq.ExecStatus.COMMAND_OK)


def _notifies(raw: psycopg.Connection[Any]) -> bool:
    """Send a notification to ourselves: it arrives together with the answer."""
    heard: list[psycopg.Notify] = []
    raw.add_notify_handler(heard.append)
    try:
        raw.execute("listen relet_probe; notify relet_probe")
        raw.execute("unlisten relet_probe")
    except psycopg.DatabaseError:
        if raw.closed:
            raise
    finally:
        raw.remove_notify_handler(heard.append)
    return bool(heard)


def _keeps_session(raw: psycopg.Connection[Any], other: Callable[[], psycopg.Connection[Any]]) -> bool:
    """Whether a pooler leaves a session to one client, so that it can listen: while another client's transaction
    occupies a server process, ours is still the same."""
    try:
        ours = _backend(raw)
        with closing(other()) as theirs, watchdog.limit(theirs, ANSWERS_WITHIN):
            theirs.execute("begin")
            theirs.execute("select 1")
            return _backend(raw) == ours and not theirs.closed
    except (psycopg.Error, StoreError):
        return False


def _margin(text: str) -> float:
    """The pulse takes a clock that is back by more than GREATEST_MARGIN for one that was set back."""
    with suppress(ValueError):
        if 0 <= float(text) <= GREATEST_MARGIN:
            return float(text)
    raise StoreError(f"relet.clock_margin in the URL must be seconds from 0 to {GREATEST_MARGIN:g}, not {text!r}")


def _variant(text: str | None) -> Variant | None:
    for known in get_args(Variant):
        if text == known:
            return cast(Variant, known)
    if text:
        raise StoreError(f"relet.variant in the URL must be postgres or rows, not {text!r}")
    return None
