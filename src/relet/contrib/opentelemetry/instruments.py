"""Counters and histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opentelemetry.metrics import Meter

from ... import events
from .attributes import OUTCOME, QUEUE, REASON, STATE, SYSTEM, TASK, Attributes
from .safely import Safely

#: Buckets of the conventions, in seconds.
QUICK = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
#: Jobs may run and wait longer than messages do.
LONG = (*QUICK, 30, 60, 300, 1800, 7200)

_RELET: Attributes = {SYSTEM: "relet"}


class Instruments:
    """The instruments, and the listeners that feed them with events."""

    def __init__(self, meter: Meter) -> None:
        def histogram(name: str, description: str, bounds: tuple[float, ...]) -> Any:
            return meter.create_histogram(
                name, unit="s", description=description, explicit_bucket_boundaries_advisory=bounds
            )

        def counter(name: str, unit: str, description: str) -> Any:
            return meter.create_counter(name, unit=f"{{{unit}}}", description=description)

        self.sent = counter(
            "messaging.client.sent.messages", "message", "Number of messages producer attempted to send to the broker"
        )
        self.consumed = counter(
            "messaging.client.consumed.messages",
            "message",
            "Number of messages that were delivered to the application",
        )
        self.operation = histogram(
            "messaging.client.operation.duration",
            "Duration of messaging operation initiated by a producer or consumer client",
            QUICK,
        )
        self.process = histogram("messaging.process.duration", "Duration of processing operation", LONG)
        self.wait = histogram("relet.job.wait", "Time from when a job was due to when its handler started", LONG)
        self.attempts = counter("relet.attempts", "attempt", "Attempts that have ended, by outcome")
        self.losses = counter("relet.lease.losses", "lease", "Leases that workers of this process have lost")
        self.undone = counter(
            "relet.attempts.undone", "attempt", "Attempts whose claim or end the database has lost in a failover"
        )
        self.reaps = counter("relet.reaps", "job", "Jobs taken back from workers that died")
        self.used = meter.create_up_down_counter(
            "relet.worker.slot.usage", unit="{slot}", description="Slots in which an attempt runs"
        )
        self.slots = meter.create_up_down_counter(
            "relet.worker.slot.limit", unit="{slot}", description="Slots of the workers of this process"
        )
        self._slots_by_worker: dict[str, int] = {}
        self._listeners: list[tuple[type[events.Event], Callable[[Any], object]]] = []

    def listen(self, emitter: events.Events, safely: Safely) -> None:
        """Count the events of an app."""
        by_kind: dict[type[events.Event], Callable[[Any], None]] = {
            events.Ended: self._ended,
            events.LeaseLost: self._lost,
            events.Undone: self._undone,
            events.Reaped: self._reaped,
            events.WorkerStarted: self._started,
            events.WorkerStopped: self._stopped,
        }
        for kind, count in by_kind.items():
            listener = _guarded(count, safely)
            self._listeners.append((kind, listener))
            emitter.add(kind, listener)

    def ignore(self, emitter: events.Events) -> None:
        """Undo `listen`."""
        for kind, listener in self._listeners:
            emitter.remove(kind, listener)
        self._listeners = []

    def attempt(self, outcome: str, queue: str | None, task: str | None) -> None:
        """Count an attempt that has ended."""
        self.attempts.add(1, _RELET | _known(queue, task) | {OUTCOME: outcome})

    def _ended(self, event: events.Ended) -> None:
        self.attempt(type(event).__name__.lower(), event.queue, event.task)

    def _lost(self, event: events.LeaseLost) -> None:
        self.attempt("lost", event.queue, event.task)
        self.losses.add(1, _RELET | _known(event.queue, event.task) | {REASON: event.reason})

    def _undone(self, event: events.Undone) -> None:
        self.undone.add(1, _RELET | _known(event.queue, event.task) | {STATE: _state(event)})

    def _reaped(self, event: events.Reaped) -> None:
        self.reaps.add(1, _RELET | {STATE: _state(event)})

    def _started(self, event: events.WorkerStarted) -> None:
        self._slots_by_worker[event.worker] = event.slots
        self.slots.add(event.slots, _RELET)

    def _stopped(self, event: events.WorkerStopped) -> None:
        self.slots.add(-self._slots_by_worker.pop(event.worker, 0), _RELET)


def _state(event: events.JobEvent) -> str:
    return "gone" if event.state is None else event.state.value


def _known(queue: str | None, task: str | None) -> Attributes:
    return {name: value for name, value in ((QUEUE, queue), (TASK, task)) if value is not None}


def _guarded(count: Callable[[Any], None], safely: Safely) -> Callable[[Any], None]:
    def listener(event: Any) -> None:
        with safely("counting an event"):
            count(event)

    return listener
