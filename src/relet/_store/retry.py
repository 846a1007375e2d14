"""Retries of transactions: the retry loop, and the policies that decide how long it continues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from .._system import SYSTEM
from ..errors import StoreBusy, StoreError, StoreUnavailable
from .query import Conflict

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


def retry(policy: RetryPolicy, work: Callable[[bool, int], T]) -> T:
    """Call `work` until it returns, or until the policy gives up.

    Its arguments: whether an earlier try may have been committed, and how many tries have failed.
    """
    may_be_committed = was_stale = False
    failures, started = 0, SYSTEM.monotonic()
    while True:
        try:
            return work(may_be_committed, failures)
        except Conflict:
            if may_be_committed:
                raise
            may_be_committed = True
        except Transient as failure:
            if isinstance(failure, StaleConnection) and not was_stale:
                was_stale = True
                continue
            failures += 1
            may_be_committed = may_be_committed or failure.may_be_committed
            if not policy.wait(failure.error, transient=True, failures=failures, started=started):
                raise failure.error from failure.__cause__
        except StoreError as error:
            failures += 1
            if not policy.wait(error, transient=False, failures=failures, started=started):
                raise


async def aretry(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """Async version of `retry`, for this many seconds."""
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
