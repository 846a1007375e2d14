"""Runs batch tasks: collects executions of one task, and calls its handler with all of them.

Each execution keeps its slot, lease, timeout and outcome. A batch is called when it is full, when its first job has
waited for long enough, or when no slot is free for another job.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any

from .._core.job import Outcome
from .._system import System
from .._tasks.batch import BatchItem
from .._tasks.task import Middleware, Task
from .._threads import DaemonThreadPool
from . import outcome as outcomes
from .execution import Execution, Slots
from .executors import Begin
from .invoke import check_deadline
from .timers import Timer, Timers


class _Collecting:
    """The executions of one task that wait to be called together."""

    def __init__(self) -> None:
        self.runs: list[Execution] = []
        self.timer: Timer | None = None


class InBatches:
    """An executor for batch tasks. Their handlers run in threads or, if they are async, on the worker's event loop."""

    def __init__(self, begin: Begin, timers: Timers, middlewares: Sequence[Middleware], system: System) -> None:
        self._begin, self._timers, self._middlewares = begin, timers, middlewares
        self._now, self._lock = system.monotonic, system.lock()
        self._threads = DaemonThreadPool("relet-batch")
        self._collecting: dict[tuple[Task[..., Any], object], _Collecting] = {}
        self._ending: Counter[object] = Counter()  # by slots: batches that are giving back their slots one by one
        self._hurries = False
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self, run: Execution) -> None:
        """Add an execution to the batch of its task, from any thread."""
        self._add([run])

    def _add(self, runs: list[Execution]) -> None:
        """Add executions that have slots. They are of one task and of the same slots."""
        run = runs[0]
        options = run.task.batch
        assert options is not None
        key = (run.task, run.slots)
        with self._lock:
            batch = self._collecting.setdefault(key, _Collecting())
            batch.runs += runs
            no_slot = run.slots.is_full and not self._ending[run.slots]
            is_full = len(batch.runs) >= options.size or no_slot or self._hurries or options.wait == 0
            if not is_full and batch.timer is None:
                batch.timer = self._timers.at(self._now() + options.wait, partial(self._call, key))
        if is_full:
            self._call(key)

    def hurry(self) -> None:
        """From now on, wait for no further jobs: the worker stops."""
        with self._lock:
            self._hurries = True
            keys = list(self._collecting)
        for key in keys:
            self._call(key)

    def _call(self, key: tuple[Task[..., Any], object]) -> None:
        """Call the handler with the executions that have been collected."""
        with self._lock:
            batch = self._collecting.pop(key, None)
        if batch is None:
            return
        if batch.timer is not None:
            batch.timer.cancel()
        task, _ = key
        size = 1 if task.batch is None else task.batch.size
        for first in range(0, len(batch.runs), size):
            self._submit(task, batch.runs[first : first + size])

    def _submit(self, task: Task[..., Any], runs: list[Execution]) -> None:
        if not task.is_async:
            self._threads.submit(partial(self._work, task, runs))
        elif self.loop is not None:
            asyncio.run_coroutine_threadsafe(self._work_async(task, runs), self.loop)

    def _work(self, task: Task[..., Any], runs: list[Execution]) -> None:
        items = self._items(task, runs)
        error: BaseException | None = None
        if items:
            try:
                with ExitStack() as stack:
                    for middleware in self._middlewares:
                        for item in items.values() if not middleware.is_async else ():
                            stack.enter_context(middleware.around(item.attempt))
                    task.batch.handler(list(items.values()))  # type: ignore[union-attr]
            except BaseException as raised:  # SystemExit too: it ends the handler, not the worker
                error = raised
        self._end_all(items, error)

    async def _work_async(self, task: Task[..., Any], runs: list[Execution]) -> None:
        items, current = self._items(task, runs), asyncio.current_task()
        error: BaseException | None = None
        cancel = partial(self._cancel, list(items), current)
        for run in items:
            run.interrupt = cancel
        if items:
            try:
                async with AsyncExitStack() as stack:
                    for middleware in self._middlewares:
                        for item in items.values():
                            around = middleware.around(item.attempt)
                            if middleware.is_async:
                                await stack.enter_async_context(around)
                            else:
                                stack.enter_context(around)
                    await task.batch.handler(list(items.values()))  # type: ignore[union-attr]
            except BaseException as raised:
                error = raised
        self._end_all(items, error)

    def _cancel(self, runs: list[Execution], current: asyncio.Task[Any] | None, _: Execution) -> None:
        """Cancel an async handler once all of its jobs are aborted. While one is not, the handler goes on."""
        if self.loop is not None and current is not None and all(run.attempt.aborted is not None for run in runs):
            self.loop.call_soon_threadsafe(current.cancel)

    def _items(self, task: Task[..., Any], runs: list[Execution]) -> dict[Execution, BatchItem[Any]]:
        """The jobs to call the handler with. Those that cannot start end at once."""
        items: dict[Execution, BatchItem[Any]] = {}
        for run in runs:
            try:
                check_deadline(run.attempt)
                (_, value), _ = outcomes.arguments_of(task, run.attempt)
            except BaseException as error:
                self._end(run, outcomes.of_error(error, task, run.attempt))
                continue
            if run.attempt.aborted is not None:
                self._end(run, outcomes.of_value(task, run.attempt, None))  # the abort decides
                continue
            prepare = None if run.prepare is None else partial(run.prepare, run)
            item = items[run] = BatchItem(value, run.attempt, prepare)
            item._on_settled = partial(self._settle, run)
        return items

    def _settle(self, run: Execution, item: BatchItem[Any]) -> None:
        run.slots.settle(run, _outcome(run, item, None))

    def _end_all(self, items: dict[Execution, BatchItem[Any]], error: BaseException | None) -> None:
        """End the executions of a batch, and start those that get their slots."""
        slots = {run.slots for run in items}
        with self._lock:
            self._ending.update(slots)
        following = []
        for run, item in items.items():
            if run.prepare is None:
                run.attempt._runtime.leave_transactions()
            following.append(run.slots.ended(run, _outcome(run, item, error)))
        with self._lock:
            self._ending.subtract(slots)
        by_task: dict[Task[..., Any], list[Execution]] = {}
        for one in following:
            if one is not None and self._begin(one, self):
                by_task.setdefault(one.task, []).append(one)
        for runs in by_task.values():
            self._add(runs)
        for each in slots:
            self._call_without_slots(each)

    def _call_without_slots(self, slots: Slots) -> None:
        """Call the batches that collect for these slots, if there is none for another job."""
        with self._lock:
            keys = [key for key in self._collecting if key[1] is slots]
        if keys and slots.is_full:
            for key in keys:
                self._call(key)

    def _end(self, run: Execution, outcome: Outcome) -> None:
        following = run.slots.ended(run, outcome)
        if following is not None and self._begin(following, self):
            self.start(following)


def _outcome(run: Execution, item: BatchItem[Any], error: BaseException | None) -> Outcome:
    raised = item.error if item.is_settled else error
    if raised is not None:
        return outcomes.of_error(raised, run.task, run.attempt)
    return outcomes.of_value(run.task, run.attempt, item.result)
