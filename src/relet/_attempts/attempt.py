"""A handler's handle on the attempt that it runs in, for those that ask: `def charge(attempt: Attempt, ...)`."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar, cast, overload

from msgspec import Struct

from .._core import validate
from .._core.job import BlockerInfo, Claimed, Draft, Job, Progress, State
from ..errors import Aborted, AbortReason, InvalidInput, JobCancelled, JobFailed

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")

#: The attempt that runs here: what log records are marked with.
current: ContextVar[Attempt | None] = ContextVar("relet_attempt", default=None)


class Transaction(Protocol):
    """A transaction of the store, for the handler's own writes. It is fenced: a zombie's cannot be committed."""

    @property
    def connection(self) -> Any:
        """The connection, psycopg's or sqlite3's, for statements of your own. The block commits, or rolls back."""

    def enqueue(self, draft: Draft[R], /) -> Job[R]:
        """Store a job along with the rest."""

    def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        """Store jobs along with the rest."""

    def succeed(self, result: T, /) -> T:
        """Complete this job along with the rest, or go on with `attempt.continue_with(draft)`. Returns the result."""


class AsyncTransaction(Protocol):
    """The same for async handlers. On SQLite the connection is sqlite3's all the same."""

    @property
    def connection(self) -> Any:
        """The connection, psycopg's AsyncConnection or sqlite3's, for statements of your own."""

    async def enqueue(self, draft: Draft[R], /) -> Job[R]:
        """Store a job along with the rest."""

    async def enqueue_many(self, drafts: Iterable[Draft[R]], /) -> list[Job[R]]:
        """Store jobs along with the rest."""

    async def succeed(self, result: T, /) -> T:
        """Complete this job along with the rest, or go on with `attempt.continue_with(draft)`. Returns the result."""


class Opening(Protocol):
    """What `attempt.transaction()` returns: for `with` and for `async with`."""

    def __enter__(self) -> Transaction: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    async def __aenter__(self) -> AsyncTransaction: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Typed(Protocol[R_co]):
    """What is needed of a task to read its results."""

    @property
    def name(self) -> str: ...

    def decode_result(self, text: str, /) -> R_co: ...


class Runtime(Protocol):
    """What stands behind an attempt that a worker runs: the store, in the name of one lease."""

    def load_blockers(self) -> None: ...

    def transaction(self) -> Opening: ...

    def leave_transactions(self) -> None: ...

    def succeed(self, result: object, connection: Any) -> None: ...

    async def asucceed(self, result: object, connection: Any) -> None: ...

    def step(self, name: str, call: Callable[[], R], function: Callable[..., Any]) -> R: ...

    async def astep(self, name: str, call: Callable[[], Awaitable[R]], function: Callable[..., Any]) -> R: ...

    def sleep(self, name: str, seconds: float) -> None: ...

    async def asleep(self, name: str, seconds: float) -> None: ...

    def wait_for(self, name: str, kind: Any, timeout: float | None) -> Any: ...

    async def await_for(self, name: str, kind: Any, timeout: float | None) -> Any: ...


class NoRuntime:
    """Nobody: the handler was called by hand. What can be done without a store is done."""

    def step(self, name: str, call: Callable[[], R], function: Callable[..., Any]) -> R:
        return call()

    async def astep(self, name: str, call: Callable[[], Awaitable[R]], function: Callable[..., Any]) -> R:
        return await call()

    def leave_transactions(self) -> None:
        return

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidInput(f"attempt.{name} needs a worker that runs the attempt; this one was made by hand")


def _to_nobody(said: Progress) -> None:
    """Who is called outside a worker has nobody to report to."""


