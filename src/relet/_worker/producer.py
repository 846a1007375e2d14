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
from .._store.flows import claim as claim_flows
from .._store.flows import claim_scope, inspect, maintenance, quarantine
from .._store.flows.claim_scope import Claim, QueueFlags, Scope
from ..events import Claimed as ClaimedEvent
from .claim_cursor import ClaimCursor
from .context import WorkerContext
from .execution import Execution
from .loop import Loop
from .quarantine import Quarantine
from .reconnect import ReconnectingStore, Stopped
from .settler import Settler
from .slots import STALE, Slots

log = logging.getLogger("relet.worker")

MAX_CLAIMED = 1000  # jobs in one claim
MAX_QUEUES = 100  # in one claim; also how many empty ones are remembered
NAMES_EVERY = 1.0  # seconds between two searches for new queues while a backlog fills every claim
FLAGS_EVERY = 0.05  # seconds between two searches for suspects and limits while a backlog fills every claim
TASKS_EVERY = 5.0  # seconds between two searches for jobs of unknown tasks, at least
REAP_EVERY = 0.1  # seconds between two claims that reap because a queue is at its limit
NOTIFY_FOR = 5.0  # seconds that enqueuing processes notify after a worker has asked for it
LONGEST_NOTIFY = 30.0  # the same for a worker that has been idle for as long
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
        self.loop = Loop(context.system, "producer", self.step)
        self._eager, self._patient = (one.stopped_by(self.loop.stopping) for one in (store, shared))
        self._store = self._eager
        self.slots = Slots(context, settler, slots, start)
        self.slots.on_room, self.slots.on_requeued = self.loop.wake, self._rescan
        tasks = context.tasks
        self._queues = list(queues) if queues is not None else sorted({"default", *(t.queue for t in tasks.values())})
        self._own_queues = frozenset(self._queues)  # kept even if they are empty
        self._serves_all = queues is None
        self._cursor = ClaimCursor()
        self._rescues = False  # the store has suspects: claims take them first
        self._may_have_quarantined = True  # the store may have jobs that must run alone
        self._limits: frozenset[str] = frozenset()  # the served queues that have limits
        self._names_at = 0.0  # when queue names were last read
        self._flags_at = 0.0  # when suspects and limits were last searched for
        self._reaped_at = 0.0  # when a claim last reaped because of a limit
        self._foreign: set[str] = set()  # queues with jobs of tasks that this worker does not know
        self._tasks_at = 0.0  # when to search for those again, at the earliest
        self._pause = FIRST_PAUSE
        self._claim_at = 0.0  # when the next claim is due, unless the loop is woken
        self._is_poll = False  # maintenance has found queued jobs
        self._notified_until, self._notify_again_at = 0.0, 0.0
        self._subscriptions = ExitStack()
        notifier = context.store.notifier
        self._subscriptions.enter_context(notifier.subscribe("queued", "jobs", wake=self.loop.wake))
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
        if self._may_have_quarantined and self._quarantine.nothing_runs and self._quarantine.begin(self):
            return 0.0
        if not self.loop.was_woken and self._now() < self._claim_at and not self._request_notifications():
            return self._next_step_in(self._claim_at - self._now())
        sent = self._now()
        want, free = self.slots.room(closed=self._quarantine.is_closed)
        if not want:
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
        limits = flags.limited & {"*", *self._queues}
        more = (flags.suspects and not self._rescues) or bool(limits and not self._limits)
        self._rescues, self._may_have_quarantined, self._limits = flags.suspects, flags.quarantined, limits
        self.slots.may_claim_ahead = not self._rescues
        self._settler.wake_after_settling(self.loop.wake, bool(limits))
        return (flags.quarantined and self._quarantine.begin(self)) or more

    def _go_on(self) -> float:
        """The claim was filled, so there is a backlog. Claim again at once, but look up new queues now and then."""
        if self._now() - self._names_at >= NAMES_EVERY:
            self._find_queues()
        return 0.0

    def _wait_after(self, found: Claim) -> float:
        """The claim returned fewer jobs than it asked for. Returns the seconds to wait; 0 to claim again at once."""
        now = self._now()
        # At a limit, every settle wakes the producer. It need not read the names of queues each time.
        names_are_new = self._limits and now - self._names_at < FLAGS_EVERY
        if (not names_are_new and self._find_queues()) or self._request_notifications():
            return 0.0
        # A notification came, but the claim found nothing: the job may have been locked. Claim again soon.
        is_early = self.loop.was_woken and not self._is_poll and self._store.store.skips_locked
        self._is_poll = False
        pause = FIRST_PAUSE if found.jobs or is_early else self._pause
        self._pause = min(pause * 2, LONGEST_PAUSE)
        waits = [pause, self._cursor.next_full_scan_in(self._now())]
        if found.again_in is not None:
            waits.append(found.again_in)
        if self.slots.waiting:
            waits.append(STALE / 2)
        wait = max(min(waits), 0.001)
        self._claim_at = self._now() + wait
        return self._next_step_in(wait)

    def _next_step_in(self, wait: float) -> float:
        """The seconds until the next step: it claims, or asks again to be notified."""
        return max(min(wait, self._notify_again_at - self._now()), 0.001)

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
        # In random order, so that no queue is always served first. A sample, if there are very many.
        queues = self._system.sample(self._queues, min(len(self._queues), MAX_QUEUES))
        scopes = [self._cursor.scope(queue, want, begin, by_task=queue in self._foreign) for queue in queues]
        leases.claims_in_flight.add(token)
        try:
            found = self._claim_from(scopes, token, want, slots, alone)
            begin += found.waited
            executions = [self.execution(job, begin) for job in found.jobs]
            if executions:
                leases.add(executions)
        finally:
            leases.claims_in_flight.discard(token)
        end = self._now()
        elapsed = end - begin if failures == self._store.failures else None
        is_slow = self._cursor.record_claim(queues, found.jobs, elapsed, end)
        if executions:
            self.take(executions)
        if (is_slow or self._foreign) and end >= self._tasks_at:
            self._find_foreign(queues)
        # Read the flags only now: the claimed jobs have been started.
        is_short = len(executions) < want and not self._limits  # at a limit, most claims are short
        if found.flags is None and not alone and (is_short or end - self._flags_at >= FLAGS_EVERY):
            found = found + Claim([], self._store.run(claim_scope.flags, queues, self._context.tasks))
        if found.flags is not None:
            self._flags_at = end
        return found

    def _claim_from(self, scopes: Sequence[Scope], token: str, want: int, slots: int, alone: bool) -> Claim:
        """Claim with one statement, unless the last flags had limits or suspects: these need more."""
        context, seconds = self._context, self._context.settings.lease
        if not (alone or self._rescues or self._limits):
            plain = (context.worker, token, scopes, context.tasks)
            return self._store.run(claim_flows.claim_plain, *plain, want=want, lease=seconds)
        return self._store.run(
            claim_flows.claim, context.worker, token, scopes, context.tasks,
            want=want, slots=slots, ahead=self.slots.ahead_of_limits(), limited=self._limits, lease=seconds,
            random=self._system.random, rescue=self._rescues, alone=alone,
            check_flags=self._now() - self._flags_at >= FLAGS_EVERY, may_reap=self._may_reap,
        )  # fmt: skip

    def _may_reap(self) -> bool:
        """Whether a claim from a queue at its limit should reap. Not each one: they follow one another closely."""
        now = self._now()
        if now - self._reaped_at < REAP_EVERY or not self._context.guard.may_reap():
            return False
        self._reaped_at = now
        return True

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
        if self._cursor.job_requeued(self._now()):
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

    # Occasional reads

    def _find_queues(self) -> bool:
        """Read the names of queues, if this producer serves all. True if there are new ones. Forgets empty ones."""
        if not self._serves_all:
            return False
        self._names_at = self._now()
        names = self._store.run(inspect.queue_names)
        new = set(names) - set(self._queues)
        gone = [queue for queue in self._queues if queue not in names and queue not in self._own_queues]
        for queue in gone[: max(len(gone) - MAX_QUEUES, 0)]:
            self._cursor.forget(queue)
            self._queues.remove(queue)
        self._queues += sorted(new)
        return bool(new)

    def _find_foreign(self, queues: Sequence[str]) -> None:
        """Find queues with jobs of tasks that this worker does not know: a claim would read and skip all of them."""
        queued = self._store.run(inspect.queued_tasks, queues)
        foreign = {queue for queue, tasks in queued.items() if not tasks <= self._context.tasks.keys()}
        self._foreign = (self._foreign - set(queues)) | foreign
        self._tasks_at = self._now() + TASKS_EVERY

    def _request_notifications(self) -> bool:
        """Ask enqueuing processes to notify. True if they did not notify before, so that a last claim is needed."""
        now = self._now()
        if now < self._notify_again_at:
            return False
        idle_for = now - self.idle_since if self.idle_since is not None else 0.0
        seconds = min(max(NOTIFY_FOR, idle_for), LONGEST_NOTIFY)
        before, self._notified_until = self._notified_until, now + seconds
        self._notify_again_at = now + seconds / 2
        self._store.run(maintenance.request_notifications, seconds)
        return now >= before
