"""The attempt, for handlers that take one: `def charge(attempt: Attempt, ...)`."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar, cast, overload

from msgspec import Struct

from .._core import validate
from .._core.job import Claimed, Dependency, Draft, Progress, State
from .._system import SYSTEM
from ..errors import Aborted, AbortReason, InvalidInput, JobCancelled, JobFailed
from .completion import NOT_COMPLETED, Completion
from .transaction import TransactionContext

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")

#: The attempt that runs in this thread or async task. Log records carry its fields.
current: ContextVar[Attempt | None] = ContextVar("relet_attempt", default=None)


class Typed(Protocol[R_co]):
    """The members of a task that an attempt needs to convert results."""

    @property
    def name(self) -> str: ...

    def decode_result(self, text: str, /) -> R_co: ...


class Runtime(Protocol):
    """The operations of an attempt that need the store (`runtime.AttemptRuntime`)."""

    def load_dependencies(self) -> None: ...

    def encode_note(self, note: str) -> str: ...

    def transaction(self) -> TransactionContext: ...

    def leave_transactions(self) -> None: ...

    def succeed(self, result: object, connection: Any) -> None: ...

    async def asucceed(self, result: object, connection: Any) -> None: ...

    def step(self, name: str, call: partial[R]) -> R: ...

    async def astep(self, name: str, call: partial[Awaitable[R]]) -> R: ...

    def sleep(self, name: str, seconds: float) -> None: ...

    async def asleep(self, name: str, seconds: float) -> None: ...

    def wait_for(self, name: str, kind: Any, timeout: float | None) -> Any: ...

    async def await_for(self, name: str, kind: Any, timeout: float | None) -> Any: ...


class NoRuntime:
    """The runtime of a handler that is called without a worker, as in a test. Steps run; the rest is refused."""

    def step(self, name: str, call: partial[R]) -> R:
        return call()

    async def astep(self, name: str, call: partial[Awaitable[R]]) -> R:
        return await call()

    def leave_transactions(self) -> None:
        return

    def encode_note(self, note: str) -> str:
        return note

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidInput(f"attempt.{name} needs a worker that runs the attempt; this attempt was created without one")


def _ignore_progress(progress: Progress) -> None:
    """Outside a worker, progress is not stored."""


class Attempt(Struct, eq=False):
    """One run of a job, as its handler sees it."""

    job: Claimed
    deadline: float = math.inf  # SYSTEM.monotonic() until which the lease is certainly valid; renewals extend it
    aborted: AbortReason | None = None  # the reason of the abort: the handler's result will not be stored
    tenant: str | None = None
    worker: str = ""  # the id of the worker that runs it
    _report: Callable[[Progress], None] = _ignore_progress
    _runtime: Runtime = cast("Runtime", NoRuntime())
    _dependencies: Sequence[Dependency] = ()
    _resources: Mapping[Any, Any] | None = None  # values by type, if the handler takes any
    _cancelled: bool = False  # the handler has raised CancelledError
    _error: BaseException | None = None  # the exception of the handler, for telemetry
    _completion: Completion = NOT_COMPLETED  # in a transaction of the handler

    def __repr__(self) -> str:
        return f"<attempt {self.job.attempt} of {self.job.task} {self.job.id}>"

    @property
    def version(self) -> int:
        """Counts the claims of this job and only grows: a fencing token to send with writes to other systems."""
        return self.job.version

    def check(self) -> None:
        """Raise `Aborted` if this attempt was aborted, or if its lease may have been lost."""
        self._check_aborted()
        if SYSTEM.monotonic() >= self.deadline:
            raise Aborted("in_doubt")

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Report progress, for the dashboard and clients. Cheap: the worker stores the latest about once a second."""
        for value in (done,) if total is None else (done, total):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InvalidInput(f"progress takes numbers, as in progress(3, 10), not {value!r}")
        if note is not None:
            note = self._runtime.encode_note(validate.text("note", note))
        self._report(Progress(done, total, note))

    # Completion

    def continue_with(self, draft: Draft[T]) -> T:
        """Return this from the handler: the job succeeds, and the draft becomes the next job of its chain, atomically.

        The result of a chain is that of its last job, so the handler is typed as if it had returned that.
        """
        if not isinstance(draft, Draft):
            raise InvalidInput(f"continue_with takes a draft (task.draft(...)), not {type(draft).__name__}")
        return cast(T, Continuation(draft))

    def transaction(self) -> TransactionContext:
        """A transaction of the store: `with attempt.transaction() as tx`, or `async with`.

        Everything written with `tx.connection`, `tx.enqueue` and `tx.succeed` is committed together at the end of the
        block, or not at all. If the lease was lost, `LeaseLost` is raised and nothing is committed.
        """
        self._check_aborted()
        return self._runtime.transaction()

    def succeed(self, result: T, *, connection: Any) -> T:
        """Complete the job in your own transaction: the job has succeeded once you commit.

        `connection` is psycopg's, SQLAlchemy's, Django's or sqlite3's, with a transaction open on it. If the lease was
        lost, `LeaseLost` is raised: let it propagate, so that your transaction is rolled back. Returns the result, so
        that the handler can return it. Pass `attempt.continue_with(draft)` to continue the chain.
        """
        self._check_aborted()
        self._runtime.succeed(result, connection)
        return result

    async def asucceed(self, result: T, *, connection: Any) -> T:
        """As `succeed`, on an async connection: psycopg's, asyncpg's or SQLAlchemy's."""
        self._check_aborted()
        await self._runtime.asucceed(result, connection)
        return result

    # Dependencies

    def dependency_result(self, task: Typed[R]) -> R:
        """The result of the one job of this task that the job depends on."""
        found = [one for one in self._dependencies if one.task == task.name]
        if len(found) != 1:
            raise InvalidInput(
                f"this job waited for {len(found)} jobs of {task.name}: dependency_results() returns all their results"
            )
        (one,) = found
        if one.state != State.SUCCEEDED:
            raise JobFailed(one.chain, None) if one.state == State.FAILED else JobCancelled(one.chain)
        return task.decode_result(one.result_json or "null")

    def dependency_results(self, task: Typed[R]) -> list[R]:
        """The results of all dependencies of this task that succeeded, in the order of `depends_on`."""
        found = [one for one in self._dependencies if one.task == task.name and one.state == State.SUCCEEDED]
        return [task.decode_result(one.result_json or "null") for one in found]

    # Steps, sleeps and signals: done once over all attempts of the job

    def step(self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function and store its result: a later attempt gets the stored result and does not call it again.

        The name identifies the step within this job. The result must be JSON; it is converted by the return annotation
        of the function. An exception is not stored. The arguments are stored for the dashboard, if they are JSON.
        """
        return self._runtime.step(validate.text("a step's name", name), partial(function, *args, **kwargs))

    async def astep(self, name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `step`, for a coroutine function."""
        name = validate.text("a step's name", name)
        return await self._runtime.astep(name, partial(function, *args, **kwargs))

    def sleep(self, name: str, seconds: float) -> None:
        """Wait without a slot: the handler ends here, and is called again from its start when the time is over.

        Put the work that comes before into steps, so that it is not done twice.
        """
        self._runtime.sleep(validate.text("a sleep's name", name), validate.seconds("sleep", seconds))

    async def asleep(self, name: str, seconds: float) -> None:
        """As `sleep`, for async handlers."""
        await self._runtime.asleep(validate.text("a sleep's name", name), validate.seconds("sleep", seconds))

    @overload
    def wait_for(self, name: str, /, *, timeout: float | None = None) -> Any: ...
    @overload
    def wait_for(self, name: str, kind: type[R], /, *, timeout: float | None = None) -> R: ...
    def wait_for(self, name: str, kind: Any = Any, /, *, timeout: float | None = None) -> Any:
        """Wait for `client.signal(job, name, value)` without a slot. Returns the value, converted to `kind`.

        Like `sleep`, it ends the handler, which is called again when the signal was sent, or after `timeout` seconds:
        then `SignalTimeout` is raised here.
        """
        return self._runtime.wait_for(validate.text("a signal's name", name), kind, _timeout(timeout))

    @overload
    async def await_for(self, name: str, /, *, timeout: float | None = None) -> Any: ...
    @overload
    async def await_for(self, name: str, kind: type[R], /, *, timeout: float | None = None) -> R: ...
    async def await_for(self, name: str, kind: Any = Any, /, *, timeout: float | None = None) -> Any:
        """As `wait_for`, for async handlers."""
        return await self._runtime.await_for(validate.text("a signal's name", name), kind, _timeout(timeout))

    def _check_aborted(self) -> None:
        if self.aborted is not None:
            raise Aborted(self.aborted)


class Continuation(Struct, frozen=True):
    """The value that `continue_with` returns, typed as a result. The worker recognises it."""

    draft: Draft[Any]


def _timeout(seconds: float | None) -> float | None:
    return None if seconds is None else validate.seconds("timeout", seconds)
