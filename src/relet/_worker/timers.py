"""Timers: for timeouts, the end of leases, and slots that rest. One thread serves all; the first timer starts it."""

from __future__ import annotations

import heapq
import itertools
import logging
from collections.abc import Callable

from .._system import System
from .loop import Loop

log = logging.getLogger("relet.worker")


class Timer:
    """A call at a time of the monotonic clock, unless it is cancelled before."""

    __slots__ = ("call", "moment", "number", "timers")

    def __init__(self, timers: Timers, moment: float, number: int, call: Callable[[], float | None]) -> None:
        self.timers = timers
        self.moment = moment
        self.number = number
        self.call: Callable[[], float | None] | None = call

    def __lt__(self, other: Timer) -> bool:
        return (self.moment, self.number) < (other.moment, other.number)

    def cancel(self) -> None:
        if self.call is not None:
            self.call = None
            self.timers.count_cancelled()


class Timers:
    """Calls functions when they are due. A function must be quick, and may return the time of its next call."""

    def __init__(self, system: System) -> None:
        self._now = system.monotonic
        self._lock = system.lock()
        self._heap: list[Timer] = []
        self._cancelled = 0
        self._numbers = itertools.count()
        self._loop = Loop(system, "timers", self.step)
        self._is_started = False

    def at(self, moment: float, call: Callable[[], float | None]) -> Timer:
        """Call a function at that time. It returns when to call it again, or None."""
        timer = Timer(self, moment, next(self._numbers), call)
        with self._lock:
            heapq.heappush(self._heap, timer)
            is_first, is_new, self._is_started = self._heap[0] is timer, not self._is_started, True
        if is_new:
            self._loop.start()
        elif is_first:
            self._loop.wake()
        return timer

    def stop(self) -> None:
        self._loop.stop()

    def count_cancelled(self) -> None:
        """Count a cancelled timer. Remove all of them once they are more than half of the heap."""
        with self._lock:
            self._cancelled += 1
            if self._cancelled > 100 and self._cancelled > len(self._heap) // 2:
                self._heap = [timer for timer in self._heap if timer.call is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def step(self) -> float | None:
        """Call one timer if it is due. Returns the seconds until the next is."""
        with self._lock:
            if not self._heap:
                return None
            wait = self._heap[0].moment - self._now()
            if wait > 0:
                return wait
            timer = heapq.heappop(self._heap)
        self._call(timer)
        return 0.0

    def _call(self, timer: Timer) -> None:
        call = timer.call
        if call is None:
            return
        try:
            again = call()
        except BaseException:  # an event listener may raise anything
            log.exception("A timer failed")
            return
        if again is not None:
            with self._lock:
                timer.moment = again
                heapq.heappush(self._heap, timer)
