"""The heartbeat: one statement renews all leases of a worker at a store, and returns requests to cancel or pause.

While there are leases, its thread has its own connection, so that no other thread can delay it. It renews at every
third of the shortest lease. In between, a notification wakes it: then it reads the requests for its jobs, and writes
nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from operator import attrgetter

from .._core.job import Lease, Released, Request, State
from .._core.tokens import claim_of
from .._store.flows import inspect, settle
from .._store.flows import lease as flows
from .._store.flows.lease import Renewal
from .._store.flows.losses import losses
from ..errors import AbortReason
from ..events import Renewed
from .context import WorkerContext
from .execution import Execution, Slots
from .loop import Loop
from .reconnect import ReconnectingStore
from .undone import UndoneAttempts

log = logging.getLogger("relet.worker")

BEATS_PER_LEASE = 3
LOCKED_BEATS = 4  # tries in one interval while a row is locked: the lock must be caught free before the lease expires
CHECK_EVERY = 0.05  # seconds between two checks for requests: on SQLite any commit of another process may be one

CLAIM_LOST = "the reply to its claim was lost"
END_LOST = "the database has lost its end"

_LEASE_SECONDS = attrgetter("lease_seconds")

_REASONS: dict[Request, AbortReason] = {"cancel": "cancelled", "pause": "paused"}


class Heartbeat:
    """Renews the leases of one worker at one store."""

    def __init__(self, context: WorkerContext, store: ReconnectingStore, shared: ReconnectingStore) -> None:
        """`shared`: the store on connections that other threads use as well. It serves while there are no leases."""
        self._leases, self._events, self._worker = context.leases, context.events, context.worker
        self._lease = context.settings.lease  # seconds, for jobs whose task sets none
        self._system, self._now = context.system, context.system.monotonic
        self.loop = Loop(context.system, "heartbeat", self.step, context.heartbeat_threads)
        self._store = store.stopped_by(self.loop.stopping)
        self._shared = shared.stopped_by(self.loop.stopping)
        self._undone = UndoneAttempts(context, self._store)
        self._interval = self._lease / BEATS_PER_LEASE  # between two renewals, as of the last step
        self._sent = self._now()
        self._is_locked = False  # whether the last renewal skipped a row
        self._warn_after = 0.0
        self._subscriptions = ExitStack()
        subscription = context.store.notifier.subscribe("request", wake=self.loop.wake)
        self._subscriptions.enter_context(subscription)
        self._leases.on_add = self._beat_sooner

    def stop(self) -> None:
        """Stop renewing, so that the remaining leases expire."""
        self.loop.stop()
        self._subscriptions.close()

    def step(self) -> float:
        """Renew if that is due; else read requests, if a notification came."""
        shortest = min([one.lease_seconds for one in self._leases.executions()], default=self._lease)
        self._interval = min(shortest, self._lease) / BEATS_PER_LEASE
        pause = self._interval / LOCKED_BEATS if self._is_locked else self._interval
        left = self._sent + pause - self._now()
        if left <= 0:
            self.beat()
            return 0.0
        if self.loop.was_woken:
            self.check_requests()
            self.loop.rest(min(CHECK_EVERY, left))
            return 0.0
        return left

    def beat(self) -> None:
        """Renew all leases, and act on what the store reports about each: renewed, requested, locked, lost."""
        executions = [one for one in self._leases.executions() if one.attempt.aborted != "timeout"]
        in_flight = self._leases.claims_in_flight
        self._sent = sent = self._now()
        leases = [one.lease for one in executions]
        store = self._store if leases or in_flight else self._shared
        renewal = store.renew(flows.renew, self._worker, leases, lease=self._lease)
        self._extend_locked(renewal, sent)
        emits = self._events.wanted(Renewed)
        for lease in renewal.renewed:
            execution = self._leases.get(lease)
            if execution is not None:
                execution.attempt.deadline = sent + execution.lease_seconds
                if execution.on_renewed is not None:
                    execution.on_renewed()
                if emits:
                    self._events.emit(Renewed(**execution.event_fields(self._worker, State.RUNNING)))
        self._apply(renewal)
        self._release_orphans(renewal.unknown, in_flight)
        self._warn_of_unsettled(executions)
        self._release_paused(executions)

    def check_requests(self) -> None:
        """Read requests to cancel or pause, without renewing."""
        executions = [one for one in self._leases.executions() if not one.is_settling]
        if executions:
            self._apply(self._store.run(flows.pending_requests, [one.lease for one in executions]))
            self._release_paused(executions)

    def _apply(self, renewal: Renewal) -> None:
        """Abort the attempts that a client wants to cancel or pause, and those whose leases are lost."""
        for lease, request in [*renewal.renewed.items(), *renewal.locked.items()]:
            execution = self._leases.get(lease)
            if request is not None and execution is not None and execution.abort(_REASONS[request]):
                what = (execution.task.name, execution.job.id, _REASONS[request])
                log.info("%s %s: %s on request", *what, extra=execution.log_fields)
        lost = [one for lease in renewal.lost if (one := self._leases.get(lease)) and not one.is_settling]
        if lost:
            self._lose(lost)

    def _lose(self, executions: Sequence[Execution]) -> None:
        """Abort handlers whose leases are lost, with the reason that the state of their jobs shows."""
        why = self._store.run(losses, {one.lease: one.job.version for one in executions})
        undone = self._undone.among([one for one in executions if why[one.lease] in ("lease_lost", "deleted")])
        for execution in executions:
            reason = why[execution.lease]
            if reason == "settled":  # by its handler, which may go on: a settled job has no lease to lose
                execution.attempt.deadline = math.inf
                continue
            if execution.is_settling:
                continue  # the settler has its outcome, which is why the row is no longer running
            if execution.lease in undone:
                self._undone.report_claim(execution, undone[execution.lease], "aborting the handler")
            else:
                what = (execution.task.name, execution.job.id, reason)
                log.warning("%s %s: lost its lease (%s); aborting the handler", *what, extra=execution.log_fields)
            self._leases.lose(execution, reason)

    def _extend_locked(self, renewal: Renewal, sent: float) -> None:
        """Extend the deadlines of jobs that their handlers have completed in open transactions.

        Their rows are locked, so that no worker can renew them, and none can reap them. Rows that another program has
        locked are tried again soon.
        """
        self._is_locked = False
        for lease in renewal.locked:
            execution = self._leases.get(lease)
            if execution is None:
                continue
            if execution.attempt._completion.is_unconfirmed:
                execution.attempt.deadline = sent + execution.lease_seconds
            elif not execution.is_settling:
                self._is_locked = True

    def _release_orphans(self, leases: Sequence[Lease], in_flight: set[str]) -> None:
        """Release jobs that the store has leased to this worker, but whose claim was never answered, or whose end the
        database has lost."""
        in_flight |= self._leases.claims_in_flight
        orphans = [one for one in leases if claim_of(one.token) not in in_flight and self._leases.is_orphan(one)]
        if not orphans:
            return
        undone = self._undone.report_ends(self._leases.ends.among(orphans))
        if len(orphans) > len(undone):
            log.warning("The reply to a claim was lost: giving back its %d jobs", len(orphans) - len(undone))
        outcomes = [(one, Released(END_LOST if one in undone else CLAIM_LOST)) for one in orphans]
        self._store.run(settle.settle, outcomes, self._system.random)

    def _release_paused(self, executions: Sequence[Execution]) -> None:
        """Release jobs that wait for a slot, if their queues are paused now."""
        slots: set[Slots] = {one.slots for one in executions if not one.started_at}
        if slots:
            paused = self._store.run(inspect.paused_queues)
            for each in slots if paused else ():
                each.release(lambda execution: execution.job.queue in paused)

    def _warn_of_unsettled(self, executions: Sequence[Execution]) -> None:
        """Warn if renewals succeed but outcomes are not stored: a connection hangs, or another program has a lock."""
        now = self._now()
        unsettled = [now - one.stopped_at for one in executions if one.is_settling and one.stopped_at]
        waits = [seconds for seconds in unsettled if seconds > self._lease]
        if waits and now >= self._warn_after:
            self._warn_after = now + self._lease
            text = "%d outcomes have been waiting to be stored for longer than a lease, the longest for %.0f s"
            log.warning(text, len(waits), max(waits), extra={"worker": self._worker})

    def _beat_sooner(self, executions: Sequence[Execution]) -> None:
        """Wake the thread if a new lease is shorter than all others."""
        if min(map(_LEASE_SECONDS, executions)) / BEATS_PER_LEASE < self._interval:
            self.loop.wake()
