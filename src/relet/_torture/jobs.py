"""The history of a run by job, and which faults explain what happened to an attempt."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from .._worker.outcome import StartedTooLate
from . import facts
from .load import Event, Loaded, Record

CLOCK = 0.005  # seconds: how far two readings of the same clock may be apart
RECOVERY = 1.0  # seconds: how long a worker needs after a fault until its renewals succeed again
STATEMENT = 0.3  # seconds: how long a statement that enqueues may take
OVER = ("succeeded", "cancelled")
ENDED = (*OVER, "failed")
MOMENT = 0.5  # seconds
RESCUED_WITHIN = 2.0  # seconds after the expiry of a lease
EXIT_WITHIN = 2.0  # seconds after the attempts of a worker have ended
Interval = tuple[float, float]


class Violation(Struct, frozen=True):
    invariant: str
    job: str
    text: str


Invariant = Callable[["Jobs"], Iterator[Violation]]


class Jobs:
    """The history by job."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.records: dict[str, list[Record]] = defaultdict(list)
        self.attempts: dict[tuple[str, int], Record] = {}  # by job and version
        for record in loaded.records:
            if record.table == "attempts":
                self.attempts[record.job, record.after["version"]] = record
            else:
                self.records[record.job].append(record)
        self.starts: dict[str, list[Event]] = defaultdict(list)
        self.ends: dict[tuple[str, int], Event] = {}
        for event in loaded.events["end"]:
            self.ends[event.fields["job"], event.fields["version"]] = event
        for event in loaded.events["start"]:
            if not self._was_refused(event):
                self.starts[event.fields["job"]].append(event)
        self.leases: dict[tuple[str, int], list[Record]] = defaultdict(list)  # claims and renewals, by job and version
        for record in loaded.records:
            is_leased = record.after.get("state") == "running" and record.table == "jobs"
            if is_leased and record.after["expires_at"] != record.before.get("expires_at"):
                self.leases[record.job, record.after["version"]].append(record)
        self._struck = loaded.faults_of("workers")
        for pid, intervals in loaded.stops_beside_others().items():
            self._struck[pid] += intervals
        self._disturbed = loaded.faults_of("disturbed")
        self._stopped = loaded.faults_of("stopped")
        self._signalled = loaded.faults_of("signalled")
        self.for_all = loaded.faults_for_all()

    def _was_refused(self, start: Event) -> bool:
        """Whether the worker refused the start after its middlewares: the lease might have expired."""
        end = self.ends.get((start.fields["job"], start.fields["version"]))
        return end is not None and end.fields["error"] == StartedTooLate.__name__

    def final(self, job: str) -> dict[str, Any]:
        """The row as it was in the end; empty if the job was deleted."""
        over = [one.after for one in self.records[job] if one.table == "finished" and one.event == "insert"]
        return over[-1] if over else self.records[job][-1].after

    def state(self, job: str) -> str | None:
        state: str | None = self.final(job).get("state")
        return state

    def local(self, record: Record) -> float:
        """When it was recorded, by the clock of this machine."""
        return record.at - self.loaded.offset if record.moment is None else record.moment

    def expiry(self, record: Record) -> float:
        """When the lease that a record shows expires, by the clock of this machine. A clock of the database that is
        moved afterwards does not change what the worker was promised."""
        seconds: float = record.after["expires_at"] - record.at
        return self.local(record) + seconds

    def could_not_run(self, worker: str, moment: float) -> bool:
        """Whether the worker was dead, stopped or without a connection then, and had been for a while."""
        faults = self._stopped.get(pid_of(worker), ())
        return any(begin + RECOVERY < moment < end - CLOCK for begin, end in faults)

    def is_excused(self, worker: str, since: float, until: float) -> bool:
        """Whether a fault that may cost leases struck the worker within a time."""
        return bool(_within(self._struck.get(pid_of(worker), []), since, until))

    def could_not_renew(self, worker: str, since: float, until: float) -> bool:
        """Whether faults of its connections, with or without others that struck all workers, left a worker no time
        for a renewal, which it sends three times in a lease. Faults that strike all workers alone explain nothing."""
        beat = self.loaded.settings.lease / 3
        own = _within(self._disturbed.get(pid_of(worker), []), since, until)
        if not own:
            return False
        return not _has_gap([*own, *self._all(since, until)], since + beat, until, beat)

    def could_reap(self, since: float, until: float) -> bool:
        """Whether a worker was undisturbed within a time for as long as it may take to reap."""
        effects = (self._struck, self._disturbed, self._stopped, self._signalled)
        for event in self.loaded.events["started"]:
            pid, ready = event.fields["process"], event.at + RECOVERY
            if not event.fields["program"].startswith(facts.WORKERS) or ready > until:
                continue
            faults = [one for by_pid in effects for one in _within(by_pid.get(pid, []), ready, until)]
            if _has_gap([*faults, *self._all(since, until)], max(since, ready), until, RESCUED_WITHIN):
                return True
        return False

    def has_just_recovered(self, start: Event) -> bool:
        """Whether its worker was stopped between the check of the lease and the record of the start."""
        faults = self._stopped.get(pid_of(start.fields["worker"]), ())
        return any(begin <= start.at <= end + 0.2 for begin, end in faults if not math.isinf(end))

    def longest_exit(self, pid: int, since: float, until: float) -> float:
        """Seconds that a process may take to end: for its attempts, the longest of which blocks the event loop for one
        and a half leases, and while it was stopped or had no connection."""
        lease, faults = self.loaded.settings.lease, [self._struck, self._disturbed, self._stopped]
        away = [one for by_pid in faults for one in _within(by_pid.get(pid, []), since, until)]
        lost = sum(min(end, until) - max(begin, since) + RECOVERY for begin, end in [*away, *self._all(since, until)])
        return facts.SHUTDOWN_TIMEOUT + 1.5 * lease + EXIT_WITHIN + lost

    def _all(self, since: float, until: float) -> list[Interval]:
        return _within(self.for_all, since, until)

    def had_outage(self, since: float, until: float) -> bool:
        """Whether a fault struck all workers within a time, for longer than a moment."""
        return any(end - begin > MOMENT for begin, end in self._all(since, until))


def pid_of(worker: str) -> int:
    """The id of a worker names its process: host:pid:random."""
    return int(worker.rsplit(":", 2)[1])


def _within(faults: list[Interval], since: float, until: float) -> list[Interval]:
    return [(begin, end) for begin, end in faults if begin <= until + CLOCK and end + RECOVERY >= since]


def _has_gap(faults: list[Interval], since: float, until: float, seconds: float) -> bool:
    """Whether so many seconds within a time are free of faults, and of the recovery from them."""
    free = since
    for begin, end in sorted(faults):
        if begin - free >= seconds:
            return True
        free = max(free, end + RECOVERY)
    return until - free >= seconds


def claims(records: list[Record]) -> Iterator[Record]:
    return (one for one in records if one.after.get("state") == "running" and one.before.get("state") != "running")
