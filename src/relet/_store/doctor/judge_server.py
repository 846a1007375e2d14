"""What to make of a PostgreSQL server and the way to it. Pure: figures in, findings out."""

from __future__ import annotations

from typing import NamedTuple

from ..._core.finding import Finding, duration, plain

OLDEST_SERVER = 140000  # detach partition ... concurrently
HELD_FOR = 300.0  # at a few hundred jobs a second, dead rows of five minutes begin to be felt by claims
HELD_TRANSACTIONS = 100_000  # the same where only the number of transactions since is known
SHOWN_HOLDERS = 5
NOTIFICATIONS_WARN, NOTIFICATIONS_ERROR = 0.25, 0.8  # empty within seconds as a rule; full: commits that notify fail


class ServerFacts(NamedTuple):
    """What the server says of itself."""

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
    """Something that keeps dead rows from being removed. `seconds` None: not known, or not to be seen by us."""

    kind: str
    name: str
    application: str
    state: str
    role: str
    seconds: float | None
    age: int


class Connections(NamedTuple):
    """Connections that there are and may be; -1: no bound."""

    used: int
    most: int
    reserved: int
    database_most: int
    database_used: int
    role_most: int
    role_used: int


def server(facts: ServerFacts) -> list[Finding]:
    """Its version, whether it takes writes, and whether it keeps them."""
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
        return [Finding("writable", "error", "the server is in recovery: a standby, which takes no writes", advice)]
    if facts.read_only:
        text = f"default_transaction_read_only is on for this role (set by: {facts.read_only_by}): no write is taken"
        how = {
            "user": f'alter role "{facts.role}" reset default_transaction_read_only',
            "database": f'alter database "{facts.database}" reset default_transaction_read_only',
            "database user": f'alter role "{facts.role}" in database "{facts.database}" reset all',
            "client": "take default_transaction_read_only out of the URL and PGOPTIONS",
        }
        advice = how.get(facts.read_only_by, "set default_transaction_read_only = off in the server's configuration")
        return [Finding("writable", "error", text, advice)]
    return [Finding("writable", "ok", "the server takes writes")]


def _durable(facts: ServerFacts) -> list[Finding]:
    if not facts.fsync:
        text = "fsync is off: a crash of the machine may leave the whole database unusable"
        return [Finding("durability", "warning", text, "set fsync = on, unless all of it may be lost")]
    if not facts.full_pages:
        text = "full_page_writes is off: safe only on a file system that never tears a page (ZFS)"
        return [Finding("durability", "info", text, "set full_page_writes = on if you are not sure")]
    if facts.synchronous == "off":
        text = "synchronous_commit is off: jobs of the last second before a crash may be lost after enqueue returned"
        return [Finding("durability", "info", text, "set synchronous_commit = on for this role, if that matters")]
    seen = f"commits are on the disk when they return (synchronous_commit = {facts.synchronous})"
    return [Finding("durability", "ok", seen)]


def holders(found: list[Holder]) -> list[Finding]:
    """Old transactions, prepared ones, slots and standbys that hold back vacuum."""
    old = [one for one in found if _is_old(one)]
    old.sort(key=lambda one: (one.seconds or 0.0, one.age), reverse=True)
    shown = [Finding("old_transactions", "warning", _held_by(one), _let_go(one)) for one in old[:SHOWN_HOLDERS]]
    if len(old) > SHOWN_HOLDERS:
        shown.append(Finding("old_transactions", "warning", f"{len(old) - SHOWN_HOLDERS} more hold back vacuum", None))
    oldest = max((one.seconds for one in found if one.seconds is not None), default=None)
    seen = "" if oldest is None else f"; the oldest open transaction is {duration(max(oldest, 0.0))} old"
    return shown or [Finding("old_transactions", "ok", f"nothing holds back vacuum{seen}")]


def _is_old(one: Holder) -> bool:
    return one.age >= HELD_TRANSACTIONS if one.seconds is None else one.seconds >= HELD_FOR


