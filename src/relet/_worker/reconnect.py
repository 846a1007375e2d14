"""How a worker uses its store: it retries until it is stopped, and reports outages of the database."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from .._store.query import Flow
from .._store.retry import backoff
from .._store.store import Store
from ..errors import SchemaMismatch, StoreBusy, StoreError, StoreRefused, StoreUnavailable
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
    """The store as the threads of one worker use it.

    A flow is retried until it is committed or the thread is stopped, whether the database is down, busy, not migrated
    yet or refuses access: all of these can be mended while the worker runs.
    """

    def __init__(self, store: Store, worker: str, tenant: str | None, events: Events, guard: ReapGuard) -> None:
        self.store = store
        self.guard = guard
        self._worker = worker
        self._tenant = tenant
        self._events = events
        self._down_since: float | None = None
        self.failures = 0  # tries that failed, ever
        self._lock = threading.Lock()

    def run(self, stop: StopEvent, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow. Raises Stopped if the thread is stopped before that succeeds."""
        return self._run(UntilStopped(self, stop), flow, *args, **kwargs)

    def run_unless_busy(self, stop: StopEvent, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """The same, but StoreBusy is raised: the caller has other work to do while a lock is held."""
        return self._run(UnlessBusy(self, stop), flow, *args, **kwargs)

    def renew(self, stop: StopEvent, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that renews leases. While that fails, this worker reaps nothing."""
        result = self._run(WhileRenewing(self, stop), flow, *args, **kwargs)
        self.guard.renewed()
        return result

    def reap(self, stop: StopEvent, flow: Callable[P, Flow[list[R]]], *args: P.args, **kwargs: P.kwargs) -> list[R]:
        """Run a flow that takes expired leases away, if the guard allows it. If it fails, it is not repeated at once:
        live workers renew first."""
        if not self.guard.may_reap():
            return []
        try:
            return self._run(Once(self, stop), flow, *args, **kwargs)
        except (StoreBusy, StoreUnavailable):
            return []

    def _run(self, policy: UntilStopped, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        result = self.store.run_with(policy, flow, *args, **kwargs)
        if self._down_since is not None:
            self.up()
        return result

    def down(self, error: Exception) -> None:
        """The database did not answer. Logged once for each outage."""
        with self._lock:
            if self._down_since is not None:
                return
            self._down_since = time.monotonic()
        log.warning("Lost connection to the database, retrying: %s", error)
        self._events.tell(StoreDown(worker=self._worker, error=str(error), tenant=self._tenant))

    def up(self) -> None:
        """The database answered again."""
        with self._lock:
            if self._down_since is None:
                return
            seconds, self._down_since = time.monotonic() - self._down_since, None
        log.info("Reached the database again after %.1f s", seconds)
        self._events.tell(StoreUp(worker=self._worker, seconds=seconds, tenant=self._tenant))


#: Errors that pass, though perhaps only after an operator has done something.
PASSING = (StoreUnavailable, StoreBusy, StoreRefused, SchemaMismatch)


class UntilStopped:
    """Retry without end, until the thread is stopped."""

    def __init__(self, store: ReconnectingStore, stop: StopEvent) -> None:
        self._store = store
        self._stop = stop

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        if not isinstance(error, PASSING):
            return False
        if transient:
            self._store.failures += 1
        # One transient error may be a stale connection, and a busy database is not down.
        if not transient or (isinstance(error, StoreUnavailable) and failures > 1):
            self._store.down(error)
        if self._stop.is_set() or self._stop.wait(backoff(failures, LONGEST_PAUSE)):
            raise Stopped from error
        return True


class WhileRenewing(UntilStopped):
    """A failure puts reaping off until a renewal succeeds."""

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        if transient:
            self._store.guard.renewal_failed()
        return super().wait(error, transient=transient, failures=failures, started=started)


class UnlessBusy(UntilStopped):
    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        is_busy = isinstance(error, StoreBusy)
        return not is_busy and super().wait(error, transient=transient, failures=failures, started=started)


class Once(UntilStopped):
    """Do not retry. A database that is merely busy does not put reaping off."""

    def wait(self, error: StoreError, *, transient: bool, failures: int, started: float) -> bool:
        if transient:
            self._store.failures += 1
            if isinstance(error, StoreUnavailable):
                self._store.guard.put_off()
        return False


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
