"""The heartbeat: one statement renews all leases of a worker at a store, and brings what people have asked of its jobs.

It has a thread of its own, so that no handler can hold it up, and beats every third of the shortest lease. In between
it is woken by notifications and looks whether they concern its jobs, without writing anything.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from operator import attrgetter

from .._core.job import Lease, Released, Request, State
from .._store.flows import inspect
from .._store.flows import lease as leases
from .._store.flows.lease import Renewal
from .._store.notify import SchemaNotifier
from ..errors import AbortReason
from ..events import Events, Renewed
from .execution import Execution
from .leases import LeaseTable
from .reconnect import ReconnectingStore, run_loop

log = logging.getLogger("relet.worker")

BEATS_PER_LEASE = 3
HEED_EVERY = 0.05  # at most: on SQLite any commit of another process may be a request

_SECONDS = attrgetter("seconds")

_REASONS: dict[Request, AbortReason] = {"cancel": "cancelled", "pause": "paused"}


class Heartbeat:
    """Keeps the leases of one worker at one store."""

    def __init__(
        self,
        link: ReconnectingStore,
        notifier: SchemaNotifier,
        held: LeaseTable,
        events: Events,
        worker: str,
        lease: float,
    ) -> None:
        self._link = link
        self._held = held
        self._events = events
        self._worker = worker
        self._lease = lease  # of jobs that do not say otherwise
        self._interval = lease / BEATS_PER_LEASE  # that the thread sleeps by at this moment
        self._sent = time.monotonic()
        self._warn_again_at = 0.0
        self._halt = threading.Event()
        self._stack = ExitStack()
        self._sleeper = self._stack.enter_context(notifier.subscribe("request"))
        held.on_add = self._note

    def start(self) -> list[threading.Thread]:
        """From now on."""
        return [run_loop("heartbeat", self.step, self._halt)]

    def stop(self) -> None:
        """No more beats: what is still held will run out."""
        self._halt.set()
        self._sleeper.wake()
        self._stack.close()

    def step(self) -> None:
        """Sleep until it is time to beat, or until somebody may have asked something."""
        shortest = min([run.seconds for run in self._held.runs()], default=self._lease)
        self._interval = min(shortest, self._lease) / BEATS_PER_LEASE
        left = self._sent + self._interval - time.monotonic()
        if left <= 0:
            self.beat()
        elif self._sleeper.wait(left) and not self._halt.is_set():
            self._sleeper.clear()  # before looking: what is said from here on wakes again
            self.heed()
            self._halt.wait(min(HEED_EVERY, left))

    def beat(self) -> None:
        """Renew everything, and learn what has become of it."""
        runs = [run for run in self._held.runs() if run.attempt.aborted != "timeout"]
        claiming = set(self._held.claiming)
        self._sent = sent = time.monotonic()
        given = [run.lease for run in runs]
        answer = self._link.renew(self._halt, leases.renew, self._worker, given, lease=self._lease)
        self._trust_own_locks(answer, sent)
        told = self._events.wanted(Renewed)
        for lease in answer.renewed:
            run = self._held.get(lease)
            if run is not None:
                run.attempt.deadline = sent + run.seconds
                if run.renewed is not None:
                    run.renewed()
                if told:
                    self._events.tell(Renewed(**run.facts(self._worker, State.RUNNING)))
        self._follow(answer)
        self._release(answer.strangers, claiming)
        self._warn_of_unsettled(runs)
        for lane in {run.lane for run in runs if not run.started}:
            lane.give_back_paused(self._halt)

    def _warn_of_unsettled(self, runs: Sequence[Execution]) -> None:
        """Outcomes that do not get through while renewals do: a hanging connection, or a lock that is held."""
        now = time.monotonic()
        waits = [now - run.stopped for run in runs if run.settling and run.stopped and now - run.stopped > run.seconds]
        if waits and now >= self._warn_again_at:
            self._warn_again_at = now + self._lease
            text = "%d outcomes have been waiting to be settled for longer than a lease, the longest for %.0f s"
            log.warning(text, len(waits), max(waits), extra={"worker": self._worker})

    def _trust_own_locks(self, answer: Renewal, sent: float) -> None:
        """What a handler has completed in its open transaction cannot be renewed, nor can anybody take it away."""
        for lease in answer.locked:
            run = self._held.get(lease)
            if run is not None and run.attempt._completed is not None:
                run.attempt.deadline = sent + run.seconds

    def heed(self) -> None:
        """Look what people have asked, without renewing anything."""
        runs = [run for run in self._held.runs() if not run.settling]
        if runs:
            self._follow(self._link.run(self._halt, leases.heed, [run.lease for run in runs]))
            for lane in {run.lane for run in runs if not run.started}:
                lane.give_back_paused(self._halt)

    def _follow(self, answer: Renewal) -> None:
        """Do as people asked, and stop what is no longer ours."""
        for lease, request in [*answer.renewed.items(), *answer.locked.items()]:
            run = self._held.get(lease)
            if request is not None and run is not None and run.abort(_REASONS[request]):
                log.info("%s %s: %s on request", run.task.name, run.job.id, _REASONS[request], extra=run.marks)
        lost = [run for lease in answer.lost if (run := self._held.get(lease)) and not run.settling]
        if lost:
            self._stop(lost)

    def _stop(self, runs: Sequence[Execution]) -> None:
        """Leases that are lost: the reason shows in what has become of the jobs."""
        done = self._link.run(self._halt, leases.settled_before, [run.lease for run in runs])
        for run in runs:
            if run.lease in done:  # by its handler, which may go on: there is no lease to lose any more
                run.attempt.deadline = math.inf
        runs = [run for run in runs if run.lease not in done]
        jobs = self._link.run(self._halt, inspect.get_many, [run.job.id for run in runs])
        for run in runs:
            job = jobs.get(run.job.id)
            reason: AbortReason = "lease_lost"
            if job is None:
                reason = "deleted"
            elif job.state is State.SUCCEEDED and job.version == run.job.version:
                reason = "completed"
            if run.settling:
                continue  # it was settled meanwhile, and that is why it no longer runs
            log.warning("%s %s: no longer ours (%s)", run.task.name, run.job.id, reason, extra=run.marks)
            self._held.lost(run, reason)

    def _release(self, strangers: Sequence[Lease], claiming: set[str]) -> None:
        """Running jobs of this worker that it does not know of: a claim whose answer never came."""
        claiming |= self._held.claiming
        unknown = [one for one in strangers if one.token not in claiming and self._held.is_unknown(one)]
        if unknown:
            log.warning("%d jobs were claimed by an answer that never came; they are given back", len(unknown))
            outcomes = [(one, Released("the answer to its claim was lost")) for one in unknown]
            self._link.run(self._halt, leases.settle, outcomes, random.random)

    def _note(self, runs: Sequence[Execution]) -> None:
        """A lease that is shorter than all others makes the heart beat faster."""
        if min(map(_SECONDS, runs)) / BEATS_PER_LEASE < self._interval:
            self._sleeper.wake()
