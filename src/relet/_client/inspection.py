"""The part of the client that reads: jobs, queues, targets, workers, statistics and the audit trail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar, Unpack
from uuid import UUID

from .._core import validate
from .._core.codecs import Codecs
from .._core.decoding import decodable
from .._core.filters import Filter, Which, make_filter
from .._core.ids import parse_id
from .._core.job import AttemptRecord, Chain, Dependency, Job, StepRecord
from .._core.stats import STEPS, StatPage, StatPoint
from .._core.views import AuditPage, FailureGroup, JobDetails, Page, QueueInfo, ReplicaStatus, TargetPage, TargetView
from .._core.worker import WorkerInfo
from .._store.flows import audit, doctor, failures, inspect, search, stats, targets, workers
from .._store.flows.doctor import Waiting
from .._store.query import Flow
from .._store.store import Store
from .._store.time_limit import reading_until
from .._tasks.task import TaskRegistry
from ..errors import InvalidInput

__all__ = ["MAX_SCANNED", "AnyJob", "Inspection", "id_cursor", "id_of", "ids_of", "reading_until"]

P = ParamSpec("P")
T = TypeVar("T")

AnyJob = Job[Any] | str | UUID

MAX_SCANNED = 10_000_000


class Inspection:
    """The part of the client that changes nothing."""

    _tasks: TaskRegistry
    _codecs: Codecs | None = None  # those that decode the values which it returns
    _reads_replica = False  # lists and figures come from the replica, if the app has one

    def __init__(self, store: Callable[[str | None], Store], tenant: str | None) -> None:
        self._store_of = store
        self._tenant = tenant
        self._bind()

    def _bind(self) -> None:
        """Look up the store; again after the app has changed it."""
        self._store = self._store_of(self._tenant)

    def _read(self, flow: Callable[P, Flow[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a flow that returns records whose values may be encoded."""
        return self._read_on(None, flow, *args, **kwargs)

    def _read_on(self, connection: Any, flow: Callable[P, Flow[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same on a caller's connection, which sees what its transaction has written."""
        run = self._store.run if connection is None else partial(run_on, self._store, connection)
        return decodable(run(flow, *args, **kwargs), self._codecs)

    def _show(self, flow: Callable[P, Flow[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a flow whose result people read. It may be a little old: nothing may be decided by it."""
        replica = self._store.replica if self._reads_replica else None
        run = self._store.run if replica is None else replica.run
        return decodable(run(flow, *args, **kwargs), self._codecs)

    def _replica_status(self) -> ReplicaStatus | None:
        """Whether the replica can serve reads; None if the app has none."""
        return None if self._store.replica is None else self._store.replica.status()

    def _replica_position(self) -> int | None:
        """A position that the replica has reached once it has all that was committed before; None without a replica."""
        return None if self._store.replica is None else self._store.replica.position()

    def _replica_has(self, position: int) -> bool:
        """Whether the replica has reached that position."""
        return self._store.replica is None or self._store.replica.has_replayed(position)

    def _filter(self, which: Which) -> Filter:
        where = make_filter(which)
        if where.payload is not None and self._tasks._is_encoded(where.task):
            whose = "tasks of this app" if where.task is None else f"task {where.task}"
            raise InvalidInput(f"payload cannot be searched: a codec encodes the payloads of {whose}; use tags")
        return where

    def _page(
        self, limit: int, cursor: str | None, scan: int | None, which: Which
    ) -> tuple[Filter, int, str | None, int | None]:
        """The arguments of `jobs`, checked."""
        where = self._filter(which)
        limit = validate.integer("limit", limit, 1, 1000)
        return where, limit, id_cursor(cursor), _scan(scan)

    def _bounds(self, limit: int | None, scan: int | None, which: Which) -> tuple[Filter, int | None, int | None]:
        """The arguments of `count`, checked."""
        where = self._filter(which)
        limit = None if limit is None else validate.integer("limit", limit, 0, 2**31 - 1)
        return where, limit, _scan(scan)

    def get(self, job: AnyJob, /, *, connection: Any = None) -> Job[Any] | None:
        """A job as it is now. None if it does not exist, which is also true of a text that is no job id.

        With `connection`, as your transaction sees it.
        """
        try:
            id = id_of(job)
        except InvalidInput:
            return None
        return self._read_on(connection, inspect.get, id)

    def jobs(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        scan: int | None = None,
        connection: Any = None,
        **which: Unpack[Which],
    ) -> Page:
        """A page of jobs, newest first. Pass `page.cursor` to get the next page. With `connection`, as your transaction
        sees them.

        Filters: `state` (one or several), `queue`, `task`, `target`, `group`, `unique`, `tag`, `payload` (values of
        arguments), `worker`, `error` (text in it), `created_from`, `created_to`. With `scan`, at most so many jobs are
        read: the page may then be short or empty although more jobs match; `page.cursor` continues.
        """
        page = self._page(limit, cursor, scan, which)
        return self._show(search.jobs, *page) if connection is None else self._read_on(connection, search.jobs, *page)

    def count(
        self, *, limit: int | None = None, scan: int | None = None, connection: Any = None, **which: Unpack[Which]
    ) -> int:
        """How many jobs match, counted up to `limit`; with `scan`, among the newest so many. Filters as in `jobs`."""
        bounds = self._bounds(limit, scan, which)
        if connection is not None:
            return self._read_on(connection, search.count, *bounds)
        return self._show(search.count, *bounds)

    def describe(self, job: AnyJob, /) -> JobDetails:
        """A job with its attempts, steps, chain, dependencies, dependents and explanation, read in one transaction."""
        return self._read(inspect.describe, id_of(job))

    def explain(self, job: AnyJob, /) -> list[str]:
        """Why the job is not running, in sentences."""
        return self._store.run(inspect.explain, id_of(job))

    def attempts(self, job: AnyJob, /, *, connection: Any = None) -> list[AttemptRecord]:
        """Every attempt of a job in order, including the running one. With `connection`, as your transaction sees
        them.
        """
        return self._read_on(connection, inspect.attempts, id_of(job))

    def steps(self, job: AnyJob, /) -> list[StepRecord]:
        """The durable steps of a job in order, with its sleeps, its waits and the signals that it was sent."""
        return self._read(inspect.steps, id_of(job))

    def chain(self, job: AnyJob, /) -> Chain:
        """The chain of a job: all its jobs in order, its state and its result."""
        return self._read(inspect.chain, id_of(job))

    def dependencies(self, job: AnyJob, /) -> list[Dependency]:
        """The chains that a job depends on, in the order of `depends_on`."""
        return self._read(inspect.dependencies, id_of(job))

    def dependents(self, job: AnyJob, /, *, limit: int = 50) -> list[Job[Any]]:
        """Jobs that wait for the chain of this one."""
        limit = validate.integer("limit", limit, 1, 1000)
        return self._read(inspect.dependents, id_of(job), limit=limit)

    def queues(self) -> list[QueueInfo]:
        """Every queue that has live jobs or settings."""
        return self._show(inspect.queues)

    def _waiting_jobs(self) -> list[Waiting]:
        """Queued jobs by queue and task, without paused queues, as the doctor reads them."""
        return self._show(doctor.waiting)

    def targets(self, *, limit: int = 50, cursor: str | None = None) -> TargetPage:
        """A page of targets that have a holder or waiting jobs, by name. Pass `page.cursor` to continue."""
        limit = validate.integer("limit", limit, 1, 1000)
        return self._show(targets.targets, limit=limit, cursor=_name_cursor(cursor))

    def target(self, target: str, /, *, limit: int = 100) -> TargetView:
        """One target: the job that holds it, and the jobs that wait for it, in order."""
        limit = validate.integer("limit", limit, 1, 1000)
        return self._show(targets.target, validate.text("target", target), limit=limit)

    def workers(self) -> list[WorkerInfo]:
        """Every live worker, and those lost within the last day."""
        return self._show(workers.workers)

    def failures(self, *, limit: int = 50) -> list[FailureGroup]:
        """Failed jobs, grouped by task and error without its numbers and ids, the latest group first."""
        return self._show(failures.failures, limit=validate.integer("limit", limit, 1, 1000))

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
        if queue is not None:
            begin, end = _period(since, until, step)
            return self._show(stats.stats, begin, end, step=step, queues=[validate.text("queue", queue)], only=only)
        read = partial(self._stats_page, since=since, until=until, step=step, only=only)
        return sorted(_all_points(read), key=lambda one: (one.at, one.queue))

    def _stats_page(
        self,
        *,
        since: datetime,
        until: datetime | None = None,
        step: int | None = None,
        only: str | None = None,
        cursor: str | None = None,
    ) -> StatPage:
        """The statistics of some queues."""
        begin, end = _period(since, until, step)
        return self._show(stats.page, begin, end, step=step, only=only, cursor=_name_cursor(cursor))

    def _recent_counts(
        self, queues: Sequence[str], name: str, since: datetime, step: int
    ) -> dict[str, dict[float, int]]:
        """One count of some queues by the start of each step, within the last three hours."""
        return self._show(stats.recent_counts, queues, name, validate.timestamp("since", since), step)

    def totals(self) -> list[StatPoint]:
        """Counters since the store was created, one point for each queue: they never decrease, as monitoring wants."""
        return list(_all_points(self._totals_page))

    def _totals_page(self, *, cursor: str | None = None) -> StatPage:
        """The totals of some queues."""
        return self._show(stats.totals, _name_cursor(cursor))

    def _exported_totals(self, max_queues: int) -> tuple[list[StatPoint], StatPoint | None]:
        """The totals for monitoring, with histograms of up to so many queues, or of all of them together."""
        return self._show(stats.exported, max_queues)

    def audit(self, *, limit: int = 50, cursor: str | None = None) -> AuditPage:
        """Changes by clients that act for an operator (`acting_as`), the latest first."""
        limit = validate.integer("limit", limit, 1, 1000)
        return self._show(audit.actions, limit=limit, cursor=id_cursor(cursor))


def _scan(scan: int | None) -> int | None:
    return None if scan is None else validate.integer("scan", scan, 1, MAX_SCANNED)


def _period(since: datetime, until: datetime | None, step: int | None) -> tuple[float, float | None]:
    """The bounds of statistics, checked."""
    if step is not None and step not in STEPS:
        raise InvalidInput(f"step must be one of {', '.join(map(str, STEPS))} seconds, not {step!r}")
    return validate.timestamp("since", since), None if until is None else validate.timestamp("until", until)


def _all_points(read: Callable[..., StatPage]) -> Iterator[StatPoint]:
    """The points of all pages. Each page is a short transaction, however many queues there are."""
    page = read()
    yield from page.points
    while page.cursor is not None:
        page = read(cursor=page.cursor)
        yield from page.points


def _name_cursor(cursor: str | None) -> str | None:
    """The cursor of a page whose rows are ordered by name, checked."""
    return None if cursor is None else validate.text("cursor", cursor)


def run_on(store: Store, connection: Any, flow: Callable[..., Flow[T]], *args: Any, **kwargs: Any) -> T:
    """Run a flow on the caller's connection. The adapters are imported with the first use."""
    from .._store.adapters import drivers

    return drivers.run_on(store, connection, flow, *args, **kwargs)


def id_of(job: AnyJob) -> str:
    """The id of a job, checked."""
    return job.id if isinstance(job, Job) else parse_id(job)


def id_cursor(cursor: str | None) -> str | None:
    """The cursor of a page whose rows are ordered by id, checked."""
    try:
        return None if cursor is None else parse_id(cursor)
    except InvalidInput:
        raise InvalidInput(f"cursor must be the cursor of an earlier page, not {cursor!r:.80}") from None


def ids_of(jobs: Iterable[AnyJob]) -> list[str]:
    """The ids of several jobs, checked."""
    if isinstance(jobs, Job | str | UUID):
        raise InvalidInput("wait_many and results take jobs in a list; wait and result take one")
    return [id_of(job) for job in jobs]
