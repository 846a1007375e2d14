"""Settling: what has ended since the last settle went out goes out together; a lone job goes at once."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from .._core.job import Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from .._store.flows import lease
from .._store.query import Notify
from ..errors import RowRejected, StoreBusy
from ..events import Cancelled, Ended, Events, Paused
from ..events import Failed as FailedEvent
from ..events import Released as ReleasedEvent
from ..events import Retried as RetriedEvent
from ..events import Snoozed as SnoozedEvent
from ..events import Succeeded as SucceededEvent
from .execution import ROLLED_BACK, Execution
from .leases import LeaseTable
from .reconnect import ReconnectingStore, Stopped, run_loop
from .reporter import Meter

if TYPE_CHECKING:
    from .producer import Producer

log = logging.getLogger("relet.worker")

MOST = 1000
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
TELL_OF_ROOM_EVERY = 0.02  # at most: a notification wakes all workers that sleep

Item = tuple[Execution, Outcome]

#: What statistics call the end of an attempt.
COUNTED: dict[type[Ended | Cancelled | Paused], str] = {
    SucceededEvent: "succeeded",
    FailedEvent: "failed",
    RetriedEvent: "retried",
    SnoozedEvent: "snoozed",
    ReleasedEvent: "released",
    Cancelled: "cancelled",
    Paused: "paused",
}


class Settler:
    """Outcomes on their way to the store, and the thread that brings them there."""

    def __init__(self, link: ReconnectingStore, held: LeaseTable, events: Events, meter: Meter, worker: str) -> None:
        self._link = link
        self._meter = meter
        self._held = held
        self._events = events
        self._worker = worker
        self._waiting: deque[Item] = deque()
        self._news = threading.Event()
        self._asleep = False
        self._open: list[Item] = []  # completed in transactions of their handlers' own, which are not over yet
        self._put_off: list[Item] = []  # their successors' keys are in the hands of somebody whose transaction is open
        self._pause = FIRST_PAUSE
        self._busy = 0  # how many are in the settle that is under way
        self.limited_lanes: set[Producer] = set()  # those that serve queues with limits, where a settle makes room
        self._made_room = False  # other workers have not been told yet
        self._told_of_room = 0.0
        self._halt = threading.Event()

    def start(self) -> list[threading.Thread]:
        """From now on."""
        return [run_loop("settler", self.step, self._halt)]

    def put(self, run: Execution, outcome: Outcome) -> None:
        """To be settled. From any thread, and cheap."""
        self._waiting.append((run, outcome))
        if self._asleep:
            self._asleep = False  # once is enough
            self._news.set()

    @property
    def left(self) -> int:
        """How many are not settled yet."""
        return len(self._waiting) + self._busy + self._aside

    @property
    def _aside(self) -> int:
        """How many wait for transactions of others; asked for again, less and less often."""
        return len(self._open) + len(self._put_off)

    def stop(self) -> None:
        """No more: what is not settled by now will not be."""
        self._halt.set()
        self._news.set()

    def step(self) -> None:
        """Sleep until something has ended; settle all that has by then."""
        self._news.clear()
        self._asleep = True
        if not self._waiting:
            self._news.wait(TELL_OF_ROOM_EVERY if self._made_room else self._pause if self._aside else None)
        self._asleep = False
        aside = self._aside
        self._busy = min(len(self._waiting), MOST)  # before they are taken out: `left` counts them throughout
        batch = [self._waiting.popleft() for _ in range(self._busy)]  # others append meanwhile, so nothing is iterated
        try:
            succeeded, plain, keyed, may_be_open = _sorted(batch)
            self._settle_succeeded(succeeded)
            self._settle(plain)
            self._settle(keyed, hasty=True)
            self._settle_put_off()
            self._settle_open(self._open + may_be_open)
        finally:
            self._busy = 0
        if self.limited_lanes:
            self._make_room(bool(batch))
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE) if self._aside == aside else FIRST_PAUSE

    def _make_room(self, settled: bool) -> None:
        """What is settled runs no more, so queues that were at their limit have room: here at once, and elsewhere."""
        if settled:
            self._made_room = True
            for lane in list(self.limited_lanes):
                lane.wake()
        now = time.monotonic()
        if self._made_room and now - self._told_of_room >= TELL_OF_ROOM_EVERY:
            self._made_room, self._told_of_room = False, now
            self._link.store.notify([Notify("queued")])

    def _settle(self, batch: list[Item], *, hasty: bool = False, refused: bool = False) -> None:
        """Hasty: what meets somebody who takes the same key is put off."""
        if not batch:
            return
        try:
            outcomes = [(run.lease, outcome) for run, outcome in batch]
            settle = self._link.run_unless_busy if hasty else self._link.run
            answers = settle(self._halt, lease.settle, outcomes, random.random)
        except Stopped:
            raise
        except StoreBusy:
            self._put_off += batch
            return
        except Exception as error:
            # One of them is refused: the others shall not wait for it.
            if len(batch) > 1:
                half = len(batch) // 2
                self._settle(batch[:half], hasty=hasty)
                self._settle(batch[half:], hasty=hasty)
            elif isinstance(error, RowRejected):
                self._rejected(batch[0][0], error, again=refused)
            else:
                self._keep(batch[0], error)
            return
        for (run, outcome), answer in zip(batch, answers, strict=True):
            self._held.drop(run)
            self._tell(run, outcome, answer.state)

    def _settle_succeeded(self, batch: list[tuple[Execution, Succeeded]]) -> None:
        """Successes that nothing follows: one statement, and no look at each of them unless a lease was lost."""
        if not batch:
            return
        batch.sort(key=_by_lease)
        results = [outcome.result for _, outcome in batch]
        try:
            states = self._link.run(self._halt, lease.settle_succeeded, [run.lease for run, _ in batch], results)
        except Stopped:
            raise
        except Exception:
            self._settle([*batch])  # finds out which of them the store refuses
            return
        if states is None and not self._tells_of_successes:
            runs = [run for run, _ in batch]
            self._held.drop(*runs)
            self._meter.ended(COUNTED[SucceededEvent], runs)
            return
        for run, outcome in batch:
            self._held.drop(run)
            self._tell(run, outcome, State.SUCCEEDED if states is None else states.get(run.lease))

    @property
    def _tells_of_successes(self) -> bool:
        return log.isEnabledFor(logging.DEBUG) or self._events.wanted(SucceededEvent)

    def _settle_put_off(self) -> None:
        """One by one, up to the first that has to wait: nobody else's outcome shall wait for more than that."""
        settled = True
        while self._put_off and settled:
            number = len(self._put_off)
            self._settle(self._put_off[:1], hasty=True)  # if it is put off again, it is the last by then
            del self._put_off[0]
            settled = len(self._put_off) < number

    def _settle_open(self, items: list[Item]) -> None:
        """Those whose handlers may have completed them by themselves, and mostly have."""
        leases = [run.lease for run, _ in items]
        done = self._link.run(self._halt, lease.settled_before, leases) if items else {}
        still_open = []
        for item in items:
            run, outcome = item
            state, is_open = done.get(run.lease), False
            if state is None:
                state, is_open = self._settle_unless_open(run, outcome)
            if is_open:
                still_open.append(item)
            else:
                self._held.drop(run)
                self._tell(run, outcome, state)
        self._open = still_open

    def _settle_unless_open(self, run: Execution, outcome: Outcome) -> tuple[State | None, bool]:
        try:
            (answer,) = self._link.run(self._halt, lease.settle_unless_open, [(run.lease, outcome)], random.random)
        except Stopped:
            raise
        except RowRejected as error:
            log.error("%s %s: the database rejects its outcome: %s", run.task.name, run.job.id, error, extra=run.marks)
            self._held.give_up(run)
            return None, False
        except Exception as error:
            self._log_kept(run, error)
            return None, True
        return answer.state, answer.open

    def _rejected(self, run: Execution, error: Exception, *, again: bool) -> None:
        """The database will not store a value of this outcome, such as its result: then the job has failed. If it does
        not store that either, the lease is left to expire."""
        log.error("%s %s: the database rejects its outcome: %s", run.task.name, run.job.id, error, extra=run.marks)
        if again:
            self._held.give_up(run)
        else:
            self._settle([(run, Raised(f"the store refused the outcome: {error}", fatal=True))], refused=True)

    def _keep(self, item: Item, error: Exception) -> None:
        """An error that says nothing about the outcome must not change it: it is settled later."""
        self._log_kept(item[0], error)
        self._put_off.append(item)

    def _log_kept(self, run: Execution, error: Exception) -> None:
        text = "%s %s: its outcome could not be settled and will be tried again: %s"
        log.error(text, run.task.name, run.job.id, error, extra=run.marks)

    def _tell(self, run: Execution, outcome: Outcome, state: State | None) -> None:
        job = run.job
        if state is State.QUEUED:
            run.lane.look_again()
        if state is None:
            text = "%s %s: the lease was lost; what the attempt came to is not recorded"
            log.warning(text, job.task, job.id, extra=run.marks)
            self._held.lost(run, "lease_lost")
            return
        if state is State.SUCCEEDED and not isinstance(outcome, Succeeded):  # the handler has completed it by itself
            if isinstance(outcome, Raised) and outcome.error != ROLLED_BACK:
                text = _line(outcome.error)
                log.warning("%s %s: failed after it was completed: %s", job.task, job.id, text, extra=run.marks)
            outcome = Succeeded()
        if isinstance(outcome, Raised):
            level = logging.ERROR if state is State.FAILED else logging.WARNING
            said = (job.task, job.id, job.attempt, state, _line(outcome.error))
            log.log(level, "%s %s: attempt %d, now %s: %s", *said, extra=run.marks)
        elif log.isEnabledFor(logging.DEBUG):
            log.debug("%s %s: attempt %d, now %s", job.task, job.id, job.attempt, state, extra=run.marks)
        kind = _event(outcome, state)
        self._meter.ended(COUNTED[kind], [run])
        if self._events.wanted(kind):
            self._events.tell(self._made(kind, run, outcome, state))

    def _made(
        self, kind: type[Ended | Cancelled | Paused], run: Execution, outcome: Outcome, state: State
    ) -> Ended | Cancelled | Paused:
        facts = run.facts(self._worker, state)
        if not issubclass(kind, Ended):
            return kind(**{name: facts[name] for name in ("job_id", "state", "task", "queue", "tenant")})
        seconds = (run.stopped or time.monotonic()) - run.started if run.started else 0.0
        return kind(**facts, error=outcome.error if isinstance(outcome, Raised) else None, seconds=seconds)


