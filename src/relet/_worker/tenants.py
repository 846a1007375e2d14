"""The tenants of a worker. A tenant without work sleeps: it has no session, and so no loops and no connections.

    asleep -> there may be work: its session is opened -> nothing is left to do: its session is closed -> asleep

One loop watches all tenants that sleep. On PostgreSQL it asks about many schemas in one statement, once a second, and
notifications come in between. On SQLite it watches the files. About once an hour, and first at the start, each tenant
is visited: its session is opened although there may be no work. So partitions are made, old jobs are pruned, and
declared limits and schedules are stored.

A tenant with queued jobs, leases or nudges is awake in every worker that serves it: any of them may have to act.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from .._core.text import listed
from .._store.flows import maintenance, worker_reports
from .._store.query import Flow
from .._store.retry import RetryFor
from .._store.store import Store
from .._system import Event, System, Thread
from ..errors import ReletError, StoreBusy, StoreUnavailable
from .context import WorkerContext
from .loop import Loop
from .loop_threads import LoopThreads
from .notifications import KEYS
from .quarantine import Quarantine
from .reconnect import Outages
from .reporter import worker_facts
from .session import StoreSession
from .tenant import Tenant

R = TypeVar("R")

log = logging.getLogger("relet.worker")

LOOP_THREADS, LOOP_THREADS_LIMIT = 12, 60
HEARTBEAT_THREADS, HEARTBEAT_THREADS_LIMIT = 3, 20
CHECK_EVERY = 1.0  # seconds between two questions about tenants that sleep, at most
WATCH_EVERY = 0.1  # seconds between two checks of the files of tenants
VISITS = 20  # at a time
FINDS_EVERY = 10  # checks: then tenants are searched that were added, or removed
NOTIFY_FOR = 300.0  # seconds for which sleeping tenants ask for notifications
SIGN_OFF_WITHIN = 3.0  # seconds
#: Seconds between two reports for a sleeping tenant. In a file, a report costs a sync of the disk.
REPORT_EVERY, REPORT_IN_FILE_EVERY = 20.0, 60.0

_once = RetryFor(0.0)


class Tenants:
    """All tenants of one worker.

    `slots`: by tenant; None: every tenant that `find` returns has `slots_of_each`. `make_context`: of a tenant.
    `prepare`: called before the first claim of a tenant, and about once an hour. `may_sleep`: whether a tenant sleeps
    that has nothing to do.
    """

    def __init__(
        self,
        system: System,
        slots: Mapping[str, int] | None,
        slots_of_each: int,
        find: Callable[[], Iterable[str]],
        make_context: Callable[[str, LoopThreads, LoopThreads], WorkerContext],
        open_session: Callable[[WorkerContext, int], StoreSession],
        prepare: Callable[[WorkerContext], None],
        quarantine: Quarantine,
        outages: Outages,
        *,
        worker: str,
        queues: Sequence[str] | None,
        tasks: Iterable[str],
        poll_interval: float,
        may_sleep: bool,
    ) -> None:
        self._system, self._now = system, system.monotonic
        self._slots_of_each, self._find, self._make_context = slots_of_each, find, make_context
        self.open_session, self.prepare, self.may_sleep = open_session, prepare, may_sleep
        self._quarantine, self._outages = quarantine, outages
        self._serves_all = slots is None
        self._worker, self._queues, self._tasks = worker, queues, sorted(tasks)
        self._check_every = min(CHECK_EVERY, poll_interval)
        self.threads = LoopThreads(system, "tenants", LOOP_THREADS, LOOP_THREADS_LIMIT)
        self.heartbeat_threads = LoopThreads(system, "heartbeats", HEARTBEAT_THREADS, HEARTBEAT_THREADS_LIMIT)
        self.watch = Loop(system, "watch", self.step)
        self._key = int(system.random() * KEYS)  # of the channels of sleeping tenants
        self._lock = system.lock()
        self._tenants: dict[str, Tenant] = {}
        self._orders: deque[tuple[str, int | None]] = deque((slots or {}).items())  # None: to be left
        self._find_at = self._report_at = self._notify_at = self._check_at = 0.0
        self._failed: set[str] = set()  # tenants whose error was logged
        self._ending: Thread | None = None  # withdraws the requests for notifications
        self.answered = system.event()  # a tenant was opened, or none can be

    # For the worker

    def names(self) -> list[str]:
        return [*self._tenants, *(name for name, _ in self._orders if name not in self._tenants)]

    def sessions(self) -> list[StoreSession]:
        return [one.session for one in list(self._tenants.values()) if one.session is not None]

    def stores(self) -> list[Store]:
        return [one.store for one in list(self._tenants.values())]

    @property
    def slots(self) -> int:
        return sum(one.slots for one in list(self._tenants.values()))

    def add(self, name: str, slots: int) -> None:
        """Serve another tenant from now on."""
        self._orders.append((name, slots))
        self.watch.wake()

    def remove(self, name: str) -> None:
        """Serve a tenant no longer. Its running jobs end first."""
        self._orders.append((name, None))
        self.watch.wake()

    def start(self, stop: Event, on_wait: Callable[[], object]) -> None:
        """Start, and wait until the first tenant is served. Raises the error of a tenant if none can ever be."""
        self.watch.start()
        while not stop.is_set() and not self.answered.wait(0.05):
            if self._outages.since is not None:
                on_wait()
        errors = [one.error for one in self._tenants.values() if not one.is_cut_off]
        if errors and len(errors) == len(self._tenants) and errors[0] is not None and all(errors):
            raise errors[0]

    @property
    def are_open(self) -> bool:
        """Whether every tenant that can be served has a session. For a worker that lets none sleep."""
        return not self._orders and all(one.session or one.error for one in list(self._tenants.values()))

    def drain(self, give_up: float) -> None:
        """Open and close no more sessions, and claim nothing more."""
        self.watch.stop()
        tenants = list(self._tenants.values())
        for one in tenants:
            one.stop()
        for one in tenants:
            one.loop.join(max(give_up - self._now(), 0.0))
        self.watch.join(max(give_up - self._now(), 0.0))
        for session in self.sessions():
            session.stop_claiming(worker_stops=True)
        self._ending = self._system.beside("end of notifications", self._end_notifications)

    def close(self, give_up: float) -> None:
        """Close all sessions, whose jobs are settled, and delete the rows of the worker."""
        sessions = self.sessions()
        for session in sessions:
            session.stop_loops()
        for session in sessions:
            session.join(give_up)
        thread = self._system.beside("sign-off", self._sign_off)
        if thread is not None:
            thread.join(max(give_up - self._now(), SIGN_OFF_WITHIN))
        self.threads.close()
        self.heartbeat_threads.close()
        for one in list(self._tenants.values()):
            for store in (one.context.store, one.context.heartbeat_store):
                if store is not one.context.handler_store:
                    store.close()

    # For tenants

    def changed(self, tenant: Tenant) -> None:
        """Its session was opened or closed, or could not be opened, or it is served no longer."""
        with self._lock:
            self._quarantine.producers = list(chain.from_iterable(one.producers for one in self.sessions()))
        if tenant.is_cut_off and tenant.error is not None:
            self._outages.began(tenant.error)
        else:
            self._log_change(tenant)
            if self._is_answered():
                self.answered.set()
        self.watch.wake()

    def _is_answered(self) -> bool:
        """Whether a tenant is served, or none can be."""
        tenants = list(self._tenants.values())
        is_served = any(one.is_ready for one in tenants)
        return is_served or (not self._orders and all(one.error for one in tenants))

    def _log_change(self, tenant: Tenant) -> None:
        """Log, once, that a tenant cannot be served, and that it can be served again."""
        if tenant.error is not None and tenant.name not in self._failed:
            self._failed.add(tenant.name)
            log.error("Cannot serve tenant %s, trying again every few seconds: %s", tenant.name, tenant.error)
        elif tenant.error is None and tenant.name in self._failed:
            self._failed.discard(tenant.name)
            log.info("Serving tenant %s again", tenant.name)

    # Steps of the watch

    def step(self) -> float:
        """Find tenants, visit them, and ask about those that sleep. Returns the seconds until the next step."""
        now = self._now()
        self._follow_orders()
        try:
            if self._serves_all and now >= self._find_at:
                self._find_tenants()
                self._find_at = self._now() + FINDS_EVERY * self._check_every
            self._visit(now)
            self._ask(now)
        except ReletError as error:
            self._outages.began(error)
            return CHECK_EVERY
        return self._next_step_in()

    def _follow_orders(self) -> None:
        while self._orders:
            name, slots = self._orders[0]
            known = self._tenants.get(name)
            if slots is None and known is not None:
                known.leave()
            elif slots is not None and known is None:
                context = self._make_context(name, self.threads, self.heartbeat_threads)
                tenant = Tenant(self, name, slots, context, self._key)
                self._tenants[name] = tenant
                tenant.loop.start()
            self._orders.popleft()  # now: `names` finds it here or there
        for name, tenant in list(self._tenants.items()):
            if tenant.has_left:
                self._forget([tenant])
                del self._tenants[name]

    def _find_tenants(self) -> None:
        found, known = set(self._find()), set(self._tenants)
        for name in sorted(found - known):
            self._orders.append((name, self._slots_of_each))
        gone = sorted(known - found)
        if gone:
            log.warning("Serving no longer, because they are gone: %s", listed(gone))
        self._orders.extend((name, None) for name in gone)
        if found - known or gone:
            self._follow_orders()
        elif not known:
            self.answered.set()  # there is no tenant yet

    def _visit(self, now: float) -> None:
        """Have the sessions opened of tenants whose visit is due: some at a time."""
        tenants = list(self._tenants.values())
        room = VISITS - sum(one.is_visited for one in tenants) if self.may_sleep else len(tenants)
        due = [one for one in tenants if one.session is None and not one.is_visited and now >= one.visit_at]
        for one in due[: max(room, 0)]:
            one.visit()

    def _ask(self, now: float) -> None:
        """Ask about tenants that sleep. Report for them, and ask for notifications, now and then."""
        ready = [one for one in self._tenants.values() if one.is_ready]
        are_files = bool(ready) and ready[0].store.is_file
        if are_files or now >= self._check_at:
            self._check_at = now + self._check_every
            # Of schemas all are asked about, also those that are awake: the statement stays the same, and prepared.
            asked = [one for one in ready if one.may_have_changed(now)] if are_files else ready
            for one, ahead in self._each(asked, maintenance.work_ahead, self._tasks, queued=True):
                one.answer(ahead, now)
                self._outages.ended()
        if now >= self._notify_at:
            self._notify_at = now + NOTIFY_FOR / 2
            self.ask_for_notifications([one for one in ready if one.sleeps])
        if now >= self._report_at:
            self._report_at = now + (REPORT_IN_FILE_EVERY if are_files else REPORT_EVERY)
            self.report([one for one in ready if one.sleeps])

    def _next_step_in(self) -> float:
        now = self._now()
        tenants = list(self._tenants.values())
        are_files = any(one.store.is_file for one in tenants)
        next_due = min((one.wake_if_due(now) for one in tenants), default=now + CHECK_EVERY)
        wait = WATCH_EVERY if are_files else self._check_at - now
        return max(min(wait, next_due - now), 0.005)

    def settle_down(self, tenant: Tenant) -> None:
        """A tenant falls asleep."""
        self.ask_for_notifications([tenant])
        self.report([tenant])

    def ask_for_notifications(self, tenants: Sequence[Tenant]) -> None:
        which = (NOTIFY_FOR, self._key, self._queues, self._tasks)
        heard = [one for one in tenants if not one.store.is_file and one.store.notifier.is_heard]
        for _ in self._each(heard, maintenance.sleep, *which):
            pass
        for _ in self._each(heard, maintenance.arm, NOTIFY_FOR):
            pass

    def report(self, tenants: Sequence[Tenant]) -> None:
        """Report that this worker is there for tenants that sleep."""
        if tenants:
            every = REPORT_IN_FILE_EVERY if tenants[0].store.is_file else REPORT_EVERY
            facts = worker_facts(tenants[0].context, tenants[0].slots, every)
            for _ in self._each(tenants, worker_reports.stay, self._system.new_token(), facts):
                pass

    def _each(
        self, tenants: Sequence[Tenant], flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any
    ) -> Iterator[tuple[Tenant, R]]:
        """Run a flow at each of these tenants, at many of them in one statement."""
        at_once = tenants[0].store.schemas_at_once if tenants else 1
        for first in range(0, len(tenants), at_once):
            some = tenants[first : first + at_once]
            try:
                found = some[0].store.run_each(_once, [one.store for one in some], flow, *args, **kwargs)
            except ReletError as error:
                if isinstance(error, StoreUnavailable) and not some[0].store.is_file:
                    raise
                yield from self._one_by_one(some, flow, *args, **kwargs)
            else:
                yield from zip(some, found, strict=True)
            for one in some:
                if one.sleeps:
                    one.store.close_if_unused()

    def _one_by_one(
        self, tenants: Iterable[Tenant], flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any
    ) -> Iterator[tuple[Tenant, R]]:
        """The same, to find the tenants that cannot be served."""
        for one in tenants:
            try:
                yield one, one.store.run_with(_once, flow, *args, **kwargs)
            except StoreBusy as error:  # a migration may have locked its tables
                log.debug("Tenant %s is busy: %s", one.name, error)
            except ReletError as error:
                one.fail(error)

    # The end

    def _forget(self, tenants: Sequence[Tenant]) -> None:
        """Delete the rows of this worker."""
        for _ in self._each(tenants, worker_reports.forget, self._worker):
            pass
        for _ in self._each([one for one in tenants if not one.store.is_file], maintenance.forget_sleeper, self._key):
            pass

    def _end_notifications(self) -> None:
        """Have producers notify other workers instead of this one."""
        try:
            for session in self.sessions():
                session.leave()
            ready = [one for one in self._tenants.values() if one.is_ready and not one.store.is_file]
            for _ in self._each(ready, maintenance.forget_sleeper, self._key):
                pass
        except ReletError as error:
            log.debug("Could not withdraw the request for notifications: %s", error)

    def _sign_off(self) -> None:
        if self._ending is not None:
            self._ending.join(SIGN_OFF_WITHIN)
        for session in self.sessions():
            session.reporter.forget_worker()
        try:
            self._forget([one for one in self._tenants.values() if one.is_ready])
        except ReletError as error:
            log.info("Could not delete the rows of this worker, which looks alive for a while: %s", error)
