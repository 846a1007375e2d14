"""One generated history at a time, on every store at once and on the model: every answer and the whole state agree.

RELET_HYPOTHESIS=thorough searches longer. A failure prints a blob that replays it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from msgspec import UNSET

from relet._core.job import Draft, Job, Lease, Outcome, Succeeded
from relet._core.machine import TRANSITIONS
from relet._core.tokens import token_of_try
from relet._store.flows import chains, claim_scope, enqueue, follow_ups, lease, maintenance, operations, promote
from relet._store.flows import claim as claim_flows
from relet._store.flows import control as steer
from relet._store.flows import inspect as look
from relet._store.flows import settle as settle_flows
from relet._store.flows.claim_scope import Scope
from relet._store.flows.operations import Operation
from relet._system import SYSTEM
from relet.errors import HasDependents, InvalidInput, InvalidTransition, JobNotFound, KeyTaken, ReletError
from tests import servers
from tests.plugin.selection import rounds
from tests.store.compared_stores import ComparedStore, check_invariants, compared_stores_of, expected
from tests.store.histories import GROUPED_STEPS, STEPS, batches, grouped_batches, taken_from
from tests.store.model import HALF, OVER
from tests.store.model_operators import FullModel

BASE = 1_767_225_600.0  # the moment in the ids below
LAST = str(uuid.UUID(int=2**128 - 1))  # the random part of the tokens of repeated claims
THOROUGH = os.environ.get("RELET_HYPOTHESIS") == "thorough"
SETTINGS = settings(
    max_examples=2000 if THOROUGH else rounds(7, all=30),
    derandomize=not THOROUGH,  # random failures are for those who search, not for each run of the tests
    stateful_step_count=60 if THOROUGH else 40,
    deadline=None,
    print_blob=True,
    database=settings().database if THOROUGH and not os.environ.get("CI") else None,
    suppress_health_check=list(HealthCheck),
)


class FollowUpIds:
    """Makes the ids of follow-ups: the same ones on every store and in the model."""

    def __init__(self) -> None:
        self._first = self._next = 100_000

    def rewind(self) -> None:
        self._next = self._first

    def advance(self) -> None:
        self._first = self._next

    def new_id(self) -> str:
        self._next += 1
        return _id(self._next)


class History(RuleBasedStateMachine):
    """The verbs, said to every store and to the model at the same moment of a clock of their own."""

    def __init__(self, stores: list[ComparedStore], follow_up_ids: FollowUpIds) -> None:
        super().__init__()
        self.follow_up_ids = follow_up_ids
        self.model = FullModel(follow_up_ids.new_id)
        self.stores = stores
        self.now = BASE
        for compared in stores:
            compared.wipe()
            compared.store.clock = lambda: self.now
        self.made = self.operations = 0
        self.first: Any = None  # the answer of the first store
        self.ids: list[str] = []
        self.leases: list[tuple[str, Lease]] = []  # of which worker, newest last; what it was told of

    @initialize(given=batches)
    def begin(self, given: list[dict[str, Any]]) -> None:
        self.enqueue(given, lost=False)

    @rule(step=taken_from(STEPS), promoted=st.booleans())
    def then(self, step: tuple[str, dict[str, Any]], promoted: bool) -> None:
        """A step; then, maybe, whatever it has freed is let go: a missing nudge shows only before the next one."""
        name, arguments = step
        getattr(self, name)(**arguments)
        if promoted:
            self.promote_all()

    # Said to all

    def run_on_all(
        self, model: Callable[[], Any], flow: Callable[..., Any], *args: Any, shape: Callable[[Any], Any], **kw: Any
    ) -> Any:
        """Run a flow on every store: each must answer as the model does."""
        answers = {}
        for compared in self.stores:
            self.follow_up_ids.rewind()
            run = partial(compared.store.run, flow, *args, **kw)
            answers[compared.name] = _answer(partial(_shaped, run, shape))
        self.first = next(iter(answers.values()))
        self.follow_up_ids.rewind()
        wanted = _answer(model)
        self.follow_up_ids.advance()
        for name, got in answers.items():
            assert got == wanted, f"{name}: {flow.__name__} answered {got}, not {wanted}"
        self.compare_states()
        return wanted

    def compare_states(self) -> None:
        wanted = expected(self.model)
        for compared in self.stores:
            state = compared.dump()
            for table, rows in wanted.items():
                assert state[table] == rows, f"{compared.name}: {table} differ: {_differences(state[table], rows)}"
            check_invariants(compared, state)

    # Picking

    def id_of(self, picked: int, *states: str) -> str:
        """A job in one of these states, the newest first; for a 9 any job, or one that never was."""
        fit = [id for id, row in self.model.jobs.items() if row.state in states] or list(self.model.jobs)
        if picked == 9:
            fit = [_id(999), *self.ids]
        return fit[-1 - picked % len(fit)] if fit else _id(999)

    def draft(self, options: dict[str, Any], fellows: tuple[str, ...] = (), new: bool = True) -> Draft[Any]:
        """A draft from its options: picks become ids. Not `new`: it may be one that was enqueued before."""
        options = dict(options)
        reused, after = options.pop("known_id"), options.pop("depends_on")
        fresh = new or reused is None or not self.model.jobs
        if fresh:
            self.made += 1
            self.ids.append(_id(self.made))
        id = self.ids[-1] if fresh else list(self.model.jobs)[-1 - reused % len(self.model.jobs)]
        named = [other for other in (self.blocker_of(n, fellows) for n in after) if other not in (id, None)]
        window, start_in = options.pop("unique_for"), options.pop("start_by")
        return Draft(
            id,
            payload_json='{"a": 1}',
            depends_on=tuple(named),
            fresh=fresh,
            unique_for=window if options["unique"] else None,
            start_by=None if start_in is None else self.now + start_in,
            **options,
        )

    def blocker_of(self, picked: int, fellows: tuple[str, ...]) -> str | None:
        """Whom to wait for: a live job (even numbers, drafts of the same batch included) or one that is over (odd)."""
        jobs = [*self.model.jobs, *fellows]
        over = [id for id in jobs if id in self.model.jobs and self.model.jobs[id].state in OVER]
        fit = (over if picked % 2 else [id for id in jobs if id not in over]) or jobs
        if not fit:
            return None
        return fit[-1 - picked // 2 % len(fit)] if picked < 9 else _id(999)

    def outcome(self, given: Outcome | tuple[str | None, dict[str, Any]]) -> Outcome:
        if not isinstance(given, tuple):
            return given
        return Succeeded(given[0], self.draft(given[1]))

    # Producers

    def enqueue(self, given: list[dict[str, Any]], lost: bool) -> None:
        drafts: list[Draft[Any]] = []
        for options in given:
            drafts.append(self.draft(options, tuple(d.id for d in drafts), new=False))
        for again in (False, True)[: 1 + lost]:
            self.run_on_all(
                partial(self.model.enqueue, drafts, self.now, again),
                enqueue.enqueue_again if again else enqueue.enqueue, drafts,
                shape=lambda jobs: [_job(job) for job in jobs],
            )  # fmt: skip

    # Upkeep

    def promote(self) -> bool:
        """Whether it did anything."""
        promoted, cancelled, _ = self.run_on_all(
            lambda: self.model.promote(self.now),
            promote.promote, shape=lambda p: (sorted(p.promoted), sorted(p.cancelled), p.next_due),
        )  # fmt: skip
        return bool(promoted or cancelled)

    def promote_all(self) -> None:
        while self.promote():
            pass
        for compared in self.stores:
            compared.check_nothing_is_stuck(self.now)

    def pass_time(self, seconds: float, grace: float | None) -> None:
        """Time passes; then, unless upkeep is away, leases that ran out are reaped."""
        self.now += seconds
        if grace is not None:
            self.run_on_all(
                lambda: self.model.beat(grace, self.now),
                maintenance.record_pulse,
                grace=grace,
                shape=lambda left: left,
            )
        self.run_on_all(
            lambda: self.model.reap(self.now),
            lease.reap, lambda: HALF, shape=lambda changes: sorted((c.id, c.state) for c in changes),
        )  # fmt: skip

    # Workers

    def claim(
        self,
        if_none: list[dict[str, Any]],
        worker: str,
        queues: list[str],
        wants: tuple[int, ...],
        tasks: list[str],
        alone: bool,
        slots: int | None,
        rescue: bool,
        received: str,
    ) -> None:
        """The next renewal finds requests whose notification was lost."""
        queued = [row for row in self.model.jobs.values() if row.state == "queued"]
        if not queued:
            self.enqueue(if_none, lost=False)
        alone = alone and any(row.losses > 1 for row in queued)
        self.made += 1
        token = str(uuid.UUID(int=self.made << 48))  # the last 48 bits are another for each try
        scopes = [Scope(name, want) for name, want in zip(queues, wants, strict=False)]
        options: dict[str, Any] = {
            "want": wants[2],
            "lease": 30.0,
            "slots": slots,
            "rescue": rescue,
            "alone": alone,
        }

        def by_model(token: str = token) -> tuple[Any, ...]:
            chosen = {job["id"] for job in self.first[0]}
            jobs, *waiting = self.model.claim(worker, token, scopes, tasks, self.now, **options, chosen=chosen)
            return [{name: job[name] for name in CLAIMED} for job in jobs], *waiting

        def by_store(claim: claim_scope.Claim) -> tuple[Any, ...]:
            marks = claim.flags or claim_scope.QueueFlags()
            jobs = [{name: getattr(job, name) for name in CLAIMED} for job in claim.jobs]
            return jobs, marks.suspects, marks.quarantined

        how = options | {"random": lambda: HALF}
        jobs, *_ = self.run_on_all(by_model, claim_flows.claim, worker, token, scopes, tasks, **how, shape=by_store)
        if received == "when repeated":
            first = (jobs, False, False)
            second = token_of_try(token, LAST)
            known = (lambda: first) if jobs else partial(by_model, second)
            with patch.object(SYSTEM, "new_token", lambda: LAST):
                found, *_ = self.run_on_all(
                    known, claim_flows.claim_again, worker, token, scopes, tasks, **how, shape=by_store
                )
            jobs, token = (jobs, token) if jobs else (found, second)
        if received != "never":
            self.leases += [(worker, Lease(job["id"], token)) for job in jobs]

    def renew(self, worker: str, forgets: set[int]) -> None:
        """A worker renews what it knows of, and learns what it forgot, or was never told of."""
        mine = [held for whose, held in self.leases if whose == worker]
        shown = [held for n, held in enumerate(mine[::-1]) if n not in forgets]
        answer = self.run_on_all(
            lambda: self.model.renew(worker, shown, 30.0, self.now),
            lease.renew, worker, shown, lease=30.0,
            shape=lambda r: (r.renewed, r.lost, sorted(r.unknown)),
        )  # fmt: skip
        self.leases += [(worker, held) for held in answer[2] if (worker, held) not in self.leases]

    def settle(self, given: dict[int, Any], stale: bool, times: int) -> None:
        """Leases that are still good, or whichever, the newest first; twice if the first answer is lost."""
        held = [held for _, held in self.leases if stale or self.model.owns(held)][::-1]
        if not held:
            return
        batch = [(held[n], self.outcome(outcome)) for n, outcome in given.items() if n < len(held)]
        for _ in range(times):
            self.run_on_all(
                lambda: self.model.settle(batch, self.now),
                settle_flows.settle, batch, lambda: HALF, shape=lambda all: [(one.id, one.state) for one in all],
            )  # fmt: skip

    # People

    def once(
        self, lost: bool, model: Callable[[], Any], flow: Callable[..., Any], *args: Any,
        shape: Callable[[Any], Any], **kw: Any,
    ) -> None:  # fmt: skip
        """An operation, carried out again under its id if the answer is lost: that changes nothing more."""
        self.operations += 1
        operation = Operation(_id(10_000 + self.operations), flow.__name__, "")
        first = self.run_on_all(model, operations.once, operation, flow, *args, shape=shape, **kw)
        if lost and isinstance(first, tuple):  # it was refused, so nothing was stored
            self.run_on_all(model, operations.once, operation, flow, *args, shape=shape, **kw)
        elif lost:
            self.run_on_all(lambda: first, operations.once, operation, flow, *args, shape=shape, **kw)

    def steer(self, verb: str, id: str, lost: bool, *args: Any, shape: Callable[[Any], Any] | None = None) -> None:
        said = getattr(self.model, verb)
        self.once(lost, lambda: said(id, *args, self.now), getattr(steer, verb), id, *args, shape=shape or _job)

    def control_job(self, verb: str, which: int, lost: bool) -> None:
        shape = bool if verb == "delete" else _job
        self.steer(verb, self.id_of(which, *(TRANSITIONS[verb].sources)), lost, shape=shape)

    def complete(self, which: int, result: str | None, successor: dict[str, Any] | None, lost: bool) -> None:
        id = self.id_of(which, *TRANSITIONS["complete"].sources)
        self.steer("complete", id, lost, result, None if successor is None else self.draft(successor))

    def control_chain(
        self, verb: str, which: int, successor: dict[str, Any] | None, dependents: bool, lost: bool
    ) -> None:
        """A verb on a whole chain, by the id of any of its jobs."""
        id = self.id_of(which)
        if verb == "delete":
            gone = lambda: self.model.delete_chain(id, dependents, self.now)  # noqa: E731
            self.once(lost, gone, chains.delete_chain, id, dependents=dependents, shape=sorted)
            return
        args = ("1", None if successor is None else self.draft(successor)) if verb == "complete" else ()
        said = getattr(self.model, f"{verb}_chain")
        self.once(lost, lambda: said(id, *args, self.now), getattr(steer, verb), id, *args, chain=True, shape=_job)

    def set_queue(self, queue: str, limit: Any, paused: bool | None) -> None:
        paused = None if queue == "*" else paused  # all queues can be limited together, not paused
        self.run_on_all(
            lambda: self.model.set_queue(queue, paused, None if limit is UNSET else limit, limit is UNSET),
            steer.set_queue, queue, paused=paused, max_running=limit, shape=lambda none: none,
        )  # fmt: skip

    def set_group_limit(self, queue: str, group: str, limit: int | None) -> None:
        self.run_on_all(
            lambda: self.model.set_group_limit(queue, group, limit),
            steer.set_queue, queue, group_limit=(group, limit), shape=lambda none: none,
        )  # fmt: skip
        self.run_on_all(lambda: None, steer.backfill_group, queue, shape=lambda more: None)

    def look(self, which: int) -> None:
        """The answers to an operator's questions about a job are the same on every store."""
        id = self.id_of(which)
        asked = []
        for compared in self.stores:
            run = compared.store.run
            flows = (look.explain, look.attempts, look.chain, look.dependencies)
            asked.append([_answer(partial(run, flow, id)) for flow in flows] + [run(look.queues)])
        for compared, answer in zip(self.stores[1:], asked[1:], strict=True):
            assert answer == asked[0], compared.name


