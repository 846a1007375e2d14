"""What a program can see of its jobs, queues, targets and workers: the part of the client that changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

from .._core import validate
from .._core.filters import Filter
from .._core.ids import parse_id
from .._core.job import AttemptRecord, BlockerInfo, Chain, Job, State
from .._core.stats import STEPS, StatPoint
from .._core.views import AuditPage, FailureGroup, Page, QueueInfo, TargetPage, TargetView
from .._core.worker import WorkerInfo
from .._store.flows import audit, failures, inspect, search, stats, targets, workers
from .._store.store import Store
from .._store.time_limit import reading_until
from ..errors import InvalidInput

__all__ = ["MOST_SCANNED", "AnyJob", "AnyState", "Inspection", "Which", "filter_of", "id_of", "reading_until"]

AnyJob = Job[Any] | str | UUID
AnyState = State | str

MOST_SCANNED = 10_000_000


class Which(TypedDict, total=False):
    """Which jobs. What is not given does not restrict.

    `error`: a text that the error contains, whether in capitals or not; of jobs that are not over. `created_from` and
    `created_to` go by the moment that a job was stored; the time in its id must not be more than a day from it.
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
        """A job as it is now; None if there is none."""
        return self._store.run(inspect.get, id_of(job))

    def jobs(
        self, *, limit: int = 50, before: str | None = None, scan: int | None = None, **which: Unpack[Which]
    ) -> Page:
        """A page of jobs, newest first. Give `page.next` as `before` to get the one after it.

        Filters: `state` (one or some), `queue`, `task`, `target`, `worker`, `error` (a text in it), `created_from`,
        `created_to`. With `scan`, no more than so many jobs are looked at: the page may then be short, or empty,
        though there are more; `page.next` says where to go on.
        """
        where = filter_of(**which)
        limit = validate.whole("limit", limit, 1, 1000)
        scan = None if scan is None else validate.whole("scan", scan, 1, MOST_SCANNED)
        start = None if before is None else parse_id(before)
        return self._store.run(search.jobs, where, limit=limit, before=start, scan=scan)

    def count(self, *, most: int | None = None, scan: int | None = None, **which: Unpack[Which]) -> int:
        """How many jobs there are, counted no further than `most`; with `scan`, among the newest so many.

        The filters are those of `jobs`.
        """
        where = filter_of(**which)
        most = None if most is None else validate.whole("most", most, 0, 2**31 - 1)
        scan = None if scan is None else validate.whole("scan", scan, 1, MOST_SCANNED)
        return self._store.run(search.count, where, most=most, scan=scan)

    def explain(self, job: AnyJob, /) -> list[str]:
        """Why the job is not running, in sentences."""
        return self._store.run(inspect.explain, id_of(job))

    def attempts(self, job: AnyJob, /) -> list[AttemptRecord]:
        """Every attempt of a job, in order, the one that runs now included."""
        return self._store.run(inspect.attempts, id_of(job))

    def chain(self, job: AnyJob, /) -> Chain:
        """The chain that a job belongs to: all its jobs in order, its state and its result."""
        return self._store.run(inspect.chain, id_of(job))

    def blockers(self, job: AnyJob, /) -> list[BlockerInfo]:
        """What a job waits or waited for, in the order given to `after`."""
        return self._store.run(inspect.blockers, id_of(job))

    def dependents(self, job: AnyJob, /, *, limit: int = 50) -> list[Job[Any]]:
        """Jobs that wait for the chain of this one."""
        limit = validate.whole("limit", limit, 1, 1000)
        return self._store.run(inspect.dependents, id_of(job), limit=limit)

    def queues(self) -> list[QueueInfo]:
        """Every queue that has live jobs, or of which something was said."""
        return self._store.run(inspect.queues)

    def targets(self, *, limit: int = 50, after: str | None = None) -> TargetPage:
        """A page of targets that are held or waited for, by name. Give `page.next` as `after` to get the next."""
        limit = validate.whole("limit", limit, 1, 1000)
        start = None if after is None else validate.key("after", after)
        return self._store.run(targets.targets, limit=limit, after=start)

    def target(self, target: str, /, *, limit: int = 100) -> TargetView:
        """One target: the job that holds it, and those in line behind, in order."""
        limit = validate.whole("limit", limit, 1, 1000)
        return self._store.run(targets.target, validate.key("target", target), limit=limit)

    def workers(self) -> list[WorkerInfo]:
        """Every worker that is there, or was lost within a day."""
        return self._store.run(workers.workers)

    def failures(self, *, limit: int = 50) -> list[FailureGroup]:
        """Jobs that have failed, by task and error, the latest first. Numbers and ids in errors are left out."""
        return self._store.run(failures.failures, limit=validate.whole("limit", limit, 1, 1000))

    def stats(
        self,
        *,
        since: datetime,
        until: datetime | None = None,
        step: int | None = None,
        queue: str | None = None,
        only: str | None = None,
    ) -> list[StatPoint]:
        """What happened, by step and queue: attempts ended, times taken, jobs there. Empty steps are left out.

        Queue "*" stands for all of them together. `only`: nothing but this count, such as "succeeded"; it is quicker.
        Steps of 60 seconds are kept for 3 hours, of 600 for 3 days, of 3600 for 8, of 21600 for 400. None: what suits.
        """
        begin = validate.moment("since", since)
        end = None if until is None else validate.moment("until", until)
        if step is not None and step not in STEPS:
            raise InvalidInput(f"step must be one of {', '.join(map(str, STEPS))} seconds, not {step!r}")
        name = None if queue is None else validate.key("queue", queue)
        return self._store.run(stats.stats, begin, end, step=step, queue=name, only=only)

    def totals(self) -> list[StatPoint]:
        """All that was ever counted, one point for each queue: what never goes down, as monitoring wants it."""
        return self._store.run(stats.totals)

    def audit(self, *, limit: int = 50, before: str | None = None) -> AuditPage:
        """Who did what, the latest first: what was done by clients that act for somebody (`acting_as`)."""
        limit = validate.whole("limit", limit, 1, 1000)
        return self._store.run(audit.actions, limit=limit, before=None if before is None else parse_id(before))


def id_of(job: AnyJob) -> str:
    """The id of a job, checked."""
    return job.id if isinstance(job, Job) else parse_id(job)


def ids_of(jobs: Iterable[AnyJob]) -> list[str]:
    """The ids of jobs that are to be waited for, checked."""
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
        tuple(State(validate.choice("state", one, tuple(State))) for one in states),
        None if queue is None else validate.key("queue", queue),
        None if task is None else validate.key("task", task),
        None if target is None else validate.key("target", target),
        None if worker is None else validate.key("worker", worker),
        None if error is None else validate.key("error", error),
        None if created_from is None else validate.moment("created_from", created_from),
        None if created_to is None else validate.moment("created_to", created_to),
    )
