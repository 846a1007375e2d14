"""The end of a worker's work: it waits for running jobs, and releases those that do not end in time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from .._core.job import Released
from .._core.text import duration, listed
from .._system import Event, System
from .execution import Execution
from .session import StoreSession
from .starter import ABORT_TIMEOUT

log = logging.getLogger("relet.worker")

HURRIED_ABORT_TIMEOUT = 0.3  # seconds that an aborted handler has to end after `stop` was called twice
FLUSH_TIMEOUT = 2.0  # seconds to store the last outcomes
NAMED_AT_STOP = 5  # running jobs that the log names


class Drain:
    """Waits until the sessions of a worker have settled their jobs. Their producers claim no more.

    `hurry` is set when the jobs that still run are to be released now.
    """

    def __init__(
        self, system: System, worker: str, sessions: Callable[[], Sequence[StoreSession]], hurry: Event, timeout: float
    ) -> None:
        self._system, self._worker, self._sessions = system, worker, sessions
        self._hurry, self._timeout = hurry, timeout

    def run(self) -> int:
        """Release jobs that still run after the timeout. Returns how many could be neither settled nor released."""
        self._log_running()
        self._wait_for_claims()
        self._wait_until_empty(self._timeout, self._hurry)
        runs = [run for run in self._executions() if not run.is_settling]
        for run in runs:
            run.abort("shutdown")
        self._wait_until_empty(HURRIED_ABORT_TIMEOUT if self._hurry.is_set() else ABORT_TIMEOUT)
        for run in runs:
            if not run.has_ended and not run.is_settling:
                text = "%s %s: released, because its handler did not end after the abort"
                log.warning(text, run.task.name, run.job.id, extra=run.log_fields)
                run.slots.settle(run, Released())
        self._wait_until_empty(FLUSH_TIMEOUT)
        left = len(self._executions())
        if left:
            log.error("%d jobs could not be settled: other workers run them again once their leases have expired", left)
        return left

    def _executions(self) -> list[Execution]:
        return [run for session in self._sessions() for run in session.executions()]

    def _log_running(self) -> None:
        running = [run for run in self._executions() if run.started_at]
        if running:
            named = listed([f"{run.job.task} {run.job.id[-6:]}" for run in running], NAMED_AT_STOP)
            text = "Stopping: %d jobs still running (%s), waiting up to %s. Stop again to give them back now."
            log.info(text, len(running), named, duration(self._timeout), extra={"worker": self._worker})
        else:
            log.info("Stopping: no jobs are running", extra={"worker": self._worker})

    def _wait_for_claims(self) -> None:
        """Wait for the replies to outstanding claims, whose jobs are released; for FLUSH_TIMEOUT at most."""
        give_up = self._system.monotonic() + FLUSH_TIMEOUT
        while any(session.is_claiming for session in self._sessions()) and self._system.monotonic() < give_up:
            self._system.sleep(0.005)

    def _wait_until_empty(self, seconds: float, hurry: Event | None = None) -> None:
        give_up = self._system.monotonic() + seconds
        while not all(session.is_empty for session in self._sessions()) and self._system.monotonic() < give_up:
            if hurry is not None and hurry.is_set():
                return
            self._system.sleep(0.01)
