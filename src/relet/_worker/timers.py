"""Things to do at a moment: timeouts, doubts, slots that rest. One thread for all, asleep while there are none."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger("relet.worker")


class Timer:
    """Something to be done at a moment of the monotonic clock, unless it is cancelled before."""

    __slots__ = ("call", "moment", "number", "timers")

    def __init__(self, timers: Timers, moment: float, number: int, call: Callable[[], float | None]) -> None:
        self.timers = timers
        self.moment = moment
        self.number = number
        self.call: Callable[[], float | None] | None = call

    def __lt__(self, other: Timer) -> bool:
        return (self.moment, self.number) < (other.moment, other.number)

    def cancel(self) -> None:
        """Never mind."""
        if self.call is not None:
            self.call = None
            self.timers.forget()


class Timers:
    """Calls functions when their moment has come. They are to be quick, and may return another moment."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._cancelled = 0
        self._changed = threading.Condition()
        self._count = itertools.count()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def at(self, moment: float, call: Callable[[], float | None]) -> Timer:
        """Call it then; what it returns is when to call it again."""
        timer = Timer(self, moment, next(self._count), call)
        with self._changed:
            heapq.heappush(self._heap, timer)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="relet-timers", daemon=True)
                self._thread.start()
            elif self._heap[0] is timer:
                self._changed.notify()
        return timer

    def forget(self) -> None:
        """One of them was cancelled. Their places are cleared once they are the greater part."""
        with self._changed:
            self._cancelled += 1
            if self._cancelled > 100 and self._cancelled > len(self._heap) // 2:
                self._heap = [timer for timer in self._heap if timer.call is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def stop(self) -> None:
        """Call nothing any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _work(self) -> None:
        while (timer := self._next()) is not None:
            call = timer.call
            if call is None:
                continue
            try:
                again = call()
            except BaseException:  # a listener may raise anything
                log.exception("a timer failed")
                continue
            if again is not None:
                with self._changed:
                    timer.moment = again
                    heapq.heappush(self._heap, timer)

    def _next(self) -> Timer | None:
        """Sleep until something is due."""
        with self._changed:
            while not self._stopped:
                wait = self._heap[0].moment - time.monotonic() if self._heap else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._heap)
                self._changed.wait(wait)
        return None
