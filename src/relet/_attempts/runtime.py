"""The store behind an attempt that a worker runs: completion, transactions, dependencies and steps.

Every write is guarded by the lease. The async methods call the synchronous ones in a thread, except those that work on
an async connection.

A transaction is fenced: at the end of the block, this attempt must still have the lease, or have completed the job.
Otherwise LeaseLost is raised and the transaction is rolled back.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from .._core.decoding import decodable
from .._core.job import Succeeded
from .._store.adapters.drivers import arun_on, run_on
from .._store.flows import completion as flows
from .._store.flows import enqueue, inspect
from .._store.interrupts import leave
from .._store.query import Flow, write
from .._store.retry import RETRY_SECONDS
from .._store.store import AsyncStoreTransaction, Store, StoreTransaction
from .._tasks.drafts import storing
from .._tasks.task import Task
from ..errors import InvalidInput, StoreBusy
from .attempt import Attempt, Continuation
from .completion import NOT_COMPLETED, Completion
from .steps import Steps, call_in_thread
from .transaction import AsyncTransaction, Drafts, Jobs, Transaction, TransactionContext

R = TypeVar("R")

LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE

#: The attempt whose transaction is open in this thread or async task.
open_here: ContextVar[AttemptRuntime | None] = ContextVar("relet_transaction", default=None)


class AttemptRuntime:
    """The operations of one attempt on the store. `on_completing` is called before the handler completes its job."""

    def __init__(
        self, store: Store, task: Task[..., Any], attempt: Attempt, on_completing: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._task = task
        self._attempt = attempt
        self._on_completing = on_completing
        self._telemetry = task.app.telemetry
        self._lease = attempt.job.lease
        self._open_transactions = 0
        self._blocks: dict[AbstractContextManager[Transaction], int] = {}  # open `with` blocks, with their threads
        self._made_steps: Steps | None = None
        attempt._runtime = self

    def load_dependencies(self) -> None:
        """Read the jobs that this one depends on, before the handler starts."""
        self._attempt._dependencies = self._store.run(inspect.dependencies, self._lease.id)

    def encode_note(self, note: str) -> str:
        """The text to store for a note of the handler's progress."""
        return self._task.app.codecs.encode_note(note, self._task.codec)

    # Transactions

    def transaction(self) -> TransactionContext:
        """A transaction of the store. Refused inside another one of this attempt, whose locks it would wait for."""
        # An asyncio task may outlive the block in which it was started.
        if open_here.get() is self and self._open_transactions:
            raise InvalidInput(
                f"{self._task.name}: attempt.transaction() is open here already; use that one, with savepoints of your "
                "driver for its parts, or leave its block first"
            )
        return TransactionContext(self._begin, self._abegin, self._leave)

    def leave_transactions(self) -> None:
        """Roll back blocks that the handler, which has ended in this thread, did not leave because of an interrupt."""
        for block, thread in list(self._blocks.items()):
            if thread == threading.get_ident():
                leave(block)

    def _begin(self) -> AbstractContextManager[Transaction]:
        block = self._fenced()
        self._blocks[block] = threading.get_ident()
        return block

    def _leave(self, block: AbstractContextManager[Transaction]) -> None:
        leave(block)
        self._blocks.pop(block, None)

    @contextmanager
    def _fenced(self) -> Iterator[Transaction]:
        self._store.prepare_to_finish(self._lease.id)
        block = self._store.transaction()
        try:
            with block as opened:
                transaction = Transaction(opened.raw, partial(self._enqueue, opened), partial(self._complete, opened))
                with self._counted():
                    yield transaction
                opened.check()
                opened.run(self._fence, completes=transaction._completes)
        finally:
            leave(block)

    @asynccontextmanager
    async def _abegin(self) -> AsyncIterator[AsyncTransaction]:
        await self._store.aprepare_to_finish(self._lease.id)
        async with self._store.atransaction() as opened:
            transaction = AsyncTransaction(
                opened.raw, partial(self._aenqueue, opened), partial(self._acomplete, opened)
            )
            with self._counted():
                yield transaction
            opened.check()
            await opened.run(self._fence, completes=transaction._completes)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        around = open_here.get()
        open_here.set(self)
        self._open_transactions += 1
        try:
            yield
        finally:
            self._open_transactions -= 1
            open_here.set(around)

    def _enqueue(self, opened: StoreTransaction, drafts: Drafts) -> Jobs:
        with storing(self._telemetry, drafts) as batch:
            batch.jobs = opened.run(enqueue.enqueue, batch.drafts)
        return decodable(batch.jobs, self._task.app.codecs or None)

    async def _aenqueue(self, opened: AsyncStoreTransaction, drafts: Drafts) -> Jobs:
        with storing(self._telemetry, drafts) as batch:
            batch.jobs = await opened.run(enqueue.enqueue, batch.drafts)
        return decodable(batch.jobs, self._task.app.codecs or None)

    # Completion in a transaction

    def _complete(self, opened: StoreTransaction, result: object) -> None:
        opened.run(self._completion, self._outcome(result))

    async def _acomplete(self, opened: AsyncStoreTransaction, result: object) -> None:
        await opened.run(self._completion, self._outcome(result))

    def succeed(self, result: object, connection: Any) -> None:
        """Complete the job on the user's connection."""
        done = self._outcome(result)
        self._store.prepare_to_finish(self._lease.id)
        run_on(self._store, connection, self._completion_for_caller, done)

    async def asucceed(self, result: object, connection: Any) -> None:
        """Complete the job on the user's async connection."""
        done = self._outcome(result)
        await self._store.aprepare_to_finish(self._lease.id)
        await arun_on(self._store, connection, self._completion_for_caller, done)

    def _outcome(self, result: object) -> Succeeded:
        self._attempt._check_aborted()
        if isinstance(result, Continuation):
            return Succeeded(None, result.draft)
        return Succeeded(self._task.encode_result(result))

    def _completion_for_caller(self, done: Succeeded) -> Flow[None]:
        yield from flows.check_isolation()
        yield from self._completion(done)

    def _completion(self, done: Succeeded) -> Flow[None]:
        """Complete the job in the transaction that runs this flow. From here on the completion is unconfirmed."""
        yield from flows.check_successor(self._lease, self._attempt.job.chain, done)
        before = self._attempt._completion
        self._on_completing()
        self._attempt._completion = Completion(done.result or "")
        try:
            yield from _without_deadlock(before, flows.succeed(self._lease, done))
        except Exception:
            if before.is_unconfirmed:
                self._attempt._completion = before  # the earlier completion may be committed
            raise

    def _fence(self, *, completes: bool) -> Flow[None]:
        """Check that this attempt still has the lease, before its transaction is committed."""
        before = NOT_COMPLETED if completes else self._attempt._completion
        yield from _without_deadlock(before, flows.fence(self._lease, completes=completes))

    def _has_open_transaction(self) -> bool:
        return bool(self._open_transactions) or self._attempt._completion.is_unconfirmed

    # Steps, sleeps and signals

    @property
    def _steps(self) -> Steps:
        if self._made_steps is None:  # most handlers use none
            self._made_steps = Steps(self._store, self._task, self._attempt, self._has_open_transaction)
        return self._made_steps

    def step(self, name: str, call: partial[R]) -> R:
        return self._steps.step(name, call)

    async def astep(self, name: str, call: partial[Awaitable[R]]) -> R:
        return await self._steps.astep(name, call)

    def sleep(self, name: str, seconds: float) -> None:
        self._steps.sleep(name, seconds)

    async def asleep(self, name: str, seconds: float) -> None:
        await call_in_thread(self._steps.sleep, name, seconds)

    def wait_for(self, name: str, kind: Any, timeout: float | None) -> Any:
        return self._steps.wait_for(name, kind, timeout)

    async def await_for(self, name: str, kind: Any, timeout: float | None) -> Any:
        return await call_in_thread(self._steps.wait_for, name, kind, timeout)


def _without_deadlock(before: Completion, flow: Flow[None]) -> Flow[None]:
    """Run a flow with a lock timeout if this attempt may have completed the job in a transaction that is still open.

    That transaction has locked the row. Without a timeout the handler would wait for itself.
    """
    if not before.is_unconfirmed:
        yield from flow
        return
    yield write("control/set_lock_timeout", seconds=RETRY_SECONDS)
    try:
        yield from flow
    except Exception as error:
        cause = getattr(error, "orig", None) or error
        if getattr(cause, "sqlstate", None) == LOCK_NOT_AVAILABLE:
            raise StoreBusy(
                "this attempt has completed its job in a transaction that is still open: end that one first"
            ) from error
        raise
