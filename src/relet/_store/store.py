"""What both stores have in common: running a flow until it is done, or until patience ends."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from .._threads import DaemonThreadPool
from ..errors import StoreBusy, StoreUnavailable
from .deadlines import STATEMENT_SECONDS
from .flows import maintenance
from .interrupts import leave
from .migrate import Applied, outcome
from .notify import SchemaNotifier
from .query import (
    Clock,
    Conflict,
    Dialect,
    Flow,
    Notify,
    Query,
    traits_of,
)
from .runner import (
    AsyncConnection,
    Connection,
    adrive,
    drive,
)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

call_in_thread = DaemonThreadPool("relet-store").call

PATIENCE = 10.0
PATIENCE_OF_HANDLERS = 60.0  # they hold a slot, and a lease that is renewed: to wait is better than to fail


class Patience(Protocol):
    """How somebody bears a store that is busy or away."""

    def again(self, error: Transient, failures: int) -> bool:
        """Wait a while, and tell whether to try again; False gives up."""


class Transient(Exception):
    """Trying again may succeed. `unknown`: COMMIT, or a write that commits by itself, was sent and not answered."""

    def __init__(self, shown: StoreBusy | StoreUnavailable, *, unknown: bool) -> None:
        super().__init__(str(shown))
        self.shown = shown
        self.unknown = unknown


class Limited:
    """Patience for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._give_up = time.monotonic() + seconds

    def again(self, error: Transient, failures: int) -> bool:
        """Full jitter, and never so long that a store which comes back is kept waiting."""
        if time.monotonic() >= self._give_up:
            return False
        time.sleep(pause_after(failures))
        return True


class StoreTransaction:
    """A transaction on a connection of ours that somebody else fills."""

    def __init__(self, raw: Any, on: Connection, check: Callable[[], None]) -> None:
        self.raw = raw
        self._on = on
        self.check = check  # raises if there is nothing that can be committed
        self.wakes: list[Notify] = []

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow in it. Whom it would wake is told after the commit."""
        result, wakes = drive(flow(*args, **kwargs), self._on)
        self.wakes += wakes
        return result


class AsyncStoreTransaction:
    """The same on an async connection, or, where there are none, on a plain one that never blocks for long."""

    def __init__(self, raw: Any, on: AsyncConnection, check: Callable[[], None]) -> None:
        self.raw = raw
        self._on = on
        self.check = check  # raises if there is nothing that can be committed
        self.wakes: list[Notify] = []

    async def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow in it. Whom it would wake is told after the commit."""
        result, wakes = await adrive(flow(*args, **kwargs), self._on)
        self.wakes += wakes
        return result


SWALLOWED = "a statement of this transaction has failed, and the error was swallowed: nothing of it was committed"
ENDED = (
    "this transaction was ended inside its block, by a commit or a rollback of the handler's own: the block itself "
    "commits, or rolls back when an exception leaves it"
)


def pause_after(failures: int, most: float = 1.0) -> float:
    """How long to wait after so many failures in a row: any time up to a bound that doubles."""
    return random.random() * min(0.01 * float(2 ** min(failures, 20)), most)  # noqa: S311


