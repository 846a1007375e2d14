"""What stands behind an attempt: the store, in the name of one lease.

Completion in a transaction, the store's or the user's own, and what is done once over all attempts: steps, sleeps,
signals. Every write is guarded by the lease. The async twins call the plain ones in a thread, but for those that work
on an async connection.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, cast

from .._core import payload, validate
from .._core.job import Draft, Job, Succeeded
from .._store.adapters.drivers import arun_on, run_on
from .._store.flows import completion as handler
from .._store.flows import enqueue, inspect
from .._store.flows.completion import Kept
from .._store.interrupts import leave
from .._store.query import Flow, write
from .._store.retry import RETRY_SECONDS
from .._store.store import AsyncStoreTransaction, Store, StoreTransaction
from .._tasks.codec import converter, plain_value, refuse_what_changes, result_converter
from .._tasks.drafts import storing
from .._tasks.task import Task
from .._threads import DaemonThreadPool
from ..errors import InvalidInput, LeaseLost, SignalTimeout, StoreBusy, Suspended
from .attempt import Attempt, Continuation

R = TypeVar("R")
T = TypeVar("T")

_call = DaemonThreadPool("relet-handler").call

LOCK_NOT_AVAILABLE = "55P03"

#: Whose transaction is open where we are, in this thread or async task.
_open_here: ContextVar[AttemptRuntime | None] = ContextVar("relet_transaction", default=None)


class AttemptRuntime:
    """The store behind one attempt. `completing` is told before the handler completes its job by itself."""

    def __init__(
        self, store: Store, task: Task[..., Any], attempt: Attempt, completing: Callable[[], None] = lambda: None
    ) -> None:
        self.store = store
        self._task = task
        self._attempt = attempt
        self._completing = completing
        self.telemetry = task.app.telemetry
        self.lease = attempt.job.lease  # what is shown with every write
        self._kept: dict[tuple[str, str], Kept] | None = None
        self._looked = 0.0  # when that was, by the monotonic clock
        self.transactions = 0  # open just now
        self.blocks: dict[AbstractContextManager[OpenTransaction], int] = {}  # not yet left, and in which thread
        self._waits: Counter[str] = Counter()  # how often this attempt has waited, by name
        attempt._backing = self

    def load_blockers(self) -> None:
        """What the job waited for, at hand before the handler begins."""
        self._attempt._blockers = self.store.run(inspect.blockers, self.lease.id)

    # Completion in a transaction

    def transaction(self) -> Opening:
        """One of the store's own. Within another it would wait for what that one has locked, for ever."""
        if _open_here.get() is self and self.transactions:  # a task begun in a block may outlive it
            raise InvalidInput(
                f"{self._task.name}: attempt.transaction() is open here already; use that one, with savepoints of your "
                "driver for its parts, or leave its block first"
            )
        return Opening(self)

    def leave_transactions(self) -> None:
        """The handler has ended in this thread: what an interrupt has kept it from leaving is undone."""
        for block, thread in list(self.blocks.items()):
            if thread == threading.get_ident():
                leave(block)

    def succeed(self, result: object, connection: Any) -> None:
        """Complete the job on the user's connection."""
        done = self.outcome(result)
        self.store.prepare_to_finish(self.lease.id)
        run_on(self.store, connection, self._completion_for_caller, done)

    async def asucceed(self, result: object, connection: Any) -> None:
        """Complete the job on the user's async connection."""
        done = self.outcome(result)
        await self.store.aprepare_to_finish(self.lease.id)
        await arun_on(self.store, connection, self._completion_for_caller, done)

    def outcome(self, result: object) -> Succeeded:
        """What is to be recorded."""
        self._attempt._check_aborted()
        if isinstance(result, Continuation):
            return Succeeded(None, result.draft)
        return Succeeded(self._task.encode_result(result))

    def _completion_for_caller(self, done: Succeeded) -> Flow[None]:
        yield from handler.check_isolation()
        yield from self.completion(done)

    def completion(self, done: Succeeded) -> Flow[None]:
        """Complete the job. From here on whoever settles must reckon with the handler's transaction."""
        yield from handler.check_successor(self.lease, self._attempt.job.chain, done)
        before = self._attempt._completed
        self._completing()
        self._attempt._completed = done.result or ""
        try:
            yield from _patiently(before, handler.succeed(self.lease, done))
        except Exception:
            if before is not None:
                self._attempt._completed = before  # that one may stand
            raise

    def fence(self, *, completes: bool) -> Flow[None]:
        """What is about to be committed must be an owner's."""
        before = None if completes else self._attempt._completed
        yield from _patiently(before, handler.fence(self.lease, completes=completes))

    # Once, over all attempts

    def step(self, name: str, call: Callable[[], R], function: Callable[..., Any]) -> R:
        """The result that was kept, or call and keep."""
        kept = self._find("step", name) or self._keep("step", name, self._step_text(name, call(), function))
        return cast(R, self._step_result(name, kept.result, function))

    async def astep(self, name: str, call: Callable[[], Awaitable[R]], function: Callable[..., Any]) -> R:
        """The same for a coroutine function."""
        found = await _call(self._find, "step", name)
        kept = found if found else await _call(self._keep, "step", name, self._step_text(name, await call(), function))
        return cast(R, self._step_result(name, kept.result, function))

    def sleep(self, name: str, seconds: float) -> None:
        """Go on if the time is over, else suspend the attempt until then."""
        kept = self._find("sleep", name) or self._keep("sleep", name, seconds=seconds)
        if (left := self._left(kept)) > 0:
            raise Suspended(left)

    async def asleep(self, name: str, seconds: float) -> None:
        """The same from async code."""
        await _call(self.sleep, name, seconds)

    def wait_for(self, name: str, kind: Any, timeout: float | None) -> Any:
        """The value of a signal that has come, else suspend the attempt until it does, or until the time is over."""
        missed = SignalTimeout(self.lease.id, name, timeout or 0.0)
        self._waits[name] += 1
        this = name if self._waits[name] == 1 else f"{name}\x1f{self._waits[name]}"  # a handler may wait again
        if self._find("missed", this):
            raise missed
        told = self.store.run(handler.signal_of, self.lease.id, name)
        if told is not None:
            return converter(kind)(told, f"signal {name!r} of job {self.lease.id}")
        if timeout is None:
            raise Suspended(validate.MOST_SECONDS, name)
        wait = self._find("wait", this) or self._keep("wait", this, seconds=timeout)
        if (left := self._left(wait)) > 0:
            raise Suspended(left, name)
        self._keep("missed", this)  # a signal that comes later does not count: every attempt sees the same
        raise missed

    async def await_for(self, name: str, kind: Any, timeout: float | None) -> Any:
        """The same from async code."""
        return await _call(self.wait_for, name, kind, timeout)

    def _find(self, kind: str, name: str) -> Kept | None:
        if self._kept is None:  # the first attempt cannot have any
            self._kept = self.store.run(handler.steps, self.lease.id) if self._attempt.version > 1 else {}
            self._looked = time.monotonic()
        found = self._kept.get((kind, name))
        if found is None and (self.transactions or self._attempt._completed is not None):
            raise InvalidInput(
                f"{kind} {name!r} of {self._task.name}: steps, sleeps and waits are kept by themselves, and would wait "
                "for the transaction that is open here; have them before attempt.transaction() and attempt.succeed()"
            )
        return found

    def _keep(self, kind: str, name: str, text: str | None = None, seconds: float | None = None) -> Kept:
        kept = self.store.run(handler.keep, self.lease, kind, name, text, seconds)
        if kept is None:
            raise LeaseLost(self.lease.id, "keep a step of")
        assert self._kept is not None  # noqa: S101
        self._kept[kind, name] = kept._replace(left=kept.left + time.monotonic() - self._looked)
        return self._kept[kind, name]

    def _left(self, kept: Kept) -> float:
        """How many seconds of a wait are ahead now; what was kept counts from when all of it was looked up."""
        return kept.left - (time.monotonic() - self._looked)

    def _step_result(self, name: str, text: str | None, function: Callable[..., Any]) -> Any:
        """As it came back from the store, the first time as well: every attempt sees the same."""
        while isinstance(function, partial):
            function = function.func
        return result_converter(function)(text or "null", self._where(name))

    def _where(self, name: str) -> str:
        return f"step {name!r} of {self._task.name}"

    def _step_text(self, name: str, value: object, function: Callable[..., Any]) -> str:
        """What is kept. What the next attempt could not read is not: it would fail for ever."""
        if isinstance(value, Coroutine):
            value.close()
            raise InvalidInput(f"{self._where(name)} is a coroutine function: say `await attempt.astep(...)`")
        text = payload.encode(value, path=self._where(name), limit=self._task.app.payload_limit, hook=plain_value)
        refuse_what_changes(value, self._step_result(name, text, function), self._where(name))
        return text


