"""A thread that takes one step after another. Only the loop waits, never a step: so every pause is in one place."""

from __future__ import annotations

import logging
from collections.abc import Callable

from .._system import System, Thread
from .reconnect import Stopped

log = logging.getLogger("relet.worker")

AFTER_STOPPED = 0.1  # seconds; another thread was stopped in the middle of a step, and this one goes on
AFTER_ERROR = 1.0


class Loop:
    """Calls `step` until it is stopped. The step returns in how many seconds it wants to be called again.

    None means not before `wake` is called, 0 at once. A step that raises is logged and called again.
    """

    def __init__(self, system: System, name: str, step: Callable[[], float | None]) -> None:
        self._system = system
        self._name = name
        self._step = step
        self._news = system.event()
        self._woken = False
        self._asleep = False
        self._rest = 0.0
        self._thread: Thread | None = None
        self.stopping = system.event()
        self.was_woken = False  # the wait before this step was ended by `wake`

    def start(self) -> None:
        self._thread = self._system.spawn(self._name, self._work)

    def wake(self) -> None:
        """Have the next step begin at once. Cheap while the thread is busy, and once is enough."""
        self._woken = True
        if self._asleep:
            self._asleep = False
            self._news.set()

    def rest(self, seconds: float) -> None:
        """Called by a step: wait this long before the next one, whether `wake` is called meanwhile or not."""
        self._rest = seconds

    def stop(self) -> None:
        """End after the step under way."""
        self.stopping.set()
        self.wake()

    def join(self, timeout: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        while not self.stopping.is_set():
            self.was_woken, self._woken = self._woken, False
            wait = self._take_step()
            if self._rest > 0:
                self.stopping.wait(self._rest)
                self._rest = 0.0
            if wait is None or wait > 0:
                self._wait(wait)

    def _take_step(self) -> float | None:
        try:
            return self._step()
        except Stopped:
            self.rest(AFTER_STOPPED)
        except BaseException:  # an event listener may raise anything
            log.exception("%s failed, trying again in %g s", self._name, AFTER_ERROR)
            self.rest(AFTER_ERROR)  # however often it is woken: else it would fail and log without a pause
        return 0.0

    def _wait(self, seconds: float | None) -> None:
        self._news.clear()
        self._asleep = True
        # A call of `wake` that came before the line above has set `_woken`; one that comes after it sets the event.
        if not self._woken and not self.stopping.is_set():
            self._news.wait(seconds)
        self._asleep = False
