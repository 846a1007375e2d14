"""Transactions of the store for a handler's writes: `with attempt.transaction() as tx`.

They are fenced: at the end of the block, this attempt must still have the lease, or have completed the job. Otherwise
LeaseLost is raised and the transaction is rolled back.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from .._core.job import Draft, Job, Lease, Succeeded
from .._store.flows import enqueue
from .._store.interrupts import leave
from .._store.query import Flow
from .._store.store import AsyncStoreTransaction, Store, StoreTransaction
from .._tasks.drafts import storing
from .._tasks.telemetry import Telemetry

R = TypeVar("R")
T = TypeVar("T")
Opened = TypeVar("Opened", bound=StoreTransaction | AsyncStoreTransaction)


class Owner(Protocol):
    """The members of `AttemptRuntime` that a transaction needs."""

    store: Store
    lease: Lease
    telemetry: Telemetry | None
    open_transactions: int
    blocks: dict[AbstractContextManager[OpenTransaction], int]

    def outcome(self, result: object) -> Succeeded: ...

    def completion(self, done: Succeeded) -> Flow[None]: ...

    def fence(self, *, completes: bool) -> Flow[None]: ...


#: The attempt whose transaction is open in this thread or async task.
open_here: ContextVar[Owner | None] = ContextVar("relet_transaction", default=None)


class TransactionContext:
    """A transaction that has not begun, for `with` or `async with`."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def __enter__(self) -> OpenTransaction:
        self._plain = _transaction(self._owner)
        self._owner.blocks[self._plain] = threading.get_ident()
        return self._plain.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        try:
            self._plain.__exit__(kind, error, trace)
        finally:
            leave(self._plain)
            self._owner.blocks.pop(self._plain, None)

    async def __aenter__(self) -> OpenAsyncTransaction:
        self._async = _atransaction(self._owner)
        return await self._async.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        await self._async.__aexit__(kind, error, trace)


@contextmanager
def _transaction(owner: Owner) -> Iterator[OpenTransaction]:
    owner.store.prepare_to_finish(owner.lease.id)
    block = owner.store.transaction()
    try:
        with block as opened:
            transaction = OpenTransaction(owner, opened)
            with _counted(owner):
                yield transaction
            transaction.fence()
    finally:
        leave(block)


@asynccontextmanager
async def _atransaction(owner: Owner) -> AsyncIterator[OpenAsyncTransaction]:
    await owner.store.aprepare_to_finish(owner.lease.id)
    async with owner.store.atransaction() as opened:
        transaction = OpenAsyncTransaction(owner, opened)
        with _counted(owner):
            yield transaction
        await transaction.fence()


@contextmanager
def _counted(owner: Owner) -> Iterator[None]:
    around = open_here.get()
    open_here.set(owner)
    owner.open_transactions += 1
    try:
        yield
    finally:
        owner.open_transactions -= 1
        open_here.set(around)


class _Open(Generic[Opened]):
    """The part that does not depend on the kind of the connection."""

    def __init__(self, owner: Owner, opened: Opened) -> None:
        self._owner = owner
        self._opened = opened
        self._completes = False

    @property
    def connection(self) -> Any:
        return self._opened.raw


class OpenTransaction(_Open[StoreTransaction]):
    """The `tx` of `with attempt.transaction() as tx`."""

    def enqueue(self, draft: Draft[R], /) -> Job[R]:
        return self.enqueue_many([draft])[0]

    def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        with storing(self._owner.telemetry, drafts) as batch:
            batch.jobs = self._opened.run(enqueue.enqueue, batch.drafts)
        return batch.jobs

    def succeed(self, result: T, /) -> T:
        self._opened.run(self._owner.completion, self._owner.outcome(result))
        self._completes = True
        return result

    def fence(self) -> None:
        """Raise LeaseLost unless this attempt still has the lease."""
        self._opened.check()
        self._opened.run(self._owner.fence, completes=self._completes)


class OpenAsyncTransaction(_Open[AsyncStoreTransaction]):
    """The `tx` of `async with attempt.transaction() as tx`."""

    async def enqueue(self, draft: Draft[R], /) -> Job[R]:
        return (await self.enqueue_many([draft]))[0]

    async def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        with storing(self._owner.telemetry, drafts) as batch:
            batch.jobs = await self._opened.run(enqueue.enqueue, batch.drafts)
        return batch.jobs

    async def succeed(self, result: T, /) -> T:
        await self._opened.run(self._owner.completion, self._owner.outcome(result))
        self._completes = True
        return result

    async def fence(self) -> None:
        """Raise LeaseLost unless this attempt still has the lease."""
        self._opened.check()
        await self._opened.run(self._owner.fence, completes=self._completes)
