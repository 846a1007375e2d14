"""Reports attempts whose claim or end the database has lost: a standby was promoted that lacked commits.

The heartbeat and the settler ask about leases that are lost, and the heartbeat about leases that it does not know. The
reporter asks about the last ends after a connection was lost. Nothing is repaired: the jobs run again, as after the
loss of a worker, because what their handlers wrote into the same database may be lost, too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .._core.job import Lease, State
from .._store.flows.losses import undone
from ..events import Undone
from .context import WorkerContext
from .ends import End, in_batches
from .execution import Execution
from .reconnect import ReconnectingStore, Stopped

log = logging.getLogger("relet.worker")

MAX_LINES = 20  # for one failover
FAILOVER = "as a failover to an asynchronous standby does"
AGAIN = "The job runs again: correct what must not happen twice"

CLAIM = f"%s %s: the database has lost its claim, {FAILOVER}; %s. {AGAIN}"
NO_JOB = f"%s %s: there is no such job in the database any more; %s. An operator deleted it, or it was lost, {FAILOVER}"
END = f"%s %s: the database has lost the end of its attempt %d, {FAILOVER}. {AGAIN}"
ENDED_NO_JOB = (
    "%s %s: there is no such job in the database any more, and its attempt %d has ended here. It was deleted, or "
    f"lost, {FAILOVER}: then jobs that wait for it, and callers, do not learn of its end"
)
MORE = f"%d more attempts have ended here that the database has lost, {FAILOVER}"


class UndoneAttempts:
    """Reports the attempts of one worker that one store has undone."""

    def __init__(self, context: WorkerContext, store: ReconnectingStore) -> None:
        self._context, self._store = context, store

    def among(self, executions: Sequence[Execution]) -> dict[Lease, State | None]:
        """Those whose claims the database has lost. They must have lost their leases."""
        return self._find({one.lease: one.job.version for one in executions})

    def report_claim(self, execution: Execution, state: State | None, then: str) -> None:
        """`then`: what this worker does about it."""
        text = NO_JOB if state is None else CLAIM
        log.warning(text, execution.job.task, execution.job.id, then, extra=execution.log_fields)
        if state is not None:
            self._context.events.emit(Undone(**execution.event_fields(self._context.worker, state)))

    def check_ends(self) -> None:
        """After the loss of a connection: report the last ends that the database has lost."""
        ends = self._context.leases.ends
        lost_at = ends.take_loss()
        if lost_at is not None:
            self.report_ends(ends.since(lost_at))

    def report_ends(self, ends: Sequence[End]) -> set[Lease]:
        """Report those that the database has lost. Returns their leases."""
        reported: list[End] = []
        for batch in in_batches(ends):
            states = self._find({end.lease: end.version for end in batch})
            for end in batch:
                if end.lease in states and (states[end.lease] is not None or not self._may_be_pruned(end)):
                    self._report_end(end, states[end.lease], is_named=len(reported) < MAX_LINES)
                    reported.append(end)
        if len(reported) > MAX_LINES:
            log.warning(MORE, len(reported) - MAX_LINES, extra={"worker": self._context.worker})
        self._context.leases.ends.forget(reported)
        return {end.lease for end in reported}

    def _may_be_pruned(self, end: End) -> bool:
        settings = self._context.settings
        return self._context.system.monotonic() - end.at >= min(settings.keep_finished, settings.keep_failed)

    def _report_end(self, end: End, state: State | None, *, is_named: bool) -> None:
        worker, tenant = self._context.worker, self._context.tenant
        if is_named:
            text = ENDED_NO_JOB if state is None else END
            fields = {"job_id": end.lease.id, "task": end.task, "queue": end.queue, "worker": worker}
            log.warning(text, end.task, end.lease.id, end.attempt, extra=fields)
        emitted = Undone(
            job_id=end.lease.id, state=state, task=end.task, queue=end.queue, tenant=tenant, worker=worker,
            attempt=end.attempt, version=end.version,
        )  # fmt: skip
        self._context.events.emit(emitted)

    def _find(self, versions: dict[Lease, int]) -> dict[Lease, State | None]:
        if self._context.store.is_remote or not versions:  # a gateway does not tell
            return {}
        try:
            return self._store.run(undone, versions)
        except Stopped:
            return {}
