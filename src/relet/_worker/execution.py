"""One job that a worker holds: claimed ahead, running, or ended and not yet settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from .._attempts.attempt import Attempt
from .._core.job import Claimed, Lease, Outcome, Raised, Released, State, Succeeded
from .._tasks.task import Task
from ..errors import AbortReason
from ..logs import job_facts
from .timers import Timer

ROLLED_BACK = "completion rolled back"

#: The job is no longer this worker's: there is nothing to settle.
LOST = frozenset({"lease_lost", "completed", "deleted"})


class Slots(Protocol):
    """What an execution needs of the slots that it belongs to (`slots.Slots`)."""

    on_requeued: Callable[[], None]

    def ended(self, execution: Execution, outcome: Outcome) -> Execution | None:
        """Settle, free the slot, and return the execution that runs in it next. The caller starts it."""

    def settle(self, execution: Execution, outcome: Outcome) -> None:
        """Settle without waiting for the handler, which keeps its slot."""

    def release(self, which: Callable[[Execution], bool]) -> None:
        """Release those that wait for a slot and match."""


class Execution(Struct, eq=False):
    """A job, its lease, and the attempt that its handler may see. Times are monotonic."""

    job: Claimed
    task: Task[..., Any]
    slots: Slots
    lease: Lease
    attempt: Attempt
    lease_seconds: float  # that a renewal lasts
    claimed_at: float  # when the claim was sent
    tenant: str | None = None
    started_at: float = 0.0  # 0: waits for a slot
    stopped_at: float = 0.0  # when the handler freed its slot
    has_ended: bool = False  # the handler has freed its slot
    is_settling: bool = False  # an outcome is on its way to the store
    interrupt: Callable[[Execution], None] | None = None  # makes the handler notice that it was aborted
    on_renewed: Callable[[], None] | None = None  # tells a handler in another process its new deadline
    timers: Sequence[Timer] = ()  # timeout, and the end of the lease where the task aborts then

    @property
    def log_fields(self) -> dict[str, Any]:
        return job_facts(self.attempt)

    def event_fields(self, worker: str, state: State | None) -> dict[str, Any]:
        """What every event about an attempt has."""
        job = self.job
        return {
            "job_id": job.id, "state": state, "task": job.task, "queue": job.queue, "tenant": self.tenant,
            "worker": worker, "attempt": job.attempt, "version": job.version,
        }  # fmt: skip

    def abort(self, reason: AbortReason) -> bool:
        """Tell the handler that it is over. The first reason stays, unless the job is lost altogether."""
        before = self.attempt.aborted
        if self.has_ended or (before is not None and (before in LOST or reason not in LOST)):
            return False
        self.attempt.aborted = reason
        interrupt = self.interrupt
        if interrupt is not None:
            interrupt(self)
        return True

    @property
    def may_have_open_completion(self) -> bool:
        """Whether the handler may have a transaction open in which it completes the job. Settling must not wait."""
        return not self.has_ended or self.attempt._completion.is_unconfirmed

    def final_outcome(self, outcome: Outcome) -> Outcome | None:
        """What to settle: what the handler came to, unless it was aborted before. None: the job is lost."""
        match self.attempt.aborted:
            case None if isinstance(outcome, Succeeded) and self.attempt._completion.is_unconfirmed:
                return Raised(ROLLED_BACK)  # unless it turns out that the handler's transaction was committed
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
