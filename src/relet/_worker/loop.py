"""A loop calls one function, its step, again and again: in its own thread, or in threads that it shares.

A step waits for nothing but the store: for its answers, and between two tries while it cannot be reached
(`reconnect.py`). All other waits are here: a step returns for how long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf

from .._system import Event, System, Thread
from .loop_threads import LoopThreads
from .reconnect import Stopped

log = logging.getLogger("relet.worker")

AFTER_STOPPED = 0.1  # seconds to wait if a step raised `Stopped` although this loop goes on
AFTER_ERROR = 1.0


class Loop:
    """Calls `step` until `stop` is called. The step returns the seconds until its next call.

    0 means at once, None not before `wake` is called. If a step raises, the error is logged and the loop goes on.
    `threads`: they take its steps; None: a thread of this loop does.
    """

    def __init__(
        self, system: System, name: str, step: Callable[[], float | None], threads: LoopThreads | None = None
    ) -> None:
        self._system = system
        self._name = name
        self._step = step
        self._threads = threads
        self._wakeup = system.event()
        self._woken = False
        self._asleep = False
        self._rest = 0.0
        self._is_resting = False
        self._thread: Thread | None = None
        self._over = system.event()  # of a loop in shared threads
        self.stopping: Event = system.event() if threads is None else _SharedEvent(system.event(), threads)
        self.was_woken = False  # the wait before this step was ended by `wake`

    def start(self) -> None:
        if self._threads is None:
            self._thread = self._system.spawn(self._name, self._work)
        else:
            self._threads.add(self)

    def wake(self) -> None:
        """Have the next step begin at once. Cheap while a step runs."""
        self._woken = True
        if self._asleep:
            self._asleep = False
            if self._threads is None:
                self._wakeup.set()
            else:
                self._threads.make_due(self)

    def rest(self, seconds: float) -> None:
        """Called by a step: wait this long before the next one, whether `wake` is called meanwhile or not."""
        self._rest = seconds

    def stop(self) -> None:
        """Have the loop end after the step that it is in."""
        self.stopping.set()
        self.wake()
        if self._threads is not None:
            self._threads.make_due(self)

    def join(self, timeout: float) -> None:
        """Wait until the loop has ended."""
        if self._thread is not None:
            self._thread.join(timeout)
        elif not self.has_ended:
            self._over.wait(timeout)

    @property
    def has_ended(self) -> bool:
        """Whether it takes no more steps."""
        if self._threads is not None:
            return not self._threads.has(self)
        return self._thread is None or not self._thread.is_alive()

    def _work(self) -> None:
        while not self.stopping.is_set():
            wait = self._take_step()
            if self._rest > 0:
                self.stopping.wait(self._rest)
                self._rest = 0.0
            if wait is None or wait > 0:
                self._wait(wait)

    def _take_step(self) -> float | None:
        self.was_woken, self._woken = self._woken, False
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

    # In shared threads

    def ended(self) -> None:
        """Called once it takes no more steps."""
        self._over.set()

    @property
    def is_stopping(self) -> bool:
        return self.stopping.is_set()

    @property
    def wants_step(self) -> bool:
        """Whether `wake` was called, and the step has not asked for a rest."""
        return self._woken and not self._is_resting

    def take_shared_step(self) -> float:
        """Take a step. Returns the seconds until the next one."""
        self._asleep = False
        if self.is_stopping:
            return inf
        wait = self._take_step()
        rest, self._rest = self._rest, 0.0
        self._is_resting = rest > 0
        if self._is_resting:
            return rest
        # A call of `wake` before the next line has set `_woken`. A call after it makes the loop due.
        self._asleep = True
        return inf if wait is None else wait


class _SharedEvent:
    """An event. While one of the threads waits for it, another thread takes its place."""

    def __init__(self, event: Event, threads: LoopThreads) -> None:
        self._event, self._threads = event, threads

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        return self._threads.park(lambda: self._event.wait(timeout))
