"""What the worker and the store take from the machine: time, waiting, randomness and threads.

They take it from a `System` and from nowhere else, so that a simulation can replace it; `./dev check` keeps it so.
"""

from __future__ import annotations

import random as randomness
import threading
import time
import uuid
from collections.abc import Callable
from typing import Protocol


class Event(Protocol):
    """A flag that one thread sets and another waits for."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Thread(Protocol):
    """A thread that was started."""

    def join(self, timeout: float | None = None) -> None: ...

    def is_alive(self) -> bool: ...


class System:
    """The real machine."""

    monotonic = staticmethod(time.monotonic)
    random = staticmethod(randomness.random)
    uniform = staticmethod(randomness.uniform)
    sample = staticmethod(randomness.sample)
    sleep = staticmethod(time.sleep)
    lock = staticmethod(threading.Lock)
    event: Callable[[], Event] = staticmethod(threading.Event)

    @staticmethod
    def new_token() -> str:
        return str(uuid.uuid4())

    @staticmethod
    def spawn(name: str, work: Callable[[], object]) -> Thread:
        """Start a daemon thread: it does not keep the process from exiting."""
        thread = threading.Thread(target=work, name=f"relet-{name}", daemon=True)
        thread.start()
        return thread


SYSTEM = System()
