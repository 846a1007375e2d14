"""Slots of a worker: the jobs that run in them, and the jobs that were claimed ahead and wait for a free slot.

A worker claims ahead if its jobs are shorter than a round trip to the store. Jobs claimed ahead have leases like any
other. Those that will not start within a second are released.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from .._attempts.completion import NOT_COMPLETED
from .._core.job import Outcome, Released
from .context import WorkerContext
from .execution import Execution
from .settler import Settler

AHEAD = 0.05  # seconds of work to claim ahead
AHEAD_LIMITED = 0.005  # the same for queues with limits: a waiting job counts as running, though others could run it
MAX_AHEAD = 2000
STALE = 1.0  # seconds of work that may wait; also, a slot whose job has run for longer counts as stuck
WEIGHT = 0.1  # of the latest attempt in the average


class Slots:
    """The executions of one producer, running and waiting."""

    def __init__(
        self, context: WorkerContext, settler: Settler, size: int, start: Callable[[Execution], object]
    ) -> None:
        self.size = size
        self._leases, self._settler, self._start = context.leases, settler, start
        self._rest, self._timers = context.settings.rest, context.timers
        self._now = context.system.monotonic
        self._lock = context.system.lock()
        self._running: set[Execution] = set()
        self._waiting: deque[Execution] = deque()
        self._aborted: list[Execution] = []  # aborted while they waited, and to be settled
        self._suspects = 0  # running jobs that have lost a worker before
        self._stuck = 0  # jobs that have run for longer than STALE, as of the last check
        self._average: float | None = None  # seconds that an attempt takes
        self._wake_below: int | None = None  # the producer waits until there are at most this many jobs
        self.on_room: Callable[[], None] = lambda: None
        self.on_requeued: Callable[[], None] = lambda: None  # a job of these slots is queued again
        self.may_claim_ahead = True
        self.is_limited = False  # the jobs are of queues with limits

    # Room

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def is_full(self) -> bool:
        return len(self._running) >= self.size

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def room(self, *, closed: bool) -> tuple[int, int]:
        """How many jobs to claim, and how many slots are free.

        If the first is 0, the producer should wait: `on_room` is called when a claim is worth while.
        """
        with self._lock:
            ahead, here = self._ahead(), len(self._running) + len(self._waiting)
            threshold = self.size + ahead - max(1, ahead // 2)  # claim ahead again when half of those jobs have started
            want = self.size + ahead - here if here <= threshold and not closed else 0
            self._wake_below = None if want else threshold
            return want, self.size - len(self._running)

    def ahead_of_limits(self) -> int:
        """How many jobs to claim ahead from queues with limits."""
        return min(self._ahead(), self._done_within(AHEAD_LIMITED))

    def _ahead(self) -> int:
        """How many jobs to claim ahead: none while a suspect runs, which may kill the worker."""
        if self._average is None or self._suspects or not self.may_claim_ahead:
            return 0
        return min(self._done_within(AHEAD_LIMITED if self.is_limited else AHEAD), MAX_AHEAD)

    def _done_within(self, seconds: float) -> int:
        """How many jobs the slots can run in this time, if they take as long as the average."""
        return int((self.size - self._stuck) * seconds / max(self._average or 0.0, 1e-6))

    # Running

    def add(self, executions: list[Execution]) -> None:
        """Start as many executions as there are free slots; the others wait. Suspects start first: they never wait."""
        if executions[-1].job.losses:
            executions.sort(key=lambda execution: -execution.job.losses)
        with self._lock:
            self._waiting.extend(executions)
        self._fill()

    def _fill(self) -> None:
        while (execution := self._next(None)) is not None:
            self._start(execution)

    def ended(self, execution: Execution, outcome: Outcome) -> Execution | None:
        now = self._now()
        execution.has_ended, execution.stopped_at = True, now
        for timer in execution.timers:
            timer.cancel()
        with self._lock:  # once for both changes: this runs for every job
            is_first, execution.is_settling = not execution.is_settling, True
            following = None if self._rest else self._advance(execution, now)
        if is_first:
            self._queue_outcome(execution, outcome)
        if self._rest:
            self._timers.at(now + self._rest, partial(self._rested, execution))
        elif self._wake_below is not None or self._aborted:
            self._slot_freed()
        return following

    def settle(self, execution: Execution, outcome: Outcome) -> None:
        with self._lock:
            is_first, execution.is_settling = not execution.is_settling, True
        if is_first:
            self._queue_outcome(execution, outcome)

    def _queue_outcome(self, execution: Execution, outcome: Outcome) -> None:
        attempt = execution.attempt
        if attempt.aborted is None and attempt._completion is NOT_COMPLETED:  # the usual case
            self._settler.put(execution, outcome)
            return
        final = execution.final_outcome(outcome)
        if final is None:
            self._leases.remove(execution)
        else:
            self._settler.put(execution, final)

    def _rested(self, execution: Execution) -> None:
        """The slot has rested: start the next execution in it."""
        following = self._next(execution)
        if following is not None:
            self._start(following)
        self.on_room()

    def _next(self, freed: Execution | None) -> Execution | None:
        """Free a slot, and take the next waiting execution if there is a slot for it."""
        with self._lock:
            following = self._advance(freed, self._now())
        self._slot_freed()
        return following

    def _advance(self, freed: Execution | None, now: float) -> Execution | None:
        """Like `_next`, for callers that have the lock. The execution that it returns counts as running."""
        running, waiting = self._running, self._waiting
        if freed is not None:
            running.discard(freed)
            if freed.job.losses:
                self._suspects -= 1
            seconds = now - freed.started_at
            self._average = seconds if self._average is None else self._average + WEIGHT * (seconds - self._average)
        while waiting and len(running) < self.size:
            execution = waiting.popleft()
            if execution.attempt.aborted is not None:
                self._aborted.append(execution)
                continue
            running.add(execution)
            if execution.job.losses:
                self._suspects += 1
            execution.started_at = now
            return execution
        return None

    def _slot_freed(self) -> None:
        """Wake the producer, once, if it waits for room. Release executions that were aborted while they waited."""
        if self._wake_below is not None and len(self._running) + len(self._waiting) <= self._wake_below:
            self._wake_below = None
            self.on_room()
        if self._aborted:
            with self._lock:
                aborted, self._aborted = self._aborted, []
            self._give_back(aborted)

    # Release

    def release_stale(self) -> None:
        """Release executions that would wait for long: another worker may run them at once."""
        now = self._now()
        with self._lock:
            self._stuck = sum(now - execution.started_at > STALE for execution in self._running)
            late = set(list(self._waiting)[self._done_within(STALE) :])
        if late:
            self.release(late.__contains__)

    def release(self, which: Callable[[Execution], bool]) -> None:
        """Release the executions that wait for a slot and match."""
        with self._lock:
            gone = [execution for execution in self._waiting if which(execution)]
            if gone:
                self._waiting = deque(execution for execution in self._waiting if not which(execution))
        self._give_back(gone)

    def release_all(self) -> None:
        self.release(lambda execution: True)

    def _give_back(self, executions: list[Execution]) -> None:
        for execution in executions:
            execution.has_ended = True
            self.settle(execution, Released("given back unrun"))
