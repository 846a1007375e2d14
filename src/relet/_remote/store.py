"""The store of a worker that reaches it through a gateway.

The parts of a worker run flows. Those that a worker needs are requests of the protocol here; all others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any, NoReturn, ParamSpec, TypeVar

from .._core.job import (
    Claimed,
    Dependency,
    Lease,
    Outcome,
    Policy,
    Progress,
    Raised,
    Released,
    Request,
    Snoozed,
    State,
    Succeeded,
)  # fmt: skip
from .._core.worker import WorkerFacts
from .._store.flows import (
    claim,
    claim_scope,
    completion,
    control,
    inspect,
    lease,
    maintenance,
    quarantine,
    settle,
    stats,
    worker_reports,
)
from .._store.flows.claim_scope import Claim, QueueFlags, Scope
from .._store.flows.completion import Called, Kept
from .._store.flows.lease import Renewal
from .._store.flows.losses import Loss, losses
from .._store.flows.settle import Settled
from .._store.flows.stats import Count
from .._store.migrate import Applied
from .._store.query import Flow, Notify, Traits
from .._store.retry import RetryPolicy, Transient
from .._store.store import AsyncStoreTransaction, Store, StoreTransaction
from ..errors import InvalidInput, LeaseLost, RowRejected, StoreBusy, StoreRefused
from . import wire
from .channel import TIMEOUT, Channel, Gateways
from .notifier import RemoteNotifier

P = ParamSpec("P")
R = TypeVar("R")

WAIT = 20.0  # seconds that a claim waits for jobs
SHORT_WAIT = 0.5  # the same while other claims or jobs of this worker wait for its end
MAX_SETTLED = 4 * 1024 * 1024  # bytes of results in a request

NEEDS_DATABASE = (
    "this worker reaches the store through a gateway, so it has no connection to the database: {what}. Run this task "
    "on a worker with a database URL, or return the result and use steps or continue_with"
)


class Session:
    """The values that the stores of one worker share: the gateways, and their answers."""

    def __init__(
        self, gateways: Gateways, worker: str, *, serves_all: bool = True, slots: int = 1, producers: int = 1
    ) -> None:
        self.gateways, self.worker = gateways, worker
        self.serves_all, self.slots, self.producers = serves_all, slots, producers
        self.versions: dict[Lease, int] = {}  # of the jobs that it holds
        self.tokens: dict[str, str] = {}  # by the id of a job that it holds
        self.requests: dict[Lease, Request] = {}
        self.losses: dict[Lease, Loss] = {}
        self.paused: set[str] = set()
        self.flags = QueueFlags()

    def hold(self, job: Claimed) -> None:
        self.versions[job.lease] = job.version
        self.tokens[job.id] = job.token

    def drop(self, one: Lease) -> None:
        """It has ended, or is lost."""
        self.versions.pop(one, None)
        self.requests.pop(one, None)
        if self.tokens.get(one.id) == one.token:
            del self.tokens[one.id]

    @property
    def wait(self) -> float:
        """How long a claim may wait. While jobs wait for a slot, or several producers share the worker, not long: they
        may have to give jobs back, or to empty the worker."""
        return SHORT_WAIT if self.producers > 1 or len(self.versions) > self.slots else WAIT


class RemoteStore(Store):
    """The flows of a worker as requests to a gateway."""

    dialect = "postgres"
    skips_locked = False
    prune_at_once = 0
    is_remote = True

    def __init__(self, session: Session, timeout: float = TIMEOUT) -> None:
        self._session, self._timeout = session, timeout
        self._channel = Channel(session.gateways, timeout)
        super().__init__(RemoteNotifier(session, self._channel))
        self._checked = True
        self.where = ", ".join(one.where for one in session.gateways.addresses)
        self._flows: dict[Callable[..., Any], Callable[..., Any]] = {
            claim.claim_plain: self._claim, claim.claim: self._claim, claim_scope.flags: self._flags,
            quarantine.enter: self._enter, quarantine.leave: self._leave, lease.renew: self._renew,
            lease.pending_requests: self._pending_requests, losses: self._losses, lease.progress: self._progress,
            settle.settle: self._settle, settle.settle_unless_open: self._settle,
            settle.settle_succeeded: self._settle_succeeded, settle.find_settled: self._find_settled,
            worker_reports.report: self._report, worker_reports.forget: self._forget,
            completion.steps: self._steps, completion.keep: self._keep, completion.signal_of: self._signal_of,
            inspect.dependencies: self._dependencies, inspect.paused_queues: self._paused_queues,
            inspect.queues: self._queues, maintenance.probe: self._probe,
            # Flows that a gateway runs itself.
            inspect.queue_names: _nothing(list), inspect.queued_tasks: _nothing(dict),
            maintenance.request_notifications: _nothing(_none), control.declare_limits: _nothing(_none),
            stats.claim_sample: _nothing(_none),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<store behind {self.where}>"

    # Running flows

    def run_with(self, policy: RetryPolicy, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        call = self._flows.get(flow)
        if call is None:
            _refuse(f"{getattr(flow, '__name__', flow)} is not part of the worker protocol")
        result: R = self.retry(policy, lambda again, failures: call(again, *args, **kwargs))
        return result

    def run_once(self, make: Callable[[], Flow[R]], traits: Traits, failures: int) -> tuple[R, list[Notify]]:
        _refuse("it runs no statements")

    def _call(self, verb: str, asked: Any, kind: type[R], wait: float = 0.0) -> R:
        return self._channel.call(verb, asked, kind, wait)

    # Claims

    def _claim(
        self, again: bool, worker: str, token: str, scopes: Sequence[Scope], tasks: Any, *, want: int, lease: float,
        slots: int | None = None, ahead: int = 0, alone: bool = False, **_: Any,
    ) -> Claim:  # fmt: skip
        session = self._session
        wait = 0.0 if alone else session.wait
        asked = wire.ClaimIn(
            worker, token, list(tasks), min(want, wire.MAX_JOBS), _queues(session, scopes), slots, ahead, lease, wait,
            again, alone,
        )  # fmt: skip
        found = self._call("claim", asked, wire.ClaimOut, wait)
        jobs = [_claimed(one, lease) for one in found.jobs]
        for job in jobs:
            session.hold(job)
        flags = None
        if found.suspects is not None:
            flags = session.flags = QueueFlags(found.suspects, bool(found.quarantined), frozenset(found.limited))
        # The claim has waited already: the next one may follow at once.
        again_in = found.again_in if jobs or alone else 0.0
        return Claim(jobs, flags, again_in, found.is_limited, found.waited)

    def _flags(self, _: bool, queues: Sequence[str], tasks: Any) -> QueueFlags:
        return self._session.flags

    def _enter(self, _: bool, worker: str) -> bool:
        return self._call("quarantine", wire.QuarantineIn(worker, True), wire.QuarantineOut).granted

    def _leave(self, _: bool, worker: str) -> None:
        self._call("quarantine", wire.QuarantineIn(worker, False), wire.QuarantineOut)

    # Leases

    def _renew(self, _: bool, worker: str, leases: Sequence[Lease], *, lease: float) -> Renewal:
        session = self._session
        docs = [wire.LeaseDoc(id, token, session.versions.get(Lease(id, token), 0)) for id, token in leases]
        found = self._call("renew", wire.RenewIn(worker, docs, lease), wire.RenewOut)
        session.paused = set(found.paused)
        renewed, locked = _requests(found.renewed), _requests(found.locked)
        session.losses = {Lease(one.id, one.token): one.reason for one in found.lost}
        for lost in session.losses:
            session.drop(lost)
        unknown = [Lease(one.id, one.token) for one in found.unknown]
        return Renewal(renewed, locked, list(session.losses), unknown)

    def _pending_requests(self, _: bool, leases: Sequence[Lease]) -> Renewal:
        """The requests of which the gateway has told. The next renewal finds the leases that are lost."""
        return Renewal(locked={one: self._session.requests.get(one) for one in leases})

    def _losses(self, _: bool, versions: Mapping[Lease, int]) -> dict[Lease, Loss]:
        return {one: self._session.losses.get(one, "lease_lost") for one in versions}

    def _progress(self, _: bool, reports: dict[Lease, Progress]) -> set[Lease]:
        docs = [wire.ProgressDoc(id, token, one.done, one.total, one.note) for (id, token), one in reports.items()]
        stored: set[Lease] = set()
        for first in range(0, len(docs), wire.MAX_JOBS):
            asked = wire.ProgressIn(self._session.worker, docs[first : first + wire.MAX_JOBS])
            found = self._call("progress", asked, wire.ProgressOut)
            stored.update(Lease(one.id, one.token) for one in found.stored)
        return stored

    # Outcomes

    def _settle(self, _: bool, outcomes: Sequence[tuple[Lease, Outcome]], random: object) -> list[Settled]:
        docs = [_outcome(one, outcome) for one, outcome in outcomes]
        answers = [answer for batch in _batches(docs) for answer in self._settle_batch(batch)]
        if any(one.again for one in answers):
            busy = StoreBusy(f"{self.where}: the unique key of the next job is locked")
            raise Transient(busy, may_be_committed=False)
        refused = [one for one in answers if one.refused is not None]
        if refused and len(answers) > 1:  # the settler settles them one by one: a settled outcome stays so
            raise RowRejected(f"{self.where}: {refused[0].refused}")
        if refused:
            raise RowRejected(refused[0].refused or "")
        for ended in dict(outcomes):
            self._session.drop(ended)
        return [Settled(one.id, None if one.state is None else State(one.state), delay=one.delay) for one in answers]

    def _settle_batch(self, docs: list[wire.OutcomeDoc]) -> list[wire.SettledDoc]:
        return self._call("settle", wire.SettleIn(self._session.worker, docs), wire.SettleOut).settled

    def _settle_succeeded(
        self, again: bool, leases: Sequence[Lease], results: Sequence[str | None]
    ) -> dict[Lease, State] | None:
        outcomes = [(one, Succeeded(result)) for one, result in zip(leases, results, strict=True)]
        answers = self._settle(again, outcomes, None)
        if all(one.state is State.SUCCEEDED for one in answers):
            return None
        pairs = zip(leases, answers, strict=True)
        return {one: answer.state for one, answer in pairs if answer.state is not None}

    def _find_settled(self, _: bool, leases: Sequence[Lease]) -> dict[Lease, State]:
        """None: the answer to a settle tells."""
        return {}

    # The worker

    def _probe(self, _: bool) -> None:
        self._call("hello", wire.HelloIn(self._session.worker), wire.HelloOut)

    def _report(
        self, _: bool, id: str, facts: WorkerFacts, running: int, stopping: bool, counts: Sequence[Count] = ()
    ) -> None:
        asked = wire.HelloIn(
            facts.name, facts.host, facts.pid, None if facts.queues is None else list(facts.queues), facts.slots,
            list(facts.tasks), facts.lease, facts.version, running, stopping, id,
            [wire.CountDoc(one.queue, one.name, one.number, one.bucket) for one in counts],
        )  # fmt: skip
        self._call("hello", asked, wire.HelloOut)

    def _forget(self, _: bool, name: str) -> None:
        self._call("goodbye", wire.HelloIn(name), wire.Nothing)

    def _paused_queues(self, _: bool) -> set[str]:
        return self._session.paused

    def _queues(self, _: bool) -> NoReturn:
        raise StoreRefused("a gateway does not list the queues of the store")

    # Steps

    def _details(self, job_id: str, signal: str | None = None) -> wire.DetailsOut:
        token = self._session.tokens.get(job_id)
        if token is None:
            raise LeaseLost(job_id, "read the steps of")
        asked = wire.DetailsIn(self._session.worker, job_id, token, signal)
        try:
            return self._call("details", asked, wire.DetailsOut)
        except LeaseLost:
            raise LeaseLost(job_id, "read the steps of") from None

    def _steps(self, _: bool, job_id: str) -> dict[tuple[str, str], Kept]:
        return {(one.kind, one.name): Kept(wire.text(one.result), one.left) for one in self._details(job_id).steps}

    def _dependencies(self, _: bool, job_id: str) -> list[Dependency]:
        found = self._details(job_id).dependencies
        return [Dependency(one.chain, one.state, wire.text(one.result), one.task) for one in found]

    def _signal_of(self, _: bool, job_id: str, name: str) -> str | None:
        return wire.text(self._details(job_id, name).signal)

    def _keep(self, _: bool, of: Lease, kind: Any, name: str, called: Called, seconds: float | None) -> Kept | None:
        asked = wire.StepIn(
            self._session.worker, of.id, of.token, kind, name, wire.raw(called.result), wire.raw(called.input),
            called.took, seconds,
        )  # fmt: skip
        try:
            kept = self._call("step", asked, wire.StepOut)
        except LeaseLost:
            return None
        return Kept(wire.text(kept.result), kept.left)

    # Flows that need a database

    def prepare_to_finish(self, job_id: str) -> None:
        _refuse("attempt.transaction() and attempt.succeed(connection=...) need one")

    async def aprepare_to_finish(self, job_id: str) -> None:
        _refuse("attempt.transaction() and attempt.asucceed(connection=...) need one")

    def begin(self) -> AbstractContextManager[StoreTransaction]:
        _refuse("a transaction needs one")

    def abegin(self) -> AbstractAsyncContextManager[AsyncStoreTransaction]:
        _refuse("a transaction needs one")

    def notify(self, notifications: list[Notify]) -> None:
        """The gateway notifies."""

    def check(self) -> None:
        """The gateway checks the schema."""

    def _migrate(self) -> list[int]:
        _refuse("a migration needs one")

    def _applied(self) -> Applied:
        _refuse("it has no schema to read")

    # Connections

    def with_own_connections(
        self, connections: int, like: Store | None = None, timeout: float | None = None
    ) -> RemoteStore:
        return RemoteStore(self._session, self._timeout if timeout is None else timeout)

    def close(self) -> None:
        self.notifier.close()
        self._channel.close()

    @contextmanager
    def holding(self, job: Claimed) -> Iterator[None]:
        """Within the block, the steps of this job can be read and stored: in a child process, which claims nothing."""
        self._session.hold(job)
        try:
            yield
        finally:
            self._session.drop(job.lease)


def _requests(docs: Sequence[wire.RequestedDoc]) -> dict[Lease, Request | None]:
    return {Lease(one.id, one.token): one.request for one in docs}


def _refuse(what: str) -> NoReturn:
    raise InvalidInput(NEEDS_DATABASE.format(what=what))


def _none() -> None:
    return None


def _nothing(make: Callable[[], Any]) -> Callable[..., Any]:
    """A flow that has nothing to do here, and returns this."""
    return lambda *args, **kwargs: make()


def _queues(session: Session, scopes: Sequence[Scope]) -> list[str] | None:
    return None if session.serves_all else [one.queue for one in scopes]


def _claimed(doc: wire.JobDoc, lease: float) -> Claimed:
    own = None if doc.lease == lease else doc.lease
    usual = doc.max_attempts == _POLICY.max_attempts and own is None and doc.timeout is None
    policy = _POLICY if usual else Policy(doc.max_attempts, lease=own, timeout=doc.timeout)
    return Claimed(
        doc.id, doc.token, doc.version, doc.task, doc.queue, bytes(doc.payload).decode(), doc.priority, doc.target,
        doc.attempt, doc.losses, policy, doc.chain or doc.id, doc.position, (-doc.priority, 0), doc.created_at,
        doc.run_at, doc.expires_at, doc.group, doc.dependency_count, doc.context,
    )  # fmt: skip


_POLICY = Policy()


def _outcome(one: Lease, outcome: Outcome) -> wire.OutcomeDoc:
    match outcome:
        case Succeeded(result, None):
            return wire.OutcomeDoc(
                one.id, one.token, "succeeded", wire.NULL_VALUE if result in (None, "null") else wire.raw(result)
            )
        case Succeeded():
            draft = outcome.continue_with
            doc = None if draft is None else wire.draft_doc(draft)
            return wire.OutcomeDoc(one.id, one.token, "succeeded", continue_with=doc)
        case Raised(error, delay, fatal, error_type):
            return wire.OutcomeDoc(
                one.id, one.token, "raised", error=error, error_type=error_type, fatal=fatal, delay=delay
            )
        case Snoozed(delay, awaits):
            return wire.OutcomeDoc(one.id, one.token, "snoozed", delay=delay, awaits=awaits)
        case Released(reason, pause):
            return wire.OutcomeDoc(one.id, one.token, "released", reason=reason, pause=pause)


def _batches(docs: Sequence[wire.OutcomeDoc]) -> Iterator[list[wire.OutcomeDoc]]:
    """Outcomes in requests of a limited size."""
    batch: list[wire.OutcomeDoc] = []
    size = 0
    for doc in docs:
        more = len(bytes(doc.result)) + len(doc.error)
        if batch and (len(batch) == wire.MAX_JOBS or size + more > MAX_SETTLED):
            yield batch
            batch, size = [], 0
        batch.append(doc)
        size += more
    if batch:
        yield batch
