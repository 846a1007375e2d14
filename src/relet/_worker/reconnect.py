"""A worker's link to a store: it never gives up, and tells when the store goes away and comes back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from .._store.query import Flow
from .._store.store import Store, Transient, pause_after
from ..errors import (
    SchemaMismatch,
    StoreBusy,
    StoreRefused,
    StoreUnavailable,
)
from ..events import Events, StoreDown, StoreUp

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("relet.worker")

LONGEST_PAUSE = 0.5  # below the least grace of the pulse: who was alive is back before anybody reaps
GRACE_AT_LEAST = 1.5


class Stopped(Exception):
    """The one who asked is to stop, and the store has not answered yet."""


class StopEvent(Protocol):
    """What tells somebody to stop; a threading.Event is one."""

    def is_set(self) -> bool:
        """Stop now."""

    def wait(self, timeout: float) -> bool:
        """Sleep for so long, or until told to stop."""


class ReapGuard:
    """Whether a worker may reap: not while its own renewals or reaps fail, nor for a while afterwards.

    A disk that is full can refuse both and still store the pulse. The leases that have expired then may be those of
    workers that live: they renew first.
    """

    def __init__(self) -> None:
        self._renewals_fail = False
        self._not_before = 0.0

    def may_reap(self) -> bool:
        """Whether the leases that have expired are those of workers that could have renewed them."""
        return not self._renewals_fail and time.monotonic() >= self._not_before

    def put_off(self) -> None:
        """A reap has failed."""
        self._not_before = time.monotonic() + GRACE_AT_LEAST

    def renewal_failed(self) -> None:
        """Until one succeeds, this worker reaps nothing."""
        self._renewals_fail = True

    def renewed(self) -> None:
        """If renewals failed until now, the other workers get time to renew."""
        if self._renewals_fail:
            self.put_off()
            self._renewals_fail = False


class ReconnectingStore:
    """How one worker speaks to one store, from any of its threads."""

    def __init__(self, store: Store, worker: str, tenant: str | None, events: Events, guard: ReapGuard) -> None:
        self.store = store
        self.guard = guard
        self._worker = worker
        self._tenant = tenant
        self._events = events
        self._down_since: float | None = None
        self.failures = 0  # tries that failed, ever
        self._lock = threading.Lock()

    def run(self, halt: StopEvent, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow, for as long as it takes. An error that would come again is raised; Stopped if told to stop."""
        return self._run(_Persistent(self, halt), halt, flow, *args, **kwargs)

    def run_unless_busy(self, halt: StopEvent, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """The same; but StoreBusy is raised: somebody has a lock, and it is better to come again than to wait."""
        return self._run(_Hasty(self, halt), halt, flow, *args, **kwargs)

    def renew(self, halt: StopEvent, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that renews leases. While the store cannot do that, this worker reaps nothing."""
        result = self._run(_Cautious(self, halt), halt, flow, *args, **kwargs)
        self.guard.renewed()
        return result

    def reap(self, halt: StopEvent, flow: Callable[P, Flow[list[R]]], *args: P.args, **kwargs: P.kwargs) -> list[R]:
        """Run a flow that takes jobs whose leases have expired, if the guard allows it. If it fails, it is not repeated
        at once: the workers that live renew first."""
        if not self.guard.may_reap():
            return []
        try:
            return self.store.run_with(_Once(self, halt), flow, *args, **kwargs)
        except (StoreBusy, StoreUnavailable):
            return []

    def _run(
        self, patience: _Persistent, halt: StopEvent, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        failures = 0
        while True:
            try:
                result = self.store.run_with(patience, flow, *args, **kwargs)
            except (StoreUnavailable, StoreBusy, StoreRefused, SchemaMismatch) as error:
                if isinstance(error, StoreBusy) and isinstance(patience, _Hasty):
                    raise
                failures += 1
                self.down(error)
                if halt.is_set() or halt.wait(pause_after(failures, LONGEST_PAUSE)):
                    raise Stopped from error
            else:
                if self._down_since is not None:
                    self.up()
                return result

    def down(self, error: Exception) -> None:
        """The store did not answer. Said once, not every time."""
        with self._lock:
            if self._down_since is not None:
                return
            self._down_since = time.monotonic()
        log.warning("the store is away, trying again until it is back: %s", error)
        self._events.tell(StoreDown(worker=self._worker, error=str(error), tenant=self._tenant))

    def up(self) -> None:
        """The store has answered."""
        with self._lock:
            if self._down_since is None:
                return
            seconds, self._down_since = time.monotonic() - self._down_since, None
        log.info("the store is back after %.1f s", seconds)
        self._events.tell(StoreUp(worker=self._worker, seconds=seconds, tenant=self._tenant))


class _Persistent:
    """Patience without end, until told to stop."""

    def __init__(self, link: ReconnectingStore, halt: StopEvent) -> None:
        self._link = link
        self._halt = halt

    def again(self, error: Transient, failures: int) -> bool:
        """Wait with full jitter. A store that is merely busy is not away."""
        self._link.failures += 1
        if isinstance(error.shown, StoreUnavailable) and failures > 1:  # the first may be one stale connection
            self._link.down(error.shown)
        return not self._halt.wait(pause_after(failures, LONGEST_PAUSE))


class _Cautious(_Persistent):
    """Patience without end; a failure puts reaping off until the store renews again."""

    def again(self, error: Transient, failures: int) -> bool:
        self._link.guard.renewal_failed()
        return super().again(error, failures)


class _Once(_Persistent):
    """No patience. A store that is merely busy does not put reaping off."""

    def again(self, error: Transient, failures: int) -> bool:
        self._link.failures += 1
        if isinstance(error.shown, StoreUnavailable):
            self._link.guard.put_off()
        return False


class _Hasty(_Persistent):
    """No patience with a store that is busy."""

    def again(self, error: Transient, failures: int) -> bool:
        return not isinstance(error.shown, StoreBusy) and super().again(error, failures)


def run_loop(name: str, step: Callable[[], None], halt: StopEvent) -> threading.Thread:
    """A thread that takes one step after another until told to stop. A step that fails is logged and taken again."""

    def work() -> None:
        while not halt.is_set():
            try:
                step()
            except Stopped:
                halt.wait(0.1)  # if it was another who is to stop, this one goes on
            except BaseException:  # a listener may raise anything
                log.exception("%s failed, and goes on in a second", name)
                halt.wait(1.0)

    thread = threading.Thread(target=work, name=f"relet-{name}", daemon=True)
    thread.start()
    return thread
