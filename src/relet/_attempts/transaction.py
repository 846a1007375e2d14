"""The types of `with attempt.transaction() as tx`, and of `async with`. `runtime.py` opens the transactions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar

from .._core.job import Draft, Job

R = TypeVar("R")
T = TypeVar("T")

Drafts = Iterable[Draft[Any]]
Jobs = list[Job[Any]]


class Transaction:
    """A transaction of the store for the handler's writes. It cannot be committed after the lease was lost."""

    def __init__(self, connection: Any, enqueue: Callable[[Drafts], Jobs], complete: Callable[[object], None]) -> None:
        self._connection = connection
        self._enqueue = enqueue
        self._complete = complete
        self._completes = False  # it has completed the job

    @property
    def connection(self) -> Any:
        """The connection, psycopg's or sqlite3's, for your statements. The block commits or rolls back."""
        return self._connection

    def enqueue(self, draft: Draft[R], /) -> Job[R]:
        """Enqueue a job in this transaction."""
        return self._enqueue([draft])[0]

    def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        """Enqueue jobs in this transaction."""
        return self._enqueue(drafts)

    def succeed(self, result: T, /) -> T:
        """Complete this job, or continue its chain with `attempt.continue_with(draft)`. Returns the result."""
        self._complete(result)
        self._completes = True
        return result


class AsyncTransaction:
    """The same for async handlers. On SQLite the connection is a plain sqlite3 one."""

    def __init__(
        self,
        connection: Any,
        enqueue: Callable[[Drafts], Awaitable[Jobs]],
        complete: Callable[[object], Awaitable[None]],
    ) -> None:
        self._connection = connection
        self._enqueue = enqueue
        self._complete = complete
        self._completes = False  # it has completed the job

    @property
    def connection(self) -> Any:
        """The connection, psycopg's AsyncConnection or sqlite3's, for your statements."""
        return self._connection

    async def enqueue(self, draft: Draft[R], /) -> Job[R]:
        """Enqueue a job in this transaction."""
        return (await self._enqueue([draft]))[0]

    async def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        """Enqueue jobs in this transaction."""
        return await self._enqueue(drafts)

    async def succeed(self, result: T, /) -> T:
        """Complete this job, or continue its chain with `attempt.continue_with(draft)`. Returns the result."""
        await self._complete(result)
        self._completes = True
        return result


class TransactionContext:
    """The result of `attempt.transaction()`, for `with` and for `async with`. The transaction begins with the block.

    `leave`: called after the `with` block, even if an interrupt has come before its end.
    """

    def __init__(
        self,
        begin: Callable[[], AbstractContextManager[Transaction]],
        abegin: Callable[[], AbstractAsyncContextManager[AsyncTransaction]],
        leave: Callable[[AbstractContextManager[Transaction]], None],
    ) -> None:
        self._begin = begin
        self._abegin = abegin
        self._leave = leave

    def __enter__(self) -> Transaction:
        self._block = self._begin()
        return self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        try:
            self._block.__exit__(kind, error, trace)
        finally:
            self._leave(self._block)

    async def __aenter__(self) -> AsyncTransaction:
        self._async_block = self._abegin()
        return await self._async_block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        await self._async_block.__aexit__(kind, error, trace)
