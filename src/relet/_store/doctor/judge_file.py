"""What to make of a SQLite file: the library, how it is written, where it lies, what it holds. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..._core.finding import Finding, listed, size
from ..sqlite import FIXED_WAL_RESET, NETWORK

# It is copied back, and begun anew, from 4 MB on: eight times that means that somebody prevents it.
WAL_GROWN = 32_000_000
FREE_WORTH_WHILE = 256_000_000
MOST_CHECKED = 200_000_000  # bytes: a second or two
DISK_WARN, DISK_ERROR = 500_000_000, 50_000_000
WAL_HEADER, FRAME_HEADER = 32, 24

_FOR_EVERYBODY = "readers then hold up writers, and writers readers"


class Pages(NamedTuple):
    """How a file is made up."""

    journal: str
    page: int
    number: int
    free: int


class Place(NamedTuple):
    """Where a file lies."""

    path: str
    file_system: str
    writable_file: bool
    writable_folder: bool
    free: int | None


class Made(NamedTuple):
    """Something in the file, as sqlite_master has it."""

    kind: str
    name: str
    sql: str | None
    table: str


def library(version: tuple[int, int, int]) -> list[Finding]:
    """The version of SQLite that this Python has."""
    shown = ".".join(map(str, version))
    if version >= FIXED_WAL_RESET:
        return [Finding("sqlite", "ok", f"SQLite {shown}")]
    text = (
        f"SQLite {shown} can damage a file that several processes write at the same moment (the WAL-reset bug, rare, "
        "fixed in 3.51.3)"
    )
    advice = "upgrade SQLite, or a Python that brings it, before more than one process uses the file"
    return [Finding("sqlite", "warning", text, advice)]


def place(facts: Place) -> list[Finding]:
    """File system, permissions, room."""
    return [*_file_system(facts.file_system), *_writable(facts), *_room(facts)]


def _file_system(kind: str) -> list[Finding]:
    if NETWORK.fullmatch(kind):
        text = f"the file lies on a network file system ({kind}), where SQLite's locks do not hold: it will be damaged"
        return [Finding("file_system", "error", text, "move it to a local disk, or use PostgreSQL")]
    if kind == "unknown":
        text = "what kind of file system the file lies on cannot be told here"
        return [Finding("file_system", "info", text, "make sure that it is a local disk, not NFS, SMB or the like")]
    if kind.startswith("fuse"):
        text = f"the file lies on {kind}: whether SQLite's locks hold there depends on the program behind it"
        return [Finding("file_system", "warning", text, "move it to a local disk")]
    if kind in ("tmpfs", "ramfs"):
        return [Finding("file_system", "info", f"the file lies in memory ({kind}): it is gone when the machine stops")]
    return [Finding("file_system", "ok", f"a local file system ({kind})")]


def _writable(facts: Place) -> list[Finding]:
    if not facts.writable_folder:
        text = "the folder of the file may not be written by this user: SQLite needs that for the files beside it"
        return [Finding("writable", "error", text, "give this user the right to write the folder")]
    if not facts.writable_file:
        text = "the file may not be written by this user"
        return [Finding("writable", "error", text, "give this user the right to write the file, and those beside it")]
    return [Finding("writable", "ok", "the file and its folder may be written")]


def _room(facts: Place) -> list[Finding]:
    if facts.free is None:
        return []
    seen = f"{size(facts.free)} are free on the disk"
    if facts.free >= DISK_WARN:
        return [Finding("disk", "ok", seen)]
    text = f"{seen}: when it is full nothing can be enqueued, claimed or settled"
    advice = "make room: app.client.prune() with a shorter keep_finished lets the file grow no further"
    return [Finding("disk", "error" if facts.free < DISK_ERROR else "warning", text, advice)]


def pages(facts: Pages, synchronous: str) -> list[Finding]:
    """Journal, durability, free pages."""
    found = []
    if facts.journal != "wal":
        text = f"the journal mode is {facts.journal}, not wal: {_FOR_EVERYBODY}"
        advice = "stop what set it (pragma journal_mode); Relet sets wal again when it connects next and is alone"
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
    seen = f"the file has {size(whole)}, of which {size(free)} are free and will be used again"
    if free >= FREE_WORTH_WHILE and free > whole / 2:
        advice = "if the disk needs the room: stop all programs, then `vacuum` with the sqlite3 shell"
        return [Finding("space", "info", seen, advice)]
    return [Finding("space", "ok", seen)]


def wal(whole: int, used: int, later: int) -> list[Finding]:
    """The size of the write-ahead log, how much of it was written since it was last begun anew, and a second later."""
    if min(used, later) < WAL_GROWN:
        return [Finding("wal", "ok", f"the write-ahead log has {size(whole)}, of which {size(later)} are in use")]
    if later <= used:
        text = f"{size(used)} of the write-ahead log are in use, and nobody writes: the next commit may begin it anew"
        return [Finding("wal", "info", text, "ask again while something is written")]
    text = (
        f"{size(later)} of the write-ahead log are in use, and it grows: it cannot be begun anew, since somebody keeps "
        "a transaction open that began before; every look at the file takes longer, and the disk fills up"
    )
    advice = "end what reads without end (an open cursor, a shell, a backup); then: pragma wal_checkpoint(truncate)"
    return [Finding("wal", "warning", text, advice)]


def wal_in_use(read: Callable[[int, int], bytes], whole: int) -> int:
    """How many bytes of a write-ahead log count: frames from the front on that have the salts of its header.

    What is behind them is left from before it was begun anew. So they can be found by halving.
    """
    head = read(0, WAL_HEADER)
    if len(head) < WAL_HEADER or whole < WAL_HEADER:
        return 0
    frame, salts = FRAME_HEADER + int.from_bytes(head[8:12]), head[16:24]

    def counts(number: int) -> bool:
        return read(WAL_HEADER + number * frame, FRAME_HEADER)[8:16] == salts

    low, high = 0, (whole - WAL_HEADER) // frame
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if counts(middle) else (low, middle)
    return low * frame


def integrity(lines: Sequence[str]) -> list[Finding]:
    """What quick_check said."""
    if list(lines) == ["ok"]:
        return [Finding("integrity", "ok", "quick_check finds nothing broken")]
    text = f"the file is damaged: {listed([line[:200] for line in lines], 2)}"
    advice = "stop all programs, keep a copy of the file and of those beside it, and restore a backup or try `.recover`"
    return [Finding("integrity", "error", text, advice)]


def objects(found: Sequence[Made], wanted: Mapping[str, str], prefix: str) -> list[Finding]:
    """What is missing, and indexes of others on the table that must be quick."""
    there = {one.name for one in found}
    shown = [_missing(name, sql) for name, sql in sorted(wanted.items()) if name not in there]
    jobs = f"{prefix}_jobs"
    extra = [
        one.name for one in found if one.kind == "index" and one.table == jobs and one.sql and one.name not in wanted
    ]
    if extra:
        text = f"{jobs} has indexes that are not Relet's: {listed(extra)}; each costs every enqueue, claim and settle"
        shown.append(Finding("indexes", "info", text, "drop them if you can do without"))
    number = sum("index" in sql.split("(")[0].lower() for sql in wanted.values())
    if not any(one.check == "indexes" for one in shown):
        shown.append(Finding("indexes", "ok", f"all {number} indexes are there"))
    return shown


def _missing(name: str, sql: str) -> Finding:
    how = " ".join(sql.split())
    if how.lower().startswith(("create index", "create unique index")):
        text = f"index {name} is missing: what looks for jobs by it reads the whole table"
        return Finding("indexes", "error", text, f"make it again: {how}")
    if how.lower().startswith("create view"):
        return Finding("schema", "error", f"view {name} is missing", f"make it again: {how}")
    return Finding(
        "schema", "error", f"table {name} is missing, although the schema's version has it", "restore a backup"
    )
