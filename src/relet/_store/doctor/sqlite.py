"""Checks of a store in SQLite over a separate connection that only reads, whatever the version of its schema.

Only SQLite opens the file: if this code opened it too, closing it would release the locks that SQLite has on it in this
process. The write-ahead log has no locks on it, so this code may read it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from ..._core.finding import Finding
from ..._core.text import size
from ..._system import SYSTEM
from .. import sqlite as store_sqlite
from ..flows import doctor
from ..query import Flow, read
from ..runner import drive
from ..sqlite import SQLiteAdapter, SQLiteStore
from . import common, expected, judge_file
from .common import Check
from .judge_file import FileLocation, FileObject, Pages

R = TypeVar("R")

SECONDS_FOR_A_CHECK = 3.0
A_WHILE = 1.2  # maintenance writes more often than that
INSTRUCTIONS_BETWEEN = 10_000  # of SQLite's virtual machine: often enough to notice the timeout


def examine(store: SQLiteStore) -> list[Finding]:
    """All findings, in the order of the checks."""
    return list(_memory(store) if store.path is None else _file(store, store.path))


def _memory(store: SQLiteStore) -> Iterator[Finding]:
    yield Finding("file", "info", "the jobs live in the memory of this process, and are lost when it ends")
    if store._writer is None:
        with store._writing:
            store._open_writer()  # a database in memory exists only while a connection to it is open
    with closing(store._connect()) as raw:
        raw.execute("pragma busy_timeout = 1000")
        yield from common.run_checks(_of_schema(store), partial(_run, raw, store), str)


def _file(store: SQLiteStore, path: str) -> Iterator[Finding]:
    yield from judge_file.library(sqlite3.sqlite_version_info)
    location = judge_file.location(_location(path))
    yield from location
    if any(one.check == "file_system" and one.level == "error" for one in location):
        return  # opening the file there is as dangerous as using it
    if not os.path.exists(path):
        yield Finding("file", "info", f"{path} does not exist yet: the first use creates it with its schema")
        return
    try:
        raw = _connect(path)
    except sqlite3.Error as error:
        advice = "check that it is a SQLite file, and that this user may read it and write its folder"
        yield Finding("file", "error", f"{path} cannot be opened: {error}", advice)
        return
    with closing(raw):
        yield Finding("file", "ok", f"{path} can be opened")
        run = partial(_run, raw, store)
        yield from common.run_checks(_of_file(store, path), run, str)
        yield from common.run_checks(_of_schema(store), run, str)


def _location(path: str) -> FileLocation:
    folder = os.path.dirname(path)
    exists = os.path.isdir(folder)
    return FileLocation(
        path,
        store_sqlite.file_system(path),
        not os.path.exists(path) or os.access(path, os.W_OK),
        exists and os.access(folder, os.W_OK),
        shutil.disk_usage(folder).free if exists else None,
    )


def _connect(path: str) -> sqlite3.Connection:
    raw = sqlite3.connect(
        f"{Path(path).as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, timeout=1.0
    )
    try:
        raw.execute("pragma query_only = on")
        raw.execute("select count(*) from sqlite_master").fetchall()
    except BaseException:
        raw.close()
        raise
    return raw


def _run(raw: sqlite3.Connection, store: SQLiteStore, flow: Callable[[], Flow[R]]) -> R:
    """Run a check. It blocks only checkpoints of other connections, and is interrupted if it takes too long."""
    give_up = SYSTEM.monotonic() + SECONDS_FOR_A_CHECK
    raw.set_progress_handler(lambda: SYSTEM.monotonic() > give_up, INSTRUCTIONS_BETWEEN)
    try:
        return drive(flow(), SQLiteAdapter(raw, store.quoted, store.clock))[0]
    except sqlite3.OperationalError as error:
        if SYSTEM.monotonic() > give_up:
            raise TimeoutError(f"it took longer than {SECONDS_FOR_A_CHECK:g} s") from error
        raise
    finally:
        raw.set_progress_handler(None, 0)


def _of_file(store: SQLiteStore, path: str) -> Iterator[Check]:
    def pages() -> Flow[list[Finding]]:
        return judge_file.pages((yield from _pages()), store._synchronous)

    def wal() -> Flow[list[Finding]]:
        yield from ()
        whole, used = _wal(Path(f"{path}-wal"))
        if used >= judge_file.WAL_GROWN:
            SYSTEM.sleep(A_WHILE)
        return judge_file.wal(whole, used, _wal(Path(f"{path}-wal"))[1])

    yield Check("journal", pages)
    yield Check("wal", wal)
    yield Check("integrity", integrity)


def _of_schema(store: SQLiteStore) -> Iterator[Check]:
    found: list[doctor.Version] = []

    def version() -> Flow[list[Finding]]:
        found.append((yield from doctor.version()))
        if store.path is None and found[0].number == 0:
            return [Finding("schema", "ok", "there is no schema yet: the first use creates it")]
        return common.schema(found[0], "sqlite")

    def objects() -> Flow[list[Finding]]:
        wanted = expected.in_sqlite(store.quoted, found[0].number)
        return judge_file.objects([FileObject(*row) for row in (yield read("doctor/objects"))], wanted, store.quoted)

    yield Check("schema", version)
    if found and found[0].number:
        yield Check("indexes", objects)
        yield from common.JOBS


def integrity() -> Flow[list[Finding]]:
    """Check the integrity of the file, unless the file is so large that it would take long."""
    facts = yield from _pages()
    whole = facts.page * facts.number
    if whole > judge_file.MAX_CHECKED:
        text = f"not checked: {size(whole)} take too long (the limit is {size(judge_file.MAX_CHECKED)})"
        return [Finding("integrity", "info", text, "in a quiet hour, run pragma quick_check in the sqlite3 shell")]
    return judge_file.integrity([row[0] for row in (yield read("doctor/integrity"))])


def _pages() -> Flow[Pages]:
    (journal,), (page,), (number,), (free,) = yield read("doctor/file")
    return Pages(journal, page, number, free)


def _read_at(file: BinaryIO, at: int, length: int) -> bytes:
    _ = file.seek(at)
    return file.read(length)


def _wal(path: Path) -> tuple[int, int]:
    """The size of the write-ahead log, and how much of it is in use."""
    try:
        with path.open("rb") as file:
            whole = os.fstat(file.fileno()).st_size
            return whole, judge_file.wal_in_use(partial(_read_at, file), whole)
    except FileNotFoundError:
        return 0, 0
