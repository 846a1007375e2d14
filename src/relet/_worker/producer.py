"""The producer: claims jobs from some queues into slots.

A claim asks for as many jobs as there are free slots, and for a few more that wait for a slot (`slots.py`). A suspect,
which is a job that has lost a worker before, is claimed only if a slot is free.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from .._attempts.attempt import Attempt
from .._attempts.runtime import AttemptRuntime
from .._core.job import Claimed, Lease, State
from .._store.flows import quarantine
from .._store.flows.claim_scope import Claim, QueueFlags
from ..events import Claimed as ClaimedEvent
from .claimer import FLAGS_EVERY, Claimer
from .context import WorkerContext
from .execution import Execution
from .loop import Loop
from .notifications import Notifications
from .quarantine import Quarantine
from .reconnect import ReconnectingStore, Stopped
from .settler import Settler
from .slots import STALE, Slots

log = logging.getLogger("relet.worker")

MAX_CLAIMED = 1000  # jobs in one claim
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 30.0  # between two claims that find nothing; `poll` makes one due when jobs are queued

_new_tuple = tuple.__new__  # makes the Lease of each job in a third of the time of its constructor


class Producer:
    """Claims jobs for one set of slots."""

    def __init__(
        self,
        context: WorkerContext,
        store: ReconnectingStore,
        shared: ReconnectingStore,
        settler: Settler,
        quarantine: Quarantine,
        start: Callable[[Execution], object],
        queues: Sequence[str] | None,
        slots: int,
    ) -> None:
        self._context, self._settler, self._quarantine = context, settler, quarantine
        self._system, self._now = context.system, context.system.monotonic
        self.loop = Loop(context.system, "producer", self.step, context.threads)
        self._eager, self._patient = (one.stopped_by(self.loop.stopping) for one in (store, shared))
        self._store = self._eager
        self.slots = Slots(context, settler, slots, start)
        self.slots.on_room, self.slots.on_requeued = self.loop.wake, self._rescan
        tasks = context.tasks
        self._claimer = Claimer(
            tasks, queues if queues is not None else sorted({"default", *(t.queue for t in tasks.values())}),
            serves_all=queues is None, guard=context.guard, system=context.system,
        )  # fmt: skip
        self._others_sleep = False  # workers wait for notifications
        self._pause = FIRST_PAUSE
        self._claim_at = 0.0  # when the next claim is due, unless the loop is woken
        self._is_poll = False  # maintenance has found queued jobs
        self.notifications = Notifications(context.system, context.store.notifier, queues, tasks)
        self._subscriptions = ExitStack()
        self._subscriptions.enter_context(self.notifications.subscribe(self.loop.wake))
        self.is_claiming = False
        self.idle_since: float | None = None  # since when claims have found nothing
        self.again_in: float | None = None  # seconds after the last claim until a rate has room again
        self.last_empty_claim = 0.0  # when the last claim that found nothing was sent

    def start(self) -> None:
        self.loop.start()

    def stop(self) -> None:
        """Stop claiming, and release the jobs that wait for a slot."""
        self.loop.stop()
        self.slots.release_all()
        self._subscriptions.close()

    def wake(self) -> None:
        """Have the next claim made soon: slots may be free, or jobs may have been queued."""
        self._claim_at = 0.0
        self.loop.wake()

    def poll(self) -> None:
        """Maintenance has found queued jobs: claim soon, unless a claim has just found none for this worker."""
        is_idle = self.idle_since is not None
        if is_idle and self._now() - self.last_empty_claim >= self._context.settings.poll_interval / 2:
            self._is_poll = True
            self.loop.wake()

    @property
    def is_stopped(self) -> bool:
        return self.loop.stopping.is_set()

    def step(self) -> float | None:
        """Claim as many jobs as there is room for. Returns the seconds until the next claim."""
        # A claim that polls can wait for a connection.
        self._store = self._eager if self.loop.was_woken or self.idle_since is None else self._patient
        self.slots.release_stale()
        if self._quarantine.owner is self:
            return self._quarantine.step()
        if self._claimer.may_have_quarantined and self._quarantine.nothing_runs and self._quarantine.begin(self):
            return 0.0
        if not self.loop.was_woken and self._now() < self._claim_at and not self._request_notifications():
            return self._next_step_in(self._claim_at - self._now())
        sent = self._now()
        want, free = self.slots.room(closed=self._quarantine.is_closed)
        if not want:
            self.notifications.has_no_room(self._store.run)
            self._claim_at = 0.0
            return STALE / 2
        found = self.claim(min(want, MAX_CLAIMED), free)
        self.slots.is_limited, self.again_in = found.limited, found.again_in
        if not found.jobs:
            self.idle_since = self.idle_since or self._now()
            self.last_empty_claim = sent
        if found.flags is not None and self._follow(found.flags):
            return 0.0
        enough = min(want, MAX_CLAIMED, free) if found.limited else min(want, MAX_CLAIMED)
        return self._wait_after(found) if len(found.jobs) < enough else self._go_on()

    def _follow(self, flags: QueueFlags) -> bool:
        """Adapt the next claim to suspects, jobs that must run alone, and limits. True if it should follow at once."""
        more = self._claimer.follow(flags)
        self.slots.may_claim_ahead, self._others_sleep = not flags.suspects, flags.sleeping
        self._settler.wake_after_settling(self.loop.wake, bool(self._claimer.limits))
        return (flags.quarantined and self._quarantine.begin(self)) or more

    def _go_on(self) -> float:
        """The claim was filled, so there is a backlog. Claim again at once, but look up new queues now and then."""
        if self._others_sleep:
            self.notifications.leaves_jobs(self._store.run)
        self._claimer.find_queues_now_and_then(self._store)
        return 0.0

    def _wait_after(self, found: Claim) -> float:
        """The claim returned fewer jobs than it asked for. Returns the seconds to wait; 0 to claim again at once."""
        now = self._now()
        # At a limit, every settle wakes the producer. It need not read the names of queues each time.
        names_are_new = self._claimer.limits and now - self._claimer.names_at < FLAGS_EVERY
        if (not names_are_new and self._claimer.find_queues(self._store)) or self._request_notifications():
            return 0.0
        # A notification came, but the claim found nothing: the job may have been locked. Claim again soon.
        is_early = self.loop.was_woken and not self._is_poll and self._store.store.skips_locked
        self._is_poll = False
        pause = FIRST_PAUSE if found.jobs or is_early else self._pause
        self._pause = min(pause * 2, LONGEST_PAUSE)
        waits = [pause, self._claimer.cursor.next_full_scan_in(self._now())]
        if found.again_in is not None:
            waits.append(found.again_in)
        if self.slots.waiting:
            waits.append(STALE / 2)
        wait = max(min(waits), 0.001)
        self._claim_at = self._now() + wait
        return self._next_step_in(wait)

    def _next_step_in(self, wait: float) -> float:
        """The seconds until the next step: it claims, or asks again to be notified."""
        return max(min(wait, self.notifications.again_at - self._now()), 0.001)

    # One claim

    def claim(self, want: int, slots: int, *, alone: bool = False) -> Claim:
        """Claim jobs. They are in the lease table, and so are renewed, before anything else is done with them."""
        self.is_claiming = True  # before the check: so a drain either stops this claim or waits for it
        try:
            if self.is_stopped:
                raise Stopped
            return self._claim(want, slots, alone)
        finally:
            self.is_claiming = False

    def _claim(self, want: int, slots: int, alone: bool) -> Claim:
        token, leases = self._system.new_token(), self._context.leases
        begin, failures = self._now(), self._store.failures
        self.notifications.begin_claim()
        with leases.claiming(token):
            found = self._claimer.claim(
                self._store, self._context.worker, token, want=want, lease=self._context.settings.lease,
                slots=slots, ahead=self.slots.ahead_of_limits(), sent=begin, alone=alone,
            )  # fmt: skip
            begin += found.waited
            executions = [self.execution(job, begin) for job in found.jobs]
            if executions:
                leases.add(executions)
        end = self._now()
        elapsed = end - begin if failures == self._store.failures else None
        is_slow = self._claimer.record(found.jobs, elapsed, end)
        if executions:
            self.take(executions)
        if alone:
            return found
        # Only now: the claimed jobs have been started.
        return self._claimer.read_flags(self._store, found, want, end, is_slow=is_slow)

    def execution(self, job: Claimed, sent: float) -> Execution:
        """A claimed job with its lease and its attempt. `sent`: when the claim was sent."""
        context = self._context
        task, seconds = context.tasks[job.task], job.policy.lease or context.settings.lease
        attempt = Attempt(job, sent + seconds, None, context.tenant, context.worker)
        lease: Lease = _new_tuple(Lease, (job.id, job.token))
        execution = Execution(job, task, self.slots, lease, attempt, seconds, sent, context.tenant)
        if task.takes_resources:
            attempt._resources = context.resources
        if task.takes_attempt:
            if task.batch is None:
                self._prepare(execution)
            else:  # most handlers of batches do not use the attempts
                execution.prepare = self._prepare
        return execution

    def _prepare(self, execution: Execution) -> None:
        """Make an attempt work: steps, transactions and progress."""
        context, attempt = self._context, execution.attempt
        execution.prepare = None
        attempt._report = partial(context.leases.report_progress, execution)
        if not execution.task.process:
            AttemptRuntime(context.handler_store, execution.task, attempt)

    def take(self, executions: list[Execution]) -> None:
        """Start executions that were claimed, or have them wait for a slot."""
        self.idle_since = None
        events, worker = self._context.events, self._context.worker
        if events.wanted(ClaimedEvent):
            for execution in executions:
                events.emit(ClaimedEvent(**execution.event_fields(worker, State.RUNNING)))
        self.slots.add(executions)
        if self.is_stopped:
            self.slots.release_all()

    def _rescan(self) -> None:
        """A job went back to its queue, perhaps to a position before the mark of the cursor."""
        if self._claimer.cursor.job_requeued(self._now()):
            self.loop.wake()

    # Quarantine

    @property
    def is_busy(self) -> bool:
        """Whether any job would lose an attempt if the worker died now. Also one that has ended but is not settled."""
        return bool(self.is_claiming or self.slots.running or len(self._context.leases))

    def enter_quarantine(self) -> bool:
        """Ask the store whether this worker may empty its slots for a job that must run alone."""
        return self._store.run(quarantine.enter, self._context.worker)

    def leave_quarantine(self) -> None:
        self._store.run(quarantine.leave, self._context.worker)

    # Notifications

    def _request_notifications(self) -> bool:
        """Ask enqueuing processes to notify. True if they did not notify before, so that a last claim is needed."""
        idle_for = self._now() - self.idle_since if self.idle_since is not None else 0.0
        return self.notifications.request(self._store.run, idle_for)
