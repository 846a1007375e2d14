"""The maintenance of the store, which a gateway does as every worker does: a site may have gateway workers only.

While no gateway runs, its workers cannot renew. If nothing else wrote the pulse either, the pulse has a gap, and the
first pulse afterwards gives all owners time to renew before anything is reaped.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable

from .._client.backup import pause_if_restored
from .._client.client import Client
from .._store.flows import control
from .._store.store import Store
from .._system import SYSTEM
from .._worker.context import Settings, WorkerContext
from .._worker.lease_table import LeaseTable
from .._worker.maintenance import Maintenance
from .._worker.meter import Meter
from .._worker.reconnect import Outages, ReapGuard, ReconnectingStore
from .._worker.reporter import Reporter
from .._worker.timers import Timers
from ..app import App
from .context import log

JOIN_WITHIN = 1.0  # seconds
SHORTEST_LEASE = 3.0  # seconds: the shortest lease of workers that an outage of the gateway must not cost their leases
LONGEST_LEASE = 30.0
DAY = 86400.0


class GatewayMaintenance(Maintenance):
    """Follows the schedules of the tasks that workers have named, too."""

    def add_tasks(self, tasks: Iterable[str]) -> None:
        new = set(tasks) - set(self._tasks)
        if new:
            self._tasks = [*self._tasks, *sorted(new)]


class Upkeep:
    """The threads of a gateway that maintain the store."""

    def __init__(self, app: App, tenant: str | None, store: Store, guard: ReapGuard) -> None:
        self._app, self._store = app, store
        self.name = f"gateway:{socket.gethostname()}:{os.getpid()}:{SYSTEM.new_token()[:8]}"
        context = self._context(tenant, guard)
        reconnecting = ReconnectingStore(
            store, Outages(context.worker, tenant, context.events, SYSTEM), guard, SYSTEM.event()
        )
        self._maintenance = GatewayMaintenance(context, reconnecting)
        self._reporter = Reporter(context, reconnecting, 0, lambda: 0)
        self.add_tasks, self.allow_for = self._maintenance.add_tasks, self._maintenance.allow_for
        self.listening = self._maintenance.listening
        # The leases of workers may be of any length. The pulse counts as interrupted as early as the shortest need it,
        # and then gives the longest time to renew.
        self.allow_for(shortest=SHORTEST_LEASE, longest=LONGEST_LEASE)

    def _context(self, tenant: str | None, guard: ReapGuard) -> WorkerContext:
        app, store = self._app, self._store
        settings = Settings(
            lease=LONGEST_LEASE, poll_interval=1.0, rest=0.0, keep_finished=7 * DAY, keep_payloads=None,
            keep_failed=30 * DAY, queues=None,
        )  # fmt: skip
        return WorkerContext(
            worker=self.name, tenant=tenant, settings=settings, tasks=app._tasks_by_any_name, schedules=app.schedules,
            limits=app.limits, codecs=app.codecs, events=app.events, store=store, heartbeat_store=store,
            handler_store=store, leases=LeaseTable(self.name, app.events), meter=Meter(SYSTEM), guard=guard,
            timers=Timers(SYSTEM), system=SYSTEM, resources={},
        )  # fmt: skip

    def on_queued(self, call: Callable[[], None]) -> None:
        """Call this after each check that has found queued jobs."""
        self._maintenance.on_queued = call

    def prepare(self) -> None:
        """Before the first claim: declare limits, and pause a store that was restored from a dump."""
        found = pause_if_restored(Client(self._app, lambda _: self._store, None, f"gateway {self.name}"))
        if found is not None:
            log.error("The store was restored from a dump. All its queues are paused: see relet restored")
        if self._app.limits:
            self._store.run(control.declare_limits, self._app.limits)

    def start(self) -> None:
        self._maintenance.start()
        self._reporter.loop.start()

    def stop(self) -> None:
        self._maintenance.stop()
        self._reporter.loop.stop()
        give_up = SYSTEM.monotonic() + JOIN_WITHIN
        for loop in (self._maintenance.loop, self._maintenance.pruner.loop, self._reporter.loop):
            loop.join(max(give_up - SYSTEM.monotonic(), 0.0))
        self._reporter.sign_off(give_up)
