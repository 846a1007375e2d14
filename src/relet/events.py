"""Events, for listeners: `@app.on(events.Failed)`.

Relet calls listeners after the commit, in the process and on the thread that made the change, so listeners must be
quick. An exception in a listener is logged and has no other effect. A listener of a class also receives events of its
subclasses: `app.on(events.JobEvent)` receives everything that happens to jobs.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from ._core.job import State
from .errors import AbortReason, InvalidInput

__all__ = [
    "AttemptEvent",
    "Cancelled",
    "Claimed",
    "Completed",
    "Deleted",
    "Ended",
    "Enqueued",
    "Event",
    "Events",
    "Failed",
    "JobEvent",
    "LeaseLost",
    "MadeDue",
    "Paused",
    "Promoted",
    "Reaped",
    "Released",
    "Renewed",
    "Resumed",
    "Retried",
    "Snoozed",
    "StoreDown",
    "StoreUp",
    "Succeeded",
    "Undone",
    "WorkerEvent",
    "WorkerStarted",
    "WorkerStopped",
    "WorkerStopping",
]

log = logging.getLogger("relet.events")

E = TypeVar("E", bound="Event")
Listener = Callable[[E], object]


class Event(Struct, frozen=True, kw_only=True):
    """The base of all events."""


class JobEvent(Event, frozen=True, kw_only=True):
    """Something happened to a job. Fields that the emitting code does not know are None."""

    job_id: str
    state: State | None  # the state now; None: the job no longer exists
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None


class AttemptEvent(JobEvent, frozen=True, kw_only=True):
    """Something happened to an attempt of a job."""

    worker: str
    attempt: int
    version: int


class Enqueued(JobEvent, frozen=True):
    """A job was stored. Not emitted for jobs that were enqueued on a caller's connection: the caller commits those."""


class Promoted(JobEvent, frozen=True):
    """A pending job became queued: workers may claim it."""


class Claimed(AttemptEvent, frozen=True):
    """A worker claimed the job."""


class Renewed(AttemptEvent, frozen=True):
    """The worker renewed the lease."""


class Ended(AttemptEvent, frozen=True, kw_only=True):
    """An attempt has ended. `seconds`: how long the handler ran. `error_type`: the class of the exception, as module
    and name."""

    error: str | None = None
    error_type: str | None = None
    seconds: float = 0.0


class Succeeded(Ended, frozen=True):
    """The handler returned, and the store recorded it."""


class Retried(Ended, frozen=True):
    """The attempt failed; the job will be retried."""


class Snoozed(Ended, frozen=True):
    """The handler asked to run again later."""


class Failed(Ended, frozen=True):
    """The job has failed. It will not be retried."""


class Released(Ended, frozen=True):
    """The worker gave the job back before its handler ended."""


class Cancelled(JobEvent, frozen=True):
    """The job was cancelled; or, if `state` is running, its worker was asked to cancel it."""


class Paused(JobEvent, frozen=True):
    """The job was paused; or, if `state` is running, its worker was asked to pause it."""


class Resumed(JobEvent, frozen=True):
    """A paused or failed job was resumed."""


class MadeDue(JobEvent, frozen=True):
    """A job that waited for its time was made due (`run_now`)."""


class Completed(JobEvent, frozen=True):
    """The job was completed from outside its handler."""


class Deleted(JobEvent, frozen=True):
    """The job was deleted."""


class Reaped(JobEvent, frozen=True, kw_only=True):
    """The lease of a dead worker expired, and the job was taken from it."""

    error: str | None = None


class LeaseLost(AttemptEvent, frozen=True, kw_only=True):
    """This worker no longer owns the job: the store records nothing more of its attempt."""

    reason: AbortReason = "lease_lost"


class Undone(AttemptEvent, frozen=True):
    """The database has lost the claim or the end of this attempt, which it had acknowledged: a failover to a standby
    that lacked commits. `state`: of the job now; None: there is no such job, unless an operator has just deleted it."""


class WorkerEvent(Event, frozen=True, kw_only=True):
    """Something happened to a worker."""

    worker: str


class WorkerStarted(WorkerEvent, frozen=True, kw_only=True):
    """The worker started to claim jobs."""

    slots: int = 0  # how many jobs it runs at a time


class WorkerStopping(WorkerEvent, frozen=True):
    """The worker stopped claiming; running jobs may continue until the shutdown timeout."""


class WorkerStopped(WorkerEvent, frozen=True):
    """The worker has ended."""


class StoreDown(WorkerEvent, frozen=True, kw_only=True):
    """The worker cannot reach its store. It keeps trying."""

    error: str
    tenant: str | None = None


class StoreUp(WorkerEvent, frozen=True, kw_only=True):
    """The worker can reach its store again."""

    seconds: float  # how long the store was unreachable
    tenant: str | None = None


class Events:
    """The listeners of an app, by event class."""

    def __init__(self) -> None:
        self._listeners: dict[type[Event], list[Listener[Any]]] = {}
        self._listeners_by_class: dict[type[Event], tuple[Listener[Any], ...]] = {}

    def add(self, kind: type[E], listener: Listener[E]) -> None:
        """Call the listener with every event of this class."""
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise InvalidInput(f"app.on takes an event class, such as relet.events.Failed, not {kind!r}")
        if inspect.iscoroutinefunction(listener) or not callable(listener):
            raise InvalidInput(f"A listener must be a plain function that takes the event, not {listener!r}")
        self._listeners.setdefault(kind, []).append(listener)
        self._listeners_by_class = {}

    def remove(self, kind: type[E], listener: Listener[E]) -> None:
        """Stop calling the listener."""
        self._listeners[kind].remove(listener)
        self._listeners_by_class = {}

    def wanted(self, kind: type[Event]) -> bool:
        """True if this class has a listener. Without one, callers need not make the event."""
        found = self._listeners_by_class.get(kind)
        return bool(self._listeners_of(kind) if found is None else found)

    def emit(self, event: Event) -> None:
        """Call the listeners of the event's class and its base classes."""
        for listener in self._listeners_of(type(event)):
            try:
                listener(event)
            except BaseException:  # even SystemExit: a listener must not end the worker
                log.exception("A listener failed on %r", event)

    def _listeners_of(self, kind: type[Event]) -> tuple[Listener[Any], ...]:
        found = self._listeners_by_class.get(kind)
        if found is None:
            found = tuple(listener for base in kind.__mro__ for listener in self._listeners.get(base, ()))
            self._listeners_by_class[kind] = found
        return found
