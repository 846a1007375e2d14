"""Notifications of new jobs: asked for while there is room for them, and passed on if there is none.

A notification goes to one sleeping worker for each job. So a worker that was notified and has no room notifies another
one that serves the same queues and tasks, and so does a worker that leaves jobs behind because it can take no more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .._store.flows import maintenance
from .._store.notify import SchemaNotifier
from .._system import System

NOTIFY_FOR = 5.0  # seconds that enqueuing processes notify after a worker has asked for it
LONGEST_NOTIFY = 30.0  # the same for a worker that has been idle for as long
KEYS = 2**28
PASS_EVERY = 0.05  # seconds between two notifications because jobs are left behind
PASSED = 2  # workers that are notified because jobs are left behind: their number doubles each time

Run = Callable[..., Any]  # runs a flow


class Notifications:
    """The notifications of one producer, or of one gateway."""

    def __init__(
        self, system: System, notifier: SchemaNotifier, queues: Sequence[str] | None, tasks: Collection[str]
    ) -> None:
        self._system, self._now, self._notifier = system, system.monotonic, notifier
        self.queues, self.tasks = queues, tasks
        self.key = self._random_key()  # of its channels
        self._until, self.again_at = 0.0, 0.0  # until when they are asked for, and when to ask again
        self._passed_at = 0.0
        self._was_notified = False  # and no claim has been sent since
        self.has_asked = False  # to be notified by other processes
        self._has_ended = False
        self._wake: Callable[[], None] = lambda: None

    def subscribe(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        """Call `wake` when there may be jobs, from any thread."""
        self._wake = wake
        return self._notifier.subscribe("queued", "jobs", wake=self.notified, key=self.key)

    def notified(self) -> None:
        """A notification has come."""
        self._was_notified = True
        self._wake()

    @property
    def is_due(self) -> bool:
        """Whether `request` asks for notifications."""
        return self._now() >= self.again_at and not self._has_ended

    def request(self, run: Run, idle_for: float) -> bool:
        """Ask for notifications, if that is due. True if there were none before, so that a last claim is needed."""
        if not self.is_due:
            return False
        now = self._now()
        seconds = min(max(NOTIFY_FOR, idle_for), LONGEST_NOTIFY)
        key = self.key if self._notifier.is_heard else None
        self.has_asked = self.has_asked or key is not None
        run(maintenance.request_notifications, seconds, key, self.queues, self.tasks)
        before, self._until, self.again_at = self._until, now + seconds, now + seconds / 2
        return now >= before

    def begin_claim(self) -> None:
        """A claim is about to be sent: it finds the jobs of earlier notifications."""
        self._was_notified = False

    def has_no_room(self, run: Run) -> None:
        """Pass on a notification that came meanwhile, and ask for no more until there is room."""
        if self._was_notified:
            self._was_notified = False
            self._pass_on(run, 1, withdraw=self._until > 0.0)
            self._until = self.again_at = 0.0

    def leaves_jobs(self, run: Run) -> None:
        """A claim was filled while workers sleep: notify some of them, as there may be more jobs."""
        if self._now() - self._passed_at >= PASS_EVERY:
            self._passed_at = self._now()
            self._pass_on(run, PASSED, withdraw=False)

    def end(self, run: Run) -> None:
        """The producer has stopped."""
        self._has_ended = True
        self.has_no_room(run)
        run(maintenance.forget_sleeper, self.key)

    def _pass_on(self, run: Run, number: int, *, withdraw: bool) -> None:
        if self._notifier.is_heard:
            which = {"start": self._random_key(), "number": number, "withdraw": withdraw}
            run(maintenance.pass_on, self.key, self.queues, self.tasks, **which)

    def _random_key(self) -> int:
        return int(self._system.random() * KEYS)
