"""The common part of a worker's producer and a gateway's line: they know queues, and claim from them.

A claim takes one statement. Only if the flags of the queues, as they were last read, have suspects or limits, it takes
more. Names of queues and flags are read now and then, because during a backlog that is seldom needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from .._core.job import Claimed
from .._store.flows import claim as claim_flows
from .._store.flows import claim_scope, inspect
from .._store.flows.claim_scope import Claim, QueueFlags
from .._store.query import Flow
from .._system import System
from .claim_cursor import ClaimCursor
from .reconnect import ReapGuard

P = ParamSpec("P")
R = TypeVar("R")

MAX_QUEUES = 100  # in one claim; also how many empty ones are remembered
NAMES_EVERY = 1.0  # seconds between two searches for new queues while a backlog fills every claim
FLAGS_EVERY = 0.05  # seconds between two searches for suspects and limits while a backlog fills every claim
TASKS_EVERY = 5.0  # seconds between two searches for jobs of unknown tasks, at least
REAP_EVERY = 0.1  # seconds between two claims that reap because a queue is at its limit


class Runs(Protocol):
    """The runner of flows: the store of a worker or of a gateway, each with its way to retry."""

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R: ...


class Claimer:
    """Claims jobs of some tasks from some queues. One thread at a time uses it.

    A claim has three steps: `claim`, `record`, and `read_flags`. Between them, a worker starts the jobs.
    """

    def __init__(
        self, tasks: Collection[str], queues: Collection[str], *, serves_all: bool, guard: ReapGuard, system: System
    ) -> None:
        self._tasks, self._guard, self._system, self._now = tasks, guard, system, system.monotonic
        self.queues = list(queues)
        self._own_queues = frozenset(queues)  # kept even if they are empty
        self._serves_all = serves_all
        self.cursor = ClaimCursor()
        self.has_suspects = False  # claims take them first
        self.may_have_quarantined = True  # the store may have jobs that must run alone
        self.limits: frozenset[str] = frozenset()  # the served queues that have limits
        self.foreign: set[str] = set()  # queues with jobs of other tasks
        self.names_at = 0.0  # when queue names were last read
        self._flags_at = 0.0  # when the flags were last read
        self._reaped_at = 0.0  # when a claim last reaped because of a limit
        self._tasks_at = 0.0  # when to search for other tasks again, at the earliest
        self._claimed_from: list[str] = []  # the queues of the last claim

    def claim(
        self,
        store: Runs,
        worker: str,
        token: str,
        *,
        want: int,
        lease: float,
        slots: int | None,
        ahead: int,
        sent: float,
        alone: bool = False,
        again: bool = False,
    ) -> Claim:
        """Claim from all queues. `again`: an earlier try of this claim may have been committed."""
        # In random order, so that no queue is always served first. A sample, if there are very many.
        queues = self._claimed_from = self._system.sample(self.queues, min(len(self.queues), MAX_QUEUES))
        scopes = [self.cursor.scope(queue, want, sent, by_task=queue in self.foreign) for queue in queues]
        args: tuple[Any, ...] = (worker, token, scopes, self._tasks)
        found: Claim
        if not (alone or self.has_suspects or self.limits):
            plain: Any = claim_flows.claim_plain_again if again else claim_flows.claim_plain
            found = store.run(plain, *args, want=want, lease=lease)
            return found
        flow: Any = claim_flows.claim_again if again else claim_flows.claim
        found = store.run(
            flow, *args, want=want, slots=slots, ahead=ahead, limited=self.limits, lease=lease,
            random=self._system.random, rescue=self.has_suspects, alone=alone,
            check_flags=self._now() - self._flags_at >= FLAGS_EVERY, may_reap=self._may_reap,
        )  # fmt: skip
        return found

    def record(self, jobs: Sequence[Claimed], elapsed: float | None, end: float) -> bool:
        """Record what the claim found. `elapsed`: None if its time means nothing. True if a full scan was slow."""
        return self.cursor.record_claim(self._claimed_from, jobs, elapsed, end)

    def read_flags(self, store: Runs, found: Claim, want: int, end: float, *, is_slow: bool) -> Claim:
        """The claim with the flags of its queues, if it is time to read them. `end`: when the claim had ended."""
        if (is_slow or self.foreign) and end >= self._tasks_at:
            self._find_foreign(store)
        is_short = len(found.jobs) < want and not self.limits  # at a limit, most claims are short
        if found.flags is None and (is_short or end - self._flags_at >= FLAGS_EVERY):
            found = found + Claim([], store.run(claim_scope.flags, self._claimed_from, self._tasks))
        if found.flags is not None:
            self._flags_at = end
        return found

    def follow(self, flags: QueueFlags) -> bool:
        """Adapt the next claim to the flags. True if it would find jobs that the last one could not find."""
        limits = flags.limited & {"*", *self.queues}
        more = (flags.suspects and not self.has_suspects) or bool(limits and not self.limits)
        self.has_suspects, self.may_have_quarantined, self.limits = flags.suspects, flags.quarantined, limits
        return more

    def find_queues(self, store: Runs) -> bool:
        """Read the names of queues, if this serves all. True if there are new ones. Forgets empty ones."""
        if not self._serves_all:
            return False
        self.names_at = self._now()
        names = store.run(inspect.queue_names)
        new = set(names) - set(self.queues)
        gone = [queue for queue in self.queues if queue not in names and queue not in self._own_queues]
        for queue in gone[: max(len(gone) - MAX_QUEUES, 0)]:
            self.cursor.forget(queue)
            self.queues.remove(queue)
        self.queues += sorted(new)
        return bool(new)

    def find_queues_now_and_then(self, store: Runs) -> None:
        """The same during a backlog."""
        if self._now() - self.names_at >= NAMES_EVERY:
            self.find_queues(store)

    def _find_foreign(self, store: Runs) -> None:
        """Find queues with jobs of other tasks: a claim would read and skip all of them."""
        queues, own = self._claimed_from, set(self._tasks)
        queued = store.run(inspect.queued_tasks, queues)
        self.foreign = (self.foreign - set(queues)) | {queue for queue, tasks in queued.items() if not tasks <= own}
        self._tasks_at = self._now() + TASKS_EVERY

    def _may_reap(self) -> bool:
        """Whether a claim from a queue at its limit should reap. Not each one: they follow one another closely."""
        now = self._now()
        if now - self._reaped_at < REAP_EVERY or not self._guard.may_reap():
            return False
        self._reaped_at = now
        return True
