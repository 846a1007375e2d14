"""Claims for workers that have the same tasks and queues.

It remembers what a producer of a worker does: the cursor of each queue, and whether there are suspects and limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, structs

from .._core.job import Claimed
from .._remote.wire import ClaimIn, ClaimOut, JobDoc
from .._store.flows import claim as claim_flows
from .._store.flows import claim_scope, inspect, quarantine
from .._store.flows.claim_scope import Claim, QueueFlags, Scope
from .._worker.claim_cursor import ClaimCursor
from .context import GatewayContext

MAX_QUEUES = 100  # in one claim
NAMES_EVERY = 1.0  # seconds between two searches for new queues
FLAGS_EVERY = 0.05  # seconds between two searches for suspects and limits while a backlog fills every claim
TASKS_EVERY = 5.0  # seconds between two searches for jobs of unknown tasks
REAP_EVERY = 0.1  # seconds between two claims that reap because a queue is at its limit

_encoder = msgspec.json.Encoder()


class Line:
    """The claims of one set of tasks and queues. One thread at a time uses it."""

    def __init__(self, context: GatewayContext, tasks: Sequence[str], queues: Sequence[str] | None) -> None:
        self._context, self._now = context, context.system.monotonic
        self._tasks, self._serves_all = tasks, queues is None
        self._queues = ["default"] if queues is None else list(queues)
        self._cursor = ClaimCursor()
        self._flags = QueueFlags()
        self._foreign: set[str] = set()  # queues with jobs of other tasks
        self._names_at = self._flags_at = self._tasks_at = self._reaped_at = -1e9

    @property
    def has_limits(self) -> bool:
        return bool(self._flags.limited & {"*", *self._queues})

    def requeued(self) -> None:
        """A job went back to its queue, perhaps to a position before the mark of the cursor."""
        self._cursor.job_requeued(self._now())

    def claim(self, asked: ClaimIn, worker: str) -> Claim:
        """Claim. A second time at once, if the first has shown that there are suspects or limits."""
        if asked.alone:
            return self._claim_alone(asked, worker)
        self._find_queues()
        found = self._claim(asked, worker)
        flags = found.flags
        if flags is not None:
            known, self._flags = self._flags, flags
            limited = flags.limited & {"*", *self._queues}
            is_new = (flags.suspects and not known.suspects) or (limited and not known.limited)
            if is_new and not found.jobs:
                found = self._claim(asked, worker)
        self._context.remember((job.id, job.queue) for job in found.jobs)
        return found if found.flags is not None else structs.replace(found, flags=flags)

    def _claim_alone(self, asked: ClaimIn, worker: str) -> Claim:
        """Claim one job that must run alone, if this worker has the right to do so now."""
        run = self._context.run
        self._find_queues()
        if not run(quarantine.enter, worker):
            return Claim([])
        try:
            found = self._run(asked, worker, [Scope(queue, 1) for queue in self._sampled()], alone=True)
        finally:
            run(quarantine.leave, worker)
        self._context.remember((job.id, job.queue) for job in found.jobs)
        return found

    def _sampled(self) -> list[str]:
        """In random order, so that no queue is always served first. A sample, if there are very many."""
        return self._context.system.sample(self._queues, min(len(self._queues), MAX_QUEUES))

    def _claim(self, asked: ClaimIn, worker: str) -> Claim:
        began, queues = self._now(), self._sampled()
        scopes = [self._cursor.scope(one, asked.want, began, by_task=one in self._foreign) for one in queues]
        found = self._run(asked, worker, scopes, alone=False)
        end = self._now()
        is_slow = self._cursor.record_claim(queues, found.jobs, None if asked.again else end - began, end)
        if (is_slow or self._foreign) and end >= self._tasks_at:
            self._find_foreign(queues)
        is_short = len(found.jobs) < asked.want and not self.has_limits
        if found.flags is None and (is_short or end - self._flags_at >= FLAGS_EVERY):
            found = found + Claim([], self._context.run(claim_scope.flags, queues, self._tasks))
        if found.flags is not None:
            self._flags_at = end
        return found

    def _run(self, asked: ClaimIn, worker: str, scopes: Sequence[Scope], *, alone: bool) -> Claim:
        """Claim with one statement, unless there were limits or suspects lately: these need more."""
        flags, options = self._flags, {"want": asked.want, "lease": asked.lease}
        args: tuple[Any, ...] = (worker, asked.token, scopes, self._tasks)
        if not (alone or flags.suspects or self.has_limits):
            plain: Any = claim_flows.claim_plain_again if asked.again else claim_flows.claim_plain
            found: Claim = self._context.run(plain, *args, **options)
            return found
        flow: Any = claim_flows.claim_again if asked.again else claim_flows.claim
        return self._context.run(  # type: ignore[no-any-return]
            flow, *args, **options, slots=asked.slots, ahead=asked.ahead, limited=flags.limited,
            random=self._context.system.random, rescue=flags.suspects, alone=alone,
            check_flags=self._now() - self._flags_at >= FLAGS_EVERY, may_reap=self._may_reap,
        )  # fmt: skip

    def _may_reap(self) -> bool:
        now = self._now()
        if now - self._reaped_at < REAP_EVERY or not self._context.guard.may_reap():
            return False
        self._reaped_at = now
        return True

    def _find_queues(self) -> None:
        """Read the names of the queues that have jobs, if the line serves all."""
        if not self._serves_all or self._now() - self._names_at < NAMES_EVERY:
            return
        self._names_at = self._now()
        names = {"default", *self._context.run(inspect.queue_names)}
        for queue in set(self._queues) - names:
            self._cursor.forget(queue)
        self._queues = sorted(names)

    def _find_foreign(self, queues: Sequence[str]) -> None:
        """Find queues with jobs of other tasks: a claim would read and skip all of them."""
        queued, own = self._context.run(inspect.queued_tasks, queues), set(self._tasks)
        self._foreign = (self._foreign - set(queues)) | {queue for queue, tasks in queued.items() if not tasks <= own}
        self._tasks_at = self._now() + TASKS_EVERY


def answer(found: Claim, asked: ClaimIn, waited: float) -> bytes:
    """A claim as a document."""
    out = ClaimOut([_job(job, asked.lease) for job in found.jobs], waited, is_limited=found.limited)
    out.again_in = found.again_in
    if found.flags is not None:
        out.suspects, out.quarantined = found.flags.suspects, found.flags.quarantined
        out.limited = sorted(found.flags.limited)
    return _encoder.encode(out)


def _job(job: Claimed, lease: float) -> JobDoc:
    policy = job.policy
    chain = None if job.chain == job.id else job.chain
    return JobDoc(
        job.id, job.version, job.task, job.queue, Raw(job.payload_json.encode()), job.attempt, policy.max_attempts,
        policy.lease or lease, job.created_at, job.run_at, job.expires_at, job.priority, job.losses, policy.timeout,
        job.target, job.group, chain, job.position, job.dependency_count, job.context,
    )  # fmt: skip
