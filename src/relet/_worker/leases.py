"""The leases that a worker holds at one store: what the heartbeat renews."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._core.job import Lease, Progress
from ..errors import AbortReason
from ..events import Events, LeaseLost
from .execution import Execution


class LeaseTable:
    """All runs by lease, from the claim until they are settled or lost; and the claims that are under way.

    A dictionary changes in one step under Python's lock, and a claim adds hundreds at a time: no lock of our own.
    """

    def __init__(self, worker: str, events: Events) -> None:
        self._worker = worker
        self._events = events
        self._runs: dict[Lease, Execution] = {}
        self._said: dict[Lease, Progress] = {}
        self._given_up: dict[Lease, None] = {}  # neither renewed nor released: they are to run out; the latest few
        self.claiming: set[str] = set()  # tokens of claims whose answer may still come
        self.on_add: Callable[[Sequence[Execution]], None] = lambda runs: None

    def add(self, runs: Sequence[Execution]) -> None:
        """These are ours now."""
        self._runs.update([(run.lease, run) for run in runs])
        self.on_add(runs)

    def drop(self, *runs: Execution) -> None:
        """Settled."""
        for run in runs:
            self._runs.pop(run.lease, None)

    def give_up(self, run: Execution) -> None:
        """The store will have no outcome of this one: its lease is to run out."""
        self.drop(run)
        self._given_up[run.lease] = None
        while len(self._given_up) > 1000:
            del self._given_up[next(iter(self._given_up))]

    def is_unknown(self, lease: Lease) -> bool:
        """Whether nobody here has ever dealt with it: the answer to its claim never came."""
        return lease not in self._runs and lease not in self._given_up

    def lost(self, run: Execution, reason: AbortReason) -> None:
        """Somebody else's now, or nobody's: the handler is told, and nothing that it says is recorded."""
        self.drop(run)
        run.abort(reason)
        self._events.tell(LeaseLost(**run.facts(self._worker, None), reason=reason))

    def runs(self) -> list[Execution]:
        """All of them at this moment."""
        return list(self._runs.values())

    def get(self, lease: Lease) -> Execution | None:
        """The run of a lease."""
        return self._runs.get(lease)

    def __len__(self) -> int:
        return len(self._runs)

    def report(self, run: Execution, progress: Progress) -> None:
        """How far a handler has come; sent with the others, about once a second."""
        self._said[run.lease] = progress

    def take_progress(self) -> dict[Lease, Progress]:
        """What has been said since the last time."""
        return {lease: self._said.pop(lease) for lease in list(self._said)}

    def report_again(self, lease: Lease, progress: Progress) -> None:
        """The row was locked. If the handler still runs, and has said nothing since, this is sent again."""
        if lease in self._runs:
            self._said.setdefault(lease, progress)
