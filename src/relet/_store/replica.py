"""Reads on a streaming standby, with the primary in its place whenever the standby cannot serve them.

Only flows that are marked `read_only` run on the standby, and only where a caller asks for it: for what people read.

The lag is measured without any server's clock. About once a second, while there are reads, this process notes how much
log the primary has flushed. The standby is as far behind as the time since the newest of these notes that it has
replayed. Where nothing is written, it is not behind, however long ago the last commit was.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import ParamSpec, TypeVar

from .._core.text import duration
from .._core.views import ReplicaStatus
from .._system import SYSTEM, Thread
from ..errors import QueryTimeout, ReletError, StoreError
from . import time_limit
from .flows import replication
from .query import NO_TRAITS, TRAITS, Flow
from .retry import RetryFor
from .store import Store

P = ParamSpec("P")
R = TypeVar("R")

MAX_LAG = 10.0  # seconds: reads of a standby that is further behind go to the primary
CHECK_EVERY = 1.0  # seconds, while there are reads
AGAIN_AFTER = 5.0  # seconds after a failure until the standby is tried again
READ_SECONDS = 8.0  # for a read on the standby, after which the primary gets it
SETTLE = 0.05  # seconds that a standby gets to replay what is on its way
ONCE = RetryFor(0.0)
NOTES = 120

log = logging.getLogger("relet.store")


class Replica:
    """The standby of one store."""

    def __init__(self, primary: Store, standby: Store) -> None:
        self._primary, self.standby = primary, standby
        self.where = standby.where
        self._lock = SYSTEM.lock()
        self._checked_at: float | None = None
        self._status = ReplicaStatus(None, "the replica was not asked yet")
        self._notes: deque[tuple[float, int]] = deque(maxlen=NOTES)  # when, and how much log the primary had flushed
        self._replayed = 0
        self._checking: Thread | None = None

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that only reads: on the standby if it is near enough, else on the primary."""
        if not TRAITS.get(flow, NO_TRAITS).read_only or self.status().problem is not None:
            return self._primary.run(flow, *args, **kwargs)
        outer = time_limit.limit()
        until = SYSTEM.monotonic() + READ_SECONDS
        try:
            with time_limit.reading_until(until) if outer is None or until < outer else nullcontext():
                return self.standby.run_with(ONCE, flow, *args, **kwargs)
        except StoreError as error:
            if isinstance(error, QueryTimeout) and outer is not None and SYSTEM.monotonic() >= outer:
                raise
            self._failed(error)
        return self._primary.run(flow, *args, **kwargs)

    def status(self) -> ReplicaStatus:
        """The state of the standby, at most about a second old.

        While the standby is away, callers do not wait for the next try: it is made in another thread.
        """
        now = SYSTEM.monotonic()
        with self._lock:
            first = self._checked_at is None
            every = CHECK_EVERY if self._status.lag is not None else AGAIN_AFTER
            if self._checked_at is not None and now - self._checked_at < every:
                return self._status
            self._checked_at = now
            in_background = not first and self._status.lag is None
        if in_background:
            self._checking = SYSTEM.spawn("replica", self._check)
        else:
            self._check()
        return self._status

    def position(self) -> int:
        """A position in the log that includes all that was committed before this call."""
        return self._primary.run(replication.written).position

    def has_replayed(self, position: int) -> bool:
        """Whether the standby has replayed the log up to this position, as far as this process knows."""
        self.status()
        return self._replayed >= position

    def close(self) -> None:
        """Close all connections to the standby, after a check that is under way."""
        if self._checking is not None:
            self._checking.join(READ_SECONDS)
        self.standby.close()

    def _check(self) -> None:
        began = SYSTEM.monotonic()
        try:
            with time_limit.reading_until(began + READ_SECONDS):
                written = self._written()
                found = self.standby.run_with(ONCE, replication.replayed)
                if written is not None and (found.position or 0) < written.flushed:
                    SYSTEM.sleep(SETTLE)
                    found = self.standby.run_with(ONCE, replication.replayed)
        except ReletError as error:
            self._failed(error)
            return
        if written is not None:
            self._notes.append((began, written.flushed))
        self._replayed = found.position or 0
        self._set(self._judged(written, found))

    def _written(self) -> replication.Written | None:
        """The position of the primary's last write; None if the primary is away, so that the notes grow old."""
        try:
            return self._primary.run_with(ONCE, replication.written)
        except ReletError as error:
            log.info("The lag of the replica is not known: %s", error)
            return None

    def _judged(self, written: replication.Written | None, found: replication.Replayed) -> ReplicaStatus:
        if found.position is None:
            return ReplicaStatus(None, "the server that the replica's URL names is no standby")
        if written is not None and found.cluster != written.cluster:
            return ReplicaStatus(None, "the server that the replica's URL names is a standby of another primary")
        lag = self._lag(found)
        if lag > MAX_LAG:
            return ReplicaStatus(lag, f"the replica is {duration(lag)} behind, more than {duration(MAX_LAG)}")
        return ReplicaStatus(lag)

    def _lag(self, found: replication.Replayed) -> float:
        """Seconds by which the standby is behind: 0 if it has replayed all that the primary had written at the start of
        this check."""
        now, position = SYSTEM.monotonic(), found.position or 0
        reached = [at for at, written in self._notes if written <= position]
        if reached and reached[-1] == self._notes[-1][0]:
            age = now - reached[-1]  # large only if the primary did not answer
            return 0.0 if age < 1.0 else age
        bounds = [now - reached[-1]] if reached else []
        if found.quiet is not None:
            bounds.append(found.quiet)
        return min(bounds, default=MAX_LAG + 1.0)

    def _failed(self, error: ReletError) -> None:
        log.info("The replica at %s cannot be read: %s", self.where, error)
        with self._lock:
            self._checked_at = SYSTEM.monotonic()
        self._set(ReplicaStatus(None, "the replica cannot be read"))

    def _set(self, status: ReplicaStatus) -> None:
        if (status.problem is None) != (self._status.problem is None):
            where = "from the replica" if status.problem is None else "from the primary"
            log.warning("What people read comes %s: %s", where, status.problem or self.where)
        self._status = status
