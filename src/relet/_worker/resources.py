"""The values of an app's resources in one process: made in order, closed in reverse order.

Plain resources run in the thread that calls `make` and `close`. Async ones run on the event loop of async handlers,
each from start to end in one asyncio task, because task groups and timeouts must be left in the task that entered them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Any

from .._system import Event, System
from .._tasks.resources import Context, Resource
from ..errors import ResourceFailed

log = logging.getLogger("relet.worker")

#: Runs a coroutine on the event loop of async handlers, and returns its result.
RunAsync = Callable[[Coroutine[Any, Any, Any]], Any]

CHECK_EVERY = 0.05  # seconds between two checks whether the worker was told to stop at once


class ResourceValues:
    """The values, and how to close them. `overrides` are values of a test, whose resources are not made."""

    def __init__(self, run: RunAsync, overrides: Mapping[Any, Any] | None = None) -> None:
        self._run = run
        self.by_kind: dict[Any, Any] = dict(overrides or {})
        self._closers: dict[Resource, Callable[[], object]] = {}  # in the order in which they were made

    def make(self, resources: Iterable[Resource]) -> None:
        """Make those of these resources that are not there yet. Raises ResourceFailed."""
        for resource in resources:
            if resource not in self._closers:
                self._make(resource)

    def _make(self, resource: Resource) -> None:
        values = {name: self.by_kind[kind] for name, kind in resource.takes.items()}
        try:
            value, closer = self._entered(resource.around(**values))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            log.error("%s could not be made", resource, exc_info=error)
            raise ResourceFailed(f"{resource} could not be made: {type(error).__name__}: {error}") from error
        self._closers[resource] = closer
        if resource.kind is not None:
            self.by_kind[resource.kind] = value

    def _entered(self, around: Context) -> tuple[Any, Callable[[], object]]:
        if isinstance(around, AbstractContextManager):
            return around.__enter__(), partial(around.__exit__, None, None, None)
        life = _AsyncLife(around)
        return self._run(life.start()), lambda: self._run(life.end())

    def close(self) -> None:
        """Close all of them, the last one first. An error does not keep the others from being closed."""
        while self._closers:
            resource, closer = self._closers.popitem()
            self.by_kind.pop(resource.kind, None)
            try:
                closer()
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                log.error("%s was not closed properly", resource, exc_info=error)


class _AsyncLife:
    """Enters and leaves an async context manager in one asyncio task."""

    def __init__(self, around: AbstractAsyncContextManager[Any]) -> None:
        self._around = around
        self._ending = asyncio.Event()

    async def start(self) -> Any:
        self._started: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live())
        try:
            await asyncio.wait({self._task, self._started}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if self._task.done():
            await self._task  # raises what kept it from starting
        return self._started.result()

    async def _live(self) -> None:
        async with self._around as value:
            self._started.set_result(value)
            await self._ending.wait()

    async def end(self) -> None:
        self._ending.set()
        await self._task


class WorkerResources:
    """The resources of a worker. A thread makes and closes them, so that one that blocks does not block the worker.

    `hurry`: is set when the worker is to stop at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, hurry: Event, system: System) -> None:
        self._values = ResourceValues(lambda call: asyncio.run_coroutine_threadsafe(call, loop).result())
        self.by_kind: Mapping[Any, Any] = self._values.by_kind
        self._hurry, self._system = hurry, system
        self._made, self._closing, self._closed = system.event(), system.event(), system.event()
        self._failure: BaseException | None = None
        self._is_started = False

    def start(self, resources: list[Resource]) -> None:
        """Make these resources. Raises ResourceFailed. Returns early if the worker is to stop at once."""
        if not resources:
            return
        self._is_started = True
        self._system.spawn("resources", partial(self._live, resources))
        while not self._made.wait(CHECK_EVERY) and not self._hurry.is_set():
            pass
        if self._failure is not None:
            raise self._failure

    def _live(self, resources: list[Resource]) -> None:
        try:
            self._values.make(resources)
        except BaseException as error:
            self._failure = error
        self._made.set()
        self._closing.wait()
        self._values.close()
        self._closed.set()

    def close(self, timeout: float, hurried_timeout: float) -> None:
        """Close them. Wait for that for `timeout`; once the worker is to stop at once, for `hurried_timeout`."""
        if not self._is_started:
            return
        self._closing.set()
        give_up = self._system.monotonic() + timeout
        while not self._hurry.is_set() and self._system.monotonic() < give_up:
            if self._closed.wait(CHECK_EVERY):
                return
        if not self._closed.wait(hurried_timeout):
            log.error("Resources were not closed in time: stopping without waiting for them")
