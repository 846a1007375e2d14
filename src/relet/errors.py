"""Every exception that Relet raises.

ReletError
├── InvalidInput (ValueError)         refused before anything is stored
│   ├── InvalidPayload                 not JSON that both stores accept; names the path
│   └── InvalidArguments (TypeError)   the call does not fit the task's signature
├── CodecError                         a codec is missing, or cannot encode or decode a value
├── UnknownTask (LookupError)
├── JobNotFound (LookupError)
├── ScheduleNotFound (LookupError)
├── InvalidTransition                  the job's state does not allow the verb
├── HasDependents                      other jobs wait for the chain that was to be deleted
├── KeyTaken                           another job holds the unique key
├── IdempotencyConflict                the idempotency key belongs to a different request
├── ResourceFailed                     a resource of a worker could not be made
├── LeaseLost                          another owner has the job; nothing was written
├── JobFailed, JobCancelled            raised by `result` for a job that did not succeed
├── WaitTimeout (TimeoutError)
├── SignalTimeout (TimeoutError)       raised in a handler: the signal did not arrive in time
├── StoreError
│   ├── StoreUnavailable               cannot be reached, or the connection was lost
│   ├── StoreBusy                      a lock or connection was not free in time
│   ├── StoreRefused                   no permission to connect, or to write
│   ├── RowRejected                    a value that the database will not store
│   └── SchemaMismatch                 the store's schema is not the one this version works with
└── Snooze, Retry, Fail                raised by a handler to end its attempt

Suspended (BaseException)              raised by `Attempt.sleep` and `Attempt.wait_for`
Aborted (BaseException)                raised by `Attempt.check` once the attempt is over
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import islice
from typing import Any, Literal

__all__ = [
    "AbortReason",
    "Aborted",
    "CodecError",
    "Fail",
    "HasDependents",
    "IdempotencyConflict",
    "InvalidArguments",
    "InvalidInput",
    "InvalidPayload",
    "InvalidTransition",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "KeyTaken",
    "LeaseLost",
    "QueryTimeout",
    "ReletError",
    "ResourceFailed",
    "Retry",
    "RowRejected",
    "ScheduleNotFound",
    "SchemaMismatch",
    "SignalTimeout",
    "Snooze",
    "StoreBusy",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Suspended",
    "UnknownTask",
    "WaitTimeout",
]

AbortReason = Literal["lease_lost", "completed", "deleted", "cancelled", "paused", "timeout", "shutdown", "in_doubt"]


def _reduce(error: BaseException) -> tuple[Callable[..., BaseException], tuple[Any, ...]]:
    """Pickle passes the message to the constructor. Constructors here take facts, and make the message of them."""
    return _restored, (type(error), error.args, error.__dict__)


def _restored(kind: type[BaseException], args: tuple[Any, ...], fields: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class ReletError(Exception):
    """Base of everything that Relet raises, apart from `Aborted` and `Suspended`."""

    __reduce__ = _reduce


class InvalidInput(ReletError, ValueError):
    """An argument is invalid. Nothing was stored."""


class InvalidPayload(InvalidInput):
    """A payload or result that is not JSON which both stores accept."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class InvalidArguments(InvalidInput, TypeError):
    """The arguments do not fit the task's signature."""


class CodecError(ReletError):
    """A value cannot be encoded or decoded: the app lacks its codec, or the codec lacks its key."""

    def __init__(self, codec: str, message: str) -> None:
        super().__init__(message)
        self.codec = codec


class UnknownTask(ReletError, LookupError):
    """No task of that name is registered with the app."""


class JobNotFound(ReletError, LookupError):
    """There is no job with this id: it was never stored, or was deleted or pruned."""

    def __init__(self, *ids: str) -> None:
        super().__init__(f"no such job: {', '.join(ids)}")
        self.ids = ids


class ResourceFailed(ReletError):
    """A resource could not be made. A worker stops before its first claim; in a child process, the attempt fails."""


class ScheduleNotFound(ReletError, LookupError):
    """There is no schedule of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no such schedule: {name}")
        self.name = name


class InvalidTransition(ReletError):
    """The job's state does not allow the verb."""

    def __init__(self, job_id: str, verb: str, state: str, hint: str = "") -> None:
        super().__init__(f"cannot {verb} job {job_id}: it is {state}" + (f"; {hint}" if hint else ""))
        self.job_id = job_id
        self.verb = verb
        self.state = state


