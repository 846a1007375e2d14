"""Maintenance: the periodic work at a store. Every worker does it, and several may do it at the same time.

The pulse, the reaper, the promoter, schedules, progress and partitions share one thread. Each of them runs when it is
due, and none takes long, so a backlog of jobs does not delay them. The pruner may have to wait for transactions of
other programs, and has its own thread.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import AbstractContextManager

from .._core.job import State
from .._store.flows import control, lease, limits, schedules
from .._store.flows import maintenance as flows
from .._store.flows.promote import promote
from .._system import Event
from ..errors import StoreError, StoreRefused
from ..events import Cancelled, Enqueued, Promoted, Reaped
from .context import WorkerContext
from .heartbeat import BEATS_PER_LEASE
from .loop import Loop
from .pruner import Pruner
from .reconnect import MIN_GRACE, ReconnectingStore, Stopped

log = logging.getLogger("relet.worker")

PULSE_EVERY = 0.8
IDLE_PULSE_EVERY = 45.0  # while there are no leases: only the doctor reads it
CHECK_EVERY = 1.0  # seconds, at most; notifications and due times make a check due earlier
#: Entries of jobs that were claimed while an old transaction is open slow down the search for queued jobs, but not
#: claims, which remember how far they came. If a check takes this long, claims poll for a while.
SLOW_CHECK = 0.05
READ_QUEUED_AGAIN = 60.0
CHECK_GAP = 0.005  # seconds, at least, from the end of one check to the next
PROGRESS_EVERY = 1.0
SKIP_UNREADABLE_FOR = 60.0
READY_EVERY = 60.0
PARTITIONS_EVERY = 3600.0
PARTITIONS_AGAIN = 60.0


class Maintenance:
    """The maintenance of one worker at one store."""

    def __init__(self, context: WorkerContext, store: ReconnectingStore) -> None:
        self._context, self._leases, self._events = context, context.leases, context.events
        self._check_every = min(CHECK_EVERY, context.settings.poll_interval)
        self.on_queued: Callable[[], None] = lambda: None  # called while jobs are queued, after each check
        self._system, self._now = context.system, context.system.monotonic
        self.loop = Loop(context.system, "maintenance", self.step, context.threads)
        self._reconnecting = store
        self._store = store.stopped_by(self.loop.stopping)
        self.pruner = Pruner(context, store)
        self._tasks = list(context.tasks)
        # Schedules that this worker cannot read, by definition, and until when it skips them.
        self._unreadable: dict[str, float] = {}
        self._grace = max(context.settings.lease / BEATS_PER_LEASE, MIN_GRACE)
        self._gap = lease.pulse_gap(context.settings.lease)
        self._checked_at = 0.0
        self._read_queued_at = 0.0
        self._has_leases = False  # the store has leases, as of the last check
        self._work: flows.WorkAhead | None = None  # of the last check
        self._due: dict[Callable[[], float], float] = {  # each function returns the seconds until it is due again
            self.pulse: 0.0,
            self.declare: 0.0,
            self.check: 0.0,
            self.progress: 0.0,
            self.partitions: 0.0,
            self.find_ready_groups: 0.0,
        }

    def allow_for(self, *, shortest: float, longest: float) -> None:
        """Keep a pulse for leases of other lengths than this worker's: they are renewed by way of this process."""
        self._gap = lease.pulse_gap(shortest)
        self._grace = max(longest / BEATS_PER_LEASE, MIN_GRACE)

    def skip_rare_work(self) -> None:
        """Leave work that is due once, or seldom, to later sessions. Called before the loop starts."""
        rare = {self.declare: math.inf, self.partitions: PARTITIONS_EVERY, self.find_ready_groups: READY_EVERY}
        self._due |= {work: self._now() + wait for work, wait in rare.items()}

    def listening(self, key: int) -> AbstractContextManager[object]:
        """Within the block, check when the subscribers with this key are notified that jobs have changed."""
        return self._context.store.notifier.subscribe("jobs", wake=self.loop.wake, key=key)

    def start(self) -> None:
        self.loop.start()
        self.pruner.loop.start()

    def stop(self) -> None:
        self.loop.stop()
        self.pruner.loop.stop()

    def step(self) -> float:
        """Run the function that is most overdue. A notification makes a check due."""
        if self.loop.was_woken:
            self._due[self.check] = min(self._due[self.check], self._checked_at + CHECK_GAP)
        work, moment = min(self._due.items(), key=lambda item: item[1])
        wait = moment - self._now()
        if wait > 0:
            return wait
        self._due[work] = self._now() + PULSE_EVERY  # if it fails
        self._due[work] = self._now() + work()
        return 0.0

    def pulse(self) -> float:
        """Record that leases can be renewed. Seldom while there are none: `check` makes it due with the first."""
        self._store.run(flows.record_pulse, grace=self._grace, gap=self._gap)
        every = PULSE_EVERY if self._has_leases else IDLE_PULSE_EVERY
        return every * self._system.uniform(0.9, 1.1)

    def check(self) -> float:
        """Ask the store whether there is anything to reap, promote or tick, and do it. One cheap statement if not."""
        self._unreadable = {text: until for text, until in self._unreadable.items() if until > self._now()}
        began = self._now()
        reads_queued = began >= self._read_queued_at
        work = self._store.run(flows.work_ahead, self._tasks, without=self._unreadable, queued=reads_queued)
        self._work = work
        if self._now() - began > SLOW_CHECK:
            self._read_queued_at = began + READ_QUEUED_AGAIN
        if work.leased and not self._has_leases:
            self._due[self.pulse] = self._now()
        self._has_leases = work.leased
        if work.queued or not reads_queued:
            self.on_queued()
        if work.expired:
            self.reap()
        next_due = work.next_due
        if work.nudged or (next_due is not None and next_due <= 0):
            next_due = self.promote()
        next_tick = work.next_tick
        if next_tick is not None and next_tick <= 0:
            next_tick = self.tick()
        self._checked_at = self._now()
        latest = self._check_every * self._system.uniform(0.9, 1.1)
        return min(max(one, CHECK_GAP) for one in (latest, next_due, next_tick) if one is not None)

    def reap(self) -> None:
        """End the attempts whose leases have expired: their workers died, or lost the database."""
        more = True
        while more:
            changes = self._store.reap(lease.reap, self._system.random)
            more = len(changes) == lease.MAX_REAPED
            for change in changes:
                tenant = self._context.tenant
                fields = {"job_id": change.id, "tenant": tenant}
                log.warning("%s: its worker is gone; it is %s now", change.id, change.state, extra=fields)
                self._events.emit(Reaped(job_id=change.id, state=change.state, tenant=tenant, error=change.error))
                self._context.meter.lost(change.queue)

    def promote(self) -> float | None:
        """Queue the jobs that are due or whose dependencies have ended. Returns the seconds until the next is due."""
        done = self._store.run(promote)
        if self._events.wanted(Promoted):
            for job_id in done.promoted:
                self._events.emit(Promoted(job_id=job_id, state=State.QUEUED, tenant=self._context.tenant))
        for job_id in done.cancelled:
            self._events.emit(Cancelled(job_id=job_id, state=State.CANCELLED, tenant=self._context.tenant))
        if done.next_due is not None and done.next_due <= 0 and not (done.more or done.promoted):
            return CHECK_EVERY / 4  # the row of a due job is locked
        return 0.0 if done.more else done.next_due

    def declare(self) -> float:
        """Store the schedules that the app declares, once."""
        if self._context.schedules:
            self._store.run(schedules.declare, self._context.schedules, self._context.codecs.decode)
        return math.inf

    def find_ready_groups(self) -> float:
        """Find groups that have room and that no nudge named, in queues with limits by group.

        A queue that has got such limits may have jobs without a group that claims do not find yet: the code declared
        the limits, or the rows were locked when an operator set them.
        """
        for queue in self._store.run(limits.queues_with_group_limits):
            while self._store.run(control.backfill_group, queue):
                pass
            self._store.run(limits.find_ready, queue)
        return READY_EVERY * self._system.uniform(0.9, 1.1)

    def tick(self) -> float:
        """Enqueue the jobs of due schedules.

        The next check follows at once, because more may be due; later if another worker had locked the schedules.
        """
        done = self._store.run(schedules.tick, self._tasks, self._system.new_id, without=self._unreadable)
        for name, problem in done.problems.items():
            log.error("Cannot follow schedule %s: %s", name, problem)
        self._unreadable |= dict.fromkeys(done.unreadable, self._now() + SKIP_UNREADABLE_FOR)
        if self._events.wanted(Enqueued):
            for job in done.jobs:
                fields = {"task": job.task, "queue": job.queue, "tenant": self._context.tenant}
                self._events.emit(Enqueued(job_id=job.id, state=job.state, **fields))
        return 0.0 if done.locked else CHECK_EVERY / 20

    def progress(self) -> float:
        """Store the progress that handlers have reported."""
        reported = self._leases.take_progress()
        if reported:
            stored = self._store.run(lease.progress, reported)
            for one in reported.keys() - stored:
                self._leases.keep_progress(one, reported[one])
        return PROGRESS_EVERY

    def partitions(self) -> float:
        """Create the partitions for jobs that finish in the next days. Other work goes on if this fails."""
        try:
            self._context.store.run(flows.make_partitions)
        except StoreRefused as error:
            log.error("The database refuses to create partitions for the next days: %s", error)
        except StoreError as error:
            log.warning(
                "Could not create partitions for the next days, trying again in %g s: %s", PARTITIONS_AGAIN, error
            )
            return PARTITIONS_AGAIN
        return PARTITIONS_EVERY

    def has_no_work_for(self, seconds: float) -> bool:
        """Whether the last check has found nothing to do, and nothing that is due soon."""
        work = self._work
        if work is None or work.leased or work.queued or work.nudged or self._unfinished:
            return False
        return all(due is None or due > seconds for due in (work.next_due, work.next_tick))

    @property
    def _unfinished(self) -> bool:
        """Whether work is left that a session does once, or a round of pruning."""
        return self.pruner.is_pruning or any(moment == 0.0 for moment in self._due.values())

    # For `until_idle`

    def has_nothing_to_promote(self, stop: Event) -> bool:
        """Whether every job that could run now is queued."""
        try:
            work = self._reconnecting.stopped_by(stop).run(flows.work_ahead)
        except Stopped:
            return False
        return not work.expired and not work.nudged and (work.next_due is None or work.next_due > 0)

    def has_expired_leases(self, stop: Event) -> bool:
        try:
            return self._reconnecting.stopped_by(stop).run(flows.work_ahead).expired
        except Stopped:
            return False


class NoMaintenance(Maintenance):
    """In a worker behind a gateway, which does the maintenance. The progress of handlers is stored as usual."""

    def __init__(self, context: WorkerContext, store: ReconnectingStore) -> None:
        super().__init__(context, store)
        self._due = {self.progress: 0.0, self.check: math.inf}

    def start(self) -> None:
        self.loop.start()

    def check(self) -> float:
        """A wake-up makes it due, and there is nothing to check."""
        return math.inf
