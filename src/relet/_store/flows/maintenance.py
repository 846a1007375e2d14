"""What keeps a store in shape: the pulse, arming, pruning, partitions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from msgspec import Struct

from ..._core.job import State
from ..._core.machine import Change
from ..query import BEGIN, LONG, Flow, Row, as_json, bounded, read, read_only, write
from .lease import LOCKED, PULSE_GAP, apply, await_renewals, touch_pulse

BEAT_EVERY = 0.7
PARTITION_DAYS_AHEAD = 7
LOST_WORKERS_FOR = 86400.0
ACTIONS_FOR = 90 * 86400.0
OPERATIONS_FOR = 86400.0  # longer than any try is repeated, and as long as HTTP clients may expect of a key
DETAILS = 5  # rows of attempts, steps, signals and edges that go with each job of a batch, on average


class Pruned(Struct, frozen=True):
    """How much a step of pruning removed; `more` says that another step will find something."""

    finished: int = 0
    failed: int = 0
    keys: int = 0
    partitions: tuple[str, ...] = ()
    more: bool = False


class WorkAhead(NamedTuple):
    """Whether upkeep has anything to do, and in how many seconds the next job, or schedule, is due."""

    expired: bool
    nudged: bool
    next_due: float | None
    next_tick: float | None


@read_only
def work_ahead(tasks: Iterable[str] = (), *, without: Iterable[str] = ()) -> Flow[WorkAhead]:
    """One look, so that a store where nothing happens costs next to nothing.

    Schedules of other tasks do not count, nor those with definitions that cannot be understood here (`without`).
    """
    which = {"tasks": as_json(sorted(tasks)), "without": as_json(sorted(without))}
    ((expired, nudged, next_due, next_tick),) = yield read("maintenance/work_ahead", **which)
    return WorkAhead(bool(expired), bool(nudged), next_due, next_tick)


def record_pulse(*, grace: float, gap: float = PULSE_GAP, every: float = BEAT_EVERY) -> Flow[float | None]:
    """Note that the store is reachable. Returns for how long no lease is taken away; None if it was noted just now.

    A pulse in the future means that the clock was put back: leases that were taken in the future are rewound.
    """
    waited = yield from await_renewals()
    ((is_back,),) = yield read("lease/clock_is_back")
    found = yield from touch_pulse(gap, grace, every, locked=waited > LOCKED)
    if is_back:
        yield write("lease/rewind_leases")
    return float(found[0][0]) if found else None


def probe() -> Flow[None]:
    """Find out whether the store can be written to."""
    yield write("maintenance/probe")


def request_notifications(seconds: float) -> Flow[None]:
    """Ask producers to notify for so long: this worker is about to sleep."""
    yield write("maintenance/request_notifications", seconds=seconds)


@bounded(LONG)
def make_partitions(*, days: int = PARTITION_DAYS_AHEAD) -> Flow[None]:
    """See to it that jobs of the days to come can finish. Nothing to do where there are no partitions."""
    yield write("maintenance/make_partitions", days=days)


@bounded(LONG)
def make_partition(moment: float) -> Flow[None]:
    """See to it that jobs of one day can finish, however old they are."""
    yield write("maintenance/make_partition", moment=moment)


@bounded(LONG)
def prune(*, keep_finished: float, keep_failed: float, most: int = 1000) -> Flow[Pruned]:
    """Remove a batch of what has been over for long enough. Small steps: no claim waits for one."""
    yield BEGIN
    over, some_left = yield from _prune_finished(keep_finished, most)
    failed, more_left = yield from _prune_failed(keep_failed, most)
    keys = yield write("maintenance/prune_keys", most=most)
    ticks = yield write("maintenance/prune_ticks", seconds=keep_finished, most=most)
    actions = yield write("maintenance/prune_actions", seconds=ACTIONS_FOR, most=most)
    operations = yield write("maintenance/prune_operations", seconds=OPERATIONS_FOR, most=most)
    yield write("maintenance/prune_workers", seconds=LOST_WORKERS_FOR)
    more = some_left or more_left or most in (len(keys), len(ticks), len(actions), len(operations))
    return Pruned(over, failed, len(keys), more=more)


def prune_counted(*, keep_finished: float, keep_failed: float, most: int) -> Flow[tuple[int, int, int, bool]]:
    """The same as plain numbers: finished, failed, keys, and whether there is more."""
    step = yield from prune(keep_finished=keep_finished, keep_failed=keep_failed, most=most)
    return step.finished, step.failed, step.keys, step.more


def prune_stale_keys(beyond: str = "", *, most: int = 1000) -> Flow[tuple[int, str | None]]:
    """Remove unique keys of jobs that are over or gone: one that was locked when its job ended is still there.

    So many keys are looked at, from `beyond` on. Returns how many were removed, and where to go on, if there are more.
    """
    yield BEGIN
    seen = yield read("maintenance/stale_keys", beyond=beyond, most=most)
    stale = [{"key": key, "job": job} for key, job in seen if job is not None]
    removed: list[Row] = []
    if stale:
        held = yield write(
            "maintenance/lock_keys", batch=as_json(stale)
        )  # looked at again, now that they cannot be taken
        removed = yield write(
            "maintenance/drop_stale_keys", batch=as_json([{"key": key, "job": job} for key, job in held])
        )
    return len(removed), next((key for key, job in seen if job is None), None)


def _prune_finished(seconds: float, most: int) -> Flow[tuple[int, bool]]:
    """How many were removed, and whether more are to be. What belongs to them goes first, in any number of steps."""
    old = [row[0] for row in (yield write("maintenance/old_finished", seconds=seconds, most=most))]
    if not old:
        return 0, False
    ((left,),) = yield write("maintenance/prune_details", ids=as_json(old), most=DETAILS * most)
    if left:
        return 0, True
    gone = yield write("maintenance/prune_finished", ids=as_json(old))
    return len(gone), len(old) == most


def _prune_failed(seconds: float, most: int) -> Flow[tuple[int, bool]]:
    """The same for failed jobs. Until such a job is gone it may be resumed, and then needs what belongs to it: they go
    together. One for which that is too much at once is cancelled, and goes as what is over does."""
    bound = DETAILS * most
    old = yield write("maintenance/old_failed", seconds=seconds, most=most, bound=bound)
    given_up = [Change(id, "cancel", State.CANCELLED, attempt, losses) for id, attempt, losses, n in old if n >= bound]
    yield from apply(given_up)
    rest = [(id, number) for id, _, _, number in old if number < bound]
    sums = accumulate(number for _, number in rest)
    gone = [id for (id, _), total in zip(rest, sums, strict=True) if total < bound]
    if gone:
        yield write("maintenance/prune_details", ids=as_json(gone), most=bound)
        yield write("maintenance/prune_failed", ids=as_json(gone))
    return len(gone), len(old) == most or len(gone) < len(old)
