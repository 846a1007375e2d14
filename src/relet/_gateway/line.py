"""Claims for workers that have the same tasks and queues. Between claims it remembers the same facts as a producer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, structs

from .._core.job import Claimed
from .._remote.wire import ClaimIn, ClaimOut, JobDoc
from .._store.flows import quarantine
from .._store.flows.claim import next_token
from .._store.flows.claim_scope import Claim
from .._worker.claimer import Claimer
from .context import GatewayContext

_encoder = msgspec.json.Encoder()


class Line:
    """The claims of one set of tasks and queues. One thread at a time uses it."""

    def __init__(self, context: GatewayContext, tasks: Sequence[str], queues: Sequence[str] | None) -> None:
        self._context, self._now = context, context.system.monotonic
        self._claimer = Claimer(
            tasks, ["default"] if queues is None else queues,
            serves_all=queues is None, guard=context.guard, system=context.system,
        )  # fmt: skip

    @property
    def has_limits(self) -> bool:
        return bool(self._claimer.limits)

    def requeued(self) -> None:
        """A job went back to its queue, perhaps to a position before the mark of the cursor."""
        self._claimer.cursor.job_requeued(self._now())

    def claim(self, asked: ClaimIn, worker: str) -> Claim:
        """Claim. A second time at once, if the first has shown that there are suspects or limits."""
        self._claimer.find_queues_now_and_then(self._context)
        if asked.alone:
            found = self._claim_alone(asked, worker)
        else:
            found = self._claim(asked, worker)
            flags = found.flags
            if flags is not None and self._claimer.follow(flags) and not found.jobs:
                found = self._claim(asked, worker)
                found = found if found.flags is not None else structs.replace(found, flags=flags)
        self._context.remember((job.id, job.queue) for job in found.jobs)
        return found

    def _claim_alone(self, asked: ClaimIn, worker: str) -> Claim:
        """Claim one job that must run alone, if this worker has the right to do so now."""
        run = self._context.run
        if not run(quarantine.enter, worker):
            return Claim([])
        try:
            return self._send(asked, worker, self._now())
        finally:
            run(quarantine.leave, worker)

    def _claim(self, asked: ClaimIn, worker: str) -> Claim:
        began = self._now()
        found = self._send(asked, worker, began)
        end = self._now()
        is_slow = self._claimer.record(found.jobs, None if asked.again else end - began, end)
        return self._claimer.read_flags(self._context, found, asked.want, end, is_slow=is_slow)

    def _send(self, asked: ClaimIn, worker: str, sent: float) -> Claim:
        """Each try has its own token, because a worker that waits is served by many of them."""
        return self._claimer.claim(
            self._context, worker, next_token(asked.token), want=asked.want, lease=asked.lease, slots=asked.slots,
            ahead=asked.ahead, sent=sent, alone=asked.alone, again=asked.again,
        )  # fmt: skip


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
        job.id, job.token, job.version, job.task, job.queue, Raw(job.payload_json.encode()), job.attempt,
        policy.max_attempts, policy.lease or lease, job.created_at, job.run_at, job.expires_at, job.priority,
        job.losses, policy.timeout, job.target, job.group, chain, job.position, job.dependency_count, job.context,
    )  # fmt: skip
