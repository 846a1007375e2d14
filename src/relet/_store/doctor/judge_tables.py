"""Findings about a PostgreSQL schema: objects, dead rows, sizes, partitions, privileges.

Pure: figures in, findings out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from ..._core.finding import Finding, Level
from ..._core.text import duration, listed, size
from .expected import Objects

MANY_DEAD = 10_000  # a claim skips them in about a millisecond: fewer make no noticeable difference
FAR_TOO_MANY_DEAD = 300_000  # measured: a claim takes 34 ms instead of 1 ms
TIMES_DUE = 5  # autovacuum starts at 1 time its own trigger
COMES_WITHIN = 300.0  # autovacuum checks once a minute, and has several tables to vacuum
BLOATED, FAR_TOO_BLOATED = 64_000_000, 1_000_000_000  # below the first, all of it stays in memory anyway
TIMES_TOO_LARGE = 5
ROW_OVERHEAD, ENTRY_OVERHEAD, FILLED = 28, 12, 0.7
UNKNOWN_ROW, UNKNOWN_ENTRY = 500, 40
DAYS_AHEAD = 2  # workers make seven: with fewer than two, no worker makes any
MANY_PARTITIONS = 400


class Object(NamedTuple):
    """An object in the schema. `valid` and `table` apply to indexes."""

    kind: str
    name: str
    valid: bool
    table: str | None


class Autovacuum(NamedTuple):
    """The server's settings of autovacuum. `counts`: track_counts is on."""

    on: bool
    counts: bool
    threshold: float
    scale: float


class Table(NamedTuple):
    """A table, by the server's statistics. `written`: its storage parameters."""

    name: str
    partition: bool
    live: int
    dead: int
    vacuumed: float | None
    autovacuumed: float | None
    bytes: int
    width: float | None
    written: str  # as JSON: ["fillfactor=10"]

    @property
    def options(self) -> dict[str, str]:
        """Its storage parameters."""
        return dict(one.split("=", 1) for one in json.loads(self.written))


class Index(NamedTuple):
    """An index, by the server's statistics; entries below 0: not known."""

    name: str
    table: str
    bytes: int
    entries: float
    width: float | None


class Privilege(NamedTuple):
    """The privileges that this role lacks on an object that programs use."""

    kind: str
    name: str
    owner: str
    as_owner: bool
    refused: str  # as JSON: ["insert", "delete"]

    @property
    def missing(self) -> list[str]:
        """The privileges that are missing."""
        return list(json.loads(self.refused))


class Partition(NamedTuple):
    """A partition of `finished`, which has one for each day. `pending`: a detach is; None: it is not attached."""

    name: str
    days: int
    pending: bool | None


def objects(found: Sequence[Object], wanted: Objects, quoted: str) -> list[Finding]:
    """Missing objects, invalid indexes, and foreign indexes on the jobs table, which must be fast."""
    existing = {(one.kind, one.name) for one in found}
    findings = [_missing(kind, name, wanted, quoted) for kind, name in sorted(wanted.names - existing)]
    for one in found:
        if one.kind == "index" and not one.valid:
            text = f"index {one.name} of {one.table} is invalid: it costs every write and helps no query"
            advice = f'reindex index concurrently {quoted}."{one.name}" (or drop it, if its name ends in _ccnew)'
            findings.append(Finding("indexes", "warning", text, advice))
    extra = [one.name for one in found if one.table == "jobs" and ("index", one.name) not in wanted.names and one.valid]
    if extra:
        text = f"jobs has indexes that are not Relet's: {listed(extra)}; each costs every enqueue, claim and settle"
        findings.append(
            Finding("indexes", "info", text, "drop them if you do not need them; query finished, or a replica")
        )
    if not any(one.check == "indexes" for one in findings):
        findings.append(Finding("indexes", "ok", f"all {len(wanted.of('index'))} indexes exist and are valid"))
    return findings


def _missing(kind: str, name: str, wanted: Objects, quoted: str) -> Finding:
    if kind == "index" and name in wanted.how:
        slow = "queries that would use it read the whole table"
        how = wanted.how[name]
        if not name.startswith("finished"):  # PostgreSQL cannot do so on a partitioned table
            how = how.replace(" index ", " index concurrently ", 1)
        return Finding("indexes", "error", f"index {name} is missing: {slow}", f"make it again: {how}")
    if kind == "index" and not name.endswith("_pkey"):
        advice = f"delete duplicate rows, then make the constraint {name} again as in the migration"
        return Finding("indexes", "error", f"the unique constraint {name} is missing", advice)
    if kind == "index":
        table = name.removesuffix("_pkey")
        advice = f"delete duplicate rows, then make the primary key of {quoted}.{table} again as in the migration"
        return Finding("indexes", "error", f"the primary key of {table} is missing: a job may be stored twice", advice)
    advice = "restore it from a backup, or migrate into a new schema (App(schema=...)) and enqueue there"
    return Finding("schema", "error", f"{kind} {name} is missing, although the schema's version has it", advice)


