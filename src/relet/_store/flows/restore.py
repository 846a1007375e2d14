"""Recognises a store that was restored from a dump. Its jobs may have run since the dump was made."""

from __future__ import annotations

from collections.abc import Iterable

from ..query import BEGIN, Flow, read, read_only, write
from . import control


@read_only
def has_new_tables() -> Flow[bool]:
    """Whether the tables are others than when a worker started last, or no worker has ever started."""
    recorded, current = yield from _tables()
    return recorded != current


def pause(queues: Iterable[str]) -> Flow[list[str]]:
    """Pause these queues, and all that have settings or jobs. Returns those that were not paused before. Records the
    tables, so that no worker pauses the queues again."""
    yield BEGIN
    yield write("restore/lock_tables")
    _, current = yield from _tables()
    yield write("restore/record_tables", tables=current)
    return (yield from control.pause_queues(queues))


def pause_if_restored(queues: Iterable[str]) -> Flow[list[str] | None]:
    """`pause`, if the tables are others than those recorded. Returns None if the store was not restored."""
    yield BEGIN
    yield write("restore/lock_tables")
    recorded, current = yield from _tables()
    if recorded is None:
        yield write("restore/record_tables", tables=current)
    return (yield from pause(queues)) if recorded not in (None, current) else None


def _tables() -> Flow[tuple[str | None, str | None]]:
    ((recorded, current),) = yield read("restore/tables")
    return recorded, current
