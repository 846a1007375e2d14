"""The base class of both stores: it runs a flow in one transaction, and retries it when the error is transient.

run -> retry -> run_once -> drive -> the flow -> execute
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .._core.variants import Variant
from .._system import SYSTEM
from .._threads import DaemonThreadPool
from ..errors import StoreBusy, StoreError
from .flows import maintenance
from .fragments import Dialect
from .interrupts import leave
from .migrate import Applied, outcome
from .notify import SchemaNotifier
from .query import NO_TRAITS, TRAITS, Clock, Conflict, Flow, Notify, Query, Traits
from .retry import DEFAULT_RETRY, RetryPolicy, StaleConnection, Transient
from .runner import AsyncConnection, Connection, adrive, drive

if TYPE_CHECKING:
    from .replica import Replica

P = ParamSpec("P")
R = TypeVar("R")

call_in_thread = DaemonThreadPool("relet-store").call

MAX_LOST = 2  # lost connections after which the time limit of statements grows
SWALLOWED = "a statement of this transaction failed and the error was swallowed: nothing was committed"
ENDED = (
    "the handler called commit or rollback inside this transaction block: the block itself commits at its end, and "
    "rolls back when an exception leaves it"
)


class StoreTransaction:
    """An open transaction on a connection of the store, in which the caller runs statements."""

    def __init__(self, raw: Any, connection: Connection, check: Callable[[], None]) -> None:
        self.raw = raw
        self._connection = connection
        self.check = check  # raises if the transaction can no longer be committed
        self.notifications: list[Notify] = []  # sent after the commit

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        result, notifications = drive(flow(*args, **kwargs), self._connection)
        self.notifications += notifications
        return result


class AsyncStoreTransaction:
    """As StoreTransaction, on an async connection; on SQLite, on a sync connection that never blocks for long."""

    def __init__(self, raw: Any, connection: AsyncConnection, check: Callable[[], None]) -> None:
        self.raw = raw
        self._connection = connection
        self.check = check  # raises if the transaction can no longer be committed
        self.notifications: list[Notify] = []  # sent after the commit

    async def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        result, notifications = await adrive(flow(*args, **kwargs), self._connection)
        self.notifications += notifications
        return result


class Store(ABC):
    """A schema that holds jobs. Subclasses connect to a database and run one flow in one transaction."""

    dialect: Dialect
    where: str  # the URL without its password, for messages
    skips_locked: bool  # a claim skips rows that are locked
    is_remote = False  # a gateway runs the flows of a worker, and does the maintenance
    is_file = False
    schemas_at_once = 1  # by one statement of `run_each`
    prune_at_once: int  # rows deleted in one transaction: few, so that no claim waits for long
    quoted: str = ""  # the schema as it is written in statements
    clock: Clock | None = None  # None: the database's clock
    replica: Replica | None = None  # a standby for reads whose result may be a little old
    wanted_variant: Variant | None = None  # of a new schema; None: by what the server can do
    knows_statements = True  # False: the schema has not been looked at, and may need other statements

    def __init__(self, notifier: SchemaNotifier) -> None:
        self.notifier = notifier
        self._checked = False

    @property
    def statements(self) -> Dialect:
        """The texts of the statements that this schema needs."""
        return self.dialect

    @property
    def new_statements(self) -> Dialect:
        """The same for a schema that `migrate` makes."""
        return self.dialect

    def learn_statements(self, found: Dialect | None) -> None:
        """The schema needs these statements. None: there is no schema yet."""
        return

    # Running flows

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow until it is committed. It is passed as a function and arguments, so that it can be repeated."""
        return self.run_with(DEFAULT_RETRY, flow, *args, **kwargs)

    def run_with(self, policy: RetryPolicy, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow until it is committed, or until the policy gives up."""
        traits = TRAITS.get(flow, NO_TRAITS)

        def work(may_be_committed: bool, failures: int) -> tuple[R, list[Notify]]:
            this = traits.repeat if may_be_committed and traits.repeat else flow
            return self.run_once(partial(this, *args, **kwargs), traits, failures)

        result, notifications = self.retry(policy, work)
        if notifications:
            self.publish(notifications)
        return result

    def retry(self, policy: RetryPolicy, work: Callable[[bool, int], R]) -> R:
        """Call `work` until it returns, or until the policy gives up.

        Its arguments: whether an earlier try may have been committed, and how many tries may have needed more time.
        Lost connections count twice at most: they say little of the server's speed, and the longer a call waits for an
        answer, the later it notices that its connection is dead.
        """
        may_be_committed = was_stale = False
        failures, busy, started = 0, 0, SYSTEM.monotonic()
        while True:
            try:
                return work(may_be_committed, busy + min(failures - busy, MAX_LOST))
            except Conflict:
                if may_be_committed:
                    raise
                may_be_committed = True
            except Transient as failure:
                if isinstance(failure, StaleConnection) and not was_stale:
                    was_stale = True
                    continue
                failures += 1
                busy += isinstance(failure.error, StoreBusy)
                may_be_committed = may_be_committed or failure.may_be_committed
                if not policy.wait(failure.error, transient=True, failures=failures, started=started):
                    raise failure.error from failure.__cause__
            except StoreError as error:
                failures += 1
                if not policy.wait(error, transient=False, failures=failures, started=started):
                    raise

    def run_each(
        self,
        policy: RetryPolicy,
        stores: Sequence[Store],
        flow: Callable[P, Flow[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> list[R]:
        """Run a flow of a single statement at each of several stores of the same database.

        On PostgreSQL one statement does it. The flow must be one that can be repeated.
        """
        return [one.run_with(policy, flow, *args, **kwargs) for one in stores]

    @abstractmethod
    def run_once(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        """Run a flow in one transaction: commit, or roll back and raise. Raises Transient if a retry may succeed.

        `failures`: tries that have failed before, for want of time perhaps. Each of them doubles the time limit of the
        statements.
        """

    # Notifications

    def publish(self, notifications: list[Notify]) -> None:
        """Wake subscribers, here and in other processes, after a commit."""
        self.notifier.publish({one.channel for one in notifications})
        unsent = [one for one in notifications if not one.sent]
        if unsent:
            self.notify(unsent)

    def notifying_statements(self, notifications: list[Notify]) -> list[Query]:
        """The statements that wake subscribers in other processes; none if the database needs no statement for that."""
        return []

    @abstractmethod
    def notify(self, notifications: list[Notify]) -> None:
        """Wake subscribers in other processes."""

    # Transactions in which the caller runs statements

    @abstractmethod
    def begin(self) -> AbstractContextManager[StoreTransaction]:
        """A transaction: committed at the end of the block, rolled back on an error."""

    @abstractmethod
    def abegin(self) -> AbstractAsyncContextManager[AsyncStoreTransaction]:
        """Async version of `begin`."""

    @contextmanager
    def transaction(self) -> Iterator[StoreTransaction]:
        """As `begin`, and send the notifications after the commit."""
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
        """As `abegin`, and send the notifications after the commit."""
        async with self.abegin() as transaction:
            yield transaction
        if transaction.notifications:
            await call_in_thread(self.publish, transaction.notifications)

    def prepare_to_finish(self, job_id: str) -> None:
        """Make sure that this job can end in a transaction that cannot be retried."""
        return

    async def aprepare_to_finish(self, job_id: str) -> None:
        """Async version of `prepare_to_finish`."""
        return

    # Schema

    def reach(self) -> None:
        """Check that the database can be reached and written to."""
        self.run(maintenance.probe)

    def ready(self) -> None:
        """Check the schema before its first use."""
        if not self._checked:
            self.check()
            self._checked = True

    async def aready(self) -> None:
        """Async version of `ready`."""
        if not self._checked:
            await call_in_thread(self.ready)

    @abstractmethod
    def check(self) -> None:
        """Raise SchemaMismatch if this release does not work with the schema."""

    def migrate(self) -> list[int]:
        """Bring the schema up to date. Several processes may do so at once. Returns the versions applied."""
        return self.retry(DEFAULT_RETRY, lambda *_: self._migrate())

    @abstractmethod
    def _migrate(self) -> list[int]: ...

    def applied(self) -> Applied:
        """Which migrations have been applied to the schema."""
        return self.retry(DEFAULT_RETRY, lambda *_: self._applied())

    @abstractmethod
    def _applied(self) -> Applied: ...

    def tenants(self) -> list[str]:
        """The tenants of this schema or file that have been migrated."""
        return self.retry(DEFAULT_RETRY, lambda *_: self._tenants())

    def _tenants(self) -> list[str]:
        return []

    def outcome(self, versions: list[int]) -> str:
        """A sentence that describes a migration which applied these versions."""
        return outcome(versions, self.applied(), self.dialect)

    def drop_old(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> list[str]:
        """Drop partitions, if there are any, whose jobs all ended this many seconds ago or earlier.

        It stops early when `stop` returns True. Returns the names of the partitions that were dropped.
        """
        return []

    # Connections

    def with_own_connections(self, connections: int, like: Store | None = None, timeout: float | None = None) -> Store:
        """A store of the same schema with separate connections, which users of this store cannot exhaust.

        Returns this store itself if the database needs no separate connections (SQLite). With `like`, it shares the
        connections of another store made by this method: the schemas of one database need only one set. `timeout`:
        seconds without an answer after which a connection counts as dead.
        """
        return self

    def patient(self) -> Store:
        """This store for callers without a hurry: they wait a little for a connection in use before they open one."""
        return self

    def state_of_file(self) -> object:
        """A value that another program changes by a commit. None: there is no such value."""
        return None

    def close_if_unused(self) -> None:
        """Close the connections that only an idle store keeps open, such as those to a file."""
        return

    def leave_loop(self) -> None:
        """Close the connections of the running event loop, which is about to end."""
        return

    def close(self) -> None:
        """Close all connections. The store may be used again."""
        self.notifier.close()
