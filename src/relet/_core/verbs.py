"""The verbs of users: what they can do to a job.

The client, the HTTP API, the command line, the dashboard and the audit trail read `VERBS`. The states that allow a verb
are in `machine.TRANSITIONS`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from .job import Job, State, Wait
from .machine import TRANSITIONS

#: Verbs that can be applied to all jobs that match a filter.
BulkVerb = Literal["cancel", "pause", "resume", "run_now", "delete"]


class Verb(Struct, frozen=True, kw_only=True):
    """`summary`: what the verb does, in the help of the command line and of the HTTP API. `done`: the result, after a
    count of jobs. `note`: what the verb will do, for a confirmation."""

    name: str  # the method of the client
    label: str
    summary: str
    done: str
    note: str
    event: str  # in `relet.events`
    in_bulk: bool = True
    destroys: bool = False  # cannot be undone
    has_chain: bool = False  # can be applied to a whole chain

    @property
    def word(self) -> str:
        """Its name on the command line and in URLs."""
        return self.name.replace("_", "-")

    @property
    def sources(self) -> frozenset[State]:
        return TRANSITIONS[self.name].sources

    def allows(self, job: Job[Any]) -> bool:
        """Whether it would change the job, or request something new of its worker."""
        if job.state not in self.sources:
            return False
        if self.name == "run_now":
            return job.wait is Wait.TIME
        return self.name not in ("pause", "cancel") or job.request not in (self.name, "cancel")


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            name="resume",
            label="Resume",
            summary="resume a paused or failed job, with all its attempts restored",
            done="resumed",
            event="Resumed",
            note="Paused and failed jobs run again, and all their attempts are restored.",
        ),
        Verb(
            name="run_now",
            label="Run now",
            summary="make a job due at once that waits for its time or for a retry",
            done="due now",
            event="MadeDue",
            note="Jobs that wait for their time, or for a retry, are due at once, and run as soon as a worker has a "
            "free slot.",
        ),
        Verb(
            name="pause",
            label="Pause",
            summary="pause a job until it is resumed; a running handler is asked to stop",
            done="paused, or asked to stop",
            event="Paused",
            note="Waiting jobs do not run until they are resumed. Running jobs are asked to stop.",
        ),
        Verb(
            name="complete",
            label="Complete",
            summary="complete a job from outside, without running it any further",
            done="completed",
            event="Completed",
            note="The job succeeds without running any further. A running handler is told to stop.",
            in_bulk=False,
            has_chain=True,
        ),
        Verb(
            name="cancel",
            label="Cancel",
            summary="cancel a job; a running handler is asked to stop",
            done="cancelled, or asked to stop",
            event="Cancelled",
            note="Waiting, paused and failed jobs are cancelled at once. Running jobs are asked to stop, and end "
            "cancelled. A cancelled job cannot be resumed.",
            destroys=True,
            has_chain=True,
        ),
        Verb(
            name="delete",
            label="Delete",
            summary="delete a job and its history, in any state",
            done="deleted",
            event="Deleted",
            note="The jobs and their history are removed for good. Running handlers are told to stop, and nothing that "
            "they return is recorded.",
            destroys=True,
            has_chain=True,
        ),
    )
}
BULK = {name: verb for name, verb in VERBS.items() if verb.in_bulk}
