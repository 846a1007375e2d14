"""Starts executions in the executor of their task, and aborts those that take too long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from .._core.job import Released, Snoozed
from .._system import Event, System
from .._tasks.task import Middleware
from ..errors import AbortReason
from .batches import InBatches
from .execution import Execution
from .executors import InThreads, OnLoop
from .heartbeat import BEATS_PER_LEASE
from .processes import InProcesses
from .timers import Timers

log = logging.getLogger("relet.worker")

ABORT_TIMEOUT = 1.0  # seconds that an aborted handler has to end before its job is settled without it
CHILD_STARTS_WITHIN = 30.0  # seconds that a child process has to start, which do not count against a timeout


class Starter:
    """The executors of a worker. `on_max_jobs` is called when the last of `max_jobs` jobs starts."""

    def __init__(
        self,
        system: System,
        timers: Timers,
        middlewares: Sequence[Middleware],
        hurry: Event,
        max_jobs: int | None,
        on_max_jobs: Callable[[], object],
    ) -> None:
        self._now, self._timers, self._middlewares = system.monotonic, timers, middlewares
        self._max_jobs, self._on_max_jobs = max_jobs, on_max_jobs
        self.started = 0
        self.on_loop: OnLoop | None = None
        self.in_batches = InBatches(self.start, timers, middlewares, system)
        self.in_processes = InProcesses(self.start, began=self._limit_time, hurry=hurry)
        self._in_threads = InThreads(self.start, middlewares)

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run async handlers on this event loop, which runs already."""
        self.on_loop = OnLoop(loop, self.start, self._middlewares)
        self.in_batches.loop = loop

    def start(self, run: Execution, here: object = None) -> bool:
        """Start an execution that has a slot. True if the calling executor, `here`, is to run it itself."""
        self.started += 1
        if self._max_jobs is not None and self.started >= self._max_jobs:
            self._on_max_jobs()
        task = run.task
        if run.job.policy.timeout is not None:
            self._limit_time(run, CHILD_STARTS_WITHIN if task.process else 0.0)
        if task.on_doubt == "abort":
            run.timers = (*run.timers, self._timers.at(run.attempt.deadline, partial(self._abort_in_doubt, run)))
        executor: InBatches | InProcesses | OnLoop | InThreads | None
        if task.batch is not None and not run.job.losses:  # a job that has lost a worker runs singly
            executor = self.in_batches
        else:
            if run.prepare is not None:
                run.prepare(run)
            executor = self.in_processes if task.process else self.on_loop if task.is_async else self._in_threads
        assert executor is not None
        if executor is here:
            return True
        try:
            executor.start(run)
        except Exception as error:  # no thread can be started, or the event loop is closed
            log.error("Could not start %s %s: %s", task.name, run.job.id, error, extra=run.log_fields)
            following = run.slots.ended(run, Snoozed(1.0))
            if following is not None:
                self.start(following)
        return False

    def _limit_time(self, run: Execution, more: float = 0.0) -> None:
        """Set a timer for the timeout of an execution, if it has one."""
        timeout = run.job.policy.timeout
        if timeout is not None:
            moment = self._now() + timeout + more
            run.timers = (*run.timers, self._timers.at(moment, partial(self._abort, run, "timeout")))

    def _abort(self, run: Execution, reason: AbortReason) -> float | None:
        """Abort an execution. If it has not ended when the timer calls again, settle it; its handler keeps the slot."""
        if run.abort(reason):
            log.warning("%s %s: aborted (%s)", run.task.name, run.job.id, reason, extra=run.log_fields)
            # The heartbeat does not renew it any more, so it must be settled before its lease expires.
            return self._now() + min(ABORT_TIMEOUT, run.lease_seconds / BEATS_PER_LEASE)
        if not run.has_ended and not run.is_settling:
            run.slots.settle(run, Released())
        return None

    def _abort_in_doubt(self, run: Execution) -> float | None:
        """Abort an execution whose lease may have expired, for tasks with `on_doubt="abort"`."""
        if self._now() < run.attempt.deadline:
            return run.attempt.deadline  # it was renewed
        return self._abort(run, "in_doubt")
