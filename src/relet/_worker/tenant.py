"""One tenant of a worker: asleep, or awake with a session."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Protocol

from .._store.flows import maintenance
from .._store.flows.maintenance import WorkAhead
from .._store.retry import RetryFor
from .._store.store import Store
from ..errors import ReletError, StoreBusy, StoreUnavailable
from .context import WorkerContext
from .loop import Loop
from .session import StoreSession

SLEEP_AFTER = 5.0  # seconds without anything to do
VISITED_AFTER = 0.2  # the same for a session that was opened for a visit
QUIET_EVERY = 0.5  # seconds between two checks whether the session can be closed
CLOSING_EVERY = 0.01
VISIT_EVERY = 3600.0
AGAIN = 10.0  # seconds until a tenant that cannot be served is tried again
CHECK_FILES_EVERY = 15.0  # seconds until a tenant is asked about although its file has not changed

_once = RetryFor(0.0)


class Owner(Protocol):
    """The values of the worker that its tenants share."""

    @property
    def may_sleep(self) -> bool: ...

    def open_session(self, context: WorkerContext, slots: int) -> StoreSession: ...

    def prepare(self, context: WorkerContext) -> None:
        """Before the first claim."""

    def settle_down(self, tenant: Tenant) -> None:
        """It is about to sleep: have it woken by notifications."""

    def changed(self, tenant: Tenant) -> None:
        """Its session was opened or closed, or could not be opened."""


class Tenant:
    """A loop opens and closes its session."""

    def __init__(self, owner: Owner, name: str, slots: int, context: WorkerContext, key: int) -> None:
        self.name, self.slots, self.context = name, slots, context
        self._owner, self._now, self._uniform = owner, context.system.monotonic, context.system.uniform
        self.loop = Loop(context.system, "tenant", self.step, context.threads)
        self.session: StoreSession | None = None
        self.error: ReletError | None = None  # why it cannot be served
        self.visit_at = 0.0
        self.is_ready = False  # it was visited, so that others can ask about it
        self.has_left = False
        self._is_wanted = False  # there may be jobs
        self._is_visit = False  # a visit is due or under way, and there may be no jobs
        self._is_closing = self._is_leaving = False
        self._due_at = math.inf  # when a job or a schedule is due
        self._state: object = None  # of the file when the tenant was last asked about
        self._ask_at = 0.0
        self._subscription = ExitStack()
        if not context.store.is_file:
            notifier = context.store.notifier
            self._subscription.enter_context(notifier.subscribe("queued", "jobs", wake=self.wake, key=key))

    @property
    def store(self) -> Store:
        return self.context.store

    @property
    def sleeps(self) -> bool:
        return self.is_ready and self.session is None

    @property
    def is_cut_off(self) -> bool:
        """Whether its error says nothing about this tenant: the database, which all share, cannot be reached."""
        return isinstance(self.error, StoreUnavailable | StoreBusy) and not self.store.is_file

    # Asked about by another thread while it sleeps

    def wake_if_due(self, now: float) -> float:
        """Wake it if the time of a job or of a schedule has come. Returns that time; infinity: none is known."""
        if self.sleeps and now >= self._due_at:
            self._due_at = math.inf
            self.wake()
        return self._due_at if self.sleeps else math.inf

    def may_have_changed(self, now: float) -> bool:
        """Whether other programs may have written to its file."""
        if not self.sleeps:
            return False
        state = self.store.state_of_file()
        is_same, self._state = state == self._state, state
        return state is None or not is_same or now >= self._ask_at

    def answer(self, ahead: WorkAhead, now: float) -> None:
        """Take the answer of the store."""
        self._ask_at = now + CHECK_FILES_EVERY
        due = [one for one in (ahead.next_due, ahead.next_tick) if one is not None]
        self._due_at = now + min(due, default=math.inf)
        if ahead.leased or ahead.queued or ahead.nudged or self._due_at <= now:
            self.wake()

    def wake(self) -> None:
        """There may be jobs."""
        self._is_wanted = True
        self.loop.wake()

    @property
    def is_visited(self) -> bool:
        return self._is_visit

    def visit(self) -> None:
        """Open its session although there may be no jobs."""
        self._is_visit = True
        self.loop.wake()

    def leave(self) -> None:
        """Serve it no longer. Its running jobs end first."""
        self._is_leaving = True
        self.loop.wake()

    def stop(self) -> None:
        """The worker stops: open and close nothing any more."""
        self.loop.stop()
        self._subscription.close()

    # Steps

    def step(self) -> float | None:
        session = self.session
        if session is None:
            if self._is_leaving:
                self._leave()
            elif self._is_wanted or self._is_visit:
                return self._open()
            return None
        if self._is_closing:
            return self._close(session)
        if self._is_wanted and not self._is_leaving:
            self._is_wanted = self._is_visit = False
            session.notified()
        gives_up = session.is_away_for(AGAIN) and session.is_empty  # so that it occupies no threads
        self._is_closing = self._is_leaving or gives_up or self._can_sleep(session)
        if self._is_closing:
            session.stop_claiming()
            return 0.0
        return QUIET_EVERY

    def _can_sleep(self, session: StoreSession) -> bool:
        return self._owner.may_sleep and session.is_quiet(VISITED_AFTER if self._is_visit else SLEEP_AFTER)

    def _open(self) -> float | None:
        now = self._now()
        is_due = now >= self.visit_at or not self.is_ready
        self._is_visit, self._is_wanted = not self._is_wanted, False
        try:
            if is_due:
                self.store.run_with(_once, maintenance.probe)
                self._owner.prepare(self.context)
            self.session = session = self._owner.open_session(self.context, self.slots)
        except ReletError as error:
            self.fail(error)
            return None
        if is_due:
            self.visit_at = now + VISIT_EVERY * self._uniform(0.5, 1.5)
            session.maintenance.pruner.begin_round()
        else:
            session.maintenance.skip_rare_work()
        self.is_ready, self.error = True, None
        session.start()
        self._owner.changed(self)
        return VISITED_AFTER

    def fail(self, error: ReletError) -> None:
        """It cannot be served now. A visit tries again later; other tenants are served meanwhile."""
        self.is_ready, self.visit_at, self.error = False, self._now() + AGAIN, error
        self._is_visit = False
        self._owner.changed(self)

    def _close(self, session: StoreSession) -> float | None:
        """Close the session. A claim may have returned jobs meanwhile, which are given back first."""
        if not session.is_empty or session.is_claiming or not session.loops_ended():
            return CLOSING_EVERY
        try:
            self._owner.settle_down(self)
        except ReletError as error:
            self.fail(error)
        session.leave()
        self.session, self._is_closing, self._is_visit = None, False, False
        self._state = None  # ask once more: a job may have come since the last claim
        self._owner.changed(self)
        return 0.0 if self._is_wanted or self._is_leaving else None

    def _leave(self) -> None:
        self.stop()
        self.has_left = True
        self._owner.changed(self)
