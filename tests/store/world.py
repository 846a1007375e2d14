"""An empty store with a few hands to bring jobs into any state, at a moment of its own."""

from __future__ import annotations

import uuid
from itertools import count
from typing import Any

from relet._core.job import Draft, Job, Lease, Outcome, Policy, Raised, State, Succeeded
from relet._store.flows import claim as claim_flows
from relet._store.flows import control, enqueue, inspect, lease, maintenance, promote
from relet._store.flows import settle as settle_flows
from relet._store.flows.claim_scope import Scope
from tests.clocks import MovedClock
from tests.store.compared_stores import ComparedStore

NOW = 1_767_225_600.0  # the moment in the ids below
LATER = NOW + 1000.0


class World(MovedClock):
    """An empty store with a few hands to bring jobs into any state."""

    def __init__(self, compared: ComparedStore) -> None:
        self.compared = compared
        self.run = compared.store.run
        self.now = NOW
        compared.store.clock = lambda: self.now
        self._numbers = count(1)
        self.start_by: float | None = None  # of jobs that are added

    def draft(self, **options: Any) -> Draft[Any]:
        return Draft(
            f"019b76da-a800-7000-8000-{next(self._numbers):012x}", "t", "{}", start_by=self.start_by, **options
        )

    def add(self, **options: Any) -> str:
        (job,) = self.run(enqueue.enqueue, [self.draft(**options)])
        return job.id

    def promote(self, now: float = NOW) -> list[str]:
        with self.at(now):
            return self.run(promote.promote).promoted

    def expire(self, now: float = LATER) -> list[str]:
        """Cancel the jobs that have not started by their `start_by`."""
        with self.at(now):
            return self.run(promote.promote).cancelled

    def claim(self, now: float = NOW, queue: str = "default") -> dict[str, Lease]:
        token, scopes = str(uuid.UUID(int=next(self._numbers))), [Scope(queue, 9)]
        with self.at(now):
            found = self.run(claim_flows.claim, "w", token, scopes, ["t"], want=9, lease=30.0, random=half)
        return {job.id: job.lease for job in found.jobs}

    def settle(self, *batch: tuple[Lease, Outcome], now: float = NOW) -> list[State | None]:
        with self.at(now):
            return [one.state for one in self.run(settle_flows.settle, list(batch), half)]

    def reap(self, now: float = LATER) -> list[str]:
        with self.at(now):
            self.run(maintenance.record_pulse, grace=0.0)
            return [change.id for change in self.run(lease.reap, half)]

    def get(self, id: str) -> Job[Any] | None:
        return self.run(inspect.get, id)

    def state(self, id: str) -> State | None:
        job = self.get(id)
        return job.state if job else None

    def job_in(self, situation: str, target: str | None, **policy: Any) -> tuple[str, Lease]:
        """A job that has really come into this state, and the lease to show for it: its own if it runs."""
        stranger = str(uuid.UUID(int=999))
        options: dict[str, Any] = {"target": target, "policy": Policy(**policy)}
        match situation:
            case "pending-time":
                id = self.add(delay=60.0, **options)
            case "pending-jobs":
                id = self.add(depends_on=(self.add(queue="elsewhere"),), **options)
                self.promote()
            case "pending-target" | "paused-target":
                self.add(target="x", queue="elsewhere")
                self.promote()
                id = self.add(target="x", policy=Policy(**policy))
                if situation == "paused-target":
                    self.run(control.pause, id)
            case _:
                id = self.add(**options)
                self.promote()
                if situation not in ("queued", "paused"):
                    held = self.claim()[id]
                    if situation == "running":
                        return id, held
                    self.settle((held, Raised("boom", fatal=True) if situation != "succeeded" else Succeeded()))
                if situation == "paused":
                    self.run(control.pause, id)
                if situation == "cancelled":
                    self.run(control.cancel, id)
        assert self.state(id) == situation.split("-")[0]
        return id, Lease(id, stranger)


def half() -> float:
    return 0.5