class Opening:
    """A transaction of the store, not yet begun: for `with` or `async with`."""

    def __init__(self, backing: AttemptRuntime) -> None:
        self._backing = backing

    def __enter__(self) -> OpenTransaction:
        self._plain = _transaction(self._backing)
        self._backing.blocks[self._plain] = threading.get_ident()
        return self._plain.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        try:
            self._plain.__exit__(kind, error, trace)
        finally:
            leave(self._plain)
            self._backing.blocks.pop(self._plain, None)

    async def __aenter__(self) -> OpenAsyncTransaction:
        self._async = _atransaction(self._backing)
        return await self._async.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        await self._async.__aexit__(kind, error, trace)


@contextmanager
def _transaction(backing: AttemptRuntime) -> Iterator[OpenTransaction]:
    backing.store.prepare_to_finish(backing.lease.id)
    block = backing.store.transaction()
    try:
        with block as opened:
            transaction = OpenTransaction(backing, opened)
            with _counted(backing):
                yield transaction
            transaction.fence()
    finally:
        leave(block)


@asynccontextmanager
async def _atransaction(backing: AttemptRuntime) -> AsyncIterator[OpenAsyncTransaction]:
    await backing.store.aprepare_to_finish(backing.lease.id)
    async with backing.store.atransaction() as opened:
        transaction = OpenAsyncTransaction(backing, opened)
        with _counted(backing):
            yield transaction
        await transaction.fence()


