"""Upkeep: the timers that keep a store going. Every worker has them; it is safe, and meant, that many do.

The pulse, the reaper, the promoter, the word on how far handlers are: each when it is due, none of them for long, in
a thread that no backlog can hold up. Pruning may wait for others' transactions, and has a thread of its own.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack

from .._core.job import State
from .._core.schedule import Definition
from .._store.flows import inspect as look
from .._store.flows import lease, maintenance, schedules, stats
from .._store.flows.promote import promote
from .._tasks.task import new_id
from ..errors import StoreError, StoreRefused
from ..events import Cancelled, Enqueued, Events, Promoted, Reaped
from .heartbeat import BEATS_PER_LEASE
from .leases import LeaseTable
from .reconnect import GRACE_AT_LEAST, ReconnectingStore, Stopped, run_loop
from .reporter import Meter

log = logging.getLogger("relet.worker")

PULSE_EVERY = 0.8
LOOK_EVERY = 1.0  # at the latest; news and due times come in between
LOOK_GAP = 0.005  # at the least, from the end of one look to the next
PROGRESS_EVERY = 1.0
PUZZLED_FOR = 60.0
PARTITIONS_EVERY = 3600.0
PARTITIONS_AGAIN = 60.0
PRUNE_EVERY = 300.0
PRUNE_PAUSE = 0.05  # between two steps
KEY_STEPS = 20


class Maintenance:
    """The timers of one worker at one store."""

    def __init__(
        self,
        link: ReconnectingStore,
        held: LeaseTable,
        events: Events,
        meter: Meter,
        *,
        tenant: str | None,
        tasks: Collection[str],
        schedules: Mapping[str, Definition],
        lease: float,
        finished_for: float,
        failed_for: float,
    ) -> None:
        self._link, self._held, self._events, self._meter, self._tenant = link, held, events, meter, tenant
        self._tasks, self._schedules = tasks, schedules
        self._puzzles: dict[str, float] = {}  # definitions that cannot be understood here, and until when to pass over
        self._grace = max(lease / BEATS_PER_LEASE, GRACE_AT_LEAST)
        self._keep = (finished_for, failed_for)
        self._keys_beyond = ""  # where to go on with looking at unique keys
        self._halt = threading.Event()
        self._stack = ExitStack()
        self._sleeper = self._stack.enter_context(link.store.notifier.subscribe("jobs"))
        self._looked = 0.0  # when it last did
        self._due: dict[Callable[[], float], float] = {  # each returns in how long it is due again
            self.pulse: 0.0,
            self.declare: 0.0,
            self.look: 0.0,
            self.progress: 0.0,
            self.partitions: 0.0,
        }

    def start(self) -> list[threading.Thread]:
        """From now on."""
        pruner = run_loop("pruner", self._prune_now_and_then, self._halt)
        return [run_loop("upkeep", self.step, self._halt), pruner]

    def stop(self) -> None:
        """No more."""
        self._halt.set()
        self._sleeper.wake()
        self._stack.close()

    def step(self) -> None:
        """Do what is most overdue, or sleep until something is due. News are a reason to look."""
        work, moment = min(self._due.items(), key=lambda item: item[1])
        wait = moment - time.monotonic()
        if wait > 0:
            if self._sleeper.wait(wait):
                self._sleeper.clear()
                self._halt.wait(max(self._looked + LOOK_GAP - time.monotonic(), 0.0))
                self._due[self.look] = 0.0
            return
        self._due[work] = time.monotonic() + PULSE_EVERY  # if it fails
        self._due[work] = time.monotonic() + work()

    def pulse(self) -> float:
        """Note that the store is reachable."""
        self._link.run(self._halt, maintenance.beat, grace=self._grace)
        return PULSE_EVERY * random.uniform(0.9, 1.1)  # noqa: S311

    def look(self) -> float:
        """See what is there to do, and do it: one cheap look while there is nothing."""
        self._puzzles = {text: until for text, until in self._puzzles.items() if until > time.monotonic()}
        outlook = self._link.run(self._halt, maintenance.outlook, self._tasks, without=self._puzzles)
        if outlook.expired:
            self.reap()
        next_due = outlook.next_due
        if outlook.nudged or (next_due is not None and next_due <= 0):
            next_due = self.promote()
        next_tick = outlook.next_tick
        if next_tick is not None and next_tick <= 0:
            next_tick = self.tick()
        self._looked = time.monotonic()
        latest = LOOK_EVERY * random.uniform(0.8, 1.0)  # noqa: S311
        return min(max(one, LOOK_GAP) for one in (latest, next_due, next_tick) if one is not None)

    def has_nothing_to_let_go(self, halt: threading.Event) -> bool:
        """Whether all that could run now is queued."""
        try:
            outlook = self._link.run(halt, maintenance.outlook)
        except Stopped:
            return False
        return not outlook.expired and not outlook.nudged and (outlook.next_due is None or outlook.next_due > 0)

    def has_expired_leases(self, halt: threading.Event) -> bool:
        """Whether there is something to reap."""
        try:
            return self._link.run(halt, maintenance.outlook).expired
        except Stopped:
            return False

    def reap(self) -> None:
        """Take what dead workers have left."""
        full = True
        while full:
            changes = self._link.reap(self._halt, lease.reap, random.random)
            full = len(changes) == lease.MOST_REAPED
            for change in changes:
                mark = {"job_id": change.id, "tenant": self._tenant}
                log.warning("%s: taken from a worker that is gone, now %s", change.id, change.state, extra=mark)
                self._events.tell(Reaped(job_id=change.id, state=change.state, tenant=self._tenant, error=change.error))
            self._count_lost([change.id for change in changes])

    def _count_lost(self, job_ids: list[str]) -> None:
        for job in self._link.run(self._halt, look.get_many, job_ids).values():
            self._meter.lost(job.queue)

    def promote(self) -> float | None:
        """Let go what is due, or free; returns in how many seconds to come again, if anything is known to be due."""
        done = self._link.run(self._halt, promote)
        if self._events.wanted(Promoted):
            for job_id in done.promoted:
                self._events.tell(Promoted(job_id=job_id, state=State.QUEUED, tenant=self._tenant))
        for job_id in done.cancelled:
            self._events.tell(Cancelled(job_id=job_id, state=State.CANCELLED, tenant=self._tenant))
        if done.next_due is not None and done.next_due <= 0 and not (done.more or done.promoted):
            return LOOK_EVERY / 4  # somebody has it locked
        return 0.0 if done.more else done.next_due

    def declare(self) -> float:
        """Store the schedules that the code has, once."""
        if self._schedules:
            self._link.run(self._halt, schedules.declare, self._schedules)
        return math.inf

    def tick(self) -> float:
        """Enqueue what schedules have for this moment. Look again at once: there may be more, or the next is near.
        Unless another worker deals with what is due: it must not be in its way."""
        done = self._link.run(self._halt, schedules.tick, self._tasks, new_id, without=self._puzzles)
        for name, problem in done.problems.items():
            log.error("schedule %s cannot be followed here: %s", name, problem)
        self._puzzles |= dict.fromkeys(done.puzzles, time.monotonic() + PUZZLED_FOR)
        if self._events.wanted(Enqueued):
            for job in done.jobs:
                told = {"task": job.task, "queue": job.queue, "tenant": self._tenant}
                self._events.tell(Enqueued(job_id=job.id, state=job.state, **told))
        return 0.0 if done.looked_at else LOOK_EVERY / 20

    def progress(self) -> float:
        """Store what handlers have said of how far they are."""
        said = self._held.take_progress()
        if said:
            stored = self._link.run(self._halt, lease.progress, said)
            for one in said.keys() - stored:
                self._held.report_again(one, said[one])
        return PROGRESS_EVERY

    def partitions(self) -> float:
        """See to it that jobs of the days to come can finish. A role that may not is no reason to stop everything."""
        try:
            self._link.store.run(maintenance.make_partitions)
        except StoreRefused as error:
            log.error("partitions for the days to come cannot be made here: %s", error)
        except StoreError as error:
            log.warning("partitions for the days to come could not be made just now: %s", error)
            return PARTITIONS_AGAIN
        return PARTITIONS_EVERY

    def _prune_now_and_then(self) -> None:
        if not self._halt.wait(PRUNE_EVERY * random.uniform(0.5, 1.5)):  # noqa: S311
            self.prune()

    def prune(self) -> None:
        """Remove what has been over for long enough, in small steps."""
        finished_for, failed_for = self._keep
        self._link.run(self._halt, stats.roll_up)
        self._link.store.drop_old(finished_for, self._halt.is_set)
        most = self._link.store.prune_at_once
        keep = {"finished_for": finished_for, "failed_for": failed_for}
        while self._link.run(self._halt, maintenance.prune, **keep, most=most).more:
            self._halt.wait(PRUNE_PAUSE)
        for _ in range(KEY_STEPS):  # of millions of keys a few are looked at each time
            _, beyond = self._link.run(self._halt, maintenance.prune_stale_keys, self._keys_beyond, most=most)
            self._keys_beyond = beyond or ""
            if beyond is None:
                break
            self._halt.wait(PRUNE_PAUSE)
