"""One job that a worker holds: claimed ahead, running, or ended and not yet settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from .._attempts.attempt import Attempt
from .._core.job import Claimed, Lease, Outcome, Raised, Released, State, Succeeded
from .._core.text import type_name
from .._tasks.task import Task
from ..errors import AbortReason
from ..logs import job_facts
from .timers import Timer

ROLLED_BACK = "completion rolled back"

#: Reasons of an abort after which the worker no longer has the lease, so that there is nothing to settle.
LOST = frozenset({"lease_lost", "completed", "deleted"})


class Slots(Protocol):
    """The methods of `slots.Slots` that an execution needs."""

    on_requeued: Callable[[], None]

    @property
    def is_full(self) -> bool:
        """Whether no slot is free."""

    def ended(self, execution: Execution, outcome: Outcome) -> Execution | None:
        """Settle the job, free its slot, and return the execution that runs there next. The caller starts it."""

    def settle(self, execution: Execution, outcome: Outcome) -> None:
        """Settle the job without waiting for its handler, which keeps its slot."""

    def release(self, which: Callable[[Execution], bool]) -> None:
        """Release the executions that wait for a slot and match."""


class Execution(Struct, eq=False):
    """A job, its lease, and its attempt, which the handler may take. Times are of the monotonic clock."""

    job: Claimed
    task: Task[..., Any]
    slots: Slots
    lease: Lease
    attempt: Attempt
    lease_seconds: float  # how long the lease lasts after a renewal
    claimed_at: float  # when the claim was sent
    tenant: str | None = None
    started_at: float = 0.0  # 0 while it waits for a slot
    stopped_at: float = 0.0  # when the handler freed its slot
    has_ended: bool = False  # the handler has freed its slot
    is_settling: bool = False  # the settler has its outcome
    interrupt: Callable[[Execution], None] | None = None  # interrupts the handler after an abort
    on_renewed: Callable[[], None] | None = None  # sends the new deadline to a child process
    prepare: Callable[[Execution], None] | None = None  # makes the attempt work, if that is put off until it is used
    timers: Sequence[Timer] = ()  # of its timeout, and of the end of its lease if its task is to be aborted then

    @property
    def log_fields(self) -> dict[str, Any]:
        return job_facts(self.attempt)

    def event_fields(self, worker: str, state: State | None) -> dict[str, Any]:
        """The fields that all events of an attempt have."""
        job = self.job
        return {
            "job_id": job.id, "state": state, "task": job.task, "queue": job.queue, "tenant": self.tenant,
            "worker": worker, "attempt": job.attempt, "version": job.version,
        }  # fmt: skip

    def abort(self, reason: AbortReason) -> bool:
        """Abort the attempt. The first reason stays, unless a later one is that the lease is lost."""
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
        """Whether the handler may be completing the job in an open transaction, which the settler must not wait for."""
        return not self.has_ended or self.attempt._completion.is_unconfirmed

    def final_outcome(self, outcome: Outcome) -> Outcome | None:
        """The outcome to settle: the handler's, unless the attempt was aborted. None: the lease is lost."""
        match self.attempt.aborted:
            case None if isinstance(outcome, Succeeded) and self.attempt._completion.is_unconfirmed:
                return Raised(ROLLED_BACK)  # unless it turns out that the handler's transaction was committed
            case None:
                return outcome
            case "lease_lost" | "completed" | "deleted":
                return None
            case "timeout":
                return Raised(f"timed out after {self.job.policy.timeout:g} s", error_type=type_name(TimeoutError))
            case "shutdown":
                return Released("the worker was shut down", pause=self.task.on_shutdown == "pause")
            case reason:
                return Released(None if reason in ("cancelled", "paused") else f"aborted: {reason}")