def _line(error: str) -> str:
    """An error in a log line: its first line, no longer than people read, and nothing in it that a terminal obeys."""
    first = error.partition("\n")[0]
    short = first if len(first) <= 300 else f"{first[:300]}..."
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in short)


def _by_lease(item: Item) -> Lease:
    return item[0].lease


def _sorted(batch: list[Item]) -> tuple[list[tuple[Execution, Succeeded]], list[Item], list[Item], list[Item]]:
    """Successes that nothing follows, others that settle at once, those that may wait for a unique key, and those whose
    handler may have a transaction open.

    Each is looked at once: a handler that was settled without it may end at any moment, and is not open from then on.
    A job that is in the batch by two leases, one of them lost, is not among the first: they are told apart by id.
    """
    succeeded: dict[str, tuple[Execution, Succeeded]] = {}
    plain: list[Item] = []
    keyed: list[Item] = []
    may_be_open: list[Item] = []
    for item in batch:
        run, outcome = item
        if run.may_be_open:
            may_be_open.append(item)
        elif lease.is_plain(outcome) and run.lease.id not in succeeded:
            succeeded[run.lease.id] = run, outcome
        else:
            (keyed if lease.takes_key(outcome) else plain).append(item)
    return list(succeeded.values()), plain, keyed, may_be_open


def _event(outcome: Outcome, state: State) -> type[Ended | Cancelled | Paused]:
    """What to call it: by where the job is now, as a request may have decided otherwise than the handler."""
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
