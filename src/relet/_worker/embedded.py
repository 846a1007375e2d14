"""A worker inside another program, such as a web server: `async with app.worker():` or `with app.worker():`.

A worker that ends by an error must not leave a program behind that enqueues jobs and runs none. So an `async with`
block is cancelled, the error is raised at the end of the block, and the program is stopped as by SIGTERM, if it handles
that signal, else as by Ctrl-C if the worker runs in a thread: a server may go on serving although its lifespan has
failed (uvicorn does).
"""

from __future__ import annotations

import _thread
import asyncio
import atexit
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from .._core.validate import Seconds
from .._system import SYSTEM, Thread
from ..errors import InvalidInput
from .context import Queues
from .worker import Worker

if TYPE_CHECKING:
    from ..app import App

log = logging.getLogger("relet.worker")


class WorkerOptions(TypedDict, total=False):
    """The options of `Worker`, without `max_jobs` and `max_rss`: they end a worker so that its process is replaced."""

    queues: Queues | None
    concurrency: int
    lease: Seconds
    shutdown_timeout: Seconds
    poll_interval: Seconds
    rest: Seconds
    tenants: Mapping[str, int] | Literal["all"] | None
    keep_finished: Seconds
    keep_payloads: Seconds | None
    keep_failed: Seconds
    name: str | None
    gateway: str | Sequence[str] | None
    gateway_token: str | None


class EmbeddedWorker:
    """Runs a worker while a block runs: on the event loop of an `async with` block, in a thread for a `with` block.

    A server that offers no block calls `start` and `stop`.
    """

    def __init__(self, app: App, options: WorkerOptions, stop_program: bool) -> None:
        for limit in ("max_jobs", "max_rss"):
            if limit in options:
                raise InvalidInput(
                    f"app.worker() takes no {limit}: it would leave the program without a worker; use the command "
                    f"relet worker, which replaces the process"
                )
        self._worker = Worker(app, **options)
        self._stop_program = stop_program
        self._process: int | None = None  # which has started it; a fork has no copy of its threads
        self._is_leaving = False  # the block has ended
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None  # of the worker, in an `async with` block
        self._block: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._thread: Thread | None = None  # of the worker, in a `with` block
        self._is_ready = SYSTEM.event()  # it works, waits for a database, or has ended

    def _note_start(self) -> None:
        if self._process is not None:
            raise InvalidInput("this worker was started before; app.worker() makes another one")
        self._process = os.getpid()

    # On an event loop

    async def __aenter__(self) -> Worker:
        """Start the worker. Raises the error of a worker that cannot start; an unreachable database is waited for."""
        self._note_start()
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        self._worker._on_ready = lambda: loop.call_soon_threadsafe(ready.set)
        self._task = loop.create_task(self._worker.run(), name="relet-worker")
        waiting = loop.create_task(ready.wait())
        try:
            await asyncio.wait((self._task, waiting), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait((self._task,))
            raise
        finally:
            waiting.cancel()
        if self._task.done():
            self._task.result()
        self._block = asyncio.current_task()
        self._cancelling = self._block.cancelling() if self._block is not None else 0
        self._task.add_done_callback(self._note_end)
        return self._worker

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Stop the worker: running jobs have `shutdown_timeout` to end; after a cancellation they are released."""
        assert self._task is not None
        self._is_leaving = True
        self._worker.stop()
        if self._failure is None:
            await self._task
            return
        if self._block is not None and self._block.uncancel() > self._cancelling:
            return  # the block was cancelled by its own program, too; the error is in the log
        raise self._failure from (None if isinstance(error, asyncio.CancelledError) else error)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if self._is_leaving or task.cancelled() or (failure := task.exception()) is None:
            return
        self._fail(failure)
        if self._block is not None:
            self._block.cancel()

    # In a thread

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.stop()

    def start(self) -> Worker:
        """Start the worker in a thread. The end of the program stops it, unless `stop` does. Raises as `async with`."""
        _refuse_event_loop()
        self._note_start()
        self._worker._on_ready = self._is_ready.set
        self._thread = SYSTEM.spawn("embedded", self._run)
        try:
            self._is_ready.wait()
        except BaseException:  # KeyboardInterrupt
            self._worker.stop()
            self._worker.stop()
            self._thread.join()
            raise
        if self._failure is not None:
            raise self._failure
        atexit.register(self.stop)
        return self._worker

    def stop(self) -> None:
        """Stop the worker, and wait: running jobs have `shutdown_timeout` to end; after a Ctrl-C they are released.

        Does nothing in a process that was forked from the one of the worker.
        """
        atexit.unregister(self.stop)
        if self._thread is None or self._process != os.getpid():
            return
        self._is_leaving = True
        self._worker.stop()
        try:
            self._thread.join()
        except BaseException:  # KeyboardInterrupt
            self._worker.stop()
            self._thread.join()
            raise
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            asyncio.run(self._worker.run())
        except BaseException as error:
            failure = error
        if failure is None:
            self._is_ready.set()  # it was stopped before it was ready
            return
        if self._is_leaving or not self._is_ready.is_set():
            self._failure = failure  # for `start` or `stop` to raise
            self._is_ready.set()
            return
        self._fail(failure)
        if self._stop_program and not _handles(signal.SIGTERM):
            _thread.interrupt_main()  # a block in another thread cannot be cancelled

    def _fail(self, failure: BaseException) -> None:
        """The worker has ended by an error while the program goes on."""
        self._failure = failure
        log.critical("The worker has ended by an error, and runs no more jobs", exc_info=failure)
        if self._stop_program and _handles(signal.SIGTERM):
            log.critical("Stopping the program, as after SIGTERM")
            _thread.interrupt_main(signal.SIGTERM)


def _handles(number: signal.Signals) -> bool:
    """Whether the program has a handler for a signal, as servers have."""
    return callable(signal.getsignal(number))


def _refuse_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidInput("this would block the event loop; in async code write: async with app.worker():")
