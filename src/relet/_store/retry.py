"""How long a transaction is retried: the errors that allow a retry, and the policies. The loop is `Store.retry`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from .._system import SYSTEM
from ..errors import StoreBusy, StoreError, StoreUnavailable

T = TypeVar("T")

RETRY_SECONDS = 10.0
HANDLER_SECONDS = 60.0  # a handler holds a slot and a lease that is renewed, so waiting is better than failing


class Transient(Exception):
    """The next try may succeed. `error`: what the caller gets if there is no next try.

    `may_be_committed`: COMMIT, or a write that commits by itself, was sent, and its reply was lost.
    """

    def __init__(self, error: StoreBusy | StoreUnavailable, *, may_be_committed: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.may_be_committed = may_be_committed


class StaleConnection(Transient):
    """An idle connection turned out to be dead before anything was sent on it. The next try follows at once."""


class RetryPolicy(Protocol):
    """Decides how long a caller keeps retrying."""

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        """Wait before the next try; False gives up. `started`: when the first try began, on the monotonic clock."""


class RetryFor:
    """Retry for this many seconds, while errors are transient."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        if not transient or SYSTEM.monotonic() - started >= self._seconds:
            return False
        SYSTEM.sleep(backoff(failures))
        return True


DEFAULT_RETRY = RetryFor(RETRY_SECONDS)


def backoff(failures: int, longest: float = 1.0) -> float:
    """Seconds to wait after this many failures in a row: full jitter below a bound that doubles."""
    return SYSTEM.random() * min(0.01 * float(2 ** min(failures, 20)), longest)


async def aretry(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """Async version of `Store.retry`, for this many seconds."""
    import asyncio

    give_up, failures = SYSTEM.monotonic() + seconds, 0
    while True:
        try:
            return await work()
        except Transient as failure:
            failures += 1
            if SYSTEM.monotonic() >= give_up:
                raise failure.error from failure.__cause__
        await asyncio.sleep(backoff(failures))
