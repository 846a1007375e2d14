"""The settler: stores outcomes. One batch has all that ended since the last one; a lone outcome is stored at once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from .._core.job import AttemptOutcome, Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from .._core.text import one_line
from .._store.flows import settle
from .._store.flows.settle import Settled
from .._store.query import Notify
from ..errors import RowRejected, StoreBusy
from ..events import Cancelled, Ended, Paused
from ..events import Failed as FailedEvent
from ..events import Released as ReleasedEvent
from ..events import Retried as RetriedEvent
from ..events import Snoozed as SnoozedEvent
from ..events import Succeeded as SucceededEvent
from .context import WorkerContext
from .execution import ROLLED_BACK, Execution
from .job_log import JobLog
from .loop import Loop
from .reconnect import ReconnectingStore, Stopped
from .undone import UndoneAttempts

log = logging.getLogger("relet.worker")

MAX_BATCH = 1000
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
NOTIFY_EVERY = 0.02  # seconds between two notifications that a limit has room: each wakes all idle workers

Item = tuple[Execution, Outcome]
EndEvent = type[Ended | Cancelled | Paused]

#: The outcome under which statistics count an event.
COUNTED: dict[EndEvent, AttemptOutcome] = {
    SucceededEvent: AttemptOutcome.SUCCEEDED,
    FailedEvent: AttemptOutcome.FAILED,
    RetriedEvent: AttemptOutcome.RETRIED,
    SnoozedEvent: AttemptOutcome.SNOOZED,
    ReleasedEvent: AttemptOutcome.RELEASED,
    Cancelled: AttemptOutcome.CANCELLED,
    Paused: AttemptOutcome.PAUSED,
}


class Settler:
    """Keeps outcomes until its thread has stored them."""

    def __init__(self, context: WorkerContext, store: ReconnectingStore) -> None:
        self._context, self._leases, self._events = context, context.leases, context.events
        self._system, self._now = context.system, context.system.monotonic
        self.loop = Loop(context.system, "settler", self.step, context.threads)
        self._store = store.stopped_by(self.loop.stopping)
        self._undone = UndoneAttempts(context, self._store)
        self._waiting: deque[Item] = deque()
        self._open: list[Item] = []  # the handler completed the job in a transaction that is still open
        # Another program's transaction has locked the unique key of the next job in the chain.
        self._blocked: list[Item] = []
        self._pause = FIRST_PAUSE
        self._job_log = JobLog(context.system)
        self._in_flight = 0  # outcomes in the settle under way
        self._wakers: set[Callable[[], None]] = set()  # of producers at a limit, where a settle makes room
        self._made_room = False  # other workers have not been notified yet
        self._notified_at = 0.0

    def put(self, execution: Execution, outcome: Outcome) -> None:
        """Queue an outcome for the thread of the settler. Cheap, and safe from any thread."""
        self._waiting.append((execution, outcome))
        self.loop.wake()

    def wake_after_settling(self, wake: Callable[[], None], wanted: bool) -> None:
        """Call `wake` after every settle, or stop doing so. For producers at a limit."""
        if wanted:
            self._wakers.add(wake)
        else:
            self._wakers.discard(wake)

    @property
    def left(self) -> int:
        """How many outcomes are not stored yet."""
        return len(self._waiting) + self._in_flight + self._set_aside

    @property
    def _set_aside(self) -> int:
        """How many wait for open transactions. The settler tries them again, after growing pauses."""
        return len(self._open) + len(self._blocked)

    def step(self) -> float | None:
        """Store the queued outcomes, and try those that were set aside."""
        aside = self._set_aside
        self._in_flight = min(len(self._waiting), MAX_BATCH)  # set before they leave the queue: `left` counts them
        items = [self._waiting.popleft() for _ in range(self._in_flight)]  # while other threads append
        try:
            batch = _sort(items)
            self._settle_succeeded(batch.succeeded)
            self._settle(batch.plain)
            self._settle(batch.keyed, unless_busy=True)
            self._settle_blocked()
            self._settle_open(self._open + batch.may_be_open)
        finally:
            self._in_flight = 0
        if self._wakers:
            self._make_room(bool(items))
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE) if self._set_aside == aside else FIRST_PAUSE
        if self._waiting:
            return 0.0
        wait = NOTIFY_EVERY if self._made_room else self._pause if self._set_aside else None
        summary_in = self._job_log.flush()
        return wait if summary_in is None else summary_in if wait is None else min(wait, summary_in)

    def _make_room(self, has_settled: bool) -> None:
        """Queues at their limit have room after a settle. Wake producers of this worker, and notify other workers."""
        if has_settled:
            self._made_room = True
            for wake in list(self._wakers):
                wake()
        now = self._now()
        if self._made_room and now - self._notified_at >= NOTIFY_EVERY:
            self._made_room, self._notified_at = False, now
            self._store.store.notify([Notify("queued")])

    def _settle(self, batch: list[Item], *, unless_busy: bool = False, was_rejected: bool = False) -> None:
        """Store outcomes. `unless_busy`: set them aside if another program's transaction has locked a unique key."""
        if not batch:
            return
        outcomes = [(execution.lease, outcome) for execution, outcome in batch]
        run = self._store.run_unless_busy if unless_busy else self._store.run
        try:
            answers = run(settle.settle, outcomes, self._system.random)
        except Stopped:
            raise
        except StoreBusy:
            self._blocked += batch
        except Exception as error:
            self._settle_halves(batch, error, unless_busy, was_rejected)
        else:
            for (execution, outcome), answer in zip(batch, answers, strict=True):
                self._leases.remove(execution)
                self._report(execution, outcome, answer)

    def _settle_halves(self, batch: list[Item], error: Exception, unless_busy: bool, was_rejected: bool) -> None:
        """The store refused a batch: find the outcome that it refuses by halving, so that the others are stored."""
        if len(batch) > 1:
            half = len(batch) // 2
            self._settle(batch[:half], unless_busy=unless_busy)
            self._settle(batch[half:], unless_busy=unless_busy)
        elif isinstance(error, RowRejected):
            self._rejected(batch[0][0], error, again=was_rejected)
        else:
            # An error that says nothing about the outcome must not change it.
            self._log_kept(batch[0][0], error)
            self._blocked += batch

    def _settle_succeeded(self, batch: list[tuple[Execution, Succeeded]]) -> None:
        """Store successes without a next job in one statement. They are only checked one by one if a lease was lost."""
        if not batch:
            return
        batch.sort(key=_lease_of)
        results = [outcome.result for _, outcome in batch]
        try:
            states = self._store.run(settle.settle_succeeded, [execution.lease for execution, _ in batch], results)
        except Stopped:
            raise
        except Exception:
            self._settle([*batch])  # finds the one that the store refuses
            return
        executions = [execution for execution, _ in batch]
        self._leases.remove(*executions)
        if states is None and not self._events.wanted(SucceededEvent):
            self._leases.ends.add(executions, self._now())
            self._context.meter.ended(COUNTED[SucceededEvent], executions)
            if self._job_log.wants_successes:
                self._job_log.succeeded(executions)
            return
        for execution, outcome in batch:
            state = State.SUCCEEDED if states is None else states.get(execution.lease)
            self._report(execution, outcome, Settled(execution.lease.id, state))

    def _settle_blocked(self) -> None:
        """Try blocked outcomes one by one, up to the first that is still blocked: other outcomes wait meanwhile."""
        settled = True
        while self._blocked and settled:
            number = len(self._blocked)
            self._settle(self._blocked[:1], unless_busy=True)  # if still blocked, it is appended again
            del self._blocked[0]
            settled = len(self._blocked) < number

    def _settle_open(self, items: list[Item]) -> None:
        """Settle jobs that their handlers may have completed themselves. Most are: read first which, in one query."""
        leases = [execution.lease for execution, _ in items]
        settled = self._store.run(settle.find_settled, leases) if items else {}
        still_open = []
        for item in items:
            execution, outcome = item
            answer = Settled(execution.lease.id, settled.get(execution.lease))
            if answer.state is None:
                answer = self._settle_unless_open(execution, outcome)
            if answer.open:
                still_open.append(item)
            else:
                self._leases.remove(execution)
                self._report(execution, outcome, answer)
        self._open = still_open

    def _settle_unless_open(self, execution: Execution, outcome: Outcome) -> Settled:
        """Settle a job unless its row is locked."""
        try:
            (answer,) = self._store.run(settle.settle_unless_open, [(execution.lease, outcome)], self._system.random)
        except Stopped:
            raise
        except RowRejected as error:
            self._log_rejected(execution, error)
            self._leases.abandon(execution)
            return Settled(execution.lease.id, None)
        except Exception as error:
            self._log_kept(execution, error)
            return Settled(execution.lease.id, None, open=True)
        return answer

    def _rejected(self, execution: Execution, error: Exception, *, again: bool) -> None:
        """The store rejected this outcome. Store a failure instead; if that is rejected too, let the lease expire."""
        self._log_rejected(execution, error)
        if again:
            self._leases.abandon(execution)
        else:
            failed = Raised(f"the database rejected the outcome: {error}", fatal=True)
            self._settle([(execution, failed)], was_rejected=True)

    def _log_rejected(self, execution: Execution, error: Exception) -> None:
        what = (execution.task.name, execution.job.id, error)
        log.error("%s %s: the database rejects its outcome: %s", *what, extra=execution.log_fields)

    def _log_kept(self, execution: Execution, error: Exception) -> None:
        what = (execution.task.name, execution.job.id, error)
        text = "%s %s: could not store its outcome, trying again: %s"
        log.error(text, *what, extra=execution.log_fields)

    def _report(self, execution: Execution, outcome: Outcome, answer: Settled) -> None:
        """Log and count the end of an attempt, and emit its event. The state is None if the lease was lost."""
        job, fields, state = execution.job, execution.log_fields, answer.state
        if state is State.QUEUED:
            execution.slots.on_requeued()
        if state is None:
            self._report_lost(execution)
            return
        self._leases.ends.add([execution], self._now())
        if state is State.SUCCEEDED and not isinstance(outcome, Succeeded):  # the handler has completed it
            if isinstance(outcome, Raised) and outcome.error != ROLLED_BACK:
                late = (job.task, job.id, one_line(outcome.error))
                log.warning("%s %s: failed after it was completed: %s", *late, extra=fields)
            outcome = Succeeded()
        if isinstance(outcome, Raised):
            self._job_log.failed(execution, outcome, state, answer.delay)
        elif state is State.SUCCEEDED:
            self._job_log.succeeded([execution])
        else:
            self._job_log.other(execution, state)
        kind = _event(outcome, state)
        self._context.meter.ended(COUNTED[kind], [execution])
        if self._events.wanted(kind):
            self._events.emit(self._made(kind, execution, outcome, state))

    def _report_lost(self, execution: Execution) -> None:
        """The store did not record the outcome, because this worker no longer has the lease."""
        undone = self._undone.among([execution])
        if execution.lease in undone:
            self._undone.report_claim(execution, undone[execution.lease], "its outcome is not recorded")
        else:
            what = (execution.job.task, execution.job.id)
            text = "%s %s: the lease was lost; its outcome is not recorded"
            log.warning(text, *what, extra=execution.log_fields)
        self._leases.lose(execution, "lease_lost")

    def _made(self, kind: EndEvent, execution: Execution, outcome: Outcome, state: State) -> Ended | Cancelled | Paused:
        fields = execution.event_fields(self._context.worker, state)
        if not issubclass(kind, Ended):
            return kind(**{name: fields[name] for name in ("job_id", "state", "task", "queue", "tenant")})
        started = execution.started_at
        seconds = (execution.stopped_at or self._now()) - started if started else 0.0
        if isinstance(outcome, Raised):
            return kind(**fields, error=outcome.error, error_type=outcome.error_type, seconds=seconds)
        return kind(**fields, seconds=seconds)


