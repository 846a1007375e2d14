"""The history of a run as a whole: the records of the database, and the events of all processes."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct, field

from .facts import TENANT, WORKERS
from .history import read_events
from .record import connected, records
from .settings import Settings

Row = dict[str, Any]
OF_JOBS = ("enqueue", "verb", "start", "check", "end", "announced")  # events that belong to one store
_decode = msgspec.json.Decoder().decode


class Record(Struct, frozen=True):
    """One change of a row. `at`: by the clock of the database. `moment`: by that of this machine, if it is known."""

    seq: int
    at: float
    table: str
    event: str
    job: str
    before: Row
    after: Row
    moment: float | None = None


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
    clock_was_moved: bool = False  # that of the database
    is_virtual: bool = False  # only faults delay a statement

    def faults_of(self, field: str) -> dict[int, list[tuple[float, float]]]:
        """By process: from when to when a fault had an effect on it. `field`: which effect, as faults record it."""
        found: dict[int, list[tuple[float, float]]] = defaultdict(list)
        starts = self._starts()
        for event in self.events["fault"]:
            seconds = event.fields.get("seconds")
            pids: int | list[int] = event.fields.get(field) or []
            for pid in pids if isinstance(pids, list) else [pids]:
                end = math.inf if seconds is None else event.at + seconds
                later = [start for start in starts.get(pid, ()) if start > event.at]
                found[pid].append((event.at, min([end, *later])))
        return found

    def stops_beside_others(self) -> dict[int, list[tuple[float, float]]]:
        """By process: when a stop of all workers struck it, if another worker was started meanwhile, and so ran."""
        found: dict[int, list[tuple[float, float]]] = defaultdict(list)
        starts = [one.at for one in self.events["started"] if one.fields["program"].startswith(WORKERS)]
        for event in self.events["fault"]:
            if event.fields["kind"] == "stop all":
                end = event.at + event.fields["seconds"]
                if any(event.at < start < end for start in starts):
                    for pid in event.fields["stopped"]:
                        found[pid].append((event.at, end))
        return found

    def _starts(self) -> dict[int, list[float]]:
        """When processes began, by id: the system uses an id again for another process."""
        found: dict[int, list[float]] = defaultdict(list)
        for event in self.events["started"]:
            found[event.fields["process"]].append(event.at)
        return found

    def faults_for_all(self) -> list[tuple[float, float]]:
        """From when to when faults struck all workers."""
        return [(event.fields["began"], event.at) for event in self.events["fault over"]]

    def stops_of_gateways(self) -> list[tuple[float, float]]:
        """From when to when a gateway did not run. What it had received by then, it does afterwards."""
        return [(event.fields["began"], event.at) for event in self.events["gateway runs again"]]


def load(settings: Settings, offset: float) -> list[Loaded]:
    """The histories of the store and of its tenant. Faults and processes belong to both."""
    events: dict[str | None, dict[str, list[Event]]] = {None: defaultdict(list), TENANT: defaultdict(list)}
    for one in read_events(settings.histories):
        at, by, pid, name = (one.pop(key) for key in ("at", "by", "pid", "event"))
        tenants = [one.get("tenant")] if name in OF_JOBS else [None, TENANT]
        for tenant in tenants:
            events[tenant][name].append(Event(at, by, pid, name, one))
    for by_name in events.values():
        for found in by_name.values():
            found.sort(key=lambda event: event.at)
    return [_load(settings, offset, events[None]), _load(settings.of_tenant(), offset, events[TENANT])]


def _load(settings: Settings, offset: float, events: dict[str, list[Event]]) -> Loaded:
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
        for job, version in connection.execute(f"select job, version from {settings.prefix}torture_ledger"):
            found[job].append(version)
    return found
