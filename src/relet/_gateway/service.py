"""The verbs of the protocol, apart from those that wait. Each is called in a thread, and runs the flows of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._core.job import AttemptOutcome, Lease, Outcome, Progress, Raised, Released, Request, Snoozed, State, Succeeded
from .._core.stats import BOUNDS
from .._core.worker import WorkerFacts
from .._remote import wire
from .._store.flows import completion, inspect, quarantine, settle, worker_reports
from .._store.flows import lease as lease_flows
from .._store.flows.completion import Called
from .._store.flows.losses import losses
from .._store.flows.settle import Settled
from .._store.flows.stats import HISTOGRAMS, Count
from .._version import __version__
from .._web.auth import Principal
from .._web.problems import Refusal
from ..errors import InvalidInput, RowRejected, StoreBusy
from .context import GatewayContext, check_scope, stored_name
from .drafts import draft_of, json_text

PAUSED_EVERY = 1.0  # seconds for which the names of paused queues are remembered
LONGEST_NOTE = 4096

_COUNTED = frozenset({*AttemptOutcome, *HISTOGRAMS, *(f"{name}.sum" for name in HISTOGRAMS)})


class Service:
    """`on_tasks`: called with the tasks of a worker that says hello."""

    def __init__(self, context: GatewayContext, on_tasks: Callable[[Iterable[str]], object]) -> None:
        self._context, self._on_tasks = context, on_tasks
        self._now = context.system.monotonic
        self._paused: list[str] = []
        self._paused_at = -PAUSED_EVERY

    # The worker

    def hello(self, principal: Principal, asked: wire.HelloIn) -> wire.HelloOut:
        """Store the report of a worker. Without slots, it only asks whether the store can be used."""
        worker = stored_name(principal, asked.worker)
        if asked.queues is not None:
            check_scope(principal, asked.queues)
        self._on_tasks(asked.tasks)
        if asked.slots:
            self._context.run(worker_reports.report, *self._report(principal, worker, asked))
        else:
            self._context.store.ready()
            self._context.run(inspect.queue_names)
        queues = None if principal.queues is None else sorted(principal.queues)
        return wire.HelloOut(
            wire.VERSION, __version__, worker, queues, wire.MAX_JOBS, wire.MAX_WAIT, wire.MAX_BODY, wire.REPORT_EVERY
        )

    def goodbye(self, principal: Principal, asked: wire.HelloIn) -> wire.Nothing:
        """Store the last counts of a worker, and delete its row."""
        worker = stored_name(principal, asked.worker)
        if asked.counts:
            self._context.run(worker_reports.report, *self._report(principal, worker, asked))
        self._context.run(worker_reports.forget, worker)
        return wire.Nothing()

    def _report(
        self, principal: Principal, worker: str, asked: wire.HelloIn
    ) -> tuple[str, WorkerFacts, int, bool, list[Count]]:
        queues = asked.queues if principal.queues is None else asked.queues or sorted(principal.queues)
        facts = WorkerFacts(
            worker, asked.host[:200], asked.pid, None if queues is None else tuple(queues), asked.slots,
            tuple(sorted(asked.tasks)), asked.lease, asked.version[:100],
        )  # fmt: skip
        check_scope(principal, {one.queue for one in asked.counts})
        counts = [
            Count(one.queue, one.name, one.number, min(max(one.bucket, 0), len(BOUNDS)))
            for one in asked.counts
            if one.name in _COUNTED
        ]
        return asked.report or self._context.system.new_token(), facts, asked.running, asked.stopping, counts

    def quarantine(self, principal: Principal, asked: wire.QuarantineIn) -> wire.QuarantineOut:
        worker = stored_name(principal, asked.worker)
        if asked.enter:
            return wire.QuarantineOut(self._context.run(quarantine.enter, worker))
        self._context.run(quarantine.leave, worker)
        return wire.QuarantineOut(granted=False)

    # Leases

    def renew(self, principal: Principal, asked: wire.RenewIn) -> wire.RenewOut:
        versions = {Lease(one.id, one.token): one.version for one in asked.leases}
        self._context.check_queues(principal, versions)
        worker = stored_name(principal, asked.worker)
        found = self._context.renew(lease_flows.renew, worker, list(versions), lease=asked.lease)
        why = self._context.run(losses, {one: versions[one] for one in found.lost}) if found.lost else {}
        renewed, locked = _requested(found.renewed), _requested(found.locked)
        lost = [wire.LossDoc(id, token, why[Lease(id, token)]) for id, token in found.lost]
        unknown = [wire.LeaseDoc(id, token) for id, token in found.unknown]
        return wire.RenewOut(renewed, locked, lost, unknown, self._paused_queues())

    def _paused_queues(self) -> list[str]:
        if self._now() - self._paused_at >= PAUSED_EVERY:
            self._paused = sorted(self._context.run(inspect.paused_queues))
            self._paused_at = self._now()
        return self._paused

    def progress(self, principal: Principal, asked: wire.ProgressIn) -> wire.ProgressOut:
        reports = {Lease(one.id, one.token): _progress(one) for one in asked.reports}
        self._context.check_queues(principal, reports)
        stored = self._context.run(lease_flows.progress, reports) if reports else set()
        return wire.ProgressOut([wire.LeaseDoc(id, token) for id, token in stored])

    # Outcomes

    def settle(self, principal: Principal, asked: wire.SettleIn) -> wire.SettleOut:
        """Settle attempts. One whose outcome the store refuses does not keep the others from being stored."""
        self._context.check_queues(principal, [Lease(one.id, one.token) for one in asked.outcomes])
        answers: dict[int, wire.SettledDoc] = {}
        batch: list[tuple[int, Lease, Outcome]] = []
        keyed: list[tuple[int, Lease, Outcome]] = []
        for number, doc in enumerate(asked.outcomes):
            try:
                outcome = self._outcome(principal, doc)
            except InvalidInput as error:
                answers[number] = wire.SettledDoc(doc.id, refused=str(error))
            else:
                (keyed if settle.takes_key(outcome) else batch).append((number, Lease(doc.id, doc.token), outcome))
        self._settle(batch, answers)
        for one in keyed:  # each may have to wait for a lock
            try:
                self._settle([one], answers)
            except StoreBusy:
                answers[one[0]] = wire.SettledDoc(one[1].id, again=True)
        return wire.SettleOut([answers[number] for number in range(len(asked.outcomes))])

    def _settle(self, batch: list[tuple[int, Lease, Outcome]], answers: dict[int, wire.SettledDoc]) -> None:
        """Settle a batch. If the store refuses it, halve it, to find the outcome that it refuses."""
        if not batch:
            return
        try:
            outcomes = [(lease, outcome) for _, lease, outcome in batch]
            settled = self._context.run(settle.settle, outcomes, self._context.system.random)
        except (RowRejected, InvalidInput) as error:
            if len(batch) == 1:
                answers[batch[0][0]] = wire.SettledDoc(batch[0][1].id, refused=_reason(error))
                return
            half = len(batch) // 2
            self._settle(batch[:half], answers)
            self._settle(batch[half:], answers)
            return
        for (number, _, _), one in zip(batch, settled, strict=True):
            answers[number] = _settled(one)

    def _outcome(self, principal: Principal, doc: wire.OutcomeDoc) -> Outcome:
        match doc.outcome:
            case "succeeded" if doc.continue_with is not None:
                draft = draft_of(doc.continue_with, self._context.payload_limit)
                check_scope(principal, [draft.queue])
                return Succeeded(None, draft)
            case "succeeded":
                return Succeeded(json_text(doc.result, "result", self._context.payload_limit))
            case "raised":
                return Raised(doc.error, doc.delay, doc.fatal, doc.error_type)
            case "snoozed":
                return Snoozed(doc.delay or 0.0, doc.awaits)
            case "released":
                return Released(doc.reason, doc.pause)

    # Steps

    def details(self, principal: Principal, asked: wire.DetailsIn) -> wire.DetailsOut:
        self._check_owner(principal, Lease(asked.id, asked.token))
        run = self._context.run
        steps = run(completion.steps, asked.id)
        signal = None if asked.signal is None else run(completion.signal_of, asked.id, asked.signal)
        stored = [wire.StepDoc(kind, name, wire.raw(one.result), one.left) for (kind, name), one in steps.items()]
        dependencies = [
            wire.DependencyDoc(one.chain, one.state, wire.raw(one.result_json), one.task)
            for one in run(inspect.dependencies, asked.id)
        ]
        return wire.DetailsOut(stored, dependencies, wire.raw(signal))

    def step(self, principal: Principal, asked: wire.StepIn) -> wire.StepOut:
        lease, limit = Lease(asked.id, asked.token), self._context.payload_limit
        self._context.check_queues(principal, [lease])
        if not 1 <= len(asked.name) <= 600 or "\0" in asked.name:
            raise Refusal("invalid-input", "body.name: must be 1 to 600 characters")
        result = None if asked.result is wire.ABSENT else json_text(asked.result, "result", limit)
        arguments = None if asked.input is wire.ABSENT else json_text(asked.input, "input", limit)
        called = Called(result, arguments, asked.took)
        kept = self._context.run(completion.keep, lease, asked.kind, asked.name, called, asked.seconds)
        if kept is None:
            raise _lost(lease)
        return wire.StepOut(wire.raw(kept.result), kept.left)

    def _check_owner(self, principal: Principal, lease: Lease) -> None:
        self._context.check_queues(principal, [lease])
        if self._context.run(lease_flows.pending_requests, [lease]).lost:
            raise _lost(lease)


def _lost(lease: Lease) -> Refusal:
    return Refusal("lease-lost", f"The lease of job {lease.id} is lost: its token is not valid any more.")


def _reason(error: Exception) -> str:
    """The database's own message goes to the log only."""
    return str(error) if isinstance(error, InvalidInput) else "the database rejects a value of this outcome"