class Store(ABC):
    """A place where jobs live. Subclasses know how to connect and to run one flow in one transaction."""

    dialect: Dialect
    where: str  # for people: no password in it
    skips_locked: bool  # a claim passes over jobs that somebody has locked at that moment
    prune_at_once: int  # how many rows: nobody who wants to claim meanwhile shall notice
    quoted: str = ""  # the schema as it stands in statements, where there are schemas
    clock: Clock | None = None  # None: the database's own

    def __init__(self, wakes: SchemaNotifier) -> None:
        self.wakes = wakes
        self._checked = False

    def reach(self) -> None:
        """Check that the store can be reached and written to, with patience if it is busy."""
        self.run(maintenance.probe)

    def ready(self) -> None:
        """Check the schema before the first use."""
        if not self._checked:
            self.check()
            self._checked = True

    @abstractmethod
    def check(self) -> None:
        """Refuse a schema that this release does not work with."""

    @abstractmethod
    def migrate(self) -> list[int]:
        """Bring the schema up to date. Safe when many do it at once. Returns the versions applied."""

    @abstractmethod
    def _applied(self) -> Applied:
        """What the schema is, as migrations left it."""

    def applied(self) -> Applied:
        """What the schema is, as migrations left it; with patience if the store is busy."""
        return self.patiently(Limited(PATIENCE), lambda *_: self._applied())

    def outcome(self, versions: list[int]) -> str:
        """What a migrate that applied these versions did, for people."""
        return outcome(versions, self.applied(), self.dialect)

    @abstractmethod
    def attempt(
        self, make: Callable[[], Flow[R]], *, looks: bool = False, seconds: float = STATEMENT_SECONDS, tries: int = 0
    ) -> tuple[R, list[Notify]]:
        """Run a flow once: commit, or roll back and raise. Transient where trying again makes sense.

        `looks` promises that the flow changes nothing. `seconds`: how long a statement may take; twice as long with
        each of the `tries` that failed before.
        """

    def notifications(self, wakes: list[Notify]) -> list[Query]:
        """The statements that tell those who sleep, where that is done by statements."""
        return []

    @abstractmethod
    def wake(self, wakes: list[Notify]) -> None:
        """Tell those who sleep that something was committed."""

    def beside(self, connections: int, like: Store | None = None, patience: float | None = None) -> Store:
        """The same place with connections of its own, which nobody else can use up; or this store, if it has none.

        With `like`, those of another store that was made so: two schemas of one database need not have each their own.
        `patience`: how many seconds a connection may be silent until it is given up.
        """
        return self

    @abstractmethod
    def opened(self) -> AbstractContextManager[StoreTransaction]:
        """A transaction for somebody else to fill: committed at the end of the block, rolled back on an error."""

    @abstractmethod
    def aopened(self) -> AbstractAsyncContextManager[AsyncStoreTransaction]:
        """The same for async code."""

    @contextmanager
    def transaction(self) -> Iterator[StoreTransaction]:
        """As `opened`; and once it is committed, those who sleep are told."""
        block = self.opened()
        try:
            with block as opened:
                yield opened
        finally:
            leave(block)
        if opened.wakes:
            self.tell(opened.wakes)

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[AsyncStoreTransaction]:
        """As `aopened`; and once it is committed, those who sleep are told."""
        async with self.aopened() as opened:
            yield opened
        if opened.wakes:
            await call_in_thread(self.tell, opened.wakes)

    def prepare_to_finish(self, job_id: str) -> None:
        """See to it that this job can end in a transaction that cannot be repeated."""
        return

    async def aprepare_to_finish(self, job_id: str) -> None:
        """The same for async code."""
        return

    async def aready(self) -> None:
        """As `ready`, for async code."""
        if not self._checked:
            await call_in_thread(self.ready)

    def leave_loop(self) -> None:
        """Let go of connections that belong to the event loop which runs here, and is about to end."""
        return

    def drop_old(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> list[str]:
        """Drop whole parts of what has been over for so long, where the store has such parts. `stop` ends it early."""
        return []

    def close(self) -> None:
        """Let go of all connections. The store may be used again."""
        self.wakes.close()

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow until it is done. It is given as a function and its arguments, so that it can be repeated."""
        return self.run_with(Limited(PATIENCE), flow, *args, **kwargs)

    def run_with(self, patience: Patience, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow, trying again while the store is busy or away and patience lasts."""
        traits = traits_of(flow)
        looks, seconds = traits.looks, traits.seconds or STATEMENT_SECONDS

        def once(unknown: bool, tries: int) -> tuple[R, list[Notify]]:
            if not unknown:
                try:
                    return self.attempt(partial(flow, *args, **kwargs), looks=looks, seconds=seconds, tries=tries)
                except Conflict:
                    pass
            again = partial(traits.repeat or flow, *args, **kwargs)
            return self.attempt(again, looks=looks, seconds=seconds, tries=tries)

        result, wakes = self.patiently(patience, once)
        if wakes:
            self.tell(wakes)
        return result

    def tell(self, wakes: list[Notify]) -> None:
        """Tell those who sleep, here and elsewhere, what was committed."""
        self.wakes.tell({wake.channel for wake in wakes})  # those in this process need no notification
        unsent = [wake for wake in wakes if not wake.sent]
        if unsent:
            self.wake(unsent)

    def patiently(self, patience: Patience, work: Callable[[bool, int], T]) -> T:
        """Try until it is done, or patience ends.

        The work is told if an earlier try may have been committed, and how many have failed.
        """
        unknown, failures = False, 0
        while True:
            try:
                return work(unknown, failures)
            except Transient as error:
                unknown, failures = unknown or error.unknown, failures + 1
                if not patience.again(error, failures):
                    raise error.shown from error.__cause__

    async def apatiently(self, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        """The same for async code, with patience for so many seconds."""
        import asyncio

        give_up, failures = time.monotonic() + seconds, 0
        while True:
            try:
                return await work()
            except Transient as error:
                failures += 1
                if time.monotonic() >= give_up:
                    raise error.shown from error.__cause__
            await asyncio.sleep(pause_after(failures))
