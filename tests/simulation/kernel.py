"""Threads that take turns. A thread runs until it waits or sends a statement; then a seeded choice decides who is next.

Each thread is a greenlet. Time is virtual: it passes only when no thread can run. The threads of a process that was
killed are never resumed.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from greenlet import GreenletExit, getcurrent, greenlet

MAX_SWITCHES = 50_000  # ten times as many as a run needs; more mean that threads run in circles


@dataclass(eq=False)
class Process:
    """A simulated process. `stopped_until`: its threads do not run before, as after SIGSTOP."""

    name: str
    pid: int
    is_alive: bool = True
    stopped_until: float = 0.0


@dataclass(eq=False)
class SimThread:
    kernel: Kernel
    process: Process
    name: str
    work: Callable[[], object]
    greenlet: greenlet = field(init=False)
    is_over: bool = False
    ticket: int = 0  # the wake-up that counts; earlier ones are void

    def __post_init__(self) -> None:
        self.greenlet = greenlet(self._run, self.kernel.main)

    def start(self) -> None:
        self.kernel.make_ready(self)

    def is_alive(self) -> bool:
        return not self.is_over and self.process.is_alive

    def join(self, timeout: float | None = None) -> None:
        until = None if timeout is None else self.kernel.now + timeout
        while self.is_alive() and (until is None or self.kernel.now < until):
            self.kernel.sleep(0.01)

    def _run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.kernel.errors.append(f"{self.name}: {error!r}")
        finally:
            self.is_over = True


class Kernel:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.main = getcurrent()
        self.os_thread = threading.get_ident()
        self.current: SimThread | None = None
        self.threads: list[SimThread] = []
        self.errors: list[str] = []  # of threads that an unexpected exception ended
        self.is_over = False
        self._ready: list[tuple[SimThread, int]] = []
        self._sleeping: list[tuple[float, int, SimThread, int]] = []
        self._numbers = itertools.count()
        self._trace: list[str] = []
        self.switches = 0

    @property
    def trace(self) -> str:
        """A digest of all choices: the same seed gives the same one."""
        return hashlib.blake2b("".join(self._trace).encode(), digest_size=8).hexdigest()

    def note(self, text: str) -> None:
        self._trace.append(f"{self.now:.6f} {text}\n")

    def spawn(self, process: Process, name: str, work: Callable[[], object]) -> SimThread:
        thread = self.thread(process, name, work)
        thread.start()
        return thread

    def thread(self, process: Process, name: str, work: Callable[[], object]) -> SimThread:
        thread = SimThread(self, process, f"{process.name} {name}", work)
        self.threads.append(thread)
        return thread

    def make_ready(self, thread: SimThread) -> None:
        thread.ticket += 1
        self._ready.append((thread, thread.ticket))

    # Called by threads

    def sleep(self, seconds: float) -> None:
        thread = self.calling_thread()
        thread.ticket += 1
        self._wake_at(self.now + max(seconds, 0.0), thread)
        self._leave(thread)

    def block(self, seconds: float | None) -> None:
        """Wait until `make_ready` is called for this thread, or for so long."""
        thread = self.calling_thread()
        thread.ticket += 1
        if seconds is not None:
            self._wake_at(self.now + seconds, thread)
        self._leave(thread)

    def calling_thread(self) -> SimThread:
        if self.is_over or self.current is None:
            raise GreenletExit
        return self.current

    def _wake_at(self, moment: float, thread: SimThread) -> None:
        heapq.heappush(self._sleeping, (moment, next(self._numbers), thread, thread.ticket))

    def _leave(self, thread: SimThread) -> None:
        self.main.switch()
        if self.is_over:
            raise GreenletExit
        self.current = thread

    # Called by the owner of the kernel

    def run(self, until: Callable[[], bool], longest: float) -> bool:
        """Let threads take turns until a condition holds, which is asked when time passes. False: it took too long."""
        give_up, ready, choose = self.now + longest, self._ready, self.random.randrange
        while True:
            while ready:
                index = choose(len(ready))
                ready[index], ready[-1] = ready[-1], ready[index]
                thread, ticket = ready.pop()
                if ticket == thread.ticket:
                    self._resume(thread)
            if until():
                return True
            if not self._sleeping or self.now > give_up or self.switches > MAX_SWITCHES:
                return False
            self._pass_time()

    def _pass_time(self) -> None:
        """Up to the next wake-up. Those within a millisecond count as simultaneous."""
        self.now = max(self.now, self._sleeping[0][0])
        while self._sleeping and self._sleeping[0][0] <= self.now + 0.001:
            _, _, thread, ticket = heapq.heappop(self._sleeping)
            if ticket == thread.ticket:
                self._ready.append((thread, ticket))

    def _resume(self, thread: SimThread) -> None:
        process = thread.process
        if not process.is_alive or thread.is_over:
            return
        if process.stopped_until > self.now:
            self._wake_at(process.stopped_until, thread)
            return
        self.switches += 1
        self.note(thread.name)
        self.current = thread
        thread.greenlet.switch()
        self.current = None

    def close(self) -> None:
        """End all threads that still wait."""
        self.is_over = True
        for thread in self.threads:
            if not thread.greenlet.dead and thread.greenlet:
                thread.greenlet.throw(GreenletExit)


class SimEvent:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._is_set = False
        self._waiting: list[SimThread] = []

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            self._kernel.make_ready(thread)

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        until = None if timeout is None else self._kernel.now + timeout
        while not self._is_set and (until is None or self._kernel.now < until):
            thread = self._kernel.calling_thread()
            self._waiting.append(thread)
            self._kernel.block(None if until is None else until - self._kernel.now)
            if thread in self._waiting:
                self._waiting.remove(thread)
        return self._is_set


class SimLock:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._owner: SimThread | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        while self._owner is not None and self._owner.process.is_alive and not self._owner.is_over:
            if not blocking:
                return False
            self._kernel.sleep(0.001)
        self._owner = self._kernel.current
        return True

    def release(self) -> None:
        self._owner = None

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