def _held_by(one: Holder) -> str:
    since = "" if one.seconds is None else f" for {duration(one.seconds)}"
    who = f"application {plain(one.application)!r}, role {plain(one.role)}, {one.state or 'state not visible'}"
    what = {
        "session": f"the transaction of server process {one.name} ({who}) is open{since}",
        "prepared": f"prepared transaction {plain(one.name)!r} of role {plain(one.role)} has waited{since}",
        "slot": f"replication slot {plain(one.name)!r} ({one.state}) keeps what its standby may still need",
        "standby": f"standby {plain(one.application)!r} (hot_standby_feedback) keeps what its queries may still need",
    }[one.kind]
    return f"{what}: dead rows of the last {one.age:,} transactions cannot be removed, and claims slow down"


def _let_go(one: Holder) -> str:
    if one.kind == "prepared":
        return f"commit or roll it back: rollback prepared '{plain(one.name)}'"
    if one.kind == "slot":
        return f"start its standby, or, if that is gone for good: select pg_drop_replication_slot('{plain(one.name)}')"
    if one.kind == "standby":
        return "end the long query on the standby, or set hot_standby_feedback = off there"
    end = f"select pg_terminate_backend({one.name})"
    if one.state.startswith("idle in transaction"):
        return f"its program forgot to commit: {end}, and set idle_in_transaction_session_timeout for that role"
    return f"let it end, or end it: {end}"


def notifications(used: float) -> list[Finding]:
    """How full the queue of notifications is, from 0 to 1."""
    seen = f"the queue of notifications is {used:.0%} full"
    if used < NOTIFICATIONS_WARN:
        return [Finding("notifications", "ok", seen)]
    text = f"{seen}: a session that listens has had a transaction open for long; once it is full, commits fail"
    advice = "end that transaction: see old_transactions, and in pg_stat_activity who is idle in transaction"
    return [Finding("notifications", "error" if used >= NOTIFICATIONS_ERROR else "warning", text, advice)]


def connections(facts: Connections) -> list[Finding]:
    """How many more connections the server, the database and the role allow."""
    rooms = [("the server", facts.used, facts.most - facts.reserved)]
    if facts.database_most >= 0:
        rooms.append(("the database", facts.database_used, facts.database_most))
    if facts.role_most >= 0:
        rooms.append(("the role", facts.role_used, facts.role_most))
    tight = [room for room in rooms if room[2] - room[1] < max(3, room[2] // 10)]  # a worker needs three or more
    if not tight:
        return [Finding("connections", "ok", f"{facts.used} of {facts.most - facts.reserved} connections are in use")]
    advice = "close what is idle, lower App(connections=...), put a pooler between, or raise max_connections"
    return [
        Finding("connections", "warning", f"{used} of {most} connections of {whose} are in use", advice)
        for whose, used, most in tight
    ]


def pooler(pooled: bool, ours: list[int], others: list[int | None]) -> list[Finding]:
    """Which server processes answered two connections that asked by turns; None: no answer in time."""
    if not pooled:
        return [
            Finding("pooler", "ok", "no pooler was noticed: the server process that greets is the one that answers")
        ]
    if len(set(ours)) > 1 or any(pid in ours for pid in others if pid is not None):
        text = (
            "a pooler in transaction mode stands between: that works, but notifications do not come through, "
            "statements are not prepared, and who waits polls up to once a second"
        )
        advice = (
            "for the quickest start of jobs give workers a URL that goes to the server itself, or to a session pool"
        )
        return [Finding("pooler", "info", text, advice)]
    if None in others:
        text = "a pooler stands between, and gave no second connection within 2 s: its pool is used up; mode unknown"
        advice = "raise its pool size (PgBouncer: default_pool_size), or use fewer clients"
        return [Finding("pooler", "warning", text, advice)]
    text = f"a pooler stands between, it seems in session mode: two connections kept their processes {len(ours)} times"
    return [Finding("pooler", "ok", text)]