def autovacuum(server: Autovacuum, tables: Sequence[Table], wanted: Objects, quoted: str) -> list[Finding]:
    """Whether autovacuum runs, and the storage parameters of the schema's tables."""
    findings = []
    if not (server.on and server.counts):
        which = "autovacuum" if not server.on else "track_counts"
        text = f"{which} is off for the whole server: dead rows pile up and slow down every claim"
        findings.append(Finding("autovacuum", "error", text, f"alter system set {which} = on; select pg_reload_conf()"))
    off = [one.name for one in tables if one.options.get("autovacuum_enabled") in ("false", "off", "0", "no")]
    if off:
        how = "; ".join(f'alter table {quoted}."{name}" reset (autovacuum_enabled)' for name in off[:3])
        findings.append(Finding("autovacuum", "warning", f"autovacuum is off for {listed(off)}", how))
    for one in tables:
        findings += _options(one, wanted.options.get(one.name, {}), quoted)
    return findings or [Finding("autovacuum", "ok", "autovacuum is on, with the settings of the migrations")]


def _options(table: Table, wanted: dict[str, str], quoted: str) -> list[Finding]:
    """Another value was set on purpose: info. A missing one was lost, in a dump or by a tool: warning."""
    gone = [f"{key} = {value}" for key, value in wanted.items() if key not in table.options]
    other = [
        f"{key} = {table.options[key]} (the schema has {value})"
        for key, value in wanted.items()
        if key in table.options and not _same(table.options[key], value)
    ]
    findings = []
    if gone:
        text = f"settings of {table.name} that the migrations made are missing: {', '.join(gone)}"
        findings.append(
            Finding("autovacuum", "warning", text, f"alter table {quoted}.{table.name} set ({', '.join(gone)})")
        )
    if other:
        text = f"settings of {table.name} differ from the migrations: {', '.join(other)}"
        findings.append(Finding("autovacuum", "info", text, "leave them if they were set on purpose"))
    return findings