class _Batch(NamedTuple):
    """Outcomes by how they are stored."""

    succeeded: list[tuple[Execution, Succeeded]]  # without a next job: one statement for all
    plain: list[Item]
    keyed: list[Item]  # may have to wait for a unique key
    may_be_open: list[Item]  # the handler may be completing the job in an open transaction


def _sort(items: list[Item]) -> _Batch:
    """Sort outcomes by how they are stored.

    `may_have_open_completion` is read once for each, because a handler whose job was settled without it may end at any
    moment, which changes the answer. If a job is here with two leases, of which one is lost, only one of them is among
    the plain successes: their statement identifies jobs by id.
    """
    batch = _Batch([], [], [], [])
    ids: set[str] = set()
    for item in items:
        execution, outcome = item
        if execution.may_have_open_completion:
            batch.may_be_open.append(item)
        elif settle.is_plain(outcome) and execution.lease.id not in ids:
            ids.add(execution.lease.id)
            batch.succeeded.append((execution, outcome))
        else:
            (batch.keyed if settle.takes_key(outcome) else batch.plain).append(item)
    return batch


def _lease_of(item: Item) -> Lease:
    return item[0].lease


def _event(outcome: Outcome, state: State) -> EndEvent:
    """The event for the state of the job, which a request to cancel or pause may have changed."""
    if state is State.CANCELLED:
        return Cancelled
    if state is State.PAUSED:
        return Paused
    match outcome:
        case Succeeded():
            return SucceededEvent if state is State.SUCCEEDED else _event(Raised(""), state)
        case Snoozed():
            return SnoozedEvent
        case Released():
            return ReleasedEvent
        case Raised():
            return FailedEvent if state is State.FAILED else RetriedEvent
