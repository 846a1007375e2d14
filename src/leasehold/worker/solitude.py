"""Solitude: a job that has taken two workers down with it gets one for itself before it can fail, and harms nobody."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lane import Lane

log = logging.getLogger("leasehold.worker")

FIRST_WAIT = 1.0
LONGEST_WAIT = 3600.0


class Solitude:
    """Empties the worker for one job at a time.

    Nothing is claimed while the worker waits to be empty, so it does not wait for ever: longer each time, and at most a
    third of its time. Other workers may be empty sooner.
    """

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.wanted = False
        self._turn = threading.Lock()
        self._wait = FIRST_WAIT
        self._not_before = 0.0

    def claim_alone(self, lane: Lane) -> bool:
        """Run one such job of this lane, alone. False if the worker could not be emptied, or lately could not."""
        if time.monotonic() < self._not_before or not self._turn.acquire(blocking=False):
            return False
        try:
            self.wanted = True
            for each in self.lanes:
                each.give_back_all()
            if not self._empty_within(self._wait, lane):
                log.info("a job is to run alone, but the worker was not empty within %.0f s", self._wait)
                return self._put_off()
            if not lane.claim(1, 1, alone=True).jobs:
                return self._put_off()  # somebody else was quicker, or its queue is at its limit
            log.info("a job that has lost its worker twice runs alone")
            self._wait = FIRST_WAIT
            self._empty_within(float("inf"), lane)
            return True
        finally:
            self.wanted = False
            self._turn.release()
            for each in self.lanes:
                each.wake()

    def _put_off(self) -> bool:
        self._not_before = time.monotonic() + 2 * self._wait
        self._wait = min(2 * self._wait, LONGEST_WAIT)
        return False

    def _empty_within(self, seconds: float, lane: Lane) -> bool:
        give_up = time.monotonic() + seconds
        while any(each.busy for each in self.lanes):
            if time.monotonic() >= give_up or lane.stopped:
                return False
            time.sleep(0.005)
        return not lane.stopped
