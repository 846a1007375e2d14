"""Time, waiting, randomness and threads, for the worker and the store.

They use a `System` for these and nothing else, so that a simulation can replace it. `./dev check` verifies this. The
threads of `_threads`, in which handlers run and async code makes blocking calls, are no part of it.
"""

from __future__ import annotations

import os
import random as randomness
import threading
import time as clock
import uuid
from collections.abc import Callable
from typing import Protocol

from ._core.ids import make_id

#: For job ids alone: no other code seeds it. Ids need not be secret, and os.urandom would take most of the time.
_id_random = randomness.Random()  # noqa: S311 - ids are no secrets
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_id_random.seed)

#: False on Windows: programs cannot be started with pipes of ours, nor killed together with those that they start.
HAS_PROCESS_GROUPS = hasattr(os, "killpg")


class Event(Protocol):
    """A flag that one thread sets and another waits for."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Thread(Protocol):
    """A started thread."""

    def join(self, timeout: float | None = None) -> None: ...

    def is_alive(self) -> bool: ...


class System:
    """The clock, the random numbers and the threads of this machine."""

    monotonic = staticmethod(clock.monotonic)
    time = staticmethod(clock.time)  # by the clock of this machine, which may be wrong
    random = staticmethod(randomness.random)
    uniform = staticmethod(randomness.uniform)
    sample = staticmethod(randomness.sample)
    sleep = staticmethod(clock.sleep)
    lock = staticmethod(threading.Lock)
    event: Callable[[], Event] = staticmethod(threading.Event)

    @staticmethod
    def new_token() -> str:
        return str(uuid.uuid4())

    @staticmethod
    def new_id() -> str:
        """A new id for a job (UUIDv7). Pass it as `using(id=...)` to make enqueue repeatable."""
        return make_id(clock.time(), _id_random.randbytes(10))

    @staticmethod
    def thread(name: str, work: Callable[[], object]) -> threading.Thread:
        """A daemon thread, not started yet. Daemon threads do not keep the process from exiting."""
        return threading.Thread(target=work, name=f"relet-{name}", daemon=True)

    def spawn(self, name: str, work: Callable[[], object]) -> Thread:
        """Start a daemon thread."""
        thread = self.thread(name, work)
        thread.start()
        return thread

    def beside(self, name: str, work: Callable[[], object]) -> Thread | None:
        """Do the work in a daemon thread. Where none can be started, do it here, and return None: from Python 3.12 on
        the end of a program, which stops an embedded worker, starts no more threads."""
        try:
            return self.spawn(name, work)
        except RuntimeError:
            work()
            return None

    @staticmethod
    def timer(seconds: float, call: Callable[[], object]) -> threading.Timer:
        """A daemon thread that waits and makes one call. Not started yet."""
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        return timer


SYSTEM = System()
