"""The reporter: stores every few seconds that the worker is alive, how busy it is, and its counts.

It runs in a separate thread. No attempt waits for it.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable

from .._core.worker import WorkerFacts
from .._store.flows import inspect, stats, worker_reports
from .._store.retry import RetryFor
from .._version import __version__
from ..errors import ReletError
from .context import WorkerContext
from .loop import Loop
from .reconnect import ReconnectingStore
from .undone import UndoneAttempts

log = logging.getLogger("relet.worker")

REPORT_EVERY = 5.0
SAMPLE_EVERY = 60.0
RETRY_SIGN_OFF_FOR = 1.0  # seconds, so that the worker stops even if the database is down
SIGN_OFF_WITHIN = 4.0  # seconds: two commits, each of which may take more than a second on a loaded machine


def worker_facts(context: WorkerContext, slots: int, every: float = REPORT_EVERY) -> WorkerFacts:
    """The description of a worker that is stored in its row. Without slots it runs no tasks: it is a gateway."""
    queues = None if context.settings.queues is None else tuple(sorted(context.settings.queues))
    host, pid, tasks = socket.gethostname(), os.getpid(), tuple(sorted(context.tasks)) if slots else ()
    return WorkerFacts(context.worker, host, pid, queues, slots, tasks, context.settings.lease, __version__, every)


class Reporter:
    def __init__(
        self, context: WorkerContext, store: ReconnectingStore, slots: int, running: Callable[[], int]
    ) -> None:
        self._context = context
        self._system = context.system
        self.loop = Loop(context.system, "reporter", self.step, context.threads)
        self._store = store.stopped_by(self.loop.stopping)
        self._facts, self._running = worker_facts(context, slots), running
        self._undone = UndoneAttempts(context, self._store)
        self._sample_at = 0.0
        self.is_stopping = False

    def step(self) -> float:
        """Report. If a connection was lost, compare the last ends with the database. Once a minute, or less often if
        that takes long, one of the workers also counts the jobs of each queue."""
        self.report()
        self._undone.check_ends()
        if self._system.monotonic() >= self._sample_at:
            self._sample_at = self._system.monotonic() + SAMPLE_EVERY
            self.sample()
        return REPORT_EVERY * self._system.uniform(0.9, 1.1)

    def report(self) -> None:
        self._store.run(worker_reports.report, *self._report(self._running(), self.is_stopping))

    def sample(self) -> None:
        """Count the jobs of each queue, unless another worker has just done so."""
        minute = self._store.run(stats.claim_sample)
        if minute is not None:
            began = self._system.monotonic()
            found = self._store.run(inspect.counted_queues)
            self._store.run(stats.save_sample, found, minute, self._system.monotonic() - began)

    def sign_off(self, give_up: float) -> None:
        """Remove the worker's row. Returns at `give_up` at the latest."""
        thread = self._system.beside("sign-off", self.forget_worker)
        if thread is not None:
            thread.join(max(give_up - self._system.monotonic(), SIGN_OFF_WITHIN))

    def forget_worker(self) -> None:
        """Store the last counts, and remove the worker's row."""
        store, policy = self._context.store, RetryFor(RETRY_SIGN_OFF_FOR)
        try:
            store.run_with(policy, worker_reports.report, *self._report(0, True))
            store.run_with(policy, worker_reports.forget, self._facts.name)
        except ReletError as error:
            log.info("Could not delete the row of this worker, which looks alive for a while: %s", error)

    def _report(self, running: int, is_stopping: bool) -> tuple[str, WorkerFacts, int, bool, list[stats.Count]]:
        return self._system.new_token(), self._facts, running, is_stopping, self._context.meter.take()
