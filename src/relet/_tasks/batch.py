"""Batch tasks: a handler that is called with many jobs at once. Each job is enqueued, leased and settled by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

from .._attempts.attempt import Attempt
from .._core import validate
from .._core.validate import Seconds
from ..errors import InvalidInput

T = TypeVar("T")

MAX_SIZE = 10_000
MAX_WAIT = 3600.0
HINT = "a batch task takes one argument, annotated `list[BatchItem[...]]` with the type of a job's argument"


class BatchItem(Generic[T]):
    """One job of a batch. `value`: its argument.

    A job succeeds when the handler returns, and fails when it raises, unless `succeed` or `fail` was called before:
    these settle the job at once.
    """

    def __init__(self, value: T, attempt: Attempt, prepare: Callable[[], object] | None = None) -> None:
        self.value = value
        self._attempt = attempt
        self._prepare = prepare
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_settled = False
        self._on_settled: Callable[[BatchItem[T]], object] = lambda item: None

    @property
    def attempt(self) -> Attempt:
        """The attempt of the job."""
        if self._prepare is not None:
            self._prepare()
            self._prepare = None
        return self._attempt

    def succeed(self, result: Any = None) -> None:
        """The job has succeeded, with this result."""
        self._settle(result, None)

    def fail(self, error: BaseException) -> None:
        """The job has failed as if its handler had raised this error: Retry, Snooze and Fail have their meanings."""
        self._settle(None, error)

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.is_settled:
            raise InvalidInput(f"job {self._attempt.job.id} is settled already")
        self.result, self.error, self.is_settled = result, error, True
        self._on_settled(self)

    def __repr__(self) -> str:
        return f"<item {self._attempt.job.id} of a batch: {self.value!r:.80}>"


class BatchOptions(Struct, frozen=True):
    """`size`: how many jobs a call gets at most. `wait`: for how many seconds the first of them waits for others."""

    handler: Callable[[list[BatchItem[Any]]], Any]
    size: int
    wait: float


def check_batch(handler: Callable[..., Any], size: int, wait: Seconds) -> BatchOptions:
    return BatchOptions(
        handler,
        validate.integer("size", size, 2, MAX_SIZE),
        validate.seconds("wait", wait, minimum=0.0, maximum=MAX_WAIT),
    )


def one_by_one(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler for a single job, which calls the handler of batches with a list of one.

    It defines the arguments of the task. It runs in tests, in the foreground, and after a worker was lost.
    """
    kind = _argument_of(handler)
    single: Callable[..., Any]
    if inspect.iscoroutinefunction(handler):

        async def single(attempt: Attempt, item: Any) -> Any:
            one = BatchItem(item, attempt)
            await handler([one])
            return _ended(one)

    else:

        def single(attempt: Attempt, item: Any) -> Any:
            one = BatchItem(item, attempt)
            handler([one])
            return _ended(one)

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(single, name, getattr(handler, name))
    single.__annotations__ = {"attempt": Attempt, "item": kind, "return": Any}
    return single


def _ended(item: BatchItem[Any]) -> Any:
    if item.error is not None:
        raise item.error
    return item.result


def _argument_of(handler: Callable[..., Any]) -> Any:
    """The type of the argument of one job."""
    name = getattr(handler, "__qualname__", repr(handler))
    try:
        parameters = list(inspect.signature(handler).parameters)
        hints = get_type_hints(handler, include_extras=True)
        (items,) = [hints[one] for one in parameters]
        (item,) = get_args(items)
        (kind,) = get_args(item)
    except (NameError, TypeError, ValueError, KeyError) as error:
        raise InvalidInput(f"{name}: {HINT} ({type(error).__name__}: {error})") from None
    if get_origin(item) is not BatchItem:
        raise InvalidInput(f"{name}: {HINT}")
    return kind