def _settled(one: Settled) -> wire.SettledDoc:
    return wire.SettledDoc(one.id, None if one.state is None else one.state.value, one.delay)


def _requested(leases: Mapping[Lease, Request | None]) -> list[wire.RequestedDoc]:
    return [wire.RequestedDoc(id, token, request) for (id, token), request in leases.items()]


def _progress(doc: wire.ProgressDoc) -> Progress:
    note = doc.note
    if note is not None and (len(note) > LONGEST_NOTE or not note.isprintable()):
        raise Refusal("invalid-input", f"body.reports: a note has at most {LONGEST_NOTE} printable characters")
    return Progress(doc.done, doc.total, note)


def is_requeued(answer: wire.SettleOut) -> bool:
    """Whether one of the jobs went back to its queue."""
    return any(one.state == State.QUEUED for one in answer.settled)


#: By path: the document that a request has, and the method.
VERBS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "hello": (wire.HelloIn, Service.hello),
    "goodbye": (wire.HelloIn, Service.goodbye),
    "quarantine": (wire.QuarantineIn, Service.quarantine),
    "renew": (wire.RenewIn, Service.renew),
    "progress": (wire.ProgressIn, Service.progress),
    "settle": (wire.SettleIn, Service.settle),
    "details": (wire.DetailsIn, Service.details),
    "step": (wire.StepIn, Service.step),
}
