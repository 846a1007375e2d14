"""Solitude: a job that has lost two workers gets one for itself before it can fail, and harms no other job.

Nothing is claimed while a worker waits to be empty, so that its free slots stand idle. That lasts two seconds at most,
and one worker of a store does it at a time: the right to do so is in the store. Where the running jobs take longer, the
worker goes on, and tries again after a pause that doubles up to a minute: 3 % of its time in the end. A worker in which
nothing runs need not wait, so it looks for such a job first: one that was just started, one with a single slot between
two jobs, any when there is little to do. Under a backlog without end of jobs that take longer than two seconds, in
several slots, those are the moments at which the job gets its turn.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import TYPE_CHECKING

from .._store.flows.quarantine import HELD_FOR

if TYPE_CHECKING:
    from .producer import Producer

log = logging.getLogger("relet.worker")

EMPTY_WITHIN = 2.0
FIRST_PAUSE = 4.0
LONGEST_PAUSE = 60.0
ASK_AGAIN = 1.0


class Quarantine:
    """Empties the worker for one job at a time."""

    def __init__(self) -> None:
        self.lanes: list[Producer] = []
        self.wanted = False
        self._turn = threading.Lock()
        self._pause = FIRST_PAUSE
        self._ask_after = 0.0  # the store refused, or had none: not sooner
        self._not_before = 0.0  # the worker could not be emptied: no free slot waits until then

    @property
    def nothing_runs(self) -> bool:
        """All slots are free: what has ended may still be on its way to the store."""
        return not any(each.running for each in self.lanes)

    def claim_alone(self, lane: Producer) -> bool:
        """Run one such job of this lane, alone. False if the worker could not be emptied, or may not be now."""
        earliest = self._ask_after if self.nothing_runs else max(self._ask_after, self._not_before)
        if time.monotonic() < earliest or not self._turn.acquire(blocking=False):
            return False
        try:
            asked = time.monotonic()
            if not lane.enter_quarantine():
                return self._ask_later()
            try:
                claimed = self._empty_and_claim(lane, asked + HELD_FOR)
            finally:
                lane.leave_quarantine()
            if claimed:
                self._empty_before(float("inf"), lane)
            return claimed
        finally:
            self._go_on()
            self._turn.release()

    def _empty_and_claim(self, lane: Producer, give_up: float) -> bool:
        """Empty the worker and claim; the other lanes claim nothing until told to go on."""
        begin = time.monotonic()
        self.wanted = True
        for each in self.lanes:
            each.give_back_all()
        if not self._empty_before(min(begin + EMPTY_WITHIN, give_up), lane):
            self._go_on()
            log.info("a job is to run alone, but the worker was not empty in time; again in %.0f s", self._pause)
            self._not_before = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            return False
        if not lane.claim(1, 1, alone=True).jobs:  # another worker was quicker, or its queue is at its limit
            self._go_on()
            return self._ask_later()
        log.info("a job that has lost its worker twice runs alone")
        self._pause = FIRST_PAUSE
        return True

    def _ask_later(self) -> bool:
        self._ask_after = time.monotonic() + ASK_AGAIN * random.uniform(0.5, 1.5)  # noqa: S311
        return False

    def _go_on(self) -> None:
        self.wanted = False
        for each in self.lanes:
            each.wake()

    def _empty_before(self, give_up: float, lane: Producer) -> bool:
        while any(each.busy for each in self.lanes):
            if time.monotonic() >= give_up or lane.stopped:
                return False
            time.sleep(0.005)
        return not lane.stopped
