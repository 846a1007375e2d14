"""All that a worker has at one store: the link, the leases it holds, the threads that see to them, and its lanes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from .._core import validate
from .._core.schedule import Definition
from .._store.retry import backoff
from .._store.store import Store
from .._tasks.task import Task
from ..errors import InvalidInput, StoreBusy, StoreUnavailable
from ..events import Events
from .execution import Execution
from .heartbeat import Heartbeat
from .leases import LeaseTable
from .maintenance import Maintenance
from .producer import Producer
from .quarantine import Quarantine
from .reconnect import LONGEST_PAUSE, ReapGuard, ReconnectingStore
from .reporter import Meter, Reporter, facts
from .settler import Settler
from .timers import Timers

log = logging.getLogger("relet.worker")

Queues = Sequence[str] | Mapping[str, int | None]


class Settings(Struct, frozen=True, kw_only=True):
    """What a worker was told."""

    worker: str
    lease: float
    poll: float
    delay: float
    finished_for: float
    failed_for: float
    queues: Queues | None


class StoreSession:
    """One worker at one store."""

    def __init__(
        self,
        shared: Store,
        store: Store,
        for_beats: Store,
        tenant: str | None,
        slots: int,
        settings: Settings,
        tasks: dict[str, Task[..., Any]],
        schedules: Mapping[str, Definition],
        events: Events,
        timers: Timers,
        solitude: Quarantine,
        start: Callable[[Execution], object],
    ) -> None:
        groups = lanes_of(settings.queues, slots)
        self._shared = shared  # with handlers and others; `store` has connections of its own where that matters
        self._store = store
        self._for_beats = for_beats
        self._threads: list[threading.Thread] = []
        worker = settings.worker
        guard = ReapGuard()
        self.link = ReconnectingStore(self._store, worker, tenant, events, guard)
        self.held = LeaseTable(worker, events)
        meter = Meter()
        self.settler = Settler(self.link, self.held, events, meter, worker)
        beats = ReconnectingStore(for_beats, worker, tenant, events, guard)
        self.heartbeat = Heartbeat(beats, store.notifier, self.held, events, worker, settings.lease)
        self.maintenance = Maintenance(
            self.link, self.held, events, meter, tenant=tenant, tasks=list(tasks), schedules=schedules,
            lease=settings.lease, finished_for=settings.finished_for, failed_for=settings.failed_for,
        )  # fmt: skip
        self.lanes = [
            Producer(
                self.link, self.held, self.settler, events, solitude, start, shared=shared, worker=worker,
                tenant=tenant, tasks=tasks, queues=queues, slots=number, lease=settings.lease, poll=settings.poll,
                delay=settings.delay, timers=timers,
            )
            for queues, number in groups
        ]  # fmt: skip
        served = None if settings.queues is None else sorted(settings.queues)
        about = facts(worker, served, sum(lane.slots for lane in self.lanes), list(tasks), settings.lease)
        self.reporter = Reporter(self.link, meter, about, lambda: sum(lane.running for lane in self.lanes))

    def reach(self, halt: threading.Event) -> None:
        """Wait until the store can be used. What would not pass by itself is raised: a wrong password, no schema."""
        since, failures = time.monotonic(), 0
        while not halt.is_set():
            try:
                self._store.reach()
            except (StoreUnavailable, StoreBusy) as error:
                if not failures:
                    log.warning("Cannot reach the database, waiting for it: %s", error)
                failures += 1
                halt.wait(backoff(failures, LONGEST_PAUSE))
            else:
                if failures:
                    log.info("Reached the database after %.1f s", time.monotonic() - since)
                return

    def start(self) -> None:
        """Begin to work."""
        self._threads = [
            *self.settler.start(),
            *self.heartbeat.start(),
            *self.maintenance.start(),
            *self.reporter.start(),
        ]
        for lane in self.lanes:
            self._threads += lane.start()

    def drain(self) -> None:
        """Claim no more."""
        self.reporter.stopping = True
        for lane in self.lanes:
            lane.stop()

    @property
    def is_claiming(self) -> bool:
        """Whether the answer to a claim may still come."""
        return any(lane.claiming for lane in self.lanes)

    def runs(self) -> list[Execution]:
        """What is not settled yet."""
        return self.held.runs()

    @property
    def is_empty(self) -> bool:
        """All that was held is settled. A slot may still be in use, by a handler whose job was settled without it."""
        return not self.held and not self.settler.left

    def has_been_idle_for(self, seconds: float) -> bool:
        """Nothing is held, and for so long nothing was to be found."""
        quiet = [lane.idle_since for lane in self.lanes]
        return self.is_empty and all(one is not None and time.monotonic() - one >= seconds for one in quiet)

    def has_expired_leases(self, halt: threading.Event) -> bool:
        """Whether a worker that died has left jobs that can be reaped, once the grace is over."""
        return self.maintenance.has_expired_leases(halt)

    def has_nothing_left(self, halt: threading.Event) -> bool:
        """Nothing is there to be let go; and a claim that was sent when that was known has found nothing."""
        if not self.maintenance.has_nothing_to_let_go(halt):
            return False
        since = time.monotonic()
        for lane in self.lanes:
            lane.wake()
        while self.has_been_idle_for(0.0) and not halt.wait(0.005):
            if all(lane.last_in_vain > since for lane in self.lanes):
                return True
        return False

    def stop(self) -> None:
        """End everything."""
        self.drain()
        self.settler.stop()
        self.heartbeat.stop()
        self.maintenance.stop()
        self.reporter.stop()

    def close(self, give_up: float) -> None:
        """Let go of the connections, once nobody uses them; but do not wait for that beyond this moment."""
        for thread in self._threads:
            thread.join(max(give_up - time.monotonic(), 0.0))
        if self._threads:
            self.reporter.say_goodbye(give_up)
        for store in (self._store, self._for_beats):
            if store is not self._shared:
                store.close()


def lanes_of(queues: Queues | None, slots: int) -> list[tuple[list[str] | None, int]]:
    """Queues with a number have slots of their own, the others share what is left of the word: `slots`."""
    if queues is None:
        return [(None, slots)]
    if isinstance(queues, str) or not isinstance(queues, Sequence | Mapping) or not queues:
        raise InvalidInput(f"queues must be names, as in ['billing', 'mail'] or {{'billing': 4}}, not {queues!r}")
    numbers = dict(queues) if isinstance(queues, Mapping) else dict.fromkeys(queues)
    shared = [validate.name("queue", name) for name, number in numbers.items() if number is None]
    own = [
        ([validate.name("queue", name)], validate.whole(f"the slots of queue {name}", number, 1, 10_000))
        for name, number in numbers.items()
        if number is not None
    ]
    return [(shared, slots), *own] if shared else [*own]
