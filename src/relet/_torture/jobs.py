"""The history of a run by job, and which faults explain what happened to an attempt."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import Struct

from .._worker.outcome import StartedTooLate
from .._worker.reporter import SIGN_OFF_WITHIN
from .._worker.worker import JOIN_TIMEOUT
from . import facts
from .load import Event, Loaded, Record

CLOCK = 0.005  # seconds: how far two readings of the same clock may be apart
RECOVERY = 1.0  # seconds: how long a worker needs after a fault until its renewals succeed again
LOCKED_FILE = 30.0  # seconds: how long a write waits for the lock on a SQLite file
STATEMENT = 0.3  # seconds: how long a statement that enqueues may take
OVER = ("succeeded", "cancelled")
ENDED = (*OVER, "failed")
MOMENT = 0.5  # seconds
RESCUED_WITHIN = 2.0  # seconds after the expiry of a lease
RESCUED_AMID_FAULTS = 15.0  # seconds without faults, in total, since the expiry of a lease
AFTER_OUTAGE = 5.0  # seconds until the workers have reconnected, renewed, and reap again
EXIT_WITHIN = JOIN_TIMEOUT + SIGN_OFF_WITHIN  # seconds after the attempts of a worker have ended
Interval = tuple[float, float]
LimitKey = tuple[str, ...]  # what a limit counts: a queue, a group of a queue, or a target


class _Life(NamedTuple):
    """A process of a worker: when it could work, and when it had ended."""

    ready: float
    death: float
    pid: int


_ready = itemgetter(0)


class Violation(Struct, frozen=True):
    invariant: str
    job: str
    text: str


Invariant = Callable[["Jobs"], Iterator[Violation]]


class Intervals:
    """The times in which faults struck. A search reads those near a time only: a long run has thousands."""

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._sorted = sorted(intervals)
        self._begins = [begin for begin, _ in self._sorted]
        self._latest_ends = list(accumulate((end for _, end in self._sorted), max))

    def __iter__(self) -> Iterator[Interval]:
        return iter(self._sorted)

    def within(self, since: float, until: float) -> list[Interval]:
        """Those that a worker may have felt within a time: it needs a moment to recover."""
        first = bisect_left(self._latest_ends, since - RECOVERY)
        last = bisect_right(self._begins, until + CLOCK)
        return [one for one in self._sorted[first:last] if one[1] >= since - RECOVERY]

    def began_within(self, since: float, until: float) -> bool:
        """Whether one of them began within a time."""
        return bisect_left(self._begins, since) < bisect_right(self._begins, until)


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
        struck = loaded.faults_of("workers")
        for pid, intervals in loaded.stops_beside_others().items():
            struck[pid] += intervals
        self._struck = _by_pid(struck)
        self._disturbed = _by_pid(loaded.faults_of("disturbed"))
        self._stopped = _by_pid(loaded.faults_of("stopped"))
        self._signalled = _by_pid(loaded.faults_of("signalled"))
        self._for_all = Intervals(loaded.faults_for_all())
        self._gateways_away = Intervals(loaded.stops_of_gateways())
        self._locked: dict[str, list[Interval]] = defaultdict(list)  # by job: when another program had locked its row
        for event in loaded.events["rows locked"]:
            for id in event.fields["jobs"]:
                self._locked[id].append((event.at, event.at + event.fields["seconds"]))
        self._lives = self._find_lives()

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

    def _find_lives(self) -> dict[str, list[_Life]]:
        """By the program of a worker: its processes, one after the other."""
        exits, lives = defaultdict[int, list[float]](list), defaultdict[str, list[_Life]](list)
        for event in self.loaded.events["exit"]:
            exits[event.fields["process"]].append(event.at)
        for event in self.loaded.events["started"]:
            pid, program = event.fields["process"], event.fields["program"]
            if program.startswith(facts.WORKERS):
                killed = [begin for begin, end in self._stopped[pid] if math.isinf(end)]
                ends = [at for at in (*killed, *exits[pid]) if at > event.at]
                lives[program].append(_Life(event.at + RECOVERY, min(ends, default=math.inf), pid))
        return lives

    def _lives_within(self, since: float, until: float) -> Iterator[_Life]:
        """The worker processes that could work at some moment of this time."""
        for lives in self._lives.values():
            first = max(bisect_right(lives, since, key=_ready) - 1, 0)
            yield from (one for one in lives[first : bisect_right(lives, until, key=_ready)] if one.death >= since)

    def could_not_run(self, worker: str, moment: float) -> bool:
        """Whether the worker was dead, stopped or without a connection then, and had been for a while. What a worker
        had sent before it died may arrive when its connection works again, or after it has waited in a gateway."""
        intervals = list(self._stopped[pid_of(worker)])
        ends = [(begin, end) for begin, end in intervals if not math.isinf(end)]
        for begin, end in intervals:
            last = max([again for since, again in ends if math.isinf(end) and since <= begin <= again], default=begin)
            if last + RECOVERY < moment < end - CLOCK and not self._may_have_waited(worker, last, moment):
                return True
        return False

    def _may_have_waited(self, worker: str, since: float, until: float) -> bool:
        """Whether a request may have waited in its gateway for as long: while the gateway was stopped, during a fault
        that struck all, or for the lock on a SQLite file, which a stopped process may have."""
        if facts.REMOTE not in worker:
            return False
        away = [*self._gateways_away.within(since, until), *self._for_all.within(since, until)]
        gives_up_after = LOCKED_FILE if self.loaded.settings.is_sqlite else RECOVERY
        return not _has_gap(away, since, until, gives_up_after)

    def is_excused(self, worker: str, since: float, until: float) -> bool:
        """Whether a fault that may cost leases struck the worker within a time."""
        return bool(self._struck[pid_of(worker)].within(since, until))

    def could_not_renew(self, worker: str, since: float, until: float) -> bool:
        """Whether faults of its connections, with or without others that struck all workers, left a worker no time
        for a renewal, which it sends three times in a lease. Faults that strike all workers alone explain nothing."""
        beat = self.loaded.settings.lease / 3
        own = self._disturbed[pid_of(worker)].within(since, until)
        if not own:
            return False
        return not _has_gap([*own, *self._for_all.within(since, until)], since + beat, until, beat)

    def was_locked(self, job: str, moment: float) -> bool:
        """Whether another program had locked the row of a job, so that its worker could not renew the lease."""
        return any(begin - CLOCK <= moment <= end + MOMENT for begin, end in self._locked[job])

    def could_not_release(self, worker: str, since: float, until: float) -> bool:
        """Whether a worker was told to end while its connections failed: the answer to a claim may have been lost, so
        that it does not know of the lease."""
        pid = pid_of(worker)
        return bool(self._signalled[pid].within(since, until) and self._disturbed[pid].within(since, until))

    def had_to_release(self, start: Event) -> bool:
        """Whether the worker released a job although its handler ran on: it had been told to end, had waited for the
        handler, and had aborted it. A handler does not notice that while another one blocks the event loop."""
        attempt = self.attempts.get((start.fields["job"], start.fields["version"]))
        if attempt is None or attempt.after["outcome"] != "released":
            return False
        signals = self._signalled[pid_of(start.fields["worker"])]
        return signals.began_within(start.at, self.local(attempt) - facts.SHUTDOWN_TIMEOUT)

    def could_reap(self, since: float, until: float) -> bool:
        """Whether a worker was undisturbed within a time for as long as it may take to reap: either in a row, or in
        total."""
        effects = (self._struck, self._disturbed, self._stopped, self._signalled)
        for_all = self._for_all.within(since, until)
        for life in self._lives_within(since, until):
            begin, end = max(since, life.ready), min(until, life.death)
            faults = [one for by_pid in effects for one in by_pid[life.pid].within(begin, end)]
            faults += for_all
            if _has_gap(faults, begin, end, RESCUED_WITHIN):
                return True
            if _free(faults, begin, end) > RESCUED_AMID_FAULTS:
                return True
        return False

    def was_undisturbed(self, pid: int, since: float, until: float, seconds: float) -> bool:
        """Whether no fault struck a process for so many seconds in a row."""
        effects = (self._struck, self._disturbed, self._stopped, self._signalled)
        faults = [one for by_pid in effects for one in by_pid[pid].within(since, until)]
        return _has_gap([*faults, *self._for_all.within(since, until)], since, until, seconds)

    def has_locks(self, job: str) -> bool:
        """Whether another program locked the row of a job at any time."""
        return bool(self._locked[job])

    @cached_property
    def rescues(self) -> list[float]:
        """For each lost attempt, in order: seconds from the expiry of its lease until it was reaped. Without those that
        expired during a fault that struck all workers, or just after one, and without late ones that no worker could
        have reaped in time, because each was killed or disturbed again and again."""
        found = []
        for key, attempt in self.attempts.items():
            if attempt.after["outcome"] == "lost" and (leases := self.leases.get(key)):
                since, until = self.expiry(leases[-1]), self.local(attempt)
                late = attempt.at - leases[-1].after["expires_at"]
                if self.had_outage(since - AFTER_OUTAGE, until):
                    continue
                if late <= RESCUED_WITHIN or self.could_reap(since, until):
                    found.append(late)
        return sorted(found)

    def has_just_recovered(self, start: Event) -> bool:
        """Whether its worker was stopped between the check of the lease and the record of the start."""
        faults = self._stopped[pid_of(start.fields["worker"])]
        return any(begin <= start.at <= end + 0.2 for begin, end in faults if not math.isinf(end))

    def longest_exit(self, pid: int, since: float, until: float) -> float:
        """Seconds that a process may take to end: for its attempts, the longest of which blocks the event loop for one
        and a half leases, and while it was stopped or had no connection."""
        lease, faults = self.loaded.settings.lease, [self._struck, self._disturbed, self._stopped]
        away = [one for by_pid in faults for one in by_pid[pid].within(since, until)]
        away += self._for_all.within(since, until)
        lost = sum(min(end, until) - max(begin, since) + RECOVERY for begin, end in away)
        return facts.SHUTDOWN_TIMEOUT + 1.5 * lease + EXIT_WITHIN + lost

    def had_outage(self, since: float, until: float) -> bool:
        """Whether a fault struck all workers within a time, for longer than a moment."""
        return any(end - begin > MOMENT for begin, end in self._for_all.within(since, until))


def pid_of(worker: str) -> int:
    """The id of a worker names its process: host:pid:random."""
    return int(worker.rsplit(":", 2)[1])


def _by_pid(faults: dict[int, list[Interval]]) -> defaultdict[int, Intervals]:
    return defaultdict(Intervals, {pid: Intervals(intervals) for pid, intervals in faults.items()})


def _has_gap(faults: list[Interval], since: float, until: float, seconds: float) -> bool:
    """Whether so many seconds within a time are free of faults, and of the recovery from them."""
    free = since
    for begin, end in sorted(faults):
        if begin - free >= seconds:
            return True
        free = max(free, end + RECOVERY)
    return until - free >= seconds


def _free(faults: list[Interval], since: float, until: float) -> float:
    """How many seconds within a time are free of faults, and of the recovery from them."""
    free, seconds = since, 0.0
    for begin, end in sorted(faults):
        seconds += max(min(begin, until) - free, 0.0)
        free = max(free, end + RECOVERY)
    return seconds + max(until - free, 0.0)


def limit_keys(row: dict[str, Any]) -> tuple[LimitKey, ...]:
    """All by which a limit may count this job."""
    keys: list[LimitKey] = [("queue", row["queue"])]
    if row["group_key"]:
        keys.append(("group", row["queue"], row["group_key"]))
    if row["target"]:
        keys.append(("target", row["target"]))
    return tuple(keys)


def allowed(key: LimitKey) -> int | None:
    """How many jobs may run at once."""
    match key:
        case ("queue", queue):
            return facts.MAX_RUNNING.get(queue)
        case ("group", queue, group):
            return facts.MAX_RUNNING_OF_GROUP.get((queue, group), facts.MAX_RUNNING_PER_GROUP.get(queue))
        case _:
            return 1


def claims(records: list[Record]) -> Iterator[Record]:
    return (one for one in records if one.after.get("state") == "running" and one.before.get("state") != "running")
