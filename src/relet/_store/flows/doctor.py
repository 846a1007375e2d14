"""Facts that the doctor reads from every store. Nothing is changed here; `_store/doctor` judges the facts."""

from __future__ import annotations

from typing import NamedTuple

from ..query import Flow, read, read_only
from . import inspect

MAX_QUEUES = 50
MAX_JOBS = 1000  # read at the head of a queue
MAX_READ = 5000  # at the heads of all queues together


class Version(NamedTuple):
    """The version of the schema, 0 if there is none, and its age in seconds; the oldest version that a release must
    know to work with it, and the release that migrated last."""

    number: int
    age: float | None
    oldest: int = 0
    release: str | None = None


class Pulse(NamedTuple):
    """How many seconds ago maintenance reached the store (None: never), and whether any job waits for a worker."""

    ago: float | None
    work: bool


class Overdue(NamedTuple):
    """Leases that expired long ago: how many (counted up to a limit), and how many seconds ago the first expired."""

    number: int
    longest: float | None


class Waiting(NamedTuple):
    """Jobs of one task at the head of a queue, and for how many seconds the oldest has been due."""

    queue: str
    task: str
    number: int
    longest: float


@read_only
def version() -> Flow[Version]:
    """Read the version of the schema, also of one that this release does not know."""
    if not (yield read("doctor/schema"))[0][0]:
        return Version(0, None)
    ((number, age, oldest, release),) = yield read("doctor/version")
    return Version(int(number), age, int(oldest), release)


@read_only
def pulse() -> Flow[Pulse]:
    """Read when maintenance last reached the store."""
    ((ago, work),) = yield read("doctor/pulse")
    return Pulse(ago, bool(work))


@read_only
def overdue(seconds: float, limit: int) -> Flow[Overdue]:
    """Count leases that expired at least this many seconds ago, up to `limit`."""
    ((number, longest),) = yield read("doctor/leases", seconds=seconds, limit=limit)
    return Overdue(int(number), longest)


@read_only
def waiting() -> Flow[list[Waiting]]:
    """Queued jobs by queue and task, without paused queues."""
    paused = yield from inspect.paused_queues()
    names = [name for name in (yield from inspect.queue_names()) if name not in paused]
    some = names[:MAX_QUEUES]
    limit = min(MAX_JOBS, MAX_READ // max(len(some), 1))
    found = yield read("doctor/waiting", queues=some, limit=limit)
    return [Waiting(queue, task, int(number), longest) for queue, task, number, longest in found]
