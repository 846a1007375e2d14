"""The settler: stores outcomes. What has ended since the last settle goes out together; a lone job goes at once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from .._core.job import AttemptOutcome, Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from .._core.text import one_line
from .._store.flows import settle
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
from .loop import Loop
from .reconnect import ReconnectingStore, Stopped

log = logging.getLogger("relet.worker")

MAX_BATCH = 1000
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
NOTIFY_EVERY = 0.02  # seconds between two notifications that a limit has room: each wakes all workers that sleep

Item = tuple[Execution, Outcome]
EndEvent = type[Ended | Cancelled | Paused]

#: What statistics call the end of an attempt.
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
    """Outcomes on their way to the store, and the thread that stores them."""

    def __init__(self, context: WorkerContext, store: ReconnectingStore) -> None:
        self._context, self._leases, self._events = context, context.leases, context.events
        self._system, self._now = context.system, context.system.monotonic
        self.loop = Loop(context.system, "settler", self.step)
        self._store = store.stopped_by(self.loop.stopping)
        self._waiting: deque[Item] = deque()
        self._open: list[Item] = []  # the handler completed the job in a transaction that is not over yet
        self._blocked: list[Item] = []  # a transaction of another program holds the unique key of their successor
        self._pause = FIRST_PAUSE
        self._in_flight = 0  # outcomes in the settle under way
        self._wakers: set[Callable[[], None]] = set()  # of producers at a limit, for which a settle makes room
        self._made_room = False  # other workers have not been notified yet
        self._notified_at = 0.0

    def put(self, execution: Execution, outcome: Outcome) -> None:
        """Have an outcome stored. From any thread, and cheap."""
        self._waiting.append((execution, outcome))
        self.loop.wake()

    def wake_after_settling(self, wake: Callable[[], None], wanted: bool) -> None:
        """Wake a producer at a limit after every settle, or no longer."""
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
        """How many wait for transactions of others; they are tried again, less and less often."""
        return len(self._open) + len(self._blocked)

    def step(self) -> float | None:
        """Store all outcomes that there are."""
        aside = self._set_aside
        self._in_flight = min(len(self._waiting), MAX_BATCH)  # before they are taken out: `left` counts them throughout
        items = [self._waiting.popleft() for _ in range(self._in_flight)]  # other threads append meanwhile
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
        return NOTIFY_EVERY if self._made_room else self._pause if self._set_aside else None

    def _make_room(self, has_settled: bool) -> None:
        """What is settled runs no more, so queues at their limit have room: for this worker at once, and for others."""
        if has_settled:
            self._made_room = True
            for wake in list(self._wakers):
                wake()
        now = self._now()
        if self._made_room and now - self._notified_at >= NOTIFY_EVERY:
            self._made_room, self._notified_at = False, now
            self._store.store.notify([Notify("queued")])

    def _settle(self, batch: list[Item], *, unless_busy: bool = False, was_rejected: bool = False) -> None:
        """Store any outcomes. `unless_busy`: set them aside if a transaction of another program takes the same key."""
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
                self._report(execution, outcome, answer.state)

    def _settle_halves(self, batch: list[Item], error: Exception, unless_busy: bool, was_rejected: bool) -> None:
        """One outcome is refused: find it by halving, so that the others do not wait for it."""
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
        """Store successes that nothing follows: one statement, and no look at each of them unless a lease was lost."""
        if not batch:
            return
        batch.sort(key=_lease_of)
        results = [outcome.result for _, outcome in batch]
        try:
            states = self._store.run(settle.settle_succeeded, [execution.lease for execution, _ in batch], results)
        except Stopped:
            raise
        except Exception:
            self._settle([*batch])  # finds out which of them the store refuses
            return
        if states is None and not self._reports_successes:
            executions = [execution for execution, _ in batch]
            self._leases.remove(*executions)
            self._context.meter.ended(COUNTED[SucceededEvent], executions)
            return
        for execution, outcome in batch:
            self._leases.remove(execution)
            self._report(execution, outcome, State.SUCCEEDED if states is None else states.get(execution.lease))

    @property
    def _reports_successes(self) -> bool:
        return log.isEnabledFor(logging.DEBUG) or self._events.wanted(SucceededEvent)

    def _settle_blocked(self) -> None:
        """One by one, up to the first that has to wait: other outcomes wait no longer than that."""
        settled = True
        while self._blocked and settled:
            number = len(self._blocked)
            self._settle(self._blocked[:1], unless_busy=True)  # if it is set aside again, it is the last by then
            del self._blocked[0]
            settled = len(self._blocked) < number

    def _settle_open(self, items: list[Item]) -> None:
        """Those whose handlers may have completed them in their own transactions, and mostly have."""
        leases = [execution.lease for execution, _ in items]
        settled = self._store.run(settle.find_settled, leases) if items else {}
        still_open = []
        for item in items:
            execution, outcome = item
            state, is_open = settled.get(execution.lease), False
            if state is None:
                state, is_open = self._settle_unless_open(execution, outcome)
            if is_open:
                still_open.append(item)
            else:
                self._leases.remove(execution)
                self._report(execution, outcome, state)
        self._open = still_open

    def _settle_unless_open(self, execution: Execution, outcome: Outcome) -> tuple[State | None, bool]:
        """The state that the job is in now, and whether the handler's transaction is still open."""
        try:
            (answer,) = self._store.run(settle.settle_unless_open, [(execution.lease, outcome)], self._system.random)
        except Stopped:
            raise
        except RowRejected as error:
            self._log_rejected(execution, error)
            self._leases.abandon(execution)
            return None, False
        except Exception as error:
            self._log_kept(execution, error)
            return None, True
        return answer.state, answer.open

    def _rejected(self, execution: Execution, error: Exception, *, again: bool) -> None:
        """The store rejected this outcome. Record the job as failed instead; if that is rejected too, let the lease
        expire."""
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

    def _report(self, execution: Execution, outcome: Outcome, state: State | None) -> None:
        """Log, count and emit what became of an attempt. None: its lease was lost."""
        job, fields = execution.job, execution.log_fields
        if state is State.QUEUED:
            execution.slots.on_requeued()
        if state is None:
            log.warning("%s %s: the lease was lost; its outcome is not recorded", job.task, job.id, extra=fields)
            self._leases.lose(execution, "lease_lost")
            return
        if state is State.SUCCEEDED and not isinstance(outcome, Succeeded):  # the handler has completed it
            if isinstance(outcome, Raised) and outcome.error != ROLLED_BACK:
                what = (job.task, job.id, one_line(outcome.error))
                log.warning("%s %s: failed after it was completed: %s", *what, extra=fields)
            outcome = Succeeded()
        if isinstance(outcome, Raised):
            level = logging.ERROR if state is State.FAILED else logging.WARNING
            error = one_line(outcome.error)
            log.log(level, "%s %s: attempt %d, now %s: %s", job.task, job.id, job.attempt, state, error, extra=fields)
        elif log.isEnabledFor(logging.DEBUG):
            log.debug("%s %s: attempt %d, now %s", job.task, job.id, job.attempt, state, extra=fields)
        kind = _event(outcome, state)
        self._context.meter.ended(COUNTED[kind], [execution])
        if self._events.wanted(kind):
            self._events.emit(self._made(kind, execution, outcome, state))

    def _made(self, kind: EndEvent, execution: Execution, outcome: Outcome, state: State) -> Ended | Cancelled | Paused:
        fields = execution.event_fields(self._context.worker, state)
        if not issubclass(kind, Ended):
            return kind(**{name: fields[name] for name in ("job_id", "state", "task", "queue", "tenant")})
        started = execution.started_at
        seconds = (execution.stopped_at or self._now()) - started if started else 0.0
        return kind(**fields, error=outcome.error if isinstance(outcome, Raised) else None, seconds=seconds)


class _Batch(NamedTuple):
    """Outcomes by how they are stored."""

    succeeded: list[tuple[Execution, Succeeded]]  # nothing follows them: one statement for all
    plain: list[Item]
    keyed: list[Item]  # may wait for a unique key
    may_be_open: list[Item]  # the handler may have a transaction open in which it completes the job


def _sort(items: list[Item]) -> _Batch:
    """Each is looked at once: a handler whose job was settled without it may end at any moment, and is not open from
    then on. A job that is there by two leases, one of them lost, is not among the plain successes: those are told
    apart by id."""
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
    """By the state of the job, because a request may have decided otherwise than the handler."""
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
