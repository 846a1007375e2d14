"""The parts of a worker that work with one store: producers, settler, heartbeat, maintenance and reporter."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from .._core import validate
from .._store.flows import control, inspect
from .._store.retry import RetryFor, backoff
from .._store.store import Store
from .._system import Event, Thread
from ..errors import InvalidInput, ReletError, StoreBusy, StoreUnavailable
from .context import Queues, WorkerContext
from .execution import Execution
from .heartbeat import Heartbeat
from .loop import Loop
from .maintenance import Maintenance, NoMaintenance
from .producer import Producer
from .quarantine import Quarantine
from .reconnect import LONGEST_PAUSE, Outages, ReconnectingStore
from .reporter import Reporter
from .settler import Settler

log = logging.getLogger("relet.worker")

END_WITHIN = 1.0  # seconds to withdraw the request for notifications
SOON = 1.0  # seconds: a session is not closed for so short a time
CHECK_EVERY = 0.005  # seconds between two checks whether claims have found nothing


class StoreSession:
    """One worker at one store."""

    def __init__(
        self, context: WorkerContext, quarantine: Quarantine, slots: int, start: Callable[[Execution], object]
    ) -> None:
        self._context, self._now, self._quarantine = context, context.system.monotonic, quarantine
        self._outages = outages = Outages(context.worker, context.tenant, context.events, context.system)
        outages.on_loss = context.leases.ends.lost_connection
        never = context.system.event()
        store, shared, heartbeat_store = (
            ReconnectingStore(one, outages, context.guard, never)
            for one in (context.store, context.store.patient(), context.heartbeat_store)
        )
        self.settler = Settler(context, store)
        self.heartbeat = Heartbeat(context, heartbeat_store, shared)
        maintenance = NoMaintenance if context.store.is_remote else Maintenance
        self.maintenance = maintenance(context, shared)
        self.producers = [
            Producer(context, store, shared, self.settler, quarantine, start, queues, number)
            for queues, number in slots_by_queues(context.settings.queues, slots)
        ]
        self.maintenance.on_queued = self._poll
        self._subscriptions = ExitStack()
        for producer in self.producers:
            self._subscriptions.enter_context(self.maintenance.listening(producer.notifications.key))
        self.reporter = Reporter(context, shared, self.slots, lambda: self.running)
        self._is_started = False
        self._has_ended = False  # the requests for notifications are withdrawn, or will be
        self._ending: Thread | None = None  # withdraws them

    @property
    def where(self) -> str:
        """The URL of the store, without a password, for messages."""
        return self._context.store.where

    @property
    def slots(self) -> int:
        return sum(producer.slots.size for producer in self.producers)

    @property
    def running(self) -> int:
        return sum(producer.slots.running for producer in self.producers)

    def reach(self, stop: Event, then: Callable[[Store], object], on_wait: Callable[[], object]) -> None:
        """Wait until the store can be used, call `then` with it, and store the declared limits. Errors that do not pass
        are raised, such as a wrong password. `on_wait` is called before the first wait."""
        since, failures = self._now(), 0
        while not stop.is_set():
            try:
                self._context.store.reach()
                then(self._context.store)
                declare_limits(self._context)
            except (StoreUnavailable, StoreBusy) as error:
                if not failures:
                    log.warning("Cannot reach the database, waiting for it: %s", error)
                    on_wait()
                failures += 1
                stop.wait(backoff(failures, LONGEST_PAUSE))
            else:
                if failures:
                    log.info("Reached the database after %.1f s", self._now() - since)
                return

    @property
    def store(self) -> Store:
        return self._context.store

    def start(self) -> None:
        self._is_started = True
        self.settler.loop.start()
        self.heartbeat.loop.start()
        self.maintenance.start()
        self.reporter.loop.start()
        for producer in self.producers:
            producer.start()

    def notified(self) -> None:
        """A notification for this store has come by another subscription than that of a producer."""
        self.maintenance.loop.wake()
        for producer in self.producers:
            producer.notifications.notified()

    def is_quiet(self, seconds: float) -> bool:
        """Whether there is nothing to do, there was nothing for so many seconds, and nothing is due soon."""
        is_idle = self.has_been_idle_for(seconds) and self.maintenance.has_no_work_for(SOON + seconds)
        return is_idle and self._context.meter.is_empty and self._quarantine.owner not in self.producers

    def is_away_for(self, seconds: float) -> bool:
        """Whether the store could not be reached for so many seconds."""
        since = self._outages.since
        return since is not None and self._now() - since >= seconds

    def stop_claiming(self, *, worker_stops: bool = False) -> None:
        self.reporter.is_stopping = worker_stops
        for producer in self.producers:
            producer.stop()

    def loops_ended(self) -> bool:
        """Stop all loops, which share threads with others. Returns whether they have ended."""
        self.stop_loops()
        return all(loop.has_ended for loop in self._loops)

    def leave(self) -> None:
        """Withdraw the requests for notifications. The connections stay open: others use them."""
        self._end_notifications()

    def drain(self) -> None:
        """Stop claiming, and withdraw the requests for notifications."""
        self.stop_claiming(worker_stops=True)
        if not self._has_ended and any(producer.notifications.has_asked for producer in self.producers):
            self._has_ended = True
            self._ending = self._context.system.beside("end of notifications", self._end_notifications)

    def _end_notifications(self) -> None:
        """Pass on what came too late, so that other workers need not find it by a check."""
        try:
            for producer in self.producers:
                producer.notifications.end(partial(self._context.store.run_with, RetryFor(END_WITHIN)))
        except ReletError as error:
            log.debug("Could not withdraw the request for notifications: %s", error)

    def _poll(self) -> None:
        for producer in self.producers:
            producer.poll()

    @property
    def is_claiming(self) -> bool:
        """Whether a claim has not been answered yet."""
        return any(producer.is_claiming for producer in self.producers)

    def executions(self) -> list[Execution]:
        """The executions that are not settled yet."""
        return self._context.leases.executions()

    @property
    def is_empty(self) -> bool:
        """Whether everything is settled. A handler may still run in a slot, if its job was settled without it."""
        return not self._context.leases and not self.settler.left

    def has_been_idle_for(self, seconds: float) -> bool:
        """Whether there are no executions, and claims have found nothing for this long."""
        idle = [producer.idle_since for producer in self.producers]
        return self.is_empty and all(since is not None and self._now() - since >= seconds for since in idle)

    def has_nothing_left(self, stop: Event) -> bool:
        """Whether there is nothing to promote, and claims that were sent after that was known have found nothing."""
        if not self.maintenance.has_nothing_to_promote(stop):
            return False
        since = self._now()
        for producer in self.producers:
            producer.wake()
        while self.has_been_idle_for(0.0) and not stop.wait(CHECK_EVERY):
            if all(producer.last_empty_claim > since for producer in self.producers):
                return True
        return False

    def stop(self) -> None:
        self.drain()
        self.stop_loops()

    def stop_loops(self) -> None:
        self.settler.loop.stop()
        self.heartbeat.stop()
        self.maintenance.stop()
        self._subscriptions.close()
        self.reporter.loop.stop()

    def close(self, give_up: float) -> None:
        """Close the connections once no loop uses them, at `give_up` at the latest."""
        self.join(give_up)
        if self._ending is not None:
            self._ending.join(max(give_up - self._now(), 0.0))
        if self._is_started:
            self.reporter.sign_off(give_up)
        for store in (self._context.store, self._context.heartbeat_store):
            if store is not self._context.handler_store:
                store.close()
        if self._context.handler_store.is_remote:
            self._context.handler_store.close()

    def join(self, give_up: float) -> None:
        """Wait until no loop uses the connections, until `give_up` at the latest."""
        for loop in self._loops:
            loop.join(max(give_up - self._now(), 0.0))

    @property
    def _loops(self) -> list[Loop]:
        own = [self.settler.loop, self.heartbeat.loop, self.maintenance.loop, self.maintenance.pruner.loop]
        return [*own, self.reporter.loop, *(producer.loop for producer in self.producers)]


def declare_limits(context: WorkerContext) -> None:
    """Store the limits that the app declares: before the first claim, which must keep them."""
    if context.limits:
        context.store.run(control.declare_limits, context.limits)


def queue_names(store: Store) -> set[str]:
    """The queues that have live jobs or settings."""
    return {one.queue for one in store.run(inspect.queues)}


def slots_by_queues(queues: Queues | None, slots: int) -> list[tuple[list[str] | None, int]]:
    """The sets of queues and their slots. A queue with a number has that many slots; the others share `slots`.

    None in place of queues stands for all queues.
    """
    if queues is None:
        return [(None, slots)]
    if isinstance(queues, str) or not isinstance(queues, Sequence | Mapping) or not queues:
        raise InvalidInput(f"queues must be names, as in ['billing', 'mail'] or {{'billing': 4}}, not {queues!r}")
    numbers = dict(queues) if isinstance(queues, Mapping) else dict.fromkeys(queues)
    shared = [validate.name("queue", name) for name, number in numbers.items() if number is None]
    own = [
        ([validate.name("queue", name)], validate.integer(f"the slots of queue {name}", number, 1, 10_000))
        for name, number in numbers.items()
        if number is not None
    ]
    return [(shared, slots), *own] if shared else [*own]
