"""Every state and every verb on every store, against the one table: `core.machine.TRANSITIONS`.

What the table allows leads where it says; what it does not allow is refused, and changes not a single column.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from relet._core.job import Draft, Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from relet._core.machine import TRANSITIONS
from relet._store.flows import control, enqueue, lease, operations, replace
from relet._store.flows.operations import Operation
from relet.errors import InvalidTransition
from tests.harness import StoreHarness
from tests.store.compared_stores import ComparedStore
from tests.store.job_states import job_in, leases

LATER = 1000.0  # seconds: longer than any lease, delay or pause between attempts here

SITUATIONS = ["pending-time", "pending-jobs", "pending-target", *(s.value for s in State if s is not State.PENDING)]
SITUATIONS += ["paused-target"]
OUTCOMES: dict[str, Outcome] = {
    "succeed": Succeeded('"done"'),
    "retry": Raised("boom"),
    "snooze": Snoozed(5.0),
    "fail": Raised("boom", fatal=True),
    "release": Released(),
}
STEERED = ["cancel", "pause", "resume", "run_now", "complete"]


def perform(harness: StoreHarness, verb: str, id: str, held: Lease) -> bool:
    """Say a verb to a job. False: it was refused, whichever way this verb is refused."""
    if verb in OUTCOMES:
        return harness.settle((held, OUTCOMES[verb])) != [None]
    if verb in STEERED:
        try:
            harness.run(getattr(control, verb), id, *([None] if verb == "complete" else []))
        except InvalidTransition as error:
            return (error.job_id, error.verb) != (id, verb)
        return True
    match verb:
        case "enqueue":
            (job,) = harness.run(enqueue.enqueue, [Draft(id, "other", "[]", fresh=False)])
            return not job.existing
        case "promote":
            return id in harness.promote().promoted
        case "expire":
            return id in harness.later(LATER).promote().cancelled
        case "claim":
            return id in leases(harness.claim())
        case "renew":
            return held in harness.run(lease.renew, "w", [held], lease=30.0).renewed
        case "reap":
            return id in [change.id for change in harness.later(LATER).reap()]
        case "replace":
            return id in harness.run(replace.replace, {id: Draft(id, "t", '{"new":1}', replace=True)})
        case "delete":
            return harness.run(control.delete, id)
    raise AssertionError(verb)


def _cases() -> list[Any]:
    cases = [(s, v, t) for s in SITUATIONS for v in TRANSITIONS for t in (None, "x") if t or not s.endswith("-target")]
    return [pytest.param(*case, id=f"{case[0]}-{case[1]}{'-target' if case[2] else ''}") for case in cases]


@pytest.mark.parametrize(("situation", "verb", "target"), _cases())
def test_the_store_follows_the_table(
    shared_store: ComparedStore, shared_harness: StoreHarness, situation: str, verb: str, target: str | None
) -> None:
    start_by = shared_harness.now + LATER if verb == "expire" else None
    id, held = job_in(shared_harness, situation, target, start_by=start_by)
    state = shared_harness.state(id)
    assert state is not None
    allowed = state in TRANSITIONS[verb].sources
    if verb == "run_now":
        allowed = situation == "pending-time"  # only a time can be brought forward
    if verb == "promote" and allowed:
        return  # needs what it waits for to happen first: see below
    before = shared_store.everything()
    done = perform(shared_harness, verb, id, held)
    assert done == allowed
    if verb == "delete":
        assert shared_harness.get(id) is None
    elif allowed:
        assert shared_harness.state(id) in TRANSITIONS[verb].targets
    else:
        after = shared_store.everything()
        if verb in ("promote", "expire"):  # it takes nudges away, whether or not they lead to anything
            before["nudges"] = after["nudges"] = []
        assert after == before


@pytest.mark.parametrize(
    ("what", "target"), [("time", None), ("time", "x"), ("jobs", None), ("jobs", "x"), ("target", "x")]
)
def test_a_pending_job_is_promoted_once_its_wait_is_over(
    shared_harness: StoreHarness, what: str, target: str | None
) -> None:
    id, _ = job_in(shared_harness, f"pending-{what}", target)
    assert shared_harness.promote().promoted == []
    if what != "time":
        (other,) = shared_harness.claim(queues=("elsewhere",))
        shared_harness.succeed(other)
    if what == "time":
        shared_harness.later(LATER)
    assert shared_harness.promote().promoted == [id]
    assert shared_harness.state(id) is State.QUEUED


@pytest.mark.parametrize("verb", ["retry", "snooze", "fail", "release"])
def test_a_settle_said_twice_is_recognised_and_changes_nothing(
    shared_store: ComparedStore, shared_harness: StoreHarness, verb: str
) -> None:
    id, held = job_in(shared_harness, "running", "x")
    first = shared_harness.settle((held, OUTCOMES[verb]))
    before = shared_store.everything()
    assert shared_harness.later(LATER).settle((held, OUTCOMES[verb])) == first
    assert shared_store.everything() == before
    assert first == [shared_harness.state(id)]


def _settled(outcome: Outcome, harness: StoreHarness, id: str, held: Lease) -> Any:
    return harness.settle((held, outcome))


EXITS: dict[str, Callable[[StoreHarness, str, Lease], Any]] = {
    **{verb: partial(_settled, outcome) for verb, outcome in OUTCOMES.items() if verb != "succeed"},
    "release to pause": lambda w, id, held: w.settle((held, Released(pause=True))),
    "last attempt": lambda w, id, held: w.settle((held, Raised("boom"))),
    "reap": lambda w, id, held: w.later(LATER).reap(),
    "reap, on_expired=fail": lambda w, id, held: w.later(LATER).reap(),
}


@pytest.mark.parametrize("exit", EXITS)
@pytest.mark.parametrize(("request_", "end"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_every_exit_from_running_honours_a_request(
    shared_harness: StoreHarness, request_: str, end: State, exit: str
) -> None:
    policy = {"max_attempts": 1} if exit == "last attempt" else {"on_expired": "fail"} if "fail" in exit else {}
    id, held = job_in(shared_harness, "running", "x", policy=policy)
    behind = shared_harness.add(target="x")
    asked = shared_harness.run(getattr(control, request_), id)
    assert (asked.state, asked.request) == (State.RUNNING, request_)
    assert shared_harness.run(lease.renew, "w", [held], lease=30.0).renewed == {held: request_}
    EXITS[exit](shared_harness, id, held)
    job = shared_harness.get(id)
    assert job is not None
    assert (job.state, job.request) == (end, None)
    # A cancelled job lets its target go, a paused one holds it.
    assert shared_harness.later(LATER).promote().promoted == ([behind] if end is State.CANCELLED else [])
    if end is State.PAUSED:
        shared_harness.run(control.resume, id)
        assert shared_harness.promote().promoted == [id]


@pytest.mark.parametrize("request_", ["cancel", "pause"])
def test_success_wins_over_a_request(shared_harness: StoreHarness, request_: str) -> None:
    id, held = job_in(shared_harness, "running", None)
    shared_harness.run(getattr(control, request_), id)
    assert shared_harness.settle((held, Succeeded('"done"'))) == [State.SUCCEEDED]
    assert shared_harness.state(id) is State.SUCCEEDED


@pytest.mark.parametrize("order", [("cancel", "pause"), ("pause", "cancel")])
def test_a_cancel_asked_for_is_not_undone_by_a_pause(shared_harness: StoreHarness, order: tuple[str, str]) -> None:
    id, held = job_in(shared_harness, "running", None)
    for verb in order:
        job = shared_harness.run(getattr(control, verb), id)
    assert job.request == "cancel"
    assert shared_harness.settle((held, Snoozed(1.0))) == [State.CANCELLED]


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "complete"])
def test_a_verb_whose_answer_was_lost_can_be_said_again(
    shared_store: ComparedStore, shared_harness: StoreHarness, verb: str
) -> None:
    id, _ = job_in(shared_harness, "paused" if verb == "resume" else "queued", "x")
    args = [None] if verb == "complete" else []
    operation = Operation(str(uuid.UUID(int=71)), verb, id)
    first = shared_harness.run(operations.once, operation, getattr(control, verb), id, *args)
    before = shared_store.everything()
    assert shared_harness.run(operations.once, operation, getattr(control, verb), id, *args) == first
    assert shared_store.everything() == before


def test_an_owner_learns_that_its_job_was_completed_by_another_client(shared_harness: StoreHarness) -> None:
    id, held = job_in(shared_harness, "running", None)
    shared_harness.run(control.complete, id, '"from outside"')
    assert shared_harness.settle((held, Succeeded('"mine"'))) == [None]
    job = shared_harness.get(id)
    assert job is not None
    assert job.result_json == '"from outside"'


def test_an_owner_whose_cancelled_job_was_reaped_learns_that_its_lease_is_lost(shared_harness: StoreHarness) -> None:
    id, held = job_in(shared_harness, "running", None)
    shared_harness.run(control.cancel, id)
    shared_harness.later(LATER).reap()
    assert shared_harness.state(id) is State.CANCELLED
    assert shared_harness.settle((held, Succeeded())) == [None]
