"""What a doctor asks of every store. Nothing here changes anything; `store/doctor` knows what to make of it."""

from __future__ import annotations

from typing import NamedTuple

from ..query import Flow, read, read_only
from . import inspect as looks

MOST_QUEUES = 50
MOST_FIRST = 1000


class Version(NamedTuple):
    """The version of the schema, 0 if there is none, and for how many seconds it has been that; the oldest version that
    a release must know to work with it, and the release that migrated last."""

    number: int
    age: float | None
    oldest: int = 0
    release: str | None = None


class Pulse(NamedTuple):
    """How many seconds ago upkeep reached the store (None: never), and whether anything waits for a worker."""

    ago: float | None
    work: bool


class Overdue(NamedTuple):
    """Leases that ran out long ago: how many (counted up to a bound), and for how long the first."""

    number: int
    longest: float | None


class Waiting(NamedTuple):
    """Jobs of one task that are queued among the first of their queue, and for how many seconds the oldest is due."""

    queue: str
    task: str
    number: int
    longest: float


@read_only
def version() -> Flow[Version]:
    """The version of the schema, whatever it is."""
    if not (yield read("doctor/schema"))[0][0]:
        return Version(0, None)
    ((number, age, oldest, release),) = yield read("doctor/version")
    return Version(int(number), age, int(oldest), release)


@read_only
def pulse() -> Flow[Pulse]:
    """When upkeep was last done."""
    ((ago, work),) = yield read("doctor/pulse")
    return Pulse(ago, bool(work))


@read_only
def overdue(seconds: float, most: int) -> Flow[Overdue]:
    """Leases that ran out so many seconds ago, and more."""
    ((number, longest),) = yield read("doctor/leases", seconds=seconds, most=most)
    return Overdue(int(number), longest)


@read_only
def waiting() -> Flow[list[Waiting]]:
    """What is queued, by queue and task, paused queues left out."""
    paused = yield from looks.paused_queues()
    names = [name for name in (yield from looks.queue_names()) if name not in paused]
    found: list[Waiting] = []
    for queue in names[:MOST_QUEUES]:
        tasks = yield read("doctor/queue", queue=queue, most=MOST_FIRST)
        found += [Waiting(queue, task, int(number), longest) for task, number, longest in tasks]
    return found
