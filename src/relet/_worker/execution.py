"""One job that a worker holds: taken in advance, running, or ended and not yet settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .._attempts.attempt import Attempt
from .._core.job import Claimed, Lease, Outcome, Raised, Released, State, Succeeded
from .._tasks.task import Task
from ..errors import AbortReason
from ..logs import job_facts
from .timers import Timer

if TYPE_CHECKING:
    from .producer import Producer

ROLLED_BACK = "completion rolled back"

#: The job is no longer ours: there is nothing to settle.
LOST = frozenset({"lease_lost", "completed", "deleted"})


class Execution(Struct, eq=False):
    """A job, its lease, and the attempt that its handler may see."""

    job: Claimed
    task: Task[..., Any]
    lane: Producer
    lease: Lease
    attempt: Attempt
    seconds: float  # that a renewal lasts
    taken: float  # when the claim was sent; monotonic, as all moments here
    started: float = 0.0  # 0: waits for a slot
    stopped: float = 0.0  # when the handler let go of its slot
    ended: bool = False  # the handler has let go of its slot
    settling: bool = False  # an outcome is on its way to the store
    interrupt: Callable[[Execution], None] | None = None  # makes the handler notice that it was aborted
    renewed: Callable[[], None] | None = None  # tells a handler elsewhere of its new deadline
    timers: Sequence[Timer] = ()  # what would happen if it went on for too long

    @property
    def marks(self) -> dict[str, Any]:
        """What a log record about it says."""
        return job_facts(self.attempt)

    def facts(self, worker: str, state: State | None) -> dict[str, Any]:
        """What every event of an attempt tells."""
        job = self.job
        told = {"job_id": job.id, "state": state, "task": job.task, "queue": job.queue, "tenant": self.lane.tenant}
        return told | {"worker": worker, "attempt": job.attempt, "version": job.version}

    def abort(self, reason: AbortReason) -> bool:
        """Tell the handler that it is over. The first reason stays, unless the job is lost altogether."""
        before = self.attempt.aborted
        if self.ended or (before is not None and (before in LOST or reason not in LOST)):
            return False
        self.attempt.aborted = reason
        interrupt = self.interrupt
        if interrupt is not None:
            interrupt(self)
        return True

    @property
    def may_be_open(self) -> bool:
        """Its handler may have a transaction open in which it completes the job. Nobody must wait for that."""
        return not self.ended or self.attempt._completed is not None

    def verdict(self, outcome: Outcome) -> Outcome | None:
        """What to settle: what the handler said, unless it was aborted before; None if nothing is ours to settle."""
        match self.attempt.aborted:
            case None if isinstance(outcome, Succeeded) and self.attempt._completed is not None:
                return Raised(ROLLED_BACK)  # unless it shows that the handler has indeed completed the job
            case None:
                return outcome
            case "lease_lost" | "completed" | "deleted":
                return None
            case "timeout":
                return Raised(f"timed out after {self.job.policy.timeout:g} s")
            case "shutdown":
                return Released("the worker was shut down", pause=self.task.on_shutdown == "pause")
            case reason:
                return Released(None if reason in ("cancelled", "paused") else f"aborted: {reason}")
