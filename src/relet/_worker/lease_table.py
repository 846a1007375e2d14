"""The leases that this worker holds at one store.

A lease enters when a claim returns it and leaves when its job is settled or lost. The heartbeat renews everything in
here, so that no job runs without being renewed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .._core.job import Lease, Progress
from .._core.tokens import claim_of
from ..errors import AbortReason
from ..events import Events, LeaseLost
from .ends import Ends
from .execution import Execution

REMEMBERED = 1000  # abandoned leases


class LeaseTable:
    """Executions by lease, and the claims whose reply is still outstanding.

    Not locked: dict operations are atomic under the GIL, and a claim adds hundreds of entries in one update().
    """

    def __init__(self, worker: str, events: Events) -> None:
        self._worker = worker
        self._events = events
        self._executions: dict[Lease, Execution] = {}
        self._progress: dict[Lease, Progress] = {}
        self._abandoned: dict[Lease, None] = {}  # the store rejects their outcomes, so they are left to expire
        self.ends = Ends()
        self._claims: set[str] = set()  # that are not answered; a renewal must not release what these may bring
        self.on_add: Callable[[Sequence[Execution]], None] = lambda executions: None

    @property
    def claims_in_flight(self) -> set[str]:
        """A copy of the names of all claims that are not answered yet."""
        return set(self._claims)

    @contextmanager
    def claiming(self, token: str) -> Iterator[None]:
        """A claim is in flight in this block, and its jobs are added before the end."""
        self._claims.add(claim_of(token))
        try:
            yield
        finally:
            self._claims.discard(claim_of(token))

    def add(self, executions: Sequence[Execution]) -> None:
        self._executions.update([(execution.lease, execution) for execution in executions])
        self.on_add(executions)

    def remove(self, *executions: Execution) -> None:
        for execution in executions:
            self._executions.pop(execution.lease, None)

    def abandon(self, execution: Execution) -> None:
        """Stop renewing a job whose outcome the store keeps rejecting, and let its lease expire."""
        self.remove(execution)
        self._abandoned[execution.lease] = None
        while len(self._abandoned) > REMEMBERED:
            del self._abandoned[next(iter(self._abandoned))]

    def is_orphan(self, lease: Lease) -> bool:
        """True if the store says that this worker holds the lease, but the reply to its claim was lost."""
        return lease not in self._executions and lease not in self._abandoned

    def lose(self, execution: Execution, reason: AbortReason) -> None:
        """Abort the handler of a job whose lease this worker has lost. Its outcome will not be stored."""
        self.remove(execution)
        execution.abort(reason)
        self._events.emit(LeaseLost(**execution.event_fields(self._worker, None), reason=reason))

    def executions(self) -> list[Execution]:
        return list(self._executions.values())

    def get(self, lease: Lease) -> Execution | None:
        return self._executions.get(lease)

    def __len__(self) -> int:
        return len(self._executions)

    def report_progress(self, execution: Execution, progress: Progress) -> None:
        """Keep the latest progress of a handler; maintenance stores it about once a second."""
        self._progress[execution.lease] = progress

    def take_progress(self) -> dict[Lease, Progress]:
        return {lease: self._progress.pop(lease) for lease in list(self._progress)}

    def keep_progress(self, lease: Lease, progress: Progress) -> None:
        """Keep progress whose row was locked for the next try, unless the job has ended or has newer progress."""
        if lease in self._executions:
            self._progress.setdefault(lease, progress)
