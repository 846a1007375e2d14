"""What both stores have in common: a flow runs in one transaction, which is tried again where that makes sense.

run -> retry -> run_once -> drive -> the flow -> execute
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from .._threads import DaemonThreadPool
from .flows import maintenance
from .fragments import Dialect
from .interrupts import leave
from .migrate import Applied, outcome
from .notify import SchemaNotifier
from .query import Clock, Flow, Notify, Query, Traits, traits_of
from .retry import RETRY_SECONDS, RetryFor, RetryPolicy, retry
from .runner import AsyncConnection, Connection, adrive, drive

P = ParamSpec("P")
R = TypeVar("R")

call_in_thread = DaemonThreadPool("relet-store").call

SWALLOWED = "a statement of this transaction failed and the error was swallowed: nothing was committed"
ENDED = (
    "the handler ended this transaction inside its block, by a commit or a rollback of its own: the block itself "
    "commits, and rolls back when an exception leaves it"
)


class StoreTransaction:
    """An open transaction on a connection of the store, for the caller to fill."""

    def __init__(self, raw: Any, on: Connection, check: Callable[[], None]) -> None:
        self.raw = raw
        self._on = on
        self.check = check  # raises if there is nothing that can be committed
        self.notifications: list[Notify] = []  # sent after the commit

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        result, notifications = drive(flow(*args, **kwargs), self._on)
        self.notifications += notifications
        return result


class AsyncStoreTransaction:
    """The same on an async connection; on SQLite, on a plain one that never blocks for long."""

    def __init__(self, raw: Any, on: AsyncConnection, check: Callable[[], None]) -> None:
        self.raw = raw
        self._on = on
        self.check = check  # raises if there is nothing that can be committed
        self.notifications: list[Notify] = []  # sent after the commit

    async def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        result, notifications = await adrive(flow(*args, **kwargs), self._on)
        self.notifications += notifications
        return result


class Store(ABC):
    """A schema with jobs in it. Subclasses know how to connect, and how to run one flow in one transaction."""

    dialect: Dialect
    where: str  # shown to people: without the password
    skips_locked: bool  # a claim passes over rows that are locked at that moment
    prune_at_once: int  # rows that one transaction deletes, so that no claim waits for long
    quoted: str = ""  # the schema as it stands in statements
    clock: Clock | None = None  # None: the database's clock

    def __init__(self, notifier: SchemaNotifier) -> None:
        self.notifier = notifier
        self._checked = False

    # Running flows

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow until it is committed. It comes as a function and its arguments, so that it can be repeated."""
        return self.run_with(RetryFor(RETRY_SECONDS), flow, *args, **kwargs)

    def run_with(self, policy: RetryPolicy, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow until it is committed, or until the policy gives up."""
        traits = traits_of(flow)

        def work(may_be_committed: bool, failures: int) -> tuple[R, list[Notify]]:
            this = traits.repeat if may_be_committed and traits.repeat else flow
            return self.run_once(partial(this, *args, **kwargs), traits, failures)

        result, notifications = retry(policy, work)
        if notifications:
            self.publish(notifications)
        return result

    @abstractmethod
    def run_once(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        """Run a flow in one transaction: commit, or roll back and raise. Transient where another try makes sense.

        The time limit of its statements doubles with every failure before.
        """

    # Notifications

    def publish(self, notifications: list[Notify]) -> None:
        """Wake subscribers, here and in other processes, after a commit."""
        self.notifier.publish({one.channel for one in notifications})
        unsent = [one for one in notifications if not one.sent]
        if unsent:
            self.notify(unsent)

    def notifying_statements(self, notifications: list[Notify]) -> list[Query]:
        """The statements that wake subscribers in other processes, where statements do that."""
        return []

    @abstractmethod
    def notify(self, notifications: list[Notify]) -> None:
        """Wake subscribers in other processes."""

    # Transactions that a caller fills

    @abstractmethod
    def begin(self) -> AbstractContextManager[StoreTransaction]:
        """Committed at the end of the block, rolled back on an error."""

    @abstractmethod
    def abegin(self) -> AbstractAsyncContextManager[AsyncStoreTransaction]:
        """The same for async code."""

    @contextmanager
    def transaction(self) -> Iterator[StoreTransaction]:
        """As `begin`; after the commit its notifications are sent."""
        block = self.begin()
        try:
            with block as transaction:
                yield transaction
        finally:
            leave(block)
        if transaction.notifications:
            self.publish(transaction.notifications)

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[AsyncStoreTransaction]:
        """As `abegin`; after the commit its notifications are sent."""
        async with self.abegin() as transaction:
            yield transaction
        if transaction.notifications:
            await call_in_thread(self.publish, transaction.notifications)

    def prepare_to_finish(self, job_id: str) -> None:
        """Make sure that this job can end in a transaction that cannot be repeated."""
        return

    async def aprepare_to_finish(self, job_id: str) -> None:
        """The same for async code."""
        return

    # Schema

    def reach(self) -> None:
        """Check that the database can be reached and written to."""
        self.run(maintenance.probe)

    def ready(self) -> None:
        """Check the schema before the first use."""
        if not self._checked:
            self.check()
            self._checked = True

    async def aready(self) -> None:
        """As `ready`, for async code."""
        if not self._checked:
            await call_in_thread(self.ready)

    @abstractmethod
    def check(self) -> None:
        """Refuse a schema that this release does not work with."""

    def migrate(self) -> list[int]:
        """Bring the schema up to date. Safe when several processes do it at once. Returns the versions applied."""
        return retry(RetryFor(RETRY_SECONDS), lambda *_: self._migrate())

    @abstractmethod
    def _migrate(self) -> list[int]: ...

    def applied(self) -> Applied:
        """Which migrations the schema has."""
        return retry(RetryFor(RETRY_SECONDS), lambda *_: self._applied())

    @abstractmethod
    def _applied(self) -> Applied: ...

    def outcome(self, versions: list[int]) -> str:
        """What a migrate that applied these versions did, for people."""
        return outcome(versions, self.applied(), self.dialect)

    def drop_old(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> list[str]:
        """Drop whole partitions of jobs that ended so long ago, where there are partitions. `stop` ends it early."""
        return []

    # Connections

    def beside(self, connections: int, like: Store | None = None, patience: float | None = None) -> Store:
        """The same schema with connections that no other user of this store can use up; this store, if it has none.

        With `like`, it shares those of another store made so: schemas of one database need not have each their own.
        `patience`: seconds that a connection may be silent until it is given up.
        """
        return self

    def leave_loop(self) -> None:
        """Close connections that belong to the running event loop, which is about to end."""
        return

    def close(self) -> None:
        """Close all connections. The store may be used again."""
        self.notifier.close()
