"""What has happened, for those who want to know: `@app.on(events.Failed)`.

An event is told after the commit, in the process that brought it about, on the thread where it happened: listeners are
to be quick. A listener that fails is logged and hurts nobody. Whoever listens to a class hears its subclasses as well:
`app.on(events.JobEvent)` hears everything that happens to jobs.
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
    "WorkerEvent",
    "WorkerStarted",
    "WorkerStopped",
    "WorkerStopping",
]

log = logging.getLogger("relet.events")

E = TypeVar("E", bound="Event")
Listener = Callable[[E], object]


class Event(Struct, frozen=True, kw_only=True):
    """Anything that happened."""


class JobEvent(Event, frozen=True, kw_only=True):
    """Something happened to a job. What the one who did it does not know is None."""

    job_id: str
    state: State | None  # where the job is now; None: it is gone
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None


class AttemptEvent(JobEvent, frozen=True, kw_only=True):
    """Something happened to an attempt of a job."""

    worker: str
    attempt: int
    version: int


class Enqueued(JobEvent, frozen=True):
    """A job was stored. Not told of jobs that were enqueued on a caller's connection: the caller commits those."""


class Promoted(JobEvent, frozen=True):
    """A job that waited may be claimed now."""


class Claimed(AttemptEvent, frozen=True):
    """A worker has taken the job."""


class Renewed(AttemptEvent, frozen=True):
    """The lease was renewed."""


class Ended(AttemptEvent, frozen=True, kw_only=True):
    """An attempt has ended. `seconds`: how long the handler ran."""

    error: str | None = None
    seconds: float = 0.0


class Succeeded(Ended, frozen=True):
    """The handler returned, and that is recorded."""


class Retried(Ended, frozen=True):
    """The attempt failed; the job will be tried again."""


class Snoozed(Ended, frozen=True):
    """The handler asked to be run again later."""


class Failed(Ended, frozen=True):
    """The job has failed for good."""


class Released(Ended, frozen=True):
    """The job was given back: nobody ran it to its end."""


class Cancelled(JobEvent, frozen=True):
    """The job was cancelled, or, while `state` is running, its worker was asked to."""


class Paused(JobEvent, frozen=True):
    """The job was paused, or, while `state` is running, its worker was asked to."""


class Resumed(JobEvent, frozen=True):
    """A paused or failed job goes on."""


class MadeDue(JobEvent, frozen=True):
    """A job that waited for its time is due now (`run_now`)."""


class Completed(JobEvent, frozen=True):
    """The job was completed from outside."""


class Deleted(JobEvent, frozen=True):
    """The job is gone."""


class Reaped(JobEvent, frozen=True, kw_only=True):
    """The lease of a worker that died ran out, and the job was taken from it."""

    error: str | None = None


class LeaseLost(AttemptEvent, frozen=True, kw_only=True):
    """This worker no longer owns the job: nothing that its attempt says is recorded."""

    reason: AbortReason = "lease_lost"


class WorkerEvent(Event, frozen=True, kw_only=True):
    """Something happened to a worker."""

    worker: str


class WorkerStarted(WorkerEvent, frozen=True, kw_only=True):
    """The worker takes jobs from now on."""

    slots: int = 0  # how many at a time


class WorkerStopping(WorkerEvent, frozen=True):
    """The worker takes no more jobs; those that run may go on for a while."""


class WorkerStopped(WorkerEvent, frozen=True):
    """The worker has ended."""


class StoreDown(WorkerEvent, frozen=True, kw_only=True):
    """The worker cannot reach its store. It goes on trying."""

    error: str
    tenant: str | None = None


class StoreUp(WorkerEvent, frozen=True, kw_only=True):
    """The store is back."""

    seconds: float  # how long it was away
    tenant: str | None = None


class Events:
    """Who listens to what."""

    def __init__(self) -> None:
        self._listeners: dict[type[Event], list[Listener[Any]]] = {}
        self._heard_by: dict[type[Event], tuple[Listener[Any], ...]] = {}

    def add(self, kind: type[E], listener: Listener[E]) -> None:
        """Call the listener with every event of this kind."""
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise InvalidInput(f"app.on takes an event, such as relet.events.Failed, not {kind!r}")
        if inspect.iscoroutinefunction(listener) or not callable(listener):
            raise InvalidInput(f"a listener is a plain function that takes the event, not {listener!r}")
        self._listeners.setdefault(kind, []).append(listener)
        self._heard_by = {}

    def remove(self, kind: type[E], listener: Listener[E]) -> None:
        """Call the listener no more."""
        self._listeners[kind].remove(listener)
        self._heard_by = {}

    def wanted(self, kind: type[Event]) -> bool:
        """Whether anybody listens: an event that nobody hears need not be made."""
        return bool(self._who_hears(kind))

    def tell(self, event: Event) -> None:
        """Call everybody who listens to such an event."""
        for listener in self._who_hears(type(event)):
            try:
                listener(event)
            except BaseException:  # SystemExit, too: it is the listener's, not ours
                log.exception("a listener failed on %r", event)

    def _who_hears(self, kind: type[Event]) -> tuple[Listener[Any], ...]:
        found = self._heard_by.get(kind)
        if found is None:
            found = tuple(each for one in kind.__mro__ for each in self._listeners.get(one, ()))
            self._heard_by[kind] = found
        return found
