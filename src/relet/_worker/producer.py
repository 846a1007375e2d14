"""A lane: some slots, the queues that they serve, and the thread that claims jobs into them.

A claim brings as many jobs as there are free slots, and a few in advance where jobs are so quick that the way to the
store would be the longer part. They wait in the lane, under lease like the others, and those that the slots cannot
work off within a second are given back. How long the claim took has no part in that: giving back what a slow store has
just handed out would load it further. A job that has lost a worker before is never taken in advance.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from .._attempts.attempt import Attempt
from .._attempts.runtime import AttemptRuntime
from .._core.job import Claimed, Lease, Outcome, Released, State
from .._store.flows import claim_scope, lease, maintenance, quarantine
from .._store.flows import inspect as look
from .._store.flows.lease import Claim, Marks, Scope
from .._store.store import Store
from .._tasks.task import Task
from ..events import Claimed as ClaimedEvent
from ..events import Events
from .claim_cursor import ClaimCursor
from .execution import Execution
from .leases import LeaseTable
from .reconnect import ReconnectingStore, StopEvent, Stopped, run_loop
from .settler import Settler
from .timers import Timers

if TYPE_CHECKING:
    from .quarantine import Quarantine

log = logging.getLogger("relet.worker")

AHEAD = 0.05  # seconds of work to take in advance
AHEAD_LIMITED = 0.005  # of queues with limits: what waits here counts as running, and other workers have slots for it
MOST_AHEAD = 2000
MOST_AT_ONCE = 1000
STALE = 1.0  # seconds of work that may wait in the lane; and a slot whose job has run for longer counts as stuck
LOOK_AT_TASKS_EVERY = 5.0  # seconds, at most
MOST_QUEUES = 100  # in one claim; and of those in which nothing is queued, how many are remembered
NAMES_EVERY = 1.0  # seconds between two looks for new queues while a backlog fills every claim
LOOK_EVERY = 0.05  # seconds between two looks for suspects and limits while a backlog fills every claim
REAP_EVERY = 0.1  # seconds between two claims that reap, as a queue is at its limit
ARM_FOR = 5.0
FIRST_PAUSE = 0.05
WEIGHT = 0.1  # of the latest attempt in the average

_new_tuple = tuple.__new__  # for a Lease of each job: a third of the time that its own constructor takes


class Producer:
    """Slots of one worker at one store."""

    def __init__(
        self,
        link: ReconnectingStore,
        held: LeaseTable,
        settler: Settler,
        events: Events,
        solitude: Quarantine,
        start: Callable[[Execution], object],
        *,
        shared: Store,
        worker: str,
        tenant: str | None,
        tasks: dict[str, Task[..., Any]],
        queues: Sequence[str] | None,
        slots: int,
        lease: float,
        poll: float,
        delay: float,
        timers: Timers,
    ) -> None:
        self._link, self._held, self._settler, self._events = link, held, settler, events
        self._solitude = solitude
        self._start_run = start
        self._shared = shared  # with handlers: what they do in the name of their leases
        self.worker, self.tenant, self._tasks = worker, tenant, tasks
        self._queues = list(queues) if queues is not None else sorted({"default", *(t.queue for t in tasks.values())})
        self._usual_queues = frozenset(self._queues)  # never forgotten
        self._every_queue = queues is None
        self.slots, self._lease, self._poll = slots, lease, poll
        self._delay, self._timers = delay, timers
        self._lock = threading.Lock()
        self._running: set[Execution] = set()  # those that have a slot
        self._stuck = 0  # of them, those that have run for long, when last looked at
        self._suspects = 0  # of them, those that have lost a worker before
        self._waiting: deque[Execution] = deque()  # taken in advance
        self._over: list[
            Execution
        ] = []  # of those, what was cancelled or lost before it could run, and is to be settled
        self._average: float | None = None  # seconds that an attempt takes
        self._limited = False  # what it works on is of queues with limits
        self._rescue = False  # suspects are waiting in the store: make room for them
        self._quarantined = True  # jobs that must run alone may wait in the store, as far as is known
        self._limits: frozenset[str] = frozenset()  # of its queues, those that have limits, as far as is known
        self._names_seen = 0.0  # when queues were last looked for
        self._looked = 0.0  # when suspects and limits were last looked for
        self._reaped = 0.0  # when it last reaped for the sake of a limit
        self._cursor = ClaimCursor()
        self._foreign: set[str] = set()  # queues that hold jobs of tasks which this worker does not know
        self._next_look_at_tasks = 0.0
        self._pause = FIRST_PAUSE
        self._armed_until = 0.0
        self._halt = threading.Event()
        self._stack = ExitStack()
        self._sleeper = self._stack.enter_context(link.store.notifier.subscribe("queued", "jobs"))
        self._full = False  # the claiming thread waits for room
        self._low = 0  # then it is woken when no more jobs than this are running or waiting here
        self.claiming = False
        self.idle_since: float | None = None  # since when claims have found nothing
        self.last_in_vain = 0.0  # when the last of those was sent

    # Claiming

    def start(self) -> list[threading.Thread]:
        """From now on."""
        return [run_loop("claimer", self.step, self._halt)]

    def step(self) -> None:
        """Claim what there is room for, or sleep until there is room, or news, or it is time to look."""
        self._sleeper.clear()
        self._give_back_stale()
        if self._quarantined and self._solitude.nothing_runs and self._solitude.claim_alone(self):
            return
        begin = time.monotonic()
        found, all_of_it = self._claim_some()
        if found is None:
            self._sleeper.wait(STALE / 2)
            return
        if not found.jobs:
            self.idle_since = self.idle_since or time.monotonic()
            self.last_in_vain = begin
        if found.marks is not None and self._heed(found.marks):
            return
        if not all_of_it:
            self._sleep(found)
        elif begin - self._names_seen >= NAMES_EVERY:
            self._found_queue()

    def _heed(self, marks: Marks) -> bool:
        """Suspects, jobs to be run alone, and limits decide how the next claim is made. True: it follows at once."""
        limits = marks.limited & {"*", *self._queues}
        more = (marks.suspects and not self._rescue) or bool(limits and not self._limits)
        self._rescue, self._quarantined, self._limits = marks.suspects, marks.quarantined, limits
        if limits:
            self._settler.limited_lanes.add(self)
        else:
            self._settler.limited_lanes.discard(self)
        return (marks.quarantined and self._solitude.claim_alone(self)) or more

    def _sleep(self, found: Claim) -> None:
        """There was less than was wanted: wait for news, unless there is something else to look at first."""
        self._pause = FIRST_PAUSE if found.jobs else self._pause
        # (At a limit it sleeps and wakes with every settle.)
        seen_lately = self._limits and time.monotonic() - self._names_seen < LOOK_EVERY
        if (not seen_lately and self._found_queue()) or self._arm():
            return
        # Woken for nothing: what it was may have been locked just now, so look again soon.
        soon = self._pause if found.again_in is None else min(self._pause, found.again_in)
        soon = min(soon, self._cursor.hides_for(time.monotonic()), STALE / 2 if self._waiting else soon)
        again = self._sleeper.wait(max(soon, 0.001)) and self._link.store.skips_locked
        self._pause = FIRST_PAUSE if again else min(self._pause * 2, self._poll)

    def stop(self) -> None:
        """Claim no more; what was taken in advance goes back."""
        self._halt.set()
        self._sleeper.wake()
        self.give_back_all()
        self._stack.close()

    @property
    def stopped(self) -> bool:
        """It claims no more."""
        return self._halt.is_set()

    def wake(self) -> None:
        """There may be room again."""
        self._sleeper.wake()

    def look_again(self) -> None:
        """A job has gone back to its old place, which the cursor may have passed."""
        if self._cursor.look_again(time.monotonic()):
            self._sleeper.wake()

    def enter_quarantine(self) -> bool:
        """Ask the store whether this worker may empty itself."""
        return self._link.run(self._halt, quarantine.enter, self.worker)

    def leave_quarantine(self) -> None:
        """Another worker may."""
        self._link.run(self._halt, quarantine.leave, self.worker)

    def claim(self, want: int, slots: int, *, alone: bool = False) -> Claim:
        """Take jobs from the store: under lease from here on, and known to the heartbeat before anything else."""
        self.claiming = True  # before looking whether to stop: whoever waits for the end sees one or the other
        try:
            if self._halt.is_set():
                raise Stopped
            return self._claim(want, slots, alone)
        finally:
            self.claiming = False

    def _claim(self, want: int, slots: int, alone: bool) -> Claim:
        token = str(uuid.uuid4())
        begin, failures = time.monotonic(), self._link.failures
        # In another order each time, so that none is always served first; of very many, some.
        queues = random.sample(self._queues, min(len(self._queues), MOST_QUEUES))
        scopes = [self._cursor.scope(queue, want, begin, by_task=queue in self._foreign) for queue in queues]
        self._held.claiming.add(token)
        try:
            found = self._claim_from(scopes, token, want, slots, alone)
            runs = [self._run(job, begin) for job in found.jobs]
            if runs:
                self._held.add(runs)
        finally:
            self._held.claiming.discard(token)
        end = time.monotonic()
        elapsed = end - begin if failures == self._link.failures else None
        slow = self._cursor.seen(queues, found.jobs, elapsed, end)
        self._take(runs)
        if (slow or self._foreign) and end >= self._next_look_at_tasks:
            self._look_at_tasks(queues)
        # What is left to look at comes after the start of what was claimed.
        is_short = len(runs) < want and not self._limits  # at a limit, most claims are
        if found.marks is None and not alone and (is_short or end - self._looked >= LOOK_EVERY):
            found = found + Claim([], self._link.run(self._halt, claim_scope.marks, queues, self._tasks))
        if found.marks is not None:
            self._looked = end
        return found

    def _claim_from(self, scopes: Sequence[Scope], token: str, want: int, slots: int, alone: bool) -> Claim:
        """Usually one statement; more where there are limits, or suspects, as far as is known."""
        if not (alone or self._rescue or self._limits):
            plain = (self.worker, token, scopes, self._tasks)
            return self._link.run(self._halt, lease.claim_plain, *plain, want=want, lease=self._lease)
        check_flags = time.monotonic() - self._looked >= LOOK_EVERY
        ahead = min(self._ahead(), self._worked_off_in(AHEAD_LIMITED))
        return self._link.run(
            self._halt, lease.claim, self.worker, token, scopes, self._tasks,
            want=want, slots=slots, ahead=ahead, limited=self._limits, lease=self._lease, random=random.random,
            rescue=self._rescue, alone=alone, check_flags=check_flags, may_reap=self._may_reap,
        )  # fmt: skip

    def _may_reap(self) -> bool:
        """A claim from a queue that is at its limit reaps, but not each of them, as they follow one another closely."""
        now = time.monotonic()
        if now - self._reaped < REAP_EVERY or not self._link.guard.may_reap():
            return False
        self._reaped = now
        return True

    def _look_at_tasks(self, queues: Sequence[str]) -> None:
        """Find out which queues hold jobs of tasks that this worker does not know: a claim would walk over them all."""
        queued = self._link.run(self._halt, look.queued_tasks, queues)
        foreign = {queue for queue, tasks in queued.items() if not tasks <= self._tasks.keys()}
        self._foreign = (self._foreign - set(queues)) | foreign
        self._next_look_at_tasks = time.monotonic() + LOOK_AT_TASKS_EVERY

    def _claim_some(self) -> tuple[Claim | None, bool]:
        """Claim if it is worth while: into free slots at once, in advance by halves. And whether there was all that was
        wanted, or that may be had of queues with limits."""
        with self._lock:
            free = self.slots - len(self._running)
            want = min(self._room(), MOST_AT_ONCE)
            self._full = self._solitude.wanted or not want
            if self._full:
                self._low = self._has_room_at(self._ahead())
                return None, False
        found = self.claim(want, free)
        self._limited = found.limited
        return found, len(found.jobs) >= (min(want, free) if found.limited else want)

    def _room(self) -> int:
        """How many more there is room for; 0 while it is not worth a claim."""
        ahead, here = self._ahead(), len(self._running) + len(self._waiting)
        return self.slots + ahead - here if here <= self._has_room_at(ahead) else 0

    def _has_room_at(self, ahead: int) -> int:
        """With how many jobs here, running or waiting, the next claim is worth while: in advance by halves."""
        return self.slots + ahead - max(1, ahead // 2)

    def _ahead(self) -> int:
        """How many to take in advance: what the slots work off in no time. None beside a suspect, nor for one."""
        if self._average is None or self._suspects or self._rescue:
            return 0
        return min(self._worked_off_in(AHEAD_LIMITED if self._limited else AHEAD), MOST_AHEAD)

    def _worked_off_in(self, seconds: float) -> int:
        """How many jobs the slots get through in so many seconds, if the next take as long as the latest did."""
        return int((self.slots - self._stuck) * seconds / max(self._average or 0.0, 1e-6))

    def _run(self, job: Claimed, sent: float) -> Execution:
        task, seconds = self._tasks[job.task], job.policy.lease or self._lease
        attempt = Attempt(job, sent + seconds, None, self.tenant, self.worker)
        lease: Lease = _new_tuple(Lease, (job.id, job.token))
        run = Execution(job, task, self, lease, attempt, seconds, sent)
        if task.takes_attempt:
            attempt._report = partial(self._held.report, run)
            if not task.process:
                AttemptRuntime(self._shared, task, attempt)
        return run

    def _take(self, runs: list[Execution]) -> None:
        if not runs:
            return
        self.idle_since = None
        if self._events.wanted(ClaimedEvent):
            for run in runs:
                self._events.tell(ClaimedEvent(**run.facts(self.worker, State.RUNNING)))
        if runs[-1].job.losses:  # suspects come last; they go straight into slots, which were counted for them
            runs.sort(key=lambda run: -run.job.losses)
        with self._lock:
            self._waiting.extend(runs)
            stopped = self._halt.is_set()
        if stopped:
            self.give_back_all()
        while (following := self._next(None)) is not None:
            self._start_run(following)

    def _found_queue(self) -> bool:
        """Look for queues that this lane has not seen, as it serves all of them. Names that are long out of use go."""
        if not self._every_queue:
            return False
        self._names_seen = time.monotonic()
        names = self._link.run(self._halt, look.queue_names)
        new = set(names) - set(self._queues)
        gone = [queue for queue in self._queues if queue not in names and queue not in self._usual_queues]
        for queue in gone[: max(len(gone) - MOST_QUEUES, 0)]:
            self._cursor.forget(queue)
            self._queues.remove(queue)
        self._queues += sorted(new)
        return bool(new)

    def _arm(self) -> bool:
        """Have producers notify. True: they did not until now, so look once more."""
        now = time.monotonic()
        if now < self._armed_until - ARM_FOR / 2:
            return False
        before, self._armed_until = self._armed_until, now + ARM_FOR
        self._link.run(self._halt, maintenance.arm, ARM_FOR)
        return now >= before

    # Slots

    @property
    def running(self) -> int:
        """Slots in use."""
        return len(self._running)

    @property
    def busy(self) -> bool:
        """Somebody would lose an attempt if the worker died now: also one that has ended, but is not settled yet."""
        return bool(self.claiming or self._running or len(self._held))

    def ended(self, run: Execution, outcome: Outcome) -> Execution | None:
        """A handler has ended: settle, and free its slot. Returns what to run in it next; the caller starts it."""
        now = time.monotonic()
        run.ended, run.stopped = True, now
        for timer in run.timers:
            timer.cancel()
        with self._lock:  # once, for both: every job comes through here
            is_first, run.settling = not run.settling, True
            following = None if self._delay else self._next_in(run, now)
        if is_first:
            self._hand_over(run, outcome)
        if self._delay:
            self._timers.at(now + self._delay, partial(self._rested, run))
        elif self._full or self._over:
            self._slot_freed()
        return following

    def settle(self, run: Execution, outcome: Outcome) -> None:
        """Hand an outcome over, or what is to stand in its place; once for each run."""
        with self._lock:
            is_first, run.settling = not run.settling, True
        if is_first:
            self._hand_over(run, outcome)

    def _hand_over(self, run: Execution, outcome: Outcome) -> None:
        if run.attempt.aborted is None and run.attempt._completed is None:  # the usual case
            self._settler.put(run, outcome)
            return
        verdict = run.verdict(outcome)
        if verdict is None:
            self._held.drop(run)
        else:
            self._settler.put(run, verdict)

    def _rested(self, run: Execution) -> None:
        """The pause between two jobs of a slot is over."""
        following = self._next(run)
        if following is not None:
            self._start_run(following)
        self._sleeper.wake()

    def _next(self, freed: Execution | None) -> Execution | None:
        """Free a slot; then the next that waits, if there is a slot for it."""
        with self._lock:
            following = self._next_in(freed, time.monotonic())
        self._slot_freed()
        return following

    def _next_in(self, freed: Execution | None, now: float) -> Execution | None:
        """The same with the lock held. What is returned counts as running from here on."""
        running, waiting = self._running, self._waiting
        if freed is not None:
            running.discard(freed)
            if freed.job.losses:
                self._suspects -= 1
            seconds = now - freed.started
            self._average = seconds if self._average is None else self._average + WEIGHT * (seconds - self._average)
        while waiting and len(running) < self.slots:
            run = waiting.popleft()
            if run.attempt.aborted is not None:
                self._over.append(run)
                continue
            running.add(run)
            if run.job.losses:
                self._suspects += 1
            run.started = now
            return run
        return None

    def _slot_freed(self) -> None:
        """Wake the claiming thread, once, if it waits for this; settle what was aborted before it could run."""
        if self._full and len(self._running) + len(self._waiting) <= self._low:
            self._full = False
            self._sleeper.wake()
        if self._over:
            with self._lock:
                over, self._over = self._over, []
            self._drop(over)

    # Giving back what was taken in advance

    def give_back_paused(self, halt: StopEvent) -> None:
        """A queue may have been paused."""
        paused = self._link.run(halt, look.paused_queues)
        if paused:
            self._give_back(lambda run: run.job.queue in paused)

    def give_back_all(self) -> None:
        """Somebody is to have the worker for itself."""
        self._give_back(lambda run: True)

    def _give_back_stale(self) -> None:
        """What would have to wait for long from now on may run at once elsewhere."""
        now = time.monotonic()
        with self._lock:
            self._stuck = sum(now - run.started > STALE for run in self._running)
            late = set(list(self._waiting)[self._worked_off_in(STALE) :])
        if late:
            self._give_back(late.__contains__)

    def _give_back(self, which: Callable[[Execution], bool]) -> None:
        with self._lock:
            gone = [run for run in self._waiting if which(run)]
            if gone:
                self._waiting = deque(run for run in self._waiting if not which(run))
        self._drop(gone)

    def _drop(self, runs: list[Execution]) -> None:
        for run in runs:
            run.ended = True
            self.settle(run, Released("given back unrun"))
