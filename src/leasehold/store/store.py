"""What both stores have in common: running a flow until it is done, or until patience ends."""

from __future__ import annotations

import inspect
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from ..core.errors import StoreBusy, StoreUnavailable
from .query import Dialect, Flow, Query, Wake, is_look
from .wakes import Listener, Wakes

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

PATIENCE = 10.0


class Transient(Exception):
    """Trying again is likely to succeed. `unknown`: the failed try may have been committed all the same."""

    def __init__(self, shown: StoreBusy | StoreUnavailable, *, unknown: bool) -> None:
        super().__init__(str(shown))
        self.shown = shown
        self.unknown = unknown


class Store(ABC):
    """A place where jobs live. Subclasses know how to connect and to run one flow in one transaction."""

    dialect: Dialect
    where: str  # for people: no password in it
    quoted: str = ""  # the schema as it stands in statements, where there are schemas

    def __init__(self) -> None:
        self.wakes = Wakes(self)
        self._checked = False

    def ready(self) -> None:
        """Check the schema before the first use."""
        if not self._checked:
            self.check()
            self._checked = True

    @abstractmethod
    def check(self) -> None:
        """Refuse a schema that is not the one this version works with."""

    @abstractmethod
    def migrate(self) -> list[int]:
        """Bring the schema up to date. Safe when many do it at once. Returns the versions applied."""

    @abstractmethod
    def attempt(self, make: Callable[[], Flow[R]], *, looks: bool = False) -> tuple[R, list[Wake]]:
        """Run a flow once: commit, or roll back and raise. Transient where trying again makes sense.

        `looks` promises that the flow changes nothing.
        """

    def notifications(self, wakes: list[Wake]) -> list[Query]:
        """The statements that tell those who sleep, where that is done by statements."""
        return []

    @abstractmethod
    def wake(self, wakes: list[Wake]) -> None:
        """Tell those who sleep that something was committed."""

    @abstractmethod
    def listen(self) -> Listener:
        """A connection of its own that hears what others have committed."""

    def drop_old(self, seconds: float) -> list[str]:
        """Drop whole parts of what has been over for so long, where the store has such parts."""
        return []

    def close(self) -> None:
        """Let go of all connections. The store may be used again."""
        self.wakes.close()

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow until it is done. It is given as a function and its arguments, so that it can be repeated."""
        return self.run_for(PATIENCE, flow, *args, **kwargs)

    def run_for(self, patience: float, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow, trying again for so many seconds while the store is busy or away."""

        def once(unknown: bool) -> tuple[R, list[Wake]]:
            again: Any = {"again": True} if unknown and takes_again(flow) else {}
            return self.attempt(partial(flow, *args, **kwargs, **again), looks=is_look(flow))

        result, wakes = self.patiently(patience, once)
        if wakes:
            self.wake(wakes)
        return result

    def patiently(self, patience: float, work: Callable[[bool], T]) -> T:
        """Try until it is done, or for so many seconds. The work is told if an earlier try may have been committed."""
        give_up = time.monotonic() + patience
        unknown, failures = False, 0
        while True:
            try:
                return work(unknown)
            except Transient as error:
                if time.monotonic() >= give_up:
                    raise error.shown from error.__cause__
                unknown, failures = unknown or error.unknown, failures + 1
                # Full jitter, and never so long that a store which comes back is kept waiting.
                time.sleep(random.random() * min(0.01 * 2**failures, 1.0))  # noqa: S311


@cache
def takes_again(flow: Callable[..., Any]) -> bool:
    """Whether a flow wants to know that an earlier try may have been committed."""
    return "again" in inspect.signature(flow).parameters