class GroupedHistory(History):
    """Limits by group, and follow-ups of jobs that fail: rare among all the other verbs."""

    @initialize(given=grouped_batches, limit=st.sampled_from([1, 2]))
    def begin(self, given: list[dict[str, Any]], limit: int) -> None:
        self.set_group_limit("a", "*", limit)
        self.enqueue(given, lost=False)

    @rule(step=taken_from(GROUPED_STEPS), promoted=st.booleans())
    def then(self, step: tuple[str, dict[str, Any]], promoted: bool) -> None:
        super().then(step, promoted)


CLAIMED = [
    *("id", "token", "version", "task", "queue", "priority", "target", "attempt", "losses", "chain", "position"),
    *("created_at", "run_at", "expires_at"),
]


def _id(number: int) -> str:
    return f"019b76da-a800-7000-8000-{number:012x}"


def _shaped(call: Callable[[], Any], shape: Callable[[Any], Any]) -> Any:
    return shape(call())


def _answer(call: Callable[[], Any]) -> Any:
    """The result of a call, or its exception where that is an answer too."""
    try:
        return call()
    except KeyTaken as error:
        return KeyTaken, error.key, error.holder
    except JobNotFound as error:
        return JobNotFound, sorted(error.ids)
    except HasDependents as error:
        return HasDependents, error.chain, sorted(error.ids)
    except (InvalidTransition, InvalidInput) as error:
        return type(error)
    except (ReletError, LookupError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def _job(job: Job[Any]) -> dict[str, Any]:
    view = {name: getattr(job, name) for name in Job.__struct_fields__ if name != "payload_json"}
    view["result"] = view.pop("result_json")
    return {name: _plain(value) for name, value in view.items()} | {"error": job.error is not None}


def _differences(found: Any, wanted: Any) -> list[Any]:
    """The rows that are not the same, each with the columns that differ."""
    if isinstance(found, list):
        return [row for row in found + wanted if row not in found or row not in wanted]
    pairs = {id: (found.get(id, {}), wanted.get(id, {})) for id in found | wanted}
    return [
        (id, {name: (one.get(name), other.get(name)) for name in one | other if one.get(name) != other.get(name)})
        for id, (one, other) in pairs.items()
        if one != other
    ]


def _plain(value: Any) -> Any:
    return value.timestamp() if hasattr(value, "timestamp") else value


@pytest.fixture(scope="module")
def stores(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ComparedStore]]:
    folder: Path = tmp_path_factory.mktemp("model")
    names = servers.names() if THOROUGH else servers.names()[:1]
    with compared_stores_of(pytestconfig, folder, names) as found:
        # The statements for a file are those for memory.
        yield [one for one in found if one.name != "sqlite" or THOROUGH or pytestconfig.getoption("--all")]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("history", [History, GroupedHistory])
def test_every_store_behaves_as_the_model_does(
    history: type[History], stores: list[ComparedStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = FollowUpIds()
    monkeypatch.setattr(follow_ups, "SYSTEM", ids)
    make = cast(type[History], partial(history, stores, ids))  # anything that returns one will do
    run_state_machine_as_test(make, settings=SETTINGS)