class HasDependents(ReletError):
    """The chain was not deleted, because jobs outside of it wait for it. Nothing was changed."""

    def __init__(self, chain: str, ids: tuple[str, ...]) -> None:
        dependents = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        super().__init__(
            f"chain {chain} was not deleted, as others wait for it: {dependents}; "
            "cancel or delete those first, or pass dependents=True to delete their chains, too"
        )
        self.chain = chain
        self.ids = ids


class KeyTaken(ReletError):
    """Another job holds the unique key that this one needs."""

    def __init__(self, key: str, holder: str) -> None:
        super().__init__(f"unique key {key!r} is held by job {holder}")
        self.key = key
        self.holder = holder


class IdempotencyConflict(ReletError):
    """The idempotency key was used before for a different request. Nothing was changed."""

    def __init__(self, verb: str) -> None:
        super().__init__(
            f"this idempotency key was used before, for a different {verb} request: repeat a request with the same "
            "content, or choose a new key"
        )


class LeaseLost(ReletError):
    """The caller no longer owns the job. Nothing was written."""

    def __init__(self, job_id: str, verb: str = "settle") -> None:
        super().__init__(f"cannot {verb} job {job_id}: its lease was lost, nothing was changed")
        self.job_id = job_id


class JobFailed(ReletError):
    """The job has failed, so it has no result."""

    def __init__(self, job_id: str, error: str | None) -> None:
        super().__init__(f"job {job_id} failed: {error or 'no reason recorded'}")
        self.job_id = job_id
        self.error = error


class JobCancelled(ReletError):
    """The job was cancelled, so it has no result."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} was cancelled")
        self.job_id = job_id


class WaitTimeout(ReletError, TimeoutError):
    """Some jobs did not end before the timeout. They are not affected."""

    def __init__(self, missing: Mapping[str, str], timeout: float, of: int = 1) -> None:
        if of == 1:
            message = "".join(f"job {id} is still {state} after {timeout:g} s" for id, state in missing.items())
        else:
            named = [f"job {id} is {state}" for id, state in islice(missing.items(), 3)]
            more = [f"and {len(missing) - 3} more"] if len(missing) > 3 else []
            message = f"{len(missing)} of {of} jobs are not over after {timeout:g} s: {', '.join(named + more)}"
        super().__init__(message)
        self.ids = tuple(missing)
        self.job_id = self.ids[0]


class StoreError(ReletError):
    """The base of errors of the database and of the connection to it."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, or the connection was lost."""


class StoreBusy(StoreError):
    """A lock or a connection could not be acquired in time. Try again."""


class QueryTimeout(StoreError):
    """A query exceeded its time limit, and the database ended it."""


class StoreRefused(StoreError):
    """The database refused the connection or the write: no permission."""


class RowRejected(StoreError):
    """The database rejected a value. It would reject it again, so the write is not retried."""


class SchemaMismatch(StoreError):
    """The database's schema is not one that this version of Relet works with."""


def _seconds(delay: float | timedelta) -> float:
    return delay.total_seconds() if isinstance(delay, timedelta) else delay


class Snooze(ReletError):
    """Raise in a handler: run this job again after `delay` seconds; the attempt does not count."""

    def __init__(self, delay: float | timedelta) -> None:
        self.delay = _seconds(delay)
        super().__init__(f"snoozed for {self.delay:g} s")


class Retry(ReletError):
    """Raise in a handler: this attempt failed, try again after `delay` seconds (default: the task's backoff)."""

    def __init__(self, reason: str = "retry requested", *, delay: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.delay = None if delay is None else _seconds(delay)


class Fail(ReletError):
    """Raise in a handler: this job has failed; do not retry it."""


class SignalTimeout(ReletError, TimeoutError):
    """The signal that a handler waited for did not arrive in time."""

    def __init__(self, job_id: str, name: str, timeout: float) -> None:
        super().__init__(f"job {job_id}: no signal {name!r} within {timeout:g} s")
        self.job_id = job_id
        self.name = name


class Suspended(BaseException):
    """Raised by `attempt.sleep` and `attempt.wait_for`. Do not catch it: the handler is called again later."""

    __reduce__ = _reduce

    def __init__(self, delay: float, awaits: str | None = None) -> None:
        super().__init__(f"suspended for {delay:g} s")
        self.delay = delay
        self.awaits = awaits


class Aborted(BaseException):
    """The attempt was ended from outside the handler (see `reason`). Do not catch it."""

    __reduce__ = _reduce

    def __init__(self, reason: AbortReason) -> None:
        super().__init__(reason)
        self.reason: AbortReason = reason