def _patiently(completed: str | None, flow: Flow[None]) -> Flow[None]:
    """Where the job was completed before, that may be in a transaction which is still open: it is not waited for for
    ever, as it may be the very one who waits that would have to end it."""
    if completed is None:
        yield from flow
        return
    yield write("control/set_lock_timeout", seconds=RETRY_SECONDS)
    try:
        yield from flow
    except Exception as error:
        cause = getattr(error, "orig", None) or error
        if getattr(cause, "sqlstate", None) == LOCK_NOT_AVAILABLE:
            raise StoreBusy(
                "this attempt has completed its job in a transaction that is still open: end it first"
            ) from error
        raise


@contextmanager
def _counted(backing: AttemptRuntime) -> Iterator[None]:
    around = _open_here.get()
    _open_here.set(backing)
    backing.transactions += 1
    try:
        yield
    finally:
        backing.transactions -= 1
        _open_here.set(around)


class OpenTransaction:
    """A transaction of the store that a handler fills."""

    def __init__(self, backing: AttemptRuntime, opened: StoreTransaction) -> None:
        self._backing = backing
        self._opened = opened
        self._completes = False

    @property
    def connection(self) -> Any:
        """For statements of the handler's own."""
        return self._opened.raw

    def enqueue(self, draft: Draft[R], /) -> Job[R]:
        """Store a job along with the rest."""
        return self.enqueue_many([draft])[0]

    def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        """Store jobs along with the rest."""
        with storing(self._backing.telemetry, drafts) as batch:
            jobs = self._opened.run(enqueue.enqueue, batch.drafts)
            batch.stored(jobs)
            return jobs

    def succeed(self, result: T, /) -> T:
        """Complete the job along with the rest."""
        self._opened.run(self._backing.completion, self._backing.outcome(result))
        self._completes = True
        return result

    def fence(self) -> None:
        """What is about to be committed must be an owner's."""
        self._opened.check()
        self._opened.run(self._backing.fence, completes=self._completes)


class OpenAsyncTransaction:
    """The same for async code."""

    def __init__(self, backing: AttemptRuntime, opened: AsyncStoreTransaction) -> None:
        self._backing = backing
        self._opened = opened
        self._completes = False

    @property
    def connection(self) -> Any:
        """For statements of the handler's own."""
        return self._opened.raw

    async def enqueue(self, draft: Draft[R], /) -> Job[R]:
        """Store a job along with the rest."""
        return (await self.enqueue_many([draft]))[0]

    async def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        """Store jobs along with the rest."""
        with storing(self._backing.telemetry, drafts) as batch:
            jobs = await self._opened.run(enqueue.enqueue, batch.drafts)
            batch.stored(jobs)
            return jobs

    async def succeed(self, result: T, /) -> T:
        """Complete the job along with the rest."""
        await self._opened.run(self._backing.completion, self._backing.outcome(result))
        self._completes = True
        return result

    async def fence(self) -> None:
        """What is about to be committed must be an owner's."""
        self._opened.check()
        await self._opened.run(self._backing.fence, completes=self._completes)