class Attempt(Struct, eq=False):
    """One run of a job, as its handler sees it."""

    job: Claimed
    deadline: float = math.inf  # by time.monotonic(): until then the lease is certainly ours; every renewal moves it
    aborted: AbortReason | None = None  # why nothing that the handler returns will be recorded any more
    tenant: str | None = None
    worker: str = ""  # the name of the one that runs it
    _report: Callable[[Progress], None] = _to_nobody
    _backing: Runtime = cast("Runtime", NoRuntime())
    _blockers: Sequence[BlockerInfo] = ()
    _cancelled: bool = False  # CancelledError has left the handler
    _error: BaseException | None = None  # what the handler raised, for those who watch
    _completed: str | None = None  # with which result, in a transaction of the handler's own

    def __repr__(self) -> str:
        return f"<attempt {self.job.attempt} of {self.job.task} {self.job.id}>"

    @property
    def version(self) -> int:
        """Counts the claims of this job and only grows: a fencing number to send along with writes elsewhere."""
        return self.job.version

    def check(self) -> None:
        """Raise `Aborted` if this attempt is over, or if nobody can tell whether the lease is still ours."""
        self._check_aborted()
        if time.monotonic() >= self.deadline:
            raise Aborted("in_doubt")

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far the work has come, for people to see. Cheap: about once a second the latest word is stored."""
        for value in (done,) if total is None else (done, total):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InvalidInput(f"progress is told in numbers, as in progress(3, 10), not {value!r}")
        self._report(Progress(done, total, None if note is None else validate.key("note", note)))

    # How it ends

    def continue_with(self, draft: Draft[T]) -> T:
        """Return this from the handler: the job succeeds, and the draft goes on with its chain in the same statement.

        The chain's result is that of its last job, so the handler is typed as if it had returned that.
        """
        if not isinstance(draft, Draft):
            raise InvalidInput(f"continue_with takes a draft (task.draft(...)), not {type(draft).__name__}")
        return cast(T, Continuation(draft))

    def transaction(self) -> Opening:
        """A transaction of the store: `with attempt.transaction() as tx`, or `async with`.

        What is written with `tx.connection`, `tx.enqueue` and `tx.succeed` is committed together at the end of the
        block, or not at all; not if the lease was lost: then `LeaseLost` is raised.
        """
        self._check_aborted()
        return self._backing.transaction()

    def succeed(self, result: T, *, connection: Any) -> T:
        """Complete the job in your own transaction: the job has succeeded when you commit, and only then.

        `connection` is psycopg's, SQLAlchemy's, Django's or sqlite3's, with a transaction open on it. `LeaseLost` is
        raised if the job is no longer ours: let it pass, so that all is rolled back. Returns the result, so that it can
        be returned; `attempt.continue_with(draft)` may be given in its place.
        """
        self._check_aborted()
        self._backing.succeed(result, connection)
        return result

    async def asucceed(self, result: T, *, connection: Any) -> T:
        """As `succeed`, on an async connection: psycopg's, asyncpg's or SQLAlchemy's."""
        self._check_aborted()
        await self._backing.asucceed(result, connection)
        return result

    # What it waited for

    def blocker(self, task: Typed[R]) -> R:
        """The result of the job of this task that the job waited for (`after`), if there was one such job."""
        found = [one for one in self._blockers if one.task == task.name]
        if len(found) != 1:
            raise InvalidInput(
                f"this job waited for {len(found)} jobs of {task.name}: blockers() has all their results"
            )
        (one,) = found
        if one.state != State.SUCCEEDED:
            raise JobFailed(one.chain, None) if one.state == State.FAILED else JobCancelled(one.chain)
        return task.decode_result(one.result_json or "null")

    def blockers(self, task: Typed[R]) -> list[R]:
        """The results of all jobs of this task that the job waited for, in the order given; of those that succeeded."""
        found = [one for one in self._blockers if one.task == task.name and one.state == State.SUCCEEDED]
        return [task.decode_result(one.result_json or "null") for one in found]

    # What is done once, over all attempts

    def step(self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function and keep what it returned: a later attempt gets that, and does not call it again.

        The name stands for the step within this job. The result must be JSON; it is converted by the function's return
        annotation. What the function raises is not kept.
        """
        return self._backing.step(validate.key("a step's name", name), lambda: function(*args, **kwargs), function)

    async def astep(self, name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `step`, for a coroutine function."""
        name = validate.key("a step's name", name)
        return await self._backing.astep(name, lambda: function(*args, **kwargs), function)

    def sleep(self, name: str, seconds: float) -> None:
        """Wait without holding a slot: the handler ends here, and is called again from its start when the time is over.

        What comes before belongs into steps, so that it is not done twice.
        """
        self._backing.sleep(validate.key("a sleep's name", name), validate.seconds("sleep", seconds))

    async def asleep(self, name: str, seconds: float) -> None:
        """As `sleep`, for async handlers."""
        await self._backing.asleep(validate.key("a sleep's name", name), validate.seconds("sleep", seconds))

    @overload
    def wait_for(self, name: str, /, *, timeout: float | None = None) -> Any: ...
    @overload
    def wait_for(self, name: str, kind: type[R], /, *, timeout: float | None = None) -> R: ...
    def wait_for(self, name: str, kind: Any = Any, /, *, timeout: float | None = None) -> Any:
        """Wait for `client.signal(job, name, value)` without holding a slot; returns the value, as `kind` if given.

        Like `sleep`, it ends the handler, which is called again when the signal has come, or after `timeout` seconds:
        then `SignalTimeout` is raised here.
        """
        return self._backing.wait_for(validate.key("a signal's name", name), kind, _timeout(timeout))

    @overload
    async def await_for(self, name: str, /, *, timeout: float | None = None) -> Any: ...
    @overload
    async def await_for(self, name: str, kind: type[R], /, *, timeout: float | None = None) -> R: ...
    async def await_for(self, name: str, kind: Any = Any, /, *, timeout: float | None = None) -> Any:
        """As `wait_for`, for async handlers."""
        return await self._backing.await_for(validate.key("a signal's name", name), kind, _timeout(timeout))

    def _check_aborted(self) -> None:
        if self.aborted is not None:
            raise Aborted(self.aborted)


class Continuation(Struct, frozen=True):
    """What `continue_with` really returns. Whoever runs the handler looks for it; users never see it."""

    draft: Draft[Any]


def _timeout(given: float | None) -> float | None:
    return None if given is None else validate.seconds("timeout", given)
