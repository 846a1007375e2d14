"""Requests to cancel or pause: workers wait for them, and one statement reads those of all workers that wait."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from .._core.job import Lease, Request
from .._remote.wire import MAX_WAIT, RequestedDoc, RequestsIn, RequestsOut
from .._store.flows import lease
from ..errors import ReletError
from .context import GatewayContext, log

READ_EVERY = 0.05  # seconds between two reads: on SQLite any commit of another process may be a request
Found = dict[Lease, Request]


class Requests:
    """The workers that wait for requests. `start` is called on the event loop of the gateway."""

    def __init__(self, context: GatewayContext) -> None:
        self._context = context
        self._waiting: dict[asyncio.Future[Found], str] = {}
        self._subscriptions = ExitStack()
        self._is_due = False
        self._reader: asyncio.Task[None] | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(self._read_soon)

        self._subscriptions.enter_context(self._context.store.notifier.subscribe("request", wake=wake))

    def stop(self) -> None:
        """Answer all that wait."""
        self._subscriptions.close()
        self._answer({}, list(self._waiting))

    async def wait(self, asked: RequestsIn, worker: str, gone: asyncio.Future[None]) -> RequestsOut:
        """The requests to this worker: at once if there are any, else as soon as there is one."""
        found: Found = (await self._context.working.call(self._context.run, lease.requested, [worker])).get(worker, {})
        if not found and asked.wait > 0:
            future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
            self._waiting[future] = worker
            gone.add_done_callback(lambda _: future.cancel())
            try:
                found = await asyncio.wait_for(future, min(asked.wait, MAX_WAIT))
            except TimeoutError:
                pass
            finally:
                self._waiting.pop(future, None)
        return RequestsOut([RequestedDoc(id, token, request) for (id, token), request in found.items()])

    def interrupt(self, worker: str) -> None:
        """Answer this worker, if it waits."""
        self._answer({}, [future for future, waiting in self._waiting.items() if waiting == worker])

    def _read_soon(self) -> None:
        self._is_due = True
        if self._waiting and self._reader is None:
            self._reader = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            while self._is_due and self._waiting:
                self._is_due = False
                waiting = dict(self._waiting)
                workers = sorted(set(waiting.values()))
                found = await self._context.working.call(self._context.run, lease.requested, workers)
                self._answer(found, [future for future, worker in waiting.items() if worker in found])
                await asyncio.sleep(READ_EVERY)
        except ReletError as error:  # the workers renew, and learn of their requests then
            log.debug("Cannot read requests: %s", error)
        finally:
            self._reader = None

    def _answer(self, found: dict[str, Found], futures: list[asyncio.Future[Found]]) -> None:
        for future in futures:
            if not future.done():
                future.set_result(found.get(self._waiting.get(future, ""), {}))
