"""The client for async code: the same names, signatures and docs as `Client`.

It runs the sync one in a thread: so it works from any event loop, after a fork, under pytest and in Django's threads,
and has no pool to leak. Enqueueing on an async connection of the caller's runs right there, in the caller's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, overload
from uuid import UUID

from .client import DAY, AnyJob, AnyState, Client, signal_of
from .core.drafts import check_drafts, spend
from .core.errors import JobCancelled, JobFailed
from .core.job import AttemptRecord, BlockerInfo, Chain, Draft, Job
from .schedules import AsyncSchedules
from .store.callers import arun_on
from .store.flows import enqueue, steer
from .store.flows.look import Page, QueueInfo
from .store.flows.upkeep import Pruned
from .store.store import Store
from .tasks import Tasks
from .threads import Threads

R = TypeVar("R")

_call = Threads("leasehold-client").call


class AsyncClient:
    """The jobs of one store, for async code. Safe to use from any event loop, and after a fork."""

    def __init__(self, tasks: Tasks, store: Callable[[str | None], Store], tenant: str | None = None) -> None:
        self._plain = Client(tasks, store, tenant)
        self._tasks = tasks
        self._store_of = store
        self._tenant = tenant

    @property
    def store(self) -> Store:
        return self._plain.store

    def tenant(self, name: str) -> AsyncClient:
        return AsyncClient(self._tasks, self._store_of, name)

    async def enqueue(self, draft: Draft[R], /, *, connection: Any = None, tenant: str | None = None) -> Job[R]:
        return (await self.enqueue_many([draft], connection=connection, tenant=tenant))[0]

    async def enqueue_many(
        self, drafts: Iterable[Draft[R]], /, *, connection: Any = None, tenant: str | None = None
    ) -> list[Job[R]]:
        if connection is not None:
            given = check_drafts(drafts)
            store = self._store_of(self._tenant if tenant is None else tenant)
            try:
                return await arun_on(store, connection, enqueue.enqueue, given)
            finally:
                spend(given)
        return await _call(self._plain.enqueue_many, drafts, tenant=tenant)

    async def get(self, job: AnyJob, /) -> Job[Any] | None:
        return await _call(self._plain.get, job)

    async def jobs(
        self,
        *,
        state: AnyState | Sequence[AnyState] | None = None,
        queue: str | None = None,
        task: str | None = None,
        target: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> Page:
        return await _call(
            self._plain.jobs,
            state=state,
            queue=queue,
            task=task,
            target=target,
            created_from=created_from,
            created_to=created_to,
            limit=limit,
            before=before,
        )

    async def count(
        self,
        *,
        state: AnyState | Sequence[AnyState] | None = None,
        queue: str | None = None,
        task: str | None = None,
        target: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        most: int | None = None,
    ) -> int:
        return await _call(
            self._plain.count,
            state=state,
            queue=queue,
            task=task,
            target=target,
            created_from=created_from,
            created_to=created_to,
            most=most,
        )

    async def wait(self, job: AnyJob, /, *, timeout: float = 60.0) -> Job[Any]:
        return await _call(self._plain.wait, job, timeout=timeout)

    async def wait_many(self, jobs: Iterable[AnyJob], /, *, timeout: float = 60.0) -> list[Job[Any]]:
        return await _call(self._plain.wait_many, jobs, timeout=timeout)

    @overload
    async def result(self, job: Job[R], /, *, timeout: float = 60.0) -> R: ...
    @overload
    async def result(self, job: str | UUID, /, *, timeout: float = 60.0) -> Any: ...
    async def result(self, job: AnyJob, /, *, timeout: float = 60.0) -> Any:
        return await _call(self._plain.result, job, timeout=timeout)

    @overload
    async def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: float = 60.0, return_exceptions: Literal[False] = False
    ) -> list[R]: ...
    @overload
    async def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: float = 60.0, return_exceptions: bool
    ) -> list[R | JobFailed | JobCancelled]: ...
    @overload
    async def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: float = 60.0, return_exceptions: bool = False
    ) -> list[Any]: ...
    async def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: float = 60.0, return_exceptions: bool = False
    ) -> list[Any]:
        return await _call(self._plain.results, jobs, timeout=timeout, return_exceptions=return_exceptions)

    async def cancel(self, job: AnyJob, /, *, chain: bool = False) -> Job[Any]:
        return await _call(self._plain.cancel, job, chain=chain)

    async def pause(self, job: AnyJob, /) -> Job[Any]:
        return await _call(self._plain.pause, job)

    async def resume(self, job: AnyJob, /) -> Job[Any]:
        return await _call(self._plain.resume, job)

    async def run_now(self, job: AnyJob, /) -> Job[Any]:
        return await _call(self._plain.run_now, job)

    async def complete(
        self, job: AnyJob, result: Any = None, /, *, continue_with: Draft[Any] | None = None, chain: bool = False
    ) -> Job[Any]:
        return await _call(self._plain.complete, job, result, continue_with=continue_with, chain=chain)

    async def delete(self, job: AnyJob, /, *, chain: bool = False, dependents: bool = False) -> None:
        await _call(self._plain.delete, job, chain=chain, dependents=dependents)

    async def signal(self, job: AnyJob, name: str, value: Any = None, /, *, connection: Any = None) -> bool:
        if connection is not None:
            return await arun_on(self.store, connection, steer.signal, *signal_of(self._tasks, job, name, value))
        return await _call(self._plain.signal, job, name, value)

    @property
    def schedules(self) -> AsyncSchedules:
        return AsyncSchedules(self._plain.schedules)

    async def explain(self, job: AnyJob, /) -> list[str]:
        return await _call(self._plain.explain, job)

    async def attempts(self, job: AnyJob, /) -> list[AttemptRecord]:
        return await _call(self._plain.attempts, job)

    async def chain(self, job: AnyJob, /) -> Chain:
        return await _call(self._plain.chain, job)

    async def blockers(self, job: AnyJob, /) -> list[BlockerInfo]:
        return await _call(self._plain.blockers, job)

    async def queues(self) -> list[QueueInfo]:
        return await _call(self._plain.queues)

    async def pause_queue(self, queue: str, /) -> None:
        await _call(self._plain.pause_queue, queue)

    async def resume_queue(self, queue: str, /) -> None:
        await _call(self._plain.resume_queue, queue)

    async def limit_queue(
        self,
        queue: str | None,
        /,
        *,
        max_running: int | Literal["keep"] | None = "keep",
        rate: int | Literal["keep"] | None = "keep",
        per: float | None = None,
        key: str | None = None,
        fair: bool | None = None,
    ) -> None:
        limits: dict[str, Any] = {"max_running": max_running, "rate": rate, "per": per, "key": key, "fair": fair}
        await _call(self._plain.limit_queue, queue, **limits)

    async def prune(self, *, finished_for: float = 7 * DAY, failed_for: float = 30 * DAY) -> Pruned:
        return await _call(self._plain.prune, finished_for=finished_for, failed_for=failed_for)

    async def migrate(self) -> list[int]:
        return await _call(self._plain.migrate)


for _name, _method in vars(Client).items():
    if not _name.startswith("_"):
        getattr(AsyncClient, _name).__doc__ = _method.__doc__  # said once
