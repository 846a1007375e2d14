"""The worker: claims jobs into slots, runs them under lease, and settles them.

    claim (producer, slots) -> run (starter, executors, invoke, outcome) -> settle (settler)
    at the same time: heartbeat, maintenance, pruner, reporter

Only async handlers run on the event loop. All other work is done in threads of the worker, so a handler that blocks the
event loop delays other async handlers, and nothing else.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

from .._client.backup import pause_if_restored
from .._client.client import Client
from .._core import validate
from .._core.text import duration, listed
from .._core.validate import Seconds
from .._remote.channel import Gateways
from .._remote.store import RemoteStore, Session
from .._store.store import Store
from .._system import SYSTEM, System
from .._tasks.resources import Resource
from ..app import App
from ..errors import InvalidInput, StoreError
from ..events import WorkerStarted, WorkerStopped, WorkerStopping
from .context import Queues, Settings, WorkerContext
from .drain import HURRIED_ABORT_TIMEOUT, Drain
from .garbage import frozen_heap
from .heartbeat import BEATS_PER_LEASE
from .lease_table import LeaseTable
from .loop_threads import LoopThreads
from .meter import Meter
from .processes import CLOSE_TIMEOUT, check_process
from .quarantine import Quarantine
from .reconnect import MIN_GRACE, Outages, ReapGuard
from .resources import WorkerResources
from .rss import is_measured, resident_bytes
from .session import StoreSession, declare_limits, queue_names, slots_by_queues
from .signals import stop_on_signals
from .starter import ABORT_TIMEOUT, Starter
from .tenants import Tenants
from .timers import Timers

log = logging.getLogger("relet.worker")

DAY = 86400.0
GATEWAY_TOKEN = "RELET_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable
JOIN_TIMEOUT = 1.0  # seconds that threads have to end
MAX_CONNECTIONS = 30
TENANT_CONNECTIONS = 6, 2  # that all tenants share, however many there are, and those of their heartbeats
IDLE_FOR = 0.2  # seconds: a job that is due within them counts as due now
IDLE_WITHIN = 5.0  # seconds to wait for due jobs that are locked
NAMED_AT_START = 20  # tasks and queues that the log names when the worker starts
RESTORED = (
    "%s was restored from a dump. All its queues are paused, because jobs may have run since the dump was made: "
    "%d running, %d queued, %d pending. `relet restored` says how to go on"
)
MIB = 1024 * 1024


class Worker:
    """Runs the jobs of an app until it is stopped.

    `queues`: names, or names with their own slots (`{"billing": 4, "mail": None}`); by default every queue.
    `concurrency`: slots that all other queues share. `lease`: seconds that a job is held without renewal, unless its
    task has a lease. `shutdown_timeout`: seconds that running jobs have to end after `stop`. `poll_interval`: seconds
    between two claims while no notification comes. `rest`: seconds that a slot rests between two jobs. `tenants`: slots
    by tenant, in place of `concurrency`; or "all": every tenant that has been migrated, now or later, has `concurrency`
    slots. `max_jobs`, `max_rss`: stop after so many jobs, or at so many MiB of memory.
    `keep_finished`, `keep_failed`: seconds until jobs that ended are deleted. `keep_payloads`: seconds until jobs that
    succeeded or were cancelled lose their payloads and results, while their history stays (None: with the job). `name`:
    how its id begins, by default with the name of the host. `gateway`: the URL of a gateway, or several, by which it
    reaches the store in place of a connection to the database; `gateway_token`: by default RELET_GATEWAY_TOKEN from the
    environment.
    """

    def __init__(
        self,
        app: App,
        *,
        queues: Queues | None = None,
        concurrency: int = 10,
        lease: Seconds = 30.0,
        shutdown_timeout: Seconds = 300.0,
        poll_interval: Seconds = 1.0,
        rest: Seconds = 0.0,
        tenants: Mapping[str, int] | Literal["all"] | None = None,
        max_jobs: int | None = None,
        max_rss: int | None = None,
        keep_finished: Seconds = 7 * DAY,
        keep_payloads: Seconds | None = None,
        keep_failed: Seconds = 30 * DAY,
        name: str | None = None,
        gateway: str | Sequence[str] | None = None,
        gateway_token: str | None = None,
    ) -> None:
        if not app.tasks:
            raise InvalidInput(
                "this app has no tasks, so a worker has nothing to do; import the modules that define them"
            )
        for task in app.tasks.values():
            check_process(task)
        _resources_of(app)  # refuses those that cannot be made
        self.name = validate.text("name", name or socket.gethostname())
        self.id = ""  # its name in the store, unique; made when it runs
        self._app = app
        self._shutdown_timeout = validate.seconds("shutdown_timeout", shutdown_timeout)
        if max_jobs is not None:
            validate.integer("max_jobs", max_jobs, 1, 2**62)
        if max_rss is not None and not is_measured():
            raise InvalidInput("max_rss needs Linux or macOS: this system does not report the memory of a process")
        self._max_rss = None if max_rss is None else validate.integer("max_rss", max_rss, 1, 2**40)
        self._settings = Settings(
            lease=validate.seconds("lease", lease, minimum=0.1, maximum=DAY),
            poll_interval=validate.seconds("poll_interval", poll_interval, minimum=0.01, maximum=3600),
            rest=validate.seconds("rest", rest),
            keep_finished=validate.seconds("keep_finished", keep_finished),
            keep_payloads=None if keep_payloads is None else validate.seconds("keep_payloads", keep_payloads),
            keep_failed=validate.seconds("keep_failed", keep_failed),
            queues=queues,
        )
        slots_by_queues(queues, 1)
        app._check_limits()
        self._slots = validate.integer("concurrency", concurrency, 1, 10_000)
        self._serves_tenants = tenants is not None
        self._slots_by_tenant = None if tenants is None else _slots_by_tenant(tenants)
        self._gateways = None if gateway is None else _gateways(gateway, gateway_token, tenants)
        self._system: System = SYSTEM
        self._now = self._system.monotonic
        self._timers = Timers(self._system)
        self._session: StoreSession | None = None
        self._tenants: Tenants | None = None
        self._stops = 0
        self._stopping = self._system.event()
        self._hurrying = self._system.event()
        self.finished = self._system.event()  # every job is settled, or its lease is left to expire
        self.returned = self._system.event()  # `run` is about to return
        self.reached_limit = False  # it stops because of max_jobs or max_rss, and may be replaced
        self.left_behind = 0  # jobs that could be neither settled nor released
        self._failure: BaseException | None = None
        self._on_ready: Callable[[], object] = lambda: None  # called when it works, or waits for a database
        self._resources: WorkerResources
        self._starter = Starter(
            self._system, self._timers, app.middlewares, self._hurrying, max_jobs,
            lambda: self._stop_at(f"max_jobs is reached ({max_jobs} jobs started)"),
        )  # fmt: skip

    async def run(self, *, until_idle: bool = False) -> None:
        """Work until `stop` was called and every job is settled. Async handlers run on this event loop.

        With `until_idle` the worker stops once no job is left that could run now. It does not wait for jobs that are
        due later. Useful in tests, and for programs that a scheduler starts.
        """
        if self._starter.on_loop is not None:
            raise InvalidInput("a worker runs once; create another one")
        if until_idle and self._gateways is not None:
            raise InvalidInput("until_idle needs a connection to the database, which a worker with a gateway has not")
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        self.id = f"{self.name}:{os.getpid()}:{self._system.new_token()[:8]}"
        self._starter.use_loop(loop)
        self._resources = WorkerResources(loop, self._hurrying, self._system)
        on_end = partial(loop.call_soon_threadsafe, over.set)
        self._system.spawn("worker", partial(self._live, on_end, until_idle))
        try:
            await self._wait_for(over)
        finally:
            self.returned.set()
            for tenant in self.tenants if self._gateways is None else ():
                self._app._store(tenant).leave_loop()
        if self._failure is not None:
            raise self._failure

    def run_sync(self, *, until_idle: bool = False) -> None:
        """`run` for code without an event loop: returns when the worker has stopped.

        In the main thread SIGTERM and SIGINT stop the worker; a second signal releases the jobs that still run. For
        several processes, and an exit although a handler does not end, use the command `relet worker`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise InvalidInput("run_sync would block the event loop; in async code write: await worker.run()")
        with stop_on_signals(self.stop):
            asyncio.run(self.run(until_idle=until_idle))

    async def _wait_for(self, over: asyncio.Event) -> None:
        """Wait until the worker has ended. If this task is cancelled, stop the worker as after a second signal."""
        try:
            await over.wait()
        except asyncio.CancelledError:
            self.stop()
            self.stop()
            await over.wait()
            raise

    def stop(self) -> None:
        """Stop claiming, and let running jobs end within `shutdown_timeout`. A second call releases them now."""
        self._stops += 1
        self._stopping.set()
        if self._stops > 1:
            self._hurrying.set()

    @property
    def tenants(self) -> list[str | None]:
        """The tenants whose jobs it runs; None is the store of the app itself."""
        if self._tenants is not None:
            return [*self._tenants.names()]
        return [*(self._slots_by_tenant or ())] if self._serves_tenants else [None]

    def add_tenant(self, name: str, slots: int) -> None:
        """Serve another tenant, from any thread. Only a worker that serves tenants can."""
        self._running_tenants().add(validate.schema(name), validate.integer("slots", slots, 1, 10_000))

    def remove_tenant(self, name: str) -> None:
        """Serve a tenant no longer. Its running jobs end first."""
        self._running_tenants().remove(validate.schema(name))

    def _running_tenants(self) -> Tenants:
        if self._tenants is None:
            raise InvalidInput("this worker serves no tenants, or does not run: pass tenants= and start it first")
        return self._tenants

    @property
    def _sessions(self) -> list[StoreSession]:
        """The sessions that are open: of its store, or of the tenants that may have work."""
        if self._tenants is not None:
            return self._tenants.sessions()
        return [] if self._session is None else [self._session]

    @property
    def is_stuck(self) -> bool:
        """Whether handlers still run although they were aborted."""
        return any(session.running for session in self._sessions)

    def _live(self, on_end: Callable[[], object], until_idle: bool) -> None:
        """Start, work, drain and close, in a thread that no handler can block."""
        try:
            with frozen_heap():  # before the first claim: a full collection stops all threads
                self._start(until_idle)
                self._supervise(until_idle)
                self._drain()
        except BaseException as error:
            self._failure = error
        finally:
            try:
                self._close()
            finally:
                self.finished.set()
                with suppress(RuntimeError):  # the event loop is closed, so that nothing waits for it
                    on_end()

    def _supervise(self, until_idle: bool) -> None:
        """Wait until the worker is stopped, or has reached max_jobs or max_rss, or is idle."""
        while not self._stopping.wait(IDLE_FOR / 4 if until_idle else 1.0):
            self._check_memory()
            if until_idle and self._is_idle():
                return

    def _is_idle(self) -> bool:
        """Whether claims have found nothing for a while, and a query confirms it: the machine may just be slow."""
        sessions = self._sessions
        if self._tenants is not None and not self._tenants.are_open:
            return False
        if not all(session.has_been_idle_for(IDLE_FOR) for session in sessions):
            return False
        return all(self._has_nothing_left(session) for session in sessions)

    def _has_nothing_left(self, session: StoreSession) -> bool:
        """Whether no job could run now. Waits a while for locked rows, and longer for expired leases to be reaped."""
        wait = IDLE_WITHIN
        if session.maintenance.has_expired_leases(self._stopping):
            wait += max(self._settings.lease / BEATS_PER_LEASE, MIN_GRACE)
        return session.has_been_idle_for(wait) or session.has_nothing_left(self._stopping)

    def _start(self, until_idle: bool) -> None:
        quarantine = Quarantine(self._system)
        if self._serves_tenants:
            self._tenants = self._make_tenants(quarantine, may_sleep=not until_idle)
            self._make_resources()
            self._tenants.start(self._stopping, self._on_ready)
        else:
            self._session = session = StoreSession(self._context(None), quarantine, self._slots, self._starter.start)
            quarantine.producers = list(session.producers)
            session.reach(self._stopping, self._pause_if_restored, self._on_ready)
            self._make_resources()
        if self._stopping.is_set():
            return
        if self._session is not None:
            self._session.start()
        slots = self._tenants.slots if self._tenants is not None else sum(one.slots for one in self._sessions)
        self._log_started(slots)
        self._app.events.emit(WorkerStarted(worker=self.id, slots=slots))
        self._on_ready()

    def _make_resources(self) -> None:
        if not self._stopping.is_set():
            self._resources.start(_resources_of(self._app))

    def _pause_if_restored(self, store: Store) -> None:
        """Start no job of a store that was restored from a dump, until an operator resumes its queues."""
        if store.is_remote:
            return  # the gateway does so
        client = Client(self._app, lambda _: store, None, f"worker {self.id}")
        found = pause_if_restored(client)
        if found is not None:
            log.error(RESTORED, client.where, found.running, found.queued, found.pending, extra={"worker": self.id})

    def _log_started(self, slots: int) -> None:
        worker, lease = {"worker": self.id}, duration(self._settings.lease)
        where = self._app._store().where if self._session is None else self._session.where
        log.info("Worker %s started: %d slots, lease %s, %s", self.id, slots, lease, where, extra=worker)
        queues = "all queues" if self._settings.queues is None else f"queues {', '.join(self._settings.queues)}"
        log.info("Serving %s; tasks: %s", queues, listed(sorted(self._app.tasks), NAMED_AT_START), extra=worker)
        known = {"default", *(task.queue for task in self._app.tasks.values())}
        unknown = [queue for queue in self._settings.queues or () if queue not in known]
        if unknown:  # not in this thread: a database that does not answer must not delay a stop
            self._system.spawn("check of queue names", partial(self._warn_of_unused, unknown, known))

    def _warn_of_unused(self, queues: list[str], known: set[str]) -> None:
        """Warn of queues that neither a task nor a job uses: their names may be misspelled."""
        try:
            stores = self._tenants.stores() if self._tenants is not None else [one.store for one in self._sessions]
            known = known.union(*(queue_names(store) for store in stores))
        except StoreError:  # claims report it
            return
        for queue in queues:
            if queue not in known:
                near = difflib.get_close_matches(queue, sorted(known), n=1)
                hint = f"Did you mean {near[0]}?" if near else f"In use: {listed(sorted(known), NAMED_AT_START)}."
                text = "Queue %s has no jobs, and no task of this app uses it. %s"
                log.warning(text, queue, hint, extra={"worker": self.id})

    def _make_tenants(self, quarantine: Quarantine, *, may_sleep: bool) -> Tenants:
        app, settings = self._app, self._settings
        outages = Outages(self.id, None, app.events, self._system)
        return Tenants(
            self._system, self._slots_by_tenant, self._slots, app._store().tenants, self._tenant_context(),
            partial(self._open_session, quarantine), self._prepare, quarantine, outages,
            worker=self.id, queues=None if settings.queues is None else list(settings.queues),
            tasks=app._tasks_by_any_name, poll_interval=settings.poll_interval, may_sleep=may_sleep,
        )  # fmt: skip

    def _open_session(self, quarantine: Quarantine, context: WorkerContext, slots: int) -> StoreSession:
        return StoreSession(context, quarantine, slots, self._starter.start)

    def _prepare(self, context: WorkerContext) -> None:
        """Before the first claim of a tenant."""
        self._pause_if_restored(context.store)
        declare_limits(context)

    def _tenant_context(self) -> Callable[[str, LoopThreads, LoopThreads], WorkerContext]:
        """Makes the contexts of tenants, which share the worker's connections."""
        like: list[WorkerContext] = []

        def make(tenant: str, threads: LoopThreads, heartbeat_threads: LoopThreads) -> WorkerContext:
            made = self._context(tenant, *like, threads=threads, heartbeat_threads=heartbeat_threads)
            like[:] = [made]
            return made

        return make

    def _context(
        self,
        tenant: str | None,
        like: WorkerContext | None = None,
        *,
        threads: LoopThreads | None = None,
        heartbeat_threads: LoopThreads | None = None,
    ) -> WorkerContext:
        """The context of the session at one store. With `like`, it shares the connections of another one.

        The worker has its own connections, which handlers cannot use. The heartbeats have separate ones, so that no
        other thread can delay them.
        """
        handler_store = self._handler_store(tenant)
        silence = self._settings.lease / BEATS_PER_LEASE
        connections, heartbeats = (self._connections, 1) if tenant is None else TENANT_CONNECTIONS
        others = (like.store, like.heartbeat_store) if like is not None else (None, None)
        store = handler_store.with_own_connections(connections, like=others[0])
        heartbeat_store = handler_store.with_own_connections(heartbeats, like=others[1], timeout=silence)
        return WorkerContext(
            worker=self.id, tenant=tenant, settings=self._settings, tasks=self._app._tasks_by_any_name,
            schedules=self._app.schedules, limits=self._app.limits, codecs=self._app.codecs,
            events=self._app.events, store=store, heartbeat_store=heartbeat_store, handler_store=handler_store,
            leases=LeaseTable(self.id, self._app.events), meter=Meter(self._system),
            guard=ReapGuard(self._system), timers=self._timers, system=self._system,
            resources=self._resources.by_kind, threads=threads, heartbeat_threads=heartbeat_threads,
        )  # fmt: skip

    def _handler_store(self, tenant: str | None) -> Store:
        """The store that handlers use through their attempts: the app's, or one behind a gateway."""
        if self._gateways is None:
            return self._app._store(tenant)
        by_queues = slots_by_queues(self._settings.queues, self._slots)
        session = Session(
            self._gateways, self.id, serves_all=self._settings.queues is None,
            slots=sum(number for _, number in by_queues), producers=len(by_queues),
        )  # fmt: skip
        self._starter.in_processes.gateways = self._gateways
        return RemoteStore(session)

    @property
    def _connections(self) -> int:
        """The size of the pool: a connection for each thread that may need one, up to MAX_CONNECTIONS."""
        producers = len(slots_by_queues(self._settings.queues, 1))
        return min(producers + 5, MAX_CONNECTIONS)

    def _check_memory(self) -> None:
        if self._max_rss is not None and (used := resident_bytes() // MIB) > self._max_rss:
            self._stop_at(f"max_rss is reached ({used} MiB in use)")

    def _stop_at(self, limit: str) -> None:
        """Stop because of max_jobs or max_rss."""
        if not self._stopping.is_set():
            log.info("Stopping: %s", limit)
            self.reached_limit = True
            self._stopping.set()

    def _drain(self) -> None:
        """Stop claiming. Jobs that still run after `shutdown_timeout` are aborted and released."""
        self._app.events.emit(WorkerStopping(worker=self.id))
        if self._tenants is not None:
            self._tenants.drain(self._now() + JOIN_TIMEOUT)
        if self._session is not None:
            self._session.drain()
        self._starter.in_batches.hurry()
        drain = Drain(self._system, self.id, lambda: self._sessions, self._hurrying, self._shutdown_timeout)
        self.left_behind = drain.run()

    def _close(self) -> None:
        give_up = self._now() + JOIN_TIMEOUT
        if self._session is not None:
            self._session.stop()
            self._session.close(give_up)
        if self._tenants is not None:
            self._tenants.close(give_up)
        self._timers.stop()
        self._starter.in_processes.close()
        self._close_resources()
        if self._failure is None:
            log.info("Stopped", extra={"worker": self.id})
            self._app.events.emit(WorkerStopped(worker=self.id))

    def _close_resources(self) -> None:
        """Close the resources once no handler uses them. A handler that ignores its abort does not keep them open."""
        give_up = self._now() + ABORT_TIMEOUT
        while self._app._resources and self.is_stuck and self._now() < give_up and not self._hurrying.is_set():
            self._system.sleep(0.01)
        self._resources.close(CLOSE_TIMEOUT, HURRIED_ABORT_TIMEOUT)


def _slots_by_tenant(tenants: Mapping[str, int] | Literal["all"]) -> dict[str, int] | None:
    """The slots of each tenant; None: all tenants are served."""
    if tenants == "all":
        return None
    if not tenants or not isinstance(tenants, Mapping):
        raise InvalidInput(f"tenants must be names with slots, as in {{'acme': 4}}, or \"all\"; not {tenants!r}")
    return {
        validate.schema(tenant): validate.integer(f"the slots of tenant {tenant}", number, 1, 10_000)
        for tenant, number in tenants.items()
    }


def _gateways(urls: str | Sequence[str], token: str | None, tenants: object) -> Gateways:
    if tenants is not None:
        raise InvalidInput("a gateway serves one tenant: start a gateway for each (--tenant), and a worker for each")
    return Gateways([urls] if isinstance(urls, str) else list(urls), token or os.environ.get(GATEWAY_TOKEN, ""))


def _resources_of(app: App) -> list[Resource]:
    """The resources that a worker of this app makes. Raises InvalidInput if one of them, or of a task, is missing."""
    tasks = app.tasks.values()
    own = [task.signature for task in tasks if not task.process]
    return app._resources.for_worker(own, [task.signature for task in tasks if task.process])
