"""Maintenance of a store: the pulse, requests for notifications, pruning, partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct

from ..._core.job import State
from ..._core.machine import Change
from ..query import BEGIN, LONG, Flow, Row, as_json, bounded, read, read_only, write
from .lease import PULSE_GAP, await_renewals, touch_pulse
from .settle import apply

BEAT_EVERY = 0.7  # seconds between two pulses
PERIOD = 2  # grace periods without faults, in which every worker that is alive renews its leases
PARTITION_DAYS_AHEAD = 7
LOST_WORKERS_FOR = 86400.0  # seconds
ACTIONS_FOR = 90 * 86400.0  # seconds
OPERATIONS_FOR = 86400.0  # seconds: longer than any retry, and as long as HTTP clients expect of an idempotency key
DETAILS = 5  # rows of attempts, steps, signals and dependencies that are deleted for each job of a batch, on average


class Pruned(Struct, frozen=True):
    """How much one step of pruning removed. `more`: another step may remove more."""

    finished: int = 0
    failed: int = 0
    keys: int = 0
    partitions: tuple[str, ...] = ()
    more: bool = False
    stripped: int = 0  # jobs whose payloads were removed


class WorkAhead(NamedTuple):
    """Whether there are leases, queued jobs, expired leases and nudges, and in how many seconds the next is due: a job,
    or a schedule."""

    leased: bool
    queued: bool
    expired: bool
    nudged: bool
    next_due: float | None
    next_tick: float | None


@read_only
def work_ahead(tasks: Iterable[str] = (), *, without: Iterable[str] = (), queued: bool = False) -> Flow[WorkAhead]:
    """Read in one statement whether maintenance has work, so that an idle store costs next to nothing.

    Ignores schedules of other tasks, and those whose definitions this release cannot read (`without`). `queued`: read
    whether there are queued jobs, too.
    """
    which = {"queued": queued, "tasks": as_json(sorted(tasks)), "without": as_json(sorted(without))}
    ((leased, queued, expired, nudged, next_due, next_tick),) = yield read("maintenance/work_ahead", **which)
    return WorkAhead(bool(leased), bool(queued), bool(expired), bool(nudged), next_due, next_tick)


def record_pulse(*, grace: float, gap: float = PULSE_GAP, every: float = BEAT_EVERY) -> Flow[float | None]:
    """Record that the store is reachable. Returns for how many seconds no lease is reaped; None if the last pulse is
    recent.

    A pulse in the future means that the clock was set back: leases that were taken in the future are rewound.
    """
    waited = yield from await_renewals()
    ((is_back,),) = yield read("lease/clock_is_back")
    found = yield from touch_pulse(gap, grace, every, waited, enough=PERIOD * grace)
    if is_back:
        yield write("lease/rewind_leases")
    return float(found[0][0]) if found else None


def probe() -> Flow[None]:
    """Check that the store can be written to."""
    yield write("maintenance/probe")


def request_notifications(
    seconds: float, key: int | None, queues: Sequence[str] | None, tasks: Iterable[str]
) -> Flow[None]:
    """Ask producers to notify for this many seconds: the calling worker is about to sleep.

    `key`: of its channels; None: no notification reaches it, so that only its own process can wake it. `queues`: None:
    all.
    """
    if key is not None:
        yield from sleep(seconds, key, queues, tasks)
    yield from arm(seconds)


def sleep(seconds: float, key: int, queues: Sequence[str] | None, tasks: Iterable[str]) -> Flow[None]:
    """Store which jobs wake the worker whose channels have this key."""
    which = None if queues is None else sorted(queues)
    known = sorted(tasks)
    kind = _kind_of(which, known)
    yield write("maintenance/sleep", seconds=seconds, key=key, kind=kind, queues=which, tasks=known)


def arm(seconds: float) -> Flow[None]:
    """Have producers notify for this many seconds."""
    yield write("maintenance/arm", seconds=seconds)


def pass_on(
    key: int, queues: Sequence[str] | None, tasks: Iterable[str], *, start: int, number: int, withdraw: bool
) -> Flow[None]:
    """Notify other sleeping workers that serve the same queues and tasks, the first of them at or after key `start`.

    `withdraw`: the calling worker has no room, and wants no notification before it asks again.
    """
    kind = _kind_of(None if queues is None else sorted(queues), sorted(tasks))
    yield write("maintenance/pass_on", key=key, kind=kind, start=start, number=number, withdraw=withdraw)


def forget_sleeper(key: int) -> Flow[None]:
    """The worker with this key has stopped."""
    yield write("maintenance/forget_sleeper", key=key)


def _kind_of(queues: Sequence[str] | None, tasks: Sequence[str]) -> int:
    """The same number for workers with the same queues and tasks, and almost certainly another for others."""
    return crc32(repr((queues, tasks)).encode()) & 0x7FFFFFFF


@bounded(LONG)
def make_partitions(*, days: int = PARTITION_DAYS_AHEAD) -> Flow[None]:
    """Create the partitions of the next days, into which jobs finish. Does nothing on SQLite."""
    yield write("maintenance/make_partitions", days=days)


@bounded(LONG)
def make_partition(moment: float) -> Flow[None]:
    """Create the partition for jobs that were made on one day, however long ago."""
    yield write("maintenance/make_partition", moment=moment)


@bounded(LONG)
def prune(*, keep_finished: float, keep_failed: float, limit: int = 1000) -> Flow[Pruned]:
    """Delete a batch of jobs that ended long enough ago, and other old rows. Steps are small: claims do not wait."""
    yield BEGIN
    over, some_left = yield from _prune_finished(keep_finished, limit)
    failed, more_left = yield from _prune_failed(keep_failed, limit)
    keys = yield write("maintenance/prune_keys", limit=limit)
    ticks = yield write("maintenance/prune_ticks", seconds=keep_finished, limit=limit)
    actions = yield write("maintenance/prune_actions", seconds=ACTIONS_FOR, limit=limit)
    operations = yield write("maintenance/prune_operations", seconds=OPERATIONS_FOR, limit=limit)
    yield write("maintenance/prune_workers", seconds=LOST_WORKERS_FOR)
    yield write("maintenance/forget_sleeper", key=None)
    more = some_left or more_left or limit in (len(keys), len(ticks), len(actions), len(operations))
    return Pruned(over, failed, len(keys), more=more)


def prune_counted(*, keep_finished: float, keep_failed: float, limit: int) -> Flow[tuple[int, int, int, bool]]:
    """Prune, and return plain numbers: finished, failed, keys, and whether there is more."""
    step = yield from prune(keep_finished=keep_finished, keep_failed=keep_failed, limit=limit)
    return step.finished, step.failed, step.keys, step.more


def prune_stale_keys(beyond: str = "", *, limit: int = 1000) -> Flow[tuple[int, str | None]]:
    """Delete unique keys whose jobs are over or deleted. A key stays behind if it was locked when its job ended.

    Reads up to `limit` keys after `beyond`. Returns how many were deleted, and where to continue if there are more.
    """
    yield BEGIN
    seen = yield read("maintenance/stale_keys", beyond=beyond, limit=limit)
    stale = [{"key": key, "job": job} for key, job in seen if job is not None]
    removed: list[Row] = []
    if stale:
        rows = yield write("maintenance/lock_keys", batch=as_json(stale))
        locked = [{"key": key, "job": job} for key, job in rows]
        # This statement checks the jobs again, now that no other transaction can take the keys.
        removed = yield write("maintenance/drop_stale_keys", batch=as_json(locked))
    return len(removed), next((key for key, job in seen if job is None), None)


@bounded(LONG)
def strip_payloads(seconds: float, beyond: str | None = None, *, limit: int = 1000) -> Flow[tuple[int, str | None]]:
    """Remove the payloads and results of jobs that ended longer ago; their history stays.

    Reads up to `limit` jobs after the id `beyond`. Returns how many were stripped, and where to continue if there are
    more.
    """
    yield BEGIN
    seen = yield read("maintenance/old_payloads", seconds=seconds, beyond=beyond, limit=limit)
    ids = [id for id, has_payload in seen if has_payload]
    if ids:
        yield write("maintenance/strip_payloads", ids=as_json(ids))
    return len(ids), seen[-1][0] if len(seen) == limit else None


def _prune_finished(seconds: float, limit: int) -> Flow[tuple[int, bool]]:
    """Delete jobs that are over. Their details go first, in as many steps as that takes. Returns how many jobs were
    deleted, and whether there are more."""
    old = [row[0] for row in (yield write("maintenance/old_finished", seconds=seconds, limit=limit))]
    if not old:
        return 0, False
    ((left,),) = yield write("maintenance/prune_details", ids=as_json(old), limit=DETAILS * limit)
    if left:
        return 0, True
    gone = yield write("maintenance/prune_finished", ids=as_json(old))
    return len(gone), len(old) == limit


def _prune_failed(seconds: float, limit: int) -> Flow[tuple[int, bool]]:
    """Delete failed jobs, each together with its details: until it is deleted, a failed job may be resumed and needs
    them. A job with too many details for one transaction is cancelled, and later deleted as one that is over."""
    bound = DETAILS * limit
    old = yield write("maintenance/old_failed", seconds=seconds, limit=limit, bound=bound)
    too_large = [row for row in old if row[3] >= bound]
    yield from apply([Change(id, "cancel", State.CANCELLED, attempt, losses) for id, attempt, losses, _ in too_large])
    rest = [(id, number) for id, _, _, number in old if number < bound]
    sums = accumulate(number for _, number in rest)
    gone = [id for (id, _), total in zip(rest, sums, strict=True) if total < bound]
    if gone:
        yield write("maintenance/prune_details", ids=as_json(gone), limit=bound)
        yield write("maintenance/prune_failed", ids=as_json(gone))
    return len(gone), len(old) == limit or len(gone) < len(old)
