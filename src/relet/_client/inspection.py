"""The part of the client that reads: jobs, queues, targets, workers, statistics and the audit trail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

from .._core import validate
from .._core.filters import Filter
from .._core.ids import parse_id
from .._core.job import AttemptRecord, Chain, Dependency, Job, State
from .._core.stats import STEPS, StatPoint
from .._core.views import AuditPage, FailureGroup, Page, QueueInfo, TargetPage, TargetView
from .._core.worker import WorkerInfo
from .._store.flows import audit, failures, inspect, search, stats, targets, workers
from .._store.store import Store
from .._store.time_limit import reading_until
from ..errors import InvalidInput

__all__ = ["MAX_SCANNED", "AnyJob", "AnyState", "Inspection", "Which", "filter_of", "id_of", "reading_until"]

AnyJob = Job[Any] | str | UUID
AnyState = State | str

MAX_SCANNED = 10_000_000


class Which(TypedDict, total=False):
    """Which jobs; see `_core/filters.py`. A filter that is not passed matches every job.

    `error`: text that the error contains, ignoring case; only of jobs that have not ended. `created_from` and
    `created_to` compare the time at which a job was stored; the time in its id must be within a day of it.
    """

    state: AnyState | Sequence[AnyState] | None
    queue: str | None
    task: str | None
    target: str | None
    worker: str | None
    error: str | None
    created_from: datetime | None
    created_to: datetime | None


class Inspection:
    """The part of the client that changes nothing."""

    _store: Store

    def get(self, job: AnyJob, /) -> Job[Any] | None:
        """A job as it is now; None if it does not exist."""
        return self._store.run(inspect.get, id_of(job))

    def jobs(
        self, *, limit: int = 50, cursor: str | None = None, scan: int | None = None, **which: Unpack[Which]
    ) -> Page:
        """A page of jobs, newest first. Pass `page.cursor` to get the next page.

        Filters: `state` (one or several), `queue`, `task`, `target`, `worker`, `error` (text in it), `created_from`,
        `created_to`. With `scan`, at most so many jobs are read: the page may then be short or empty although more jobs
        match; `page.cursor` continues.
        """
        where = filter_of(**which)
        limit = validate.integer("limit", limit, 1, 1000)
        scan = None if scan is None else validate.integer("scan", scan, 1, MAX_SCANNED)
        start = None if cursor is None else parse_id(cursor)
        return self._store.run(search.jobs, where, limit=limit, cursor=start, scan=scan)

    def count(self, *, limit: int | None = None, scan: int | None = None, **which: Unpack[Which]) -> int:
        """How many jobs match, counted up to `limit`; with `scan`, among the newest so many. Filters as in `jobs`."""
        where = filter_of(**which)
        limit = None if limit is None else validate.integer("limit", limit, 0, 2**31 - 1)
        scan = None if scan is None else validate.integer("scan", scan, 1, MAX_SCANNED)
        return self._store.run(search.count, where, limit=limit, scan=scan)

    def explain(self, job: AnyJob, /) -> list[str]:
        """Why the job is not running, in sentences."""
        return self._store.run(inspect.explain, id_of(job))

    def attempts(self, job: AnyJob, /) -> list[AttemptRecord]:
        """Every attempt of a job in order, including the running one."""
        return self._store.run(inspect.attempts, id_of(job))

    def chain(self, job: AnyJob, /) -> Chain:
        """The chain of a job: all its jobs in order, its state and its result."""
        return self._store.run(inspect.chain, id_of(job))

    def dependencies(self, job: AnyJob, /) -> list[Dependency]:
        """The chains that a job depends on, in the order of `depends_on`."""
        return self._store.run(inspect.dependencies, id_of(job))

    def dependents(self, job: AnyJob, /, *, limit: int = 50) -> list[Job[Any]]:
        """Jobs that wait for the chain of this one."""
        limit = validate.integer("limit", limit, 1, 1000)
        return self._store.run(inspect.dependents, id_of(job), limit=limit)

    def queues(self) -> list[QueueInfo]:
        """Every queue that has live jobs or settings."""
        return self._store.run(inspect.queues)

    def targets(self, *, limit: int = 50, cursor: str | None = None) -> TargetPage:
        """A page of targets that have a holder or waiting jobs, by name. Pass `page.cursor` to continue."""
        limit = validate.integer("limit", limit, 1, 1000)
        start = None if cursor is None else validate.text("cursor", cursor)
        return self._store.run(targets.targets, limit=limit, cursor=start)

    def target(self, target: str, /, *, limit: int = 100) -> TargetView:
        """One target: the job that holds it, and the jobs that wait for it, in order."""
        limit = validate.integer("limit", limit, 1, 1000)
        return self._store.run(targets.target, validate.text("target", target), limit=limit)

    def workers(self) -> list[WorkerInfo]:
        """Every live worker, and those lost within the last day."""
        return self._store.run(workers.workers)

    def failures(self, *, limit: int = 50) -> list[FailureGroup]:
        """Failed jobs, grouped by task and error without its numbers and ids, the latest group first."""
        return self._store.run(failures.failures, limit=validate.integer("limit", limit, 1, 1000))

    def stats(
        self,
        *,
        since: datetime,
        until: datetime | None = None,
        step: int | None = None,
        queue: str | None = None,
        only: str | None = None,
    ) -> list[StatPoint]:
        """Statistics by step and queue: how attempts ended, how long they took, how many jobs there were.

        Empty steps are left out. Queue "*" is all queues together. `only`: just this count, such as "succeeded", which
        is quicker. Steps of 60 seconds are kept for 3 hours, of 600 for 3 days, of 3600 for 8 days, of 21600 for 400
        days. None: the shortest step that covers the time.
        """
        begin = validate.timestamp("since", since)
        end = None if until is None else validate.timestamp("until", until)
        if step is not None and step not in STEPS:
            raise InvalidInput(f"step must be one of {', '.join(map(str, STEPS))} seconds, not {step!r}")
        name = None if queue is None else validate.text("queue", queue)
        return self._store.run(stats.stats, begin, end, step=step, queue=name, only=only)

    def totals(self) -> list[StatPoint]:
        """Counters since the store was created, one point for each queue: they never decrease, as monitoring wants."""
        return self._store.run(stats.totals)

    def audit(self, *, limit: int = 50, cursor: str | None = None) -> AuditPage:
        """Changes by clients that act for an operator (`acting_as`), the latest first."""
        limit = validate.integer("limit", limit, 1, 1000)
        return self._store.run(audit.actions, limit=limit, cursor=None if cursor is None else parse_id(cursor))


def id_of(job: AnyJob) -> str:
    """The id of a job, checked."""
    return job.id if isinstance(job, Job) else parse_id(job)


def ids_of(jobs: Iterable[AnyJob]) -> list[str]:
    """The ids of several jobs, checked."""
    if isinstance(jobs, Job | str | UUID):
        raise InvalidInput("wait_many and results take jobs in a list; wait and result take one")
    return [id_of(job) for job in jobs]


def filter_of(
    state: AnyState | Sequence[AnyState] | None = None,
    queue: str | None = None,
    task: str | None = None,
    target: str | None = None,
    worker: str | None = None,
    error: str | None = None,
    created_from: datetime | None = None,
    created_to: datetime | None = None,
) -> Filter:
    """Which jobs, checked."""
    if state is not None and not isinstance(state, str | Sequence):
        raise InvalidInput(f"state must be one of {', '.join(State)}, or some of them, not {state!r}")
    states = [state] if isinstance(state, str) else list(state or ())
    return Filter(
        tuple(State(validate.one_of("state", one, tuple(State))) for one in states),
        None if queue is None else validate.text("queue", queue),
        None if task is None else validate.text("task", task),
        None if target is None else validate.text("target", target),
        None if worker is None else validate.text("worker", worker),
        None if error is None else validate.text("error", error),
        None if created_from is None else validate.timestamp("created_from", created_from),
        None if created_to is None else validate.timestamp("created_to", created_to),
    )
