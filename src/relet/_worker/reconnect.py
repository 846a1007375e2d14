"""The store as a worker uses it: calls are retried until the worker is stopped, and outages are reported."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .._store.query import Flow
from .._store.retry import backoff
from .._store.store import Store
from .._system import Event, System
from ..errors import SchemaMismatch, StoreBusy, StoreError, StoreRefused, StoreUnavailable
from ..events import Events, StoreDown, StoreUp

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("relet.worker")

MIN_GRACE = 1.5  # seconds after an outage in which no worker reaps
LONGEST_PAUSE = 0.5  # seconds; must stay below MIN_GRACE, so that live workers reconnect before any worker reaps

#: Errors that may pass while the worker runs, some of them only after an operator has acted.
PASSING = (StoreUnavailable, StoreBusy, StoreRefused, SchemaMismatch)


class Stopped(Exception):
    """The thread was stopped before the store answered."""


class ReapGuard:
    """Decides whether a worker may reap: not while its own renewals or reaps fail, nor for MIN_GRACE afterwards.

    A database with a full disk may refuse both and still store the pulse. The leases that expire meanwhile may belong
    to live workers, which must get time to renew them first.
    """

    def __init__(self, system: System) -> None:
        self._now = system.monotonic
        self._renewals_fail = False
        self._not_before = 0.0

    def may_reap(self) -> bool:
        return not self._renewals_fail and self._now() >= self._not_before

    def reap_failed(self) -> None:
        self._not_before = self._now() + MIN_GRACE

    def renewal_failed(self) -> None:
        """This worker reaps nothing until a renewal succeeds."""
        self._renewals_fail = True

    def renewed(self) -> None:
        """After failed renewals, other workers get MIN_GRACE to renew theirs."""
        if self._renewals_fail:
            self._not_before = self._now() + MIN_GRACE
            self._renewals_fail = False


class Outages:
    """Outages of the database, as one worker sees them. Logs their begin and end once."""

    def __init__(self, worker: str, tenant: str | None, events: Events, system: System) -> None:
        self._worker, self._tenant, self._events = worker, tenant, events
        self._now, self._lock = system.monotonic, system.lock()
        self.since: float | None = None
        self.failures = 0  # tries that failed since the worker started
        self.on_loss: Callable[[float], object] = lambda moment: None  # called when a connection was lost

    def failed(self, error: StoreError) -> None:
        """Count a try that failed."""
        self.failures += 1
        if isinstance(error, StoreUnavailable):
            self.on_loss(self._now())

    def began(self, error: Exception) -> None:
        with self._lock:
            if self.since is not None:
                return
            self.since = self._now()
        log.warning("Lost connection to the database, retrying: %s", error)
        self._events.emit(StoreDown(worker=self._worker, error=str(error), tenant=self._tenant))

    def ended(self) -> None:
        with self._lock:
            if self.since is None:
                return
            seconds, self.since = self._now() - self.since, None
        log.info("Reached the database again after %.1f s", seconds)
        self._events.emit(StoreUp(worker=self._worker, seconds=seconds, tenant=self._tenant))


class ReconnectingStore:
    """The store as one thread of a worker uses it.

    A flow is retried until it is committed, or until the thread is stopped: then `Stopped` is raised. So it is if the
    database is down, busy, not migrated or refuses access, because an operator can mend all of these while the worker
    runs.
    """

    def __init__(self, store: Store, outages: Outages, guard: ReapGuard, stop: Event) -> None:
        self.store = store
        self._outages = outages
        self._guard = guard
        self._stop = stop

    def stopped_by(self, stop: Event) -> ReconnectingStore:
        """The same store for another thread."""
        return ReconnectingStore(self.store, self._outages, self._guard, stop)

    @property
    def failures(self) -> int:
        return self._outages.failures

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(UntilStopped(self._outages, self._stop), flow, *args, **kwargs)

    def run_unless_busy(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Like `run`, but raise StoreBusy if a lock is not free: the caller has other work to do meanwhile."""
        return self._run(UnlessBusy(self._outages, self._stop), flow, *args, **kwargs)

    def renew(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that renews leases. While it fails, this worker reaps nothing."""
        result = self._run(WhileRenewing(self._outages, self._stop, self._guard), flow, *args, **kwargs)
        self._guard.renewed()
        return result

    def reap(self, flow: Callable[P, Flow[list[R]]], *args: P.args, **kwargs: P.kwargs) -> list[R]:
        """Run a flow that reaps, if the guard allows it. A failed reap is not retried: live workers renew first."""
        if not self._guard.may_reap():
            return []
        try:
            return self._run(Once(self._outages, self._stop, self._guard), flow, *args, **kwargs)
        except (StoreBusy, StoreUnavailable):
            return []

    def _run(self, policy: UntilStopped, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        result = self.store.run_with(policy, flow, *args, **kwargs)
        if self._outages.since is not None:
            self._outages.ended()
        return result


class UntilStopped:
    """A retry policy: retry errors that may pass until the thread is stopped."""

    def __init__(self, outages: Outages, stop: Event) -> None:
        self._outages = outages
        self._stop = stop

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        if not isinstance(error, PASSING):
            return False
        if transient:
            self._outages.failed(error)
        # One transient error may be a stale connection, and a busy database is not down.
        if not transient or (isinstance(error, StoreUnavailable) and failures > 1):
            self._outages.began(error)
        if self._stop.wait(backoff(failures, LONGEST_PAUSE)):
            raise Stopped from error
        return True


class UnlessBusy(UntilStopped):
    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        is_busy = isinstance(error, StoreBusy)
        return not is_busy and super().wait(error, transient=transient, failures=failures, started=started)


class WhileRenewing(UntilStopped):
    """Like `UntilStopped`. After a failure the worker reaps nothing until a renewal succeeds."""

    def __init__(self, outages: Outages, stop: Event, guard: ReapGuard) -> None:
        super().__init__(outages, stop)
        self._guard = guard

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        if transient:
            self._guard.renewal_failed()
        return super().wait(error, transient=transient, failures=failures, started=started)


class Once(WhileRenewing):
    """Does not retry. After a failure, other than of a busy database, the worker reaps nothing for MIN_GRACE."""

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        if transient:
            self._outages.failed(error)
            if isinstance(error, StoreUnavailable):
                self._guard.reap_failed()
        return False
