"""The `System` of a simulated process, and the one that replaces the global `SYSTEM` during a simulation."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from relet._client import audit, schedules
from relet._core.ids import make_id
from relet._store import pool
from relet._system import SYSTEM, System
from relet._tasks import task
from tests.simulation.kernel import Kernel, Process, SimEvent, SimLock, SimThread

BASE = 1_767_225_600.0  # the time of the clocks when a simulation begins


class SimSystem(System):
    """`process`: whose threads it starts; None: those of the calling thread's process."""

    def __init__(self, kernel: Kernel, process: Process | None = None, base: float = BASE) -> None:
        self._kernel, self._process, self._base = kernel, process, base

    def _of(self) -> Process:
        if self._process is not None:
            return self._process
        assert self._kernel.current is not None
        return self._kernel.current.process

    def monotonic(self) -> float:
        return self._kernel.now

    def time(self) -> float:
        return self._base + self._kernel.now

    def random(self) -> float:
        return self._kernel.random.random()

    def uniform(self, a: float, b: float) -> float:
        return self._kernel.random.uniform(a, b)

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        return self._kernel.random.sample(*args, **kwargs)

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        if threading.get_ident() == self._kernel.os_thread:
            self._kernel.sleep(seconds)
        else:
            time.sleep(seconds)  # a thread that is no part of the simulation

    def lock(self) -> Any:
        return SimLock(self._kernel)

    def event(self) -> SimEvent:
        return SimEvent(self._kernel)

    def new_token(self) -> str:  # type: ignore[override]
        return str(uuid.UUID(int=self._kernel.random.getrandbits(128), version=4))

    def new_id(self) -> str:  # type: ignore[override]
        return make_id(self.time(), self._kernel.random.randbytes(10))

    def thread(self, name: str, work: Callable[[], object]) -> SimThread:  # type: ignore[override]
        return self._kernel.thread(self._of(), name, work)

    def spawn(self, name: str, work: Callable[[], object]) -> SimThread:
        return self._kernel.spawn(self._of(), name, work)

    def timer(self, seconds: float, call: Callable[[], object]) -> Any:  # type: ignore[override]
        raise NotImplementedError("no timer thread is simulated")


class _NoSweeper:
    """Connections of a simulation stay open: the thread that closes idle ones is a real one."""

    def register(self, pool: object) -> None:
        return


MAKE_IDS = (audit, schedules, task)  # modules that keep the function under a name
REPLACED = ("monotonic", "time", "random", "uniform", "sample", "sleep", "event", "new_token", "new_id", "thread")


@contextmanager
def without_sweeper() -> Iterator[None]:
    """A pool that is made or used in this block keeps its connections, and starts no thread."""
    real, pool._sweeper = pool._sweeper, _NoSweeper()  # type: ignore[assignment]
    try:
        yield
    finally:
        pool._sweeper = real


@contextmanager
def simulated(kernel: Kernel, base: float) -> Iterator[None]:
    """The store and the flows use the global SYSTEM: its functions are those of the simulation within the block."""
    system = SimSystem(kernel, base=base)
    for name in REPLACED:
        setattr(SYSTEM, name, getattr(system, name))
    for module in MAKE_IDS:
        module.new_id = system.new_id  # type: ignore[attr-defined]
    try:
        with without_sweeper():
            yield
    finally:
        for module in MAKE_IDS:
            module.new_id = System.new_id  # type: ignore[attr-defined]
        for name in REPLACED:
            delattr(SYSTEM, name)
