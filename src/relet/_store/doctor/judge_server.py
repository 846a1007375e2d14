"""Findings about a PostgreSQL server and the connection to it. Pure: figures in, findings out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..._core.finding import Finding
from ..._core.text import duration, quotable

if TYPE_CHECKING:
    from ..capabilities import Capabilities

OLDEST_SERVER = 140000  # detach partition ... concurrently
OLD_SECONDS = 300.0  # at a few hundred jobs a second, the dead rows of five minutes begin to slow down claims
OLD_TRANSACTIONS = 100_000  # the limit where only the number of transactions since then is known
MAX_HOLDERS = 5
NOTIFICATIONS_WARN, NOTIFICATIONS_ERROR = 0.25, 0.8  # usually near 0; at 1, commits that notify fail


class ServerFacts(NamedTuple):
    """Version, role and settings of the server."""

    number: int
    version: str
    role: str
    database: str
    standby: bool
    read_only: bool
    read_only_by: str
    fsync: bool
    full_pages: bool
    synchronous: str


class Holder(NamedTuple):
    """A transaction, slot or standby that keeps dead rows from being removed.

    `seconds` None: not known, or not visible to this role.
    """

    kind: str
    name: str
    application: str
    state: str
    role: str
    seconds: float | None
    age: int


class Connections(NamedTuple):
    """Connections in use, and their limits; -1: no limit."""

    used: int
    limit: int
    reserved: int
    database_limit: int
    database_used: int
    role_limit: int
    role_used: int


def server(facts: ServerFacts) -> list[Finding]:
    """Its version, whether it accepts writes, and whether commits are durable."""
    found = []
    if facts.number < OLDEST_SERVER:
        text = f"PostgreSQL {facts.version}; 14 or newer is needed"
        found.append(Finding("server", "error", text, "upgrade the server: older ones cannot detach partitions safely"))
    else:
        found.append(Finding("server", "ok", f"PostgreSQL {facts.version}, as role {facts.role}"))
    return found + _writable(facts) + _durable(facts)


def _writable(facts: ServerFacts) -> list[Finding]:
    if facts.standby:
        advice = "name the primary in the URL, or all hosts: target_session_attrs=read-write finds the primary"
        return [Finding("writable", "error", "the server is in recovery: a standby, which accepts no writes", advice)]
    if facts.read_only:
        text = f"default_transaction_read_only is on for this role (set by: {facts.read_only_by}): it cannot write"
        how = {
            "user": f'alter role "{facts.role}" reset default_transaction_read_only',
            "database": f'alter database "{facts.database}" reset default_transaction_read_only',
            "database user": f'alter role "{facts.role}" in database "{facts.database}" reset all',
            "client": "remove default_transaction_read_only from the URL and PGOPTIONS",
        }
        advice = how.get(facts.read_only_by, "set default_transaction_read_only = off in the server's configuration")
        return [Finding("writable", "error", text, advice)]
    return [Finding("writable", "ok", "the server accepts writes")]


def _durable(facts: ServerFacts) -> list[Finding]:
    if not facts.fsync:
        text = "fsync is off: a crash of the machine may leave the whole database unusable"
        return [Finding("durability", "warning", text, "set fsync = on, unless the database may be lost")]
    if not facts.full_pages:
        text = "full_page_writes is off: safe only on a file system that never tears a page (ZFS)"
        return [Finding("durability", "info", text, "set full_page_writes = on if you are not sure")]
    if facts.synchronous == "off":
        text = "synchronous_commit is off: jobs of the last second before a crash may be lost after enqueue returned"
        return [Finding("durability", "info", text, "set synchronous_commit = on for this role, if that matters")]
    seen = f"commits are on the disk when they return (synchronous_commit = {facts.synchronous})"
    return [Finding("durability", "ok", seen)]


def holders(found: list[Holder]) -> list[Finding]:
    """Old transactions, prepared transactions, slots and standbys that hold back vacuum."""
    old = [one for one in found if _is_old(one)]
    old.sort(key=lambda one: (one.seconds or 0.0, one.age), reverse=True)
    findings = [Finding("old_transactions", "warning", _describe(one), _remedy(one)) for one in old[:MAX_HOLDERS]]
    if len(old) > MAX_HOLDERS:
        rest = f"{len(old) - MAX_HOLDERS} more hold back vacuum"
        findings.append(Finding("old_transactions", "warning", rest, None))
    oldest = max((one.seconds for one in found if one.seconds is not None), default=None)
    seen = "" if oldest is None else f"; the oldest open transaction is {duration(max(oldest, 0.0))} old"
    return findings or [Finding("old_transactions", "ok", f"nothing holds back vacuum{seen}")]


def _is_old(one: Holder) -> bool:
    return one.age >= OLD_TRANSACTIONS if one.seconds is None else one.seconds >= OLD_SECONDS


def _describe(one: Holder) -> str:
    since = "" if one.seconds is None else f" for {duration(one.seconds)}"
    who = f"application {quotable(one.application)!r}, role {quotable(one.role)}, {one.state or 'state not visible'}"
    what = {
        "session": f"the transaction of server process {one.name} ({who}) is open{since}",
        "prepared": f"prepared transaction {quotable(one.name)!r} of role {quotable(one.role)} has waited{since}",
        "slot": f"replication slot {quotable(one.name)!r} ({one.state}) keeps rows that its standby may still need",
        "standby": f"standby {quotable(one.application)!r} (hot_standby_feedback) keeps rows that its queries may need",
    }[one.kind]
    return f"{what}: dead rows of the last {one.age:,} transactions cannot be removed, and claims slow down"


def _remedy(one: Holder) -> str:
    if one.kind == "prepared":
        return f"commit or roll it back: rollback prepared '{quotable(one.name)}'"
    if one.kind == "slot":
        return f"start its standby, or, if it no longer exists: select pg_drop_replication_slot('{quotable(one.name)}')"
    if one.kind == "standby":
        return "end the long query on the standby, or set hot_standby_feedback = off there"
    end = f"select pg_terminate_backend({one.name})"
    if one.state.startswith("idle in transaction"):
        return f"its program did not commit: {end}, and set idle_in_transaction_session_timeout for that role"
    return f"wait until it ends, or end it: {end}"


def notifications(used: float) -> list[Finding]:
    """How full the queue of notifications is, from 0 to 1."""
    seen = f"the queue of notifications is {used:.0%} full"
    if used < NOTIFICATIONS_WARN:
        return [Finding("notifications", "ok", seen)]
    text = f"{seen}: a listening session has kept a transaction open for long; when the queue is full, commits fail"
    advice = "end that transaction: see old_transactions, and sessions in pg_stat_activity that are idle in transaction"
    return [Finding("notifications", "error" if used >= NOTIFICATIONS_ERROR else "warning", text, advice)]


def connections(facts: Connections) -> list[Finding]:
    """How many more connections the server, the database and the role allow."""
    scopes = [("the server", facts.used, facts.limit - facts.reserved)]
    if facts.database_limit >= 0:
        scopes.append(("the database", facts.database_used, facts.database_limit))
    if facts.role_limit >= 0:
        scopes.append(("the role", facts.role_used, facts.role_limit))
    tight = [scope for scope in scopes if scope[2] - scope[1] < max(3, scope[2] // 10)]  # a worker needs three or more
    if not tight:
        return [Finding("connections", "ok", f"{facts.used} of {facts.limit - facts.reserved} connections are in use")]
    advice = "close idle connections, lower App(connections=...), use a pooler, or raise max_connections"
    return [
        Finding("connections", "warning", f"{used} of {limit} connections of {scope} are in use", advice)
        for scope, used, limit in tight
    ]


def pooler(pooled: bool, ours: list[int], others: list[int | None]) -> list[Finding]:
    """The server processes that answered two connections in turn; None: no answer in time."""
    if not pooled:
        return [Finding("pooler", "ok", "no pooler found: the server process that accepts the connection also answers")]
    if len(set(ours)) > 1 or any(pid in ours for pid in others if pid is not None):
        text = (
            "the connection goes through a pooler in transaction mode: that works, but notifications do not arrive, "
            "statements are not prepared, and waiting programs poll up to once a second"
        )
        advice = "to start jobs with the least delay, give workers a URL of the server itself, or of a session pool"
        return [Finding("pooler", "info", text, advice)]
    if None in others:
        text = "the pooler gave no second connection within 2 s: its pool is exhausted; mode unknown"
        advice = "raise its pool size (PgBouncer: default_pool_size), or use fewer clients"
        return [Finding("pooler", "warning", text, advice)]
    text = f"a pooler is in use, probably in session mode: two connections kept their processes {len(ours)} times"
    return [Finding("pooler", "ok", text)]


def capabilities(found: Capabilities, advisory_locks: bool, statements: str) -> list[Finding]:
    """The capabilities of the server, and which variant of the schema the store has."""
    clocks = f"clocks up to {found.clock_margin:g} s apart" if found.clock_margin else "one clock"
    facts = [
        f"notifications {_yes(found.notifications)}",
        f"partitions {_yes(found.partitions)}",
        f"JSON kept as text {_yes(found.json_text)}",
        clocks,
        f"numbers of sequences in order {_yes(not found.cached_sequences)}",
        f"advisory locks {_yes(advisory_locks)}",
        f"isolation {found.isolation}",
    ]
    if found.spreads_schemas is not None:
        facts.append(f"Citus, which distributes new schemas: {_yes(found.spreads_schemas)}")
    text = f"{', '.join(facts)}; schema of the variant {statements}"
    if statements == "postgres" and found.variant == "rows" and found.wanted is None:
        advice = "a schema of this variant was made for PostgreSQL: see docs/guides/distributed.md"
        return [Finding("capabilities", "warning", text, advice)]
    return [Finding("capabilities", "ok", text)]


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
