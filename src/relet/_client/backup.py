"""Backups. Jobs that a backup holds may have run since it was made, so a restored store must not start them by itself.

A queue that is paused stays so in the backup of its store. `make_backup` pauses all queues in the copy. A worker that
starts at a restored dump of PostgreSQL pauses them (`pause_if_restored`). For other backups, such as snapshots of a
disk, an operator calls `pause_restored` before workers start.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, structs

from .._core.job import State
from .._store.flows import inspect, restore
from .._store.query import Flow
from .._store.sqlite import SQLiteStore
from .._tasks.task import new_id
from ..errors import InvalidInput
from .audit import AuditAction
from .client import Client


class Restored(Struct, frozen=True):
    """The jobs of a store that may have run since its backup was made.

    `paused`: the queues that are paused now, and were not before. `paused_before`: all other paused queues.
    `schedules`: those that have a tick to catch up with.
    """

    paused: list[str]
    paused_before: list[str]
    running: int
    queued: int
    pending: int
    schedules: list[str]


def pause_restored(client: Client) -> Restored:
    """Pause all queues, and count the jobs that may have run since the backup was made."""
    return _pause(client, AuditAction("restored", client.where))


def pause_if_restored(client: Client) -> Restored | None:
    """Do the same if the store is a restored dump that no worker has started at before."""
    if not client._store.run(restore.has_new_tables):
        return None
    return _pause_by(restore.pause_if_restored, client, AuditAction("restored", client.where))


def _pause(client: Client, action: AuditAction) -> Restored:
    found = _pause_by(restore.pause, client, action)
    assert found is not None
    return found


def _pause_by(
    flow: Callable[[list[str]], Flow[list[str] | None]], client: Client, action: AuditAction
) -> Restored | None:
    """Pause all queues by a flow, which returns None if it found no reason to."""
    schedules = client.schedules.all()
    queues = {"default", *(task.queue for task in client._tasks.tasks.values())}
    queues |= {one.queue for one in schedules if one.queue}
    paused = client._audited.step(action, flow, sorted(queues))
    if paused is None:
        return None
    client._audited.note(structs.replace(action, details={"paused": paused}))
    return Restored(
        paused=paused,
        paused_before=sorted(client._store.run(inspect.paused_queues) - set(paused)),
        running=client.count(state=[State.RUNNING]),
        queued=client.count(state=[State.QUEUED]),
        pending=client.count(state=[State.PENDING]),
        schedules=[one.name for one in schedules if not one.paused and _is_late(one.next_at)],
    )


def make_backup(client: Client, path: str) -> Restored:
    """Copy the SQLite file of a store into a new file, in which all queues are paused. Workers go on meanwhile."""
    store, target = client._store, Path(path).absolute()
    if not isinstance(store, SQLiteStore):
        raise InvalidInput(f"{client.where} is not a SQLite file: use pg_dump for a backup of PostgreSQL")
    if store.path is None:
        raise InvalidInput("a store in memory cannot be backed up: it has no file")
    _reserve(target)
    partial = target.with_name(f".{target.name}.{new_id()}")  # so that no incomplete file has the name of a backup
    try:
        _reserve(partial)
        store.copy_into(str(partial))
        found = _pause_copy(client, store, partial, AuditAction("backup", str(target)))
        partial.chmod(stat.S_IMODE(os.stat(store.path).st_mode))
        os.replace(partial, target)
        _sync(target)
    except BaseException:
        for file in (target, *target.parent.glob(f"{glob.escape(partial.name)}*")):
            file.unlink(missing_ok=True)
        raise
    client._audited.note(AuditAction("backup", str(target)))
    return found


def _pause_copy(client: Client, store: SQLiteStore, copy: Path, action: AuditAction) -> Restored:
    """Pause the queues of the copy, and close it, so that it is one file."""
    with closing(SQLiteStore(str(copy), schema=store.quoted)) as opened:
        found = _pause(Client(client._tasks, lambda _: opened, None, client._actor), action)
    if copy.with_name(f"{copy.name}-wal").exists():
        raise InvalidInput(f"another program has opened {copy}; make the backup in a folder of your own")
    return found


def _is_late(moment: datetime | None) -> bool:
    return moment is not None and moment <= datetime.now(UTC)


def _reserve(path: Path) -> None:
    """Create an empty file that only its owner may read. Raises if there is a file already."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InvalidInput(f"{path} exists: a backup does not overwrite a file; choose another name") from None
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from None


def _sync(path: Path) -> None:
    """Have the file and its name on the disk."""
    for one in (path, path.parent):
        file = os.open(one, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
