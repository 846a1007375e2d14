"""A thread that calls one function, its step, again and again.

A step waits for nothing but the store: for its answers, and between two tries while it cannot be reached
(`reconnect.py`). All other waits are here: a step returns for how long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from .._system import System, Thread
from .reconnect import Stopped

log = logging.getLogger("relet.worker")

AFTER_STOPPED = 0.1  # seconds to wait if a step raised `Stopped` although this loop goes on
AFTER_ERROR = 1.0


class Loop:
    """Calls `step` until `stop` is called. The step returns the seconds until its next call.

    0 means at once, None not before `wake` is called. If a step raises, the error is logged and the loop goes on.
    """

    def __init__(self, system: System, name: str, step: Callable[[], float | None]) -> None:
        self._system = system
        self._name = name
        self._step = step
        self._wakeup = system.event()
        self._woken = False
        self._asleep = False
        self._rest = 0.0
        self._thread: Thread | None = None
        self.stopping = system.event()
        self.was_woken = False  # the wait before this step was ended by `wake`

    def start(self) -> None:
        self._thread = self._system.spawn(self._name, self._work)

    def wake(self) -> None:
        """Have the next step begin at once. Cheap while a step runs."""
        self._woken = True
        if self._asleep:
            self._asleep = False
            self._wakeup.set()

    def rest(self, seconds: float) -> None:
        """Called by a step: wait this long before the next one, whether `wake` is called meanwhile or not."""
        self._rest = seconds

    def stop(self) -> None:
        """Have the thread end after the step that it is in."""
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
            self.rest(AFTER_ERROR)  # not cut short by `wake`: else a failing step would fill the log
        return 0.0

    def _wait(self, seconds: float | None) -> None:
        self._wakeup.clear()
        self._asleep = True
        # A call of `wake` before the line above has set `_woken`. A call after it sets the event.
        if not self._woken and not self.stopping.is_set():
            self._wakeup.wait(seconds)
        self._asleep = False
