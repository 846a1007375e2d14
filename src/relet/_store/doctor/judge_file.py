"""Findings about a SQLite file: library, journal, file system, contents. Pure: figures in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..._core.finding import Finding
from ..._core.text import listed, size
from ..sqlite import NETWORK
from ..sqlite_library import FIXED_WAL_RESET, how_to_upgrade

# SQLite checkpoints and restarts the log from 4 MB on: eight times that means that a connection prevents it.
WAL_GROWN = 32_000_000
FREE_WORTH_WHILE = 256_000_000
MAX_CHECKED = 200_000_000  # bytes: a second or two
DISK_WARN, DISK_ERROR = 500_000_000, 50_000_000
WAL_HEADER, FRAME_HEADER = 32, 24

_BLOCKING = "readers then block writers, and writers block readers"


class Pages(NamedTuple):
    """The pages of a file."""

    journal: str
    page: int
    number: int
    free: int


class FileLocation(NamedTuple):
    """Where a file is stored. `free`: bytes free on the disk; None: not known."""

    path: str
    file_system: str
    writable_file: bool
    writable_folder: bool
    free: int | None


class FileObject(NamedTuple):
    """A row of sqlite_master: a table, an index or a view."""

    kind: str
    name: str
    sql: str | None
    table: str


def library(version: tuple[int, int, int]) -> list[Finding]:
    """The version of SQLite that this Python has."""
    number = ".".join(map(str, version))
    if version >= FIXED_WAL_RESET:
        return [Finding("sqlite", "ok", f"SQLite {number}")]
    text = (
        f"SQLite {number} can damage a file that several processes write at the same moment (the WAL-reset bug, rare, "
        "fixed in 3.51.3)"
    )
    advice = f"before more than one process uses the file, {how_to_upgrade()}"
    return [Finding("sqlite", "warning", text, advice)]


def location(facts: FileLocation) -> list[Finding]:
    """File system, permissions, free space."""
    return [*_file_system(facts.file_system), *_writable(facts), *_room(facts)]


def _file_system(kind: str) -> list[Finding]:
    if NETWORK.fullmatch(kind):
        text = f"the file is on a network file system ({kind}), where SQLite's locks do not work: it will be damaged"
        return [Finding("file_system", "error", text, "move it to a local disk, or use PostgreSQL")]
    if kind == "unknown":
        text = "the type of the file system cannot be determined here"
        return [Finding("file_system", "info", text, "make sure that it is a local disk, not NFS, SMB or the like")]
    if kind.startswith("fuse"):
        text = f"the file is on {kind}: whether SQLite's locks work there depends on the program behind it"
        return [Finding("file_system", "warning", text, "move it to a local disk")]
    if kind in ("tmpfs", "ramfs"):
        return [Finding("file_system", "info", f"the file is in memory ({kind}): it is lost when the machine stops")]
    return [Finding("file_system", "ok", f"a local file system ({kind})")]


def _writable(facts: FileLocation) -> list[Finding]:
    if not facts.writable_folder:
        text = "this user may not write the folder of the file: SQLite needs that for the files beside it"
        return [Finding("writable", "error", text, "give this user the right to write the folder")]
    if not facts.writable_file:
        text = "this user may not write the file"
        return [Finding("writable", "error", text, "give this user the right to write the file, and those beside it")]
    return [Finding("writable", "ok", "this user may write the file and its folder")]


def _room(facts: FileLocation) -> list[Finding]:
    if facts.free is None:
        return []
    seen = f"{size(facts.free)} are free on the disk"
    if facts.free >= DISK_WARN:
        return [Finding("disk", "ok", seen)]
    text = f"{seen}: when it is full, no job can be enqueued, claimed or settled"
    advice = "free some space: app.client.prune() with a shorter keep_finished stops the file from growing"
    return [Finding("disk", "error" if facts.free < DISK_ERROR else "warning", text, advice)]


def pages(facts: Pages, synchronous: str) -> list[Finding]:
    """Journal, durability, free pages."""
    found = []
    if facts.journal != "wal":
        text = f"the journal mode is {facts.journal}, not wal: {_BLOCKING}"
        advice = "stop the program that set it (pragma journal_mode); Relet sets wal when it next connects and is alone"
        found.append(Finding("journal", "warning", text, advice))
    else:
        found.append(Finding("journal", "ok", "the journal mode is wal"))
    if synchronous == "NORMAL":
        text = "synchronous=normal, as the URL says: the last commits may be lost when the power fails"
        found.append(Finding("durability", "info", text, "leave ?synchronous=normal out of the URL, if that matters"))
    else:
        found.append(
            Finding("durability", "ok", f"commits are on the disk when they return (synchronous={synchronous})")
        )
    return found + _space(facts)


def _space(facts: Pages) -> list[Finding]:
    whole, free = facts.page * facts.number, facts.page * facts.free
    seen = f"the file has {size(whole)}, of which {size(free)} are free and will be reused"
    if free >= FREE_WORTH_WHILE and free > whole / 2:
        advice = "if the disk needs the space: stop all programs, then run `vacuum` in the sqlite3 shell"
        return [Finding("space", "info", seen, advice)]
    return [Finding("space", "ok", seen)]


def wal(whole: int, used: int, later: int) -> list[Finding]:
    """Judge the write-ahead log by its size and by how much of it is in use, now and a second later.

    The part in use is the part that was written since the log was last restarted.
    """
    if min(used, later) < WAL_GROWN:
        return [Finding("wal", "ok", f"the write-ahead log has {size(whole)}, of which {size(later)} are in use")]
    if later <= used:
        text = f"{size(used)} of the write-ahead log are in use, and no program writes: the next commit may restart it"
        return [Finding("wal", "info", text, "run the checks again while a program writes")]
    text = (
        f"{size(later)} of the write-ahead log are in use, and it grows: it cannot be restarted, as a connection keeps "
        "an old read transaction open; every read of the file takes longer, and the disk fills up"
    )
    advice = "end that transaction (an open cursor, a shell, a backup); then: pragma wal_checkpoint(truncate)"
    return [Finding("wal", "warning", text, advice)]


def wal_in_use(read: Callable[[int, int], bytes], whole: int) -> int:
    """How many bytes of a write-ahead log are in use: the first frames, which have the salts of its header.

    The frames after them are left over from before its last restart. So a binary search finds the boundary.
    """
    head = read(0, WAL_HEADER)
    if len(head) < WAL_HEADER or whole < WAL_HEADER:
        return 0
    frame, salts = FRAME_HEADER + int.from_bytes(head[8:12]), head[16:24]

    def is_in_use(number: int) -> bool:
        return read(WAL_HEADER + number * frame, FRAME_HEADER)[8:16] == salts

    low, high = 0, (whole - WAL_HEADER) // frame
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_in_use(middle) else (low, middle)
    return low * frame


def integrity(lines: Sequence[str]) -> list[Finding]:
    """The result of quick_check."""
    if list(lines) == ["ok"]:
        return [Finding("integrity", "ok", "quick_check found no damage")]
    text = f"the file is damaged: {listed([line[:200] for line in lines], 2)}"
    advice = "stop all programs, keep a copy of the file and of those beside it, and restore a backup or try `.recover`"
    return [Finding("integrity", "error", text, advice)]


def objects(found: Sequence[FileObject], wanted: Mapping[str, str], prefix: str) -> list[Finding]:
    """Missing objects, and foreign indexes on the jobs table, which must be fast."""
    existing = {one.name for one in found}
    findings = [_missing(name, sql) for name, sql in sorted(wanted.items()) if name not in existing]
    jobs = f"{prefix}_jobs"
    extra = [
        one.name for one in found if one.kind == "index" and one.table == jobs and one.sql and one.name not in wanted
    ]
    if extra:
        text = f"{jobs} has indexes that are not Relet's: {listed(extra)}; each costs every enqueue, claim and settle"
        findings.append(Finding("indexes", "info", text, "drop them if you do not need them"))
    number = sum("index" in sql.split("(")[0].lower() for sql in wanted.values())
    if not any(one.check == "indexes" for one in findings):
        findings.append(Finding("indexes", "ok", f"all {number} indexes exist"))
    return findings


def _missing(name: str, sql: str) -> Finding:
    how = " ".join(sql.split())
    if how.lower().startswith(("create index", "create unique index")):
        text = f"index {name} is missing: queries that would use it read the whole table"
        return Finding("indexes", "error", text, f"make it again: {how}")
    if how.lower().startswith("create view"):
        return Finding("schema", "error", f"view {name} is missing", f"make it again: {how}")
    return Finding(
        "schema", "error", f"table {name} is missing, although the schema's version has it", "restore a backup"
    )
