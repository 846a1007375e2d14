"""The history of a run as a whole: what the database recorded, and the events of all processes."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct, field

from .history import read_events
from .record import connected, records
from .settings import Settings

Row = dict[str, Any]
_decode = msgspec.json.Decoder().decode


class Record(Struct, frozen=True):
    """One change of a row. `at`: by the clock of the database."""

    seq: int
    at: float
    table: str
    event: str
    job: str
    before: Row
    after: Row


class Event(Struct, frozen=True):
    """An event of a process. `at`: by the clock of this machine."""

    at: float
    by: str
    pid: int
    event: str
    fields: Row


class Loaded(Struct):
    """`offset`: the clock of the database less that of this machine. `ledger`: the versions that wrote, by job."""

    settings: Settings
    offset: float
    records: list[Record]
    events: dict[str, list[Event]]  # by their names, each list in the order of time
    ledger: dict[str, list[int]] = field(default_factory=dict)

    def excuses(self) -> dict[int, list[tuple[float, float]]]:
        """By process id of a worker: from when to when faults that may cost it its leases strike it."""
        found: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for event in self.events["fault"]:
            seconds = event.fields["seconds"]
            for pid in event.fields["workers"]:
                found[pid].append((event.at, math.inf if seconds is None else event.at + seconds))
        return found


def load(settings: Settings, offset: float) -> Loaded:
    events: dict[str, list[Event]] = defaultdict(list)
    for one in read_events(settings.histories):
        at, by, pid, name = (one.pop(key) for key in ("at", "by", "pid", "event"))
        events[name].append(Event(at, by, pid, name, one))
    for found in events.values():
        found.sort(key=lambda event: event.at)
    return Loaded(settings, offset, [record_of(*row) for row in records(settings)], events, _ledger(settings))


def record_of(
    seq: int, at: float, table: str, event: str, job: str, before: str | None, after: str | None
) -> Record:  # fmt: skip
    """A record from its row in the database."""
    return Record(seq, at, table, event, job, _row(before), _row(after))


def _row(text: str | None) -> Row:
    row: Row = _decode(text) if text else {}
    if isinstance(row.get("result"), str):  # SQLite has JSON as text
        with suppress(msgspec.DecodeError):
            row["result"] = _decode(row["result"])
    return row


def _ledger(settings: Settings) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    with connected(settings) as connection:
        for job, version in connection.execute(f"select job, version from {settings.prefix}torture_ledger"):  # noqa: S608
            found[job].append(version)
    return found