def _same(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def dead_rows(tables: Sequence[Table], server: Autovacuum, age: float | None, quoted: str) -> list[Finding]:
    """Dead rows that vacuum should have removed. `age`: seconds since the schema was made and counting began."""
    findings = []
    for one in tables:
        threshold = float(one.options.get("autovacuum_vacuum_threshold", server.threshold))
        trigger = threshold + float(one.options.get("autovacuum_vacuum_scale_factor", server.scale)) * one.live
        ago = one.vacuumed if one.vacuumed is not None else age
        overdue = ago is None or ago >= COMES_WITHIN
        late = one.dead >= max(MANY_DEAD, TIMES_DUE * trigger) and overdue
        if late or one.dead >= max(FAR_TOO_MANY_DEAD, TIMES_DUE * trigger):
            text = (
                f"{one.name} has {one.dead:,} dead rows and {one.live:,} live rows; vacuumed {_ago(one.vacuumed)} "
                f"(autovacuum is due at {trigger:,.0f}): every query of it has to skip them"
            )
            advice = f'see old_transactions and autovacuum for the cause; then: vacuum (analyze) {quoted}."{one.name}"'
            findings.append(Finding("dead_rows", "warning", text, advice))
    worst = max(tables, key=lambda one: one.dead, default=None)
    if findings or worst is None:
        return findings
    last = {one.name: _ago(one.autovacuumed) for one in tables}.get("jobs", "never")
    return [
        Finding("dead_rows", "ok", f"at most {worst.dead:,} dead rows ({worst.name}); last autovacuum of jobs: {last}")
    ]


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{duration(max(seconds, 0.0))} ago"


def bloat(tables: Sequence[Table], indexes: Sequence[Index], quoted: str) -> list[Finding]:
    """Tables and indexes that are much larger than their rows need. Small ones do not matter."""
    findings = []
    for table in tables:
        rows = table.live + table.dead
        needed = rows * ((table.width or UNKNOWN_ROW) + ROW_OVERHEAD) / FILLED
        if (level := _too_large(table.bytes, needed)) is not None:
            text = f"table {table.name} has {size(table.bytes)} for {rows:,} rows, which need about {size(needed)}"
            advice = f'in a quiet hour, with workers stopped: vacuum full {quoted}."{table.name}"; or use pg_repack'
            findings.append(Finding("bloat", level, text, advice))
    for index in indexes:
        needed = index.entries * ((index.width or UNKNOWN_ENTRY) + ENTRY_OVERHEAD) / FILLED
        if index.entries >= 0 and (level := _too_large(index.bytes, needed)) is not None:
            entries = f"{index.entries:,.0f} entries"
            text = f"index {index.name} has {size(index.bytes)} for {entries}, which need about {size(needed)}"
            advice = f'reindex index concurrently {quoted}."{index.name}"'
            findings.append(Finding("bloat", level, text, advice))
    in_tables = sum(table.bytes for table in tables)
    in_indexes = sum(index.bytes for index in indexes)
    whole = size(in_tables + in_indexes)
    return findings or [Finding("bloat", "ok", f"no table or index is much larger than its rows need ({whole} in all)")]


def _too_large(bytes: int, needed: float) -> Level | None:
    """Free space is reused: it wastes disk and memory, but costs no time until there is a lot of it."""
    if bytes < BLOATED or bytes < TIMES_TOO_LARGE * needed:
        return None
    return "warning" if bytes >= FAR_TOO_BLOATED else "info"


def partitions(found: Sequence[Partition], quoted: str) -> list[Finding]:
    """Partitions of `finished` for the coming days, and those that an interrupted pruning has left behind."""
    findings = []
    ahead = _ahead({one.days for one in found if one.pending is False})
    if ahead < DAYS_AHEAD:
        text = (
            "there is no partition of `finished` for today" if ahead < 0 else
            f"the partitions of `finished` reach {ahead} days ahead; workers make seven"
        )  # fmt: skip
        advice = "run a worker, or app.client.prune(), as the role that owns the schema: both make them"
        findings.append(Finding("partitions", "warning", text, advice))
    if half := [one.name for one in found if one.pending]:
        text = f"{listed(half)}: pruning was interrupted during the detach"
        statement = f'alter table {quoted}.finished detach partition {quoted}."{half[0]}" finalize'
        advice = f"run app.client.prune() as the owner, or: {statement}"
        findings.append(Finding("partitions", "warning", text, advice))
    if loose := [one.name for one in found if one.pending is None]:
        text = f"{listed(loose)}: detached from `finished`, but not dropped; their jobs are not visible"
        advice = "run app.client.prune() as the owner: it drops those that are old enough"
        findings.append(Finding("partitions", "warning", text, advice))
    if len(found) > MANY_PARTITIONS:
        text = f"`finished` has {len(found)} partitions: planning a query over all of them takes long"
        advice = "keep finished jobs for a shorter time: Worker(keep_finished=...)"
        findings.append(Finding("partitions", "info", text, advice))
    return findings or [Finding("partitions", "ok", f"{len(found)} days of `finished`, {ahead} of them ahead")]


def _ahead(days: set[int]) -> int:
    """How many days from today on have a partition without a gap, today not counted; -1: not even today."""
    number = 0
    while number in days:
        number += 1
    return number - 1


def privileges(found: Sequence[Privilege], role: str, quoted: str) -> list[Finding]:
    """The privileges that this role lacks."""
    findings = []
    missing: dict[str, list[str]] = {}
    for one in found:
        if one.missing and one.kind != "function":
            missing.setdefault(", ".join(one.missing), []).append(one.name)
    if missing:
        what = "; ".join(f"{rights} on {listed(names, 3)}" for rights, names in missing.items())
        advice = (
            f'grant usage on schema {quoted} to "{role}"; grant select, insert, update, delete on all tables in schema '
            f'{quoted} to "{role}"; grant usage on all sequences in schema {quoted} to "{role}"'
        )
        findings.append(Finding("privileges", "warning", f"role {role} lacks {what}", advice))
    owners = sorted({one.owner for one in found if not one.as_owner})
    if owners:
        text = f"role {role} is not the owner of the schema ({listed(owners)}): it cannot migrate"
        advice = f"migrate as {owners[0]}"
        if any(one.kind == "function" and one.missing for one in found):
            text += ", nor make or drop partitions"
            functions = f"{quoted}.make_partitions, {quoted}.drop_partition"
            advice = (
                f'grant execute on function {functions} to "{role}"; or app.client.prune(), at least once a week, as '
                f"{owners[0]}"
            )
        findings.append(Finding("privileges", "info", text, advice))
    return findings or [Finding("privileges", "ok", f"role {role} has all privileges that programs and workers need")]
