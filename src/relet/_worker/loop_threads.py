"""Threads that many loops share, so that a worker for hundreds of tenants has no threads for each.

A thread takes the step of the loop that has been due for the longest time. One of the threads without a step waits for
the next loop to become due. When it takes that step, it leaves the wait to another thread.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Protocol

from .._system import Event, System

LINGER = 10.0  # seconds until a thread ends that is not needed


class Steps(Protocol):
    """A loop, as the threads see it."""

    @property
    def wants_step(self) -> bool:
        """Whether the next step is to be taken at once."""

    def take_shared_step(self) -> float:
        """Take a step. Returns the seconds until the next one; infinity: not before it is due by `make_due`."""

    @property
    def is_stopping(self) -> bool:
        """Whether it takes no more steps."""

    def ended(self) -> None:
        """It has taken its last step."""


class LoopThreads:
    """`size`: how many threads take steps. `limit`: how many threads there are at most.

    A thread whose step waits for a store that cannot be reached does not count for `size`: another one takes its place.
    So a store that cannot be reached does not keep the loops of other stores from running.
    """

    def __init__(self, system: System, name: str, size: int, limit: int) -> None:
        self._system, self._name, self._size, self._limit = system, name, size, limit
        self._lock = system.lock()
        self._due: list[tuple[float, int, Steps]] = []  # a heap; it may have entries that are no longer valid
        self._entries: dict[Steps, int] = {}  # the number of the valid entry of a loop; 0: its step is being taken
        self._last = 0
        self.number = 0  # of threads
        self._parked = 0  # threads that wait for a store
        self._waiting: Event | None = None  # of the thread that waits for the next loop to become due
        self._idle: list[Event] = []  # of the other threads without a step
        self._is_closed = False

    def add(self, loop: Steps) -> None:
        """Take the first step of a loop."""
        with self._lock:
            self._schedule(loop, 0.0)

    def has(self, loop: Steps) -> bool:
        """Whether the loop may take another step, or is in one."""
        return loop in self._entries

    def make_due(self, loop: Steps) -> None:
        """Take the next step of a loop at once."""
        with self._lock:
            if self._entries.get(loop):  # while it takes a step: `wants_step` is read afterwards
                self._schedule(loop, 0.0)

    def park(self, wait: Callable[[], bool]) -> bool:
        """Call `wait`, which blocks, in one of the threads. Another thread takes its place meanwhile."""
        with self._lock:
            self._parked += 1
            self._have_one_wait()
        try:
            return wait()
        finally:
            with self._lock:
                self._parked -= 1

    def close(self) -> None:
        """Have the threads end. Loops take no more steps."""
        with self._lock:
            self._is_closed = True
            self._entries.clear()
            for event in [*self._idle, *([self._waiting] if self._waiting else [])]:
                event.set()

    # With the lock

    def _schedule(self, loop: Steps, wait: float) -> None:
        self._last += 1
        self._entries[loop] = self._last
        heappush(self._due, (self._system.monotonic() + wait, self._last, loop))
        if self._due[0][1] == self._last:  # it is the first now, so the wait for the former first one is too long
            if self._waiting is not None:
                self._waiting.set()
            else:
                self._have_one_wait()

    def _have_one_wait(self) -> None:
        """Have a thread wait for the next loop, if there is none that does and not too many take steps."""
        if self._is_closed or self._waiting is not None or self.number - self._parked - len(self._idle) >= self._size:
            return
        if self._idle:
            self._idle.pop().set()
        elif self.number < self._limit:
            try:
                self._system.spawn(self._name, self._work)
            except RuntimeError:  # the program ends, and starts no threads: those there are go on
                return
            self.number += 1

    def _until_first(self) -> float:
        """The seconds until the first loop is due. Drops entries that are no longer valid."""
        while self._due and self._entries.get(self._due[0][2]) != self._due[0][1]:
            heappop(self._due)
        return self._due[0][0] - self._system.monotonic() if self._due else inf

    # In a thread

    def _work(self) -> None:
        event = self._system.event()
        while (loop := self._next(event)) is not None:
            wait = loop.take_shared_step()
            with self._lock:
                has_ended = loop.is_stopping or self._is_closed
                if has_ended:
                    self._entries.pop(loop, None)
                else:
                    self._schedule(loop, 0.0 if loop.wants_step else wait)
            if has_ended:
                loop.ended()

    def _next(self, event: Event) -> Steps | None:
        """Wait for a loop that is due. None: the thread has ended. `event`: of this thread."""
        lingers = False
        while True:
            with self._lock:
                self._is_mine(event)
                left = self._until_first()
                is_spare = (lingers and self._waiting is not None) or self.number - self._parked > self._size
                if self._is_closed or is_spare:
                    self.number -= 1
                    self._have_one_wait()
                    return None
                if left <= 0:
                    loop = heappop(self._due)[2]
                    self._entries[loop] = 0
                    self._have_one_wait()
                    return loop
                event.clear()
                is_waiting = self._waiting is None
                if is_waiting:
                    self._waiting = event
                else:
                    self._idle.append(event)
            was_set = event.wait(None if left == inf and is_waiting else left if is_waiting else LINGER)
            lingers = not was_set and not is_waiting

    def _is_mine(self, event: Event) -> None:
        """The thread of this event neither waits for a loop nor is idle now."""
        if self._waiting is event:
            self._waiting = None
        elif event in self._idle:
            self._idle.remove(event)
