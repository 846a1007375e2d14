"""Quarantine: before another loss may fail a job that has lost two workers, it runs alone, and harms no other job.

While a worker waits for its running jobs to end, it claims nothing, and free slots stay idle. This lasts two seconds at
most. Only one worker of a store does so at a time: it takes a row in the store first. If the running jobs take longer,
the worker claims as usual and tries again after a pause. The pause doubles up to a minute, so that the worker spends at
most 3 % of its time on waiting in the end. A worker in which nothing runs need not wait: one that has just started, one
with a single slot between two jobs, or any worker while there is little to do. It may try before the pause is over.
With several slots and an endless backlog of jobs that each take longer than two seconds, only such workers run the job.
"""

from __future__ import annotations

import logging
from typing import Protocol

from .._store.flows.claim_scope import Claim
from .._store.flows.quarantine import EXPIRES_AFTER
from .._system import System
from .slots import Slots

log = logging.getLogger("relet.worker")

EMPTY_WITHIN = 2.0
FIRST_PAUSE = 4.0
LONGEST_PAUSE = 60.0
ASK_AGAIN = 1.0
CHECK_EVERY = 0.005  # seconds between two checks whether the worker is empty


class Claims(Protocol):
    """The methods of a producer that quarantine needs."""

    slots: Slots

    @property
    def is_stopped(self) -> bool: ...

    @property
    def is_busy(self) -> bool: ...

    def claim(self, want: int, slots: int, *, alone: bool = False) -> Claim: ...

    def enter_quarantine(self) -> bool: ...

    def leave_quarantine(self) -> None: ...

    def wake(self) -> None: ...


class Quarantine:
    """Waits until the running jobs of the worker have ended, then claims one job and waits until that has ended.

    `owner`: the producer that claims the job. It calls `step` until it is no longer the owner. The others claim nothing
    while `is_closed` is true.
    """

    def __init__(self, system: System) -> None:
        self._system, self._now = system, system.monotonic
        self._turn = system.lock()
        self.producers: list[Claims] = []
        self.owner: Claims | None = None
        self.is_closed = False
        self._runs_alone = False  # the job is claimed
        self._give_up = 0.0  # when to stop waiting for the worker to be empty
        self._pause = FIRST_PAUSE
        self._ask_after = 0.0  # not earlier: the store refused, or had no such job
        self._not_before = 0.0  # not earlier, unless nothing runs: the jobs did not end in time

    @property
    def nothing_runs(self) -> bool:
        """Whether all slots are free. Outcomes may still have to be settled."""
        return not any(producer.slots.running for producer in self.producers)

    def begin(self, producer: Claims) -> bool:
        """Begin to empty the worker for a job of this producer. Returns False if it cannot be done now."""
        earliest = self._ask_after if self.nothing_runs else max(self._ask_after, self._not_before)
        if self._now() < earliest or not self._turn.acquire(blocking=False):
            return False
        try:
            asked = self._now()
            if not producer.enter_quarantine():
                self._ask_later()
                self._turn.release()
                return False
        except BaseException:
            self._turn.release()
            raise
        self._give_up = min(self._now() + EMPTY_WITHIN, asked + EXPIRES_AFTER)
        self._runs_alone, self.is_closed, self.owner = False, True, producer
        for each in self.producers:
            each.slots.release_all()
        return True

    def step(self) -> float:
        """Called by the owner until it is no longer the owner. Returns the seconds until the next call."""
        assert self.owner is not None
        is_busy = any(producer.is_busy for producer in self.producers)
        if self.owner.is_stopped or (self._runs_alone and not is_busy):
            self._end()
        elif is_busy and (self._runs_alone or self._now() < self._give_up):
            return CHECK_EVERY
        elif is_busy:
            log.info(
                "A job must run alone, but the running jobs did not end in time; trying again in %.0f s", self._pause
            )
            self._not_before = self._now() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._end()
        else:
            self._claim_alone(self.owner)
        return 0.0

    def _claim_alone(self, owner: Claims) -> None:
        try:
            claimed = owner.claim(1, 1, alone=True).jobs
        except BaseException:
            self._end()
            raise
        if not claimed:  # another worker was quicker, or the queue is at its limit
            self._ask_later()
            self._end()
            return
        log.info("Running a job alone, because it has lost its worker twice")
        self._pause, self._runs_alone = FIRST_PAUSE, True
        owner.leave_quarantine()

    def _end(self) -> None:
        owner, self.owner, self.is_closed = self.owner, None, False
        try:
            if owner is not None and not self._runs_alone:
                owner.leave_quarantine()
        finally:
            self._turn.release()
            for producer in self.producers:
                producer.wake()

    def _ask_later(self) -> None:
        self._ask_after = self._now() + ASK_AGAIN * self._system.uniform(0.5, 1.5)
