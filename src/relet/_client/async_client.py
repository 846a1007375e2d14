"""The client for async code: the same names, signatures and docs as `Client`.

It runs the synchronous client in threads: so it works from any event loop, after a fork, under pytest and in Django's
threads, and has no pool to leak. There are at most 64 threads; further calls queue. Waiting for jobs takes a thread
only for each read, so any number of waits does not hold up other calls. A flow on an async connection of the caller
runs in the caller's event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack, overload
from uuid import UUID

from msgspec import UNSET, UnsetType

from .._core import validate
from .._core.decoding import decodable
from .._core.filters import Which
from .._core.finding import Finding
from .._core.job import AttemptRecord, Chain, Dependency, Draft, Job, StepRecord
from .._core.stats import StatPoint
from .._core.validate import Seconds
from .._core.variants import Variant
from .._core.verbs import BulkVerb
from .._core.views import AuditPage, FailureGroup, JobDetails, Page, QueueInfo, TargetPage, TargetView
from .._core.worker import WorkerInfo
from .._store.flows import control, enqueue, inspect, search
from .._store.flows.maintenance import Pruned
from .._store.query import Flow
from .._store.store import Store
from .._tasks.drafts import storing
from .._tasks.task import TaskRegistry
from .._threads import read_in_thread, write_in_thread
from ..errors import InvalidInput, JobCancelled, JobFailed
from .audit import IdempotencyKey
from .bulk import BulkResult
from .client import DAY, Client, signal_of
from .inspection import AnyJob, Inspection, id_of, ids_of
from .schedules import AsyncSchedules
from .wait import await_for

R = TypeVar("R")
T = TypeVar("T")


class AsyncClient:
    """The jobs of one store, for async code. Safe to use from any event loop, and after a fork."""

    def __init__(
        self,
        tasks: TaskRegistry,
        store: Callable[[str | None], Store],
        tenant: str | None = None,
        who: str | None = None,
        key: IdempotencyKey | None = None,
    ) -> None:
        self._plain = Client(tasks, store, tenant, who, key)
        self._tasks = tasks
        self._store_of = store
        self._tenant = tenant
        self._actor = who
        self._key = key

    @property
    def _store(self) -> Store:
        return self._plain._store

    @property
    def where(self) -> str:
        return self._plain.where

    def tenant(self, name: str) -> AsyncClient:
        return self._like_this(AsyncClient(self._tasks, self._store_of, name, self._actor, self._key))

    async def tenants(self) -> list[str]:
        return await read_in_thread(self._plain.tenants)

    def acting_as(self, who: str) -> AsyncClient:
        who = validate.text("who", who)
        return self._like_this(AsyncClient(self._tasks, self._store_of, self._tenant, who, self._key))

    def replica(self) -> AsyncClient:
        client = AsyncClient(self._tasks, self._store_of, self._tenant, self._actor, self._key)
        client._plain._reads_replica = True
        return client

    def _like_this(self, client: AsyncClient) -> AsyncClient:
        client._plain._reads_replica = self._plain._reads_replica
        return client

    def idempotent(self, key: str, /, *, request: str | None = None) -> AsyncClient:
        checked = IdempotencyKey(validate.text("key", key), request)
        return self._like_this(AsyncClient(self._tasks, self._store_of, self._tenant, self._actor, checked))

    async def enqueue(self, draft: Draft[R], /, *, connection: Any = None, tenant: str | None = None) -> Job[R]:
        return (await self.enqueue_many([draft], connection=connection, tenant=tenant))[0]

    async def enqueue_many(
        self, drafts: Iterable[Draft[R]], /, *, connection: Any = None, tenant: str | None = None
    ) -> list[Job[R]]:
        if connection is not None:
            store = self._store_of(self._tenant if tenant is None else tenant)
            with storing(self._tasks.telemetry, drafts) as batch:
                batch.jobs = await _arun_on(store, connection, enqueue.enqueue, batch.drafts)
            return decodable(batch.jobs, self._plain._codecs)
        return await write_in_thread(self._plain.enqueue_many, drafts, tenant=tenant)

    async def _read_on(self, connection: Any, flow: Callable[..., Flow[T]], *args: Any) -> T:
        return decodable(await _arun_on(self._store, connection, flow, *args), self._plain._codecs)

    async def get(self, job: AnyJob, /, *, connection: Any = None) -> Job[Any] | None:
        if connection is None:
            return await read_in_thread(self._plain.get, job)
        try:
            id = id_of(job)
        except InvalidInput:
            return None
        return await self._read_on(connection, inspect.get, id)

    async def jobs(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        scan: int | None = None,
        connection: Any = None,
        **which: Unpack[Which],
    ) -> Page:
        if connection is None:
            return await read_in_thread(self._plain.jobs, limit=limit, cursor=cursor, scan=scan, **which)
        return await self._read_on(connection, search.jobs, *self._plain._page(limit, cursor, scan, which))

    async def count(
        self, *, limit: int | None = None, scan: int | None = None, connection: Any = None, **which: Unpack[Which]
    ) -> int:
        if connection is None:
            return await read_in_thread(self._plain.count, limit=limit, scan=scan, **which)
        return await self._read_on(connection, search.count, *self._plain._bounds(limit, scan, which))

    async def wait(self, job: AnyJob, /, *, timeout: Seconds = 60.0) -> Job[Any]:
        return (await self.wait_many([job], timeout=timeout))[0]

    async def wait_many(self, jobs: Iterable[AnyJob], /, *, timeout: Seconds = 60.0) -> list[Job[Any]]:
        ids, seconds = ids_of(jobs), validate.seconds("timeout", timeout)
        return decodable(await await_for(self._store, ids, seconds), self._plain._codecs)

    @overload
    async def result(self, job: Job[R], /, *, timeout: Seconds = 60.0) -> R: ...
    @overload
    async def result(self, job: str | UUID, /, *, timeout: Seconds = 60.0) -> Any: ...
    async def result(self, job: AnyJob, /, *, timeout: Seconds = 60.0) -> Any:
        return (await self.results([id_of(job)], timeout=timeout))[0]

    @overload
    async def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: Seconds = 60.0, return_exceptions: Literal[False] = False
    ) -> list[R]: ...
    @overload
    async def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: Seconds = 60.0, return_exceptions: bool
    ) -> list[R | JobFailed | JobCancelled]: ...
    @overload
    async def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: Seconds = 60.0, return_exceptions: bool = False
    ) -> list[Any]: ...
    async def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: Seconds = 60.0, return_exceptions: bool = False
    ) -> list[Any]:
        lasts = await self.wait_many(jobs, timeout=timeout)
        return await read_in_thread(self._plain._ends, lasts, return_exceptions)

    async def erase(self, *, tag: str | None = None, group: str | None = None, target: str | None = None) -> int:
        return await write_in_thread(self._plain.erase, tag=tag, group=group, target=target)

    async def rerun(self, job: AnyJob, /, *, arguments: Mapping[str, Any] | None = None) -> Job[Any]:
        return await write_in_thread(self._plain.rerun, job, arguments=arguments)

    async def cancel(self, job: AnyJob, /, *, chain: bool = False) -> Job[Any]:
        return await write_in_thread(self._plain.cancel, job, chain=chain)

    async def pause(self, job: AnyJob, /) -> Job[Any]:
        return await write_in_thread(self._plain.pause, job)

    async def resume(self, job: AnyJob, /) -> Job[Any]:
        return await write_in_thread(self._plain.resume, job)

    async def run_now(self, job: AnyJob, /) -> Job[Any]:
        return await write_in_thread(self._plain.run_now, job)

    async def complete(
        self,
        job: AnyJob,
        result: Any = None,
        /,
        *,
        continue_with: Draft[Any] | None = None,
        chain: bool = False,
        connection: Any = None,
    ) -> Job[Any]:
        if connection is None:
            return await write_in_thread(self._plain.complete, job, result, continue_with=continue_with, chain=chain)
        job_id, text, options = self._plain._completion(job, result, continue_with, chain)
        await write_in_thread(self._plain._prepare_to_complete, job_id, chain)
        done = await _arun_on(self._store, connection, control.complete, job_id, text, **options, theirs=True)
        return decodable(done, self._plain._codecs)

    async def delete(self, job: AnyJob, /, *, chain: bool = False, dependents: bool = False) -> None:
        await write_in_thread(self._plain.delete, job, chain=chain, dependents=dependents)

    async def signal(self, job: AnyJob, name: str, value: Any = None, /, *, connection: Any = None) -> bool:
        if connection is not None:
            return await _arun_on(self._store, connection, control.signal, *signal_of(self._tasks, job, name, value))
        return await write_in_thread(self._plain.signal, job, name, value)

    async def bulk(
        self,
        verb: BulkVerb,
        /,
        *,
        limit: int | None = None,
        seconds: Seconds | None = None,
        cursor: str | None = None,
        on_step: Callable[[BulkResult], object] | None = None,
        **which: Unpack[Which],
    ) -> BulkResult:
        limits: dict[str, Any] = {"limit": limit, "seconds": seconds, "cursor": cursor, "on_step": on_step}
        return await write_in_thread(self._plain.bulk, verb, **limits, **which)

    @property
    def schedules(self) -> AsyncSchedules:
        return AsyncSchedules(self._plain.schedules)

    async def describe(self, job: AnyJob, /) -> JobDetails:
        return await read_in_thread(self._plain.describe, job)

    async def explain(self, job: AnyJob, /) -> list[str]:
        return await read_in_thread(self._plain.explain, job)

    async def attempts(self, job: AnyJob, /, *, connection: Any = None) -> list[AttemptRecord]:
        if connection is None:
            return await read_in_thread(self._plain.attempts, job)
        return await self._read_on(connection, inspect.attempts, id_of(job))

    async def steps(self, job: AnyJob, /) -> list[StepRecord]:
        return await read_in_thread(self._plain.steps, job)

    async def chain(self, job: AnyJob, /) -> Chain:
        return await read_in_thread(self._plain.chain, job)

    async def dependencies(self, job: AnyJob, /) -> list[Dependency]:
        return await read_in_thread(self._plain.dependencies, job)

    async def dependents(self, job: AnyJob, /, *, limit: int = 50) -> list[Job[Any]]:
        return await read_in_thread(self._plain.dependents, job, limit=limit)

    async def queues(self) -> list[QueueInfo]:
        return await read_in_thread(self._plain.queues)

    async def targets(self, *, limit: int = 50, cursor: str | None = None) -> TargetPage:
        return await read_in_thread(self._plain.targets, limit=limit, cursor=cursor)

    async def target(self, target: str, /, *, limit: int = 100) -> TargetView:
        return await read_in_thread(self._plain.target, target, limit=limit)

    async def workers(self) -> list[WorkerInfo]:
        return await read_in_thread(self._plain.workers)

    async def failures(self, *, limit: int = 50) -> list[FailureGroup]:
        return await read_in_thread(self._plain.failures, limit=limit)

    async def stats(
        self,
        *,
        since: datetime,
        until: datetime | None = None,
        step: int | None = None,
        queue: str | None = None,
        only: str | None = None,
    ) -> list[StatPoint]:
        return await read_in_thread(self._plain.stats, since=since, until=until, step=step, queue=queue, only=only)

    async def totals(self) -> list[StatPoint]:
        return await read_in_thread(self._plain.totals)

    async def audit(self, *, limit: int = 50, cursor: str | None = None) -> AuditPage:
        return await read_in_thread(self._plain.audit, limit=limit, cursor=cursor)

    async def pause_queue(self, queue: str, /) -> None:
        await write_in_thread(self._plain.pause_queue, queue)

    async def resume_queue(self, queue: str, /) -> None:
        await write_in_thread(self._plain.resume_queue, queue)

    async def limit_queue(
        self,
        queue: str | None,
        /,
        *,
        max_running: int | UnsetType | None = UNSET,
        rate: int | UnsetType | None = UNSET,
        per: Seconds | None = None,
        group: str | None = None,
        fair: bool | None = None,
    ) -> None:
        limits: dict[str, Any] = {"max_running": max_running, "rate": rate, "per": per, "group": group, "fair": fair}
        await write_in_thread(self._plain.limit_queue, queue, **limits)

    async def prune(
        self,
        *,
        keep_finished: Seconds = 7 * DAY,
        keep_failed: Seconds = 30 * DAY,
        keep_payloads: Seconds | None = None,
        on_step: Callable[[Pruned], object] | None = None,
    ) -> Pruned:
        return await write_in_thread(
            self._plain.prune, keep_finished=keep_finished, keep_failed=keep_failed, keep_payloads=keep_payloads,
            on_step=on_step,
        )  # fmt: skip

    async def doctor(self) -> list[Finding]:
        return await read_in_thread(self._plain.doctor)

    async def migrate(self, *, connection: Any = None, variant: Variant | None = None) -> list[int]:
        if connection is None:
            return await write_in_thread(self._plain.migrate, variant=variant)
        self._plain._want(variant)
        from .._store.adapters.drivers import amigrate_on

        return await amigrate_on(self._store, connection)

    async def migration_sql(self, *, since: int = 0, variant: Variant | None = None) -> str:
        return self._plain.migration_sql(since=since, variant=variant)


for _name, _method in {**vars(Inspection), **vars(Client)}.items():
    if not _name.startswith("_"):
        getattr(AsyncClient, _name).__doc__ = _method.__doc__  # written once


async def _arun_on(store: Store, connection: Any, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> R:
    """Run a flow in the caller's transaction. The adapters are imported with the first use."""
    from .._store.adapters.drivers import arun_on

    return await arun_on(store, connection, flow, *args, **kwargs)
