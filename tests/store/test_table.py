"""Every state and every verb on every store, against the one table: `core.machine.TRANSITIONS`.

What the table allows leads where it says; what it does not allow is refused, and changes not a single column.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from relet._core.job import Draft, Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from relet._core.machine import TRANSITIONS
from relet._store.flows import control, enqueue, lease, operations, replace
from relet._store.flows.operations import Operation
from relet.errors import InvalidTransition
from tests.store.world import LATER, NOW, World

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


def perform(world: World, verb: str, id: str, held: Lease) -> bool:
    """Say a verb to a job. False: it was refused, whichever way this verb is refused."""
    if verb in OUTCOMES:
        return world.settle((held, OUTCOMES[verb])) != [None]
    if verb in STEERED:
        try:
            world.run(getattr(control, verb), id, *([None] if verb == "complete" else []))
        except InvalidTransition as error:
            return (error.job_id, error.verb) != (id, verb)
        return True
    match verb:
        case "enqueue":
            (job,) = world.run(enqueue.enqueue, [Draft(id, "other", "[]", fresh=False)])
            return not job.existing
        case "promote":
            return id in world.promote()
        case "expire":
            return id in world.expire()
        case "claim":
            return id in world.claim()
        case "renew":
            return held in world.run(lease.renew, "w", [held], lease=30.0).renewed
        case "reap":
            return id in world.reap()
        case "replace":
            return id in world.run(replace.replace, {id: Draft(id, "t", '{"new":1}', replace=True)})
        case "delete":
            return world.run(control.delete, id)
    raise AssertionError(verb)


def _cases() -> list[Any]:
    cases = [(s, v, t) for s in SITUATIONS for v in TRANSITIONS for t in (None, "x") if t or not s.endswith("-target")]
    return [pytest.param(*case, id=f"{case[0]}-{case[1]}{'-target' if case[2] else ''}") for case in cases]


@pytest.mark.parametrize(("situation", "verb", "target"), _cases())
def test_the_store_does_what_the_table_says(world: World, situation: str, verb: str, target: str | None) -> None:
    if verb == "expire":
        world.start_by = LATER
    id, held = world.job_in(situation, target)
    state = world.state(id)
    assert state is not None
    allowed = state in TRANSITIONS[verb].sources
    if verb == "run_now":
        allowed = situation == "pending-time"  # only a time can be brought forward
    if verb == "promote" and allowed:
        return  # needs what it waits for to happen first: see below
    before = world.compared.everything()
    done = perform(world, verb, id, held)
    assert done == allowed
    if verb == "delete":
        assert world.get(id) is None
    elif allowed:
        assert world.state(id) in TRANSITIONS[verb].targets
    else:
        after = world.compared.everything()
        if verb in ("promote", "expire"):  # it takes nudges away, whether or not they lead to anything
            before["nudges"] = after["nudges"] = []
        assert after == before


@pytest.mark.parametrize(
    ("what", "target"), [("time", None), ("time", "x"), ("jobs", None), ("jobs", "x"), ("target", "x")]
)
def test_a_pending_job_is_promoted_once_what_it_waits_for_has_come(world: World, what: str, target: str | None) -> None:
    id, _ = world.job_in(f"pending-{what}", target)
    assert world.promote() == []
    if what != "time":
        (other,) = world.claim(queue="elsewhere").values()
        world.settle((other, Succeeded()))
    assert world.promote(LATER if what == "time" else NOW) == [id]
    assert world.state(id) is State.QUEUED


@pytest.mark.parametrize("verb", ["retry", "snooze", "fail", "release"])
def test_a_settle_said_twice_is_recognised_and_changes_nothing(world: World, verb: str) -> None:
    id, held = world.job_in("running", "x")
    first = world.settle((held, OUTCOMES[verb]))
    before = world.compared.everything()
    assert world.settle((held, OUTCOMES[verb]), now=LATER) == first
    assert world.compared.everything() == before
    assert first == [world.state(id)]


EXITS: dict[str, Callable[[World, str, Lease], Any]] = {
    **{verb: (lambda w, id, held, o=o: w.settle((held, o))) for verb, o in OUTCOMES.items() if verb != "succeed"},
    "release to pause": lambda w, id, held: w.settle((held, Released(pause=True))),
    "last attempt": lambda w, id, held: w.settle((held, Raised("boom"))),
    "reap": lambda w, id, held: w.reap(),
    "reap, on_expired=fail": lambda w, id, held: w.reap(),
}


@pytest.mark.parametrize("exit", EXITS)
@pytest.mark.parametrize(("request_", "end"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_every_exit_from_running_honours_a_request(world: World, request_: str, end: State, exit: str) -> None:
    policy = {"max_attempts": 1} if exit == "last attempt" else {"on_expired": "fail"} if "fail" in exit else {}
    id, held = world.job_in("running", "x", **policy)
    behind = world.add(target="x")
    asked = world.run(getattr(control, request_), id)
    assert (asked.state, asked.request) == (State.RUNNING, request_)
    assert world.run(lease.renew, "w", [held], lease=30.0).renewed == {held: request_}
    EXITS[exit](world, id, held)
    job = world.get(id)
    assert job is not None
    assert (job.state, job.request) == (end, None)
    # A cancelled job lets its target go, a paused one holds it.
    assert world.promote(LATER) == ([behind] if end is State.CANCELLED else [])
    if end is State.PAUSED:
        with world.at(LATER):
            world.run(control.resume, id)
        assert world.promote(LATER) == [id]


@pytest.mark.parametrize("request_", ["cancel", "pause"])
def test_success_wins_over_a_request(world: World, request_: str) -> None:
    id, held = world.job_in("running", None)
    world.run(getattr(control, request_), id)
    assert world.settle((held, Succeeded('"done"'))) == [State.SUCCEEDED]
    assert world.state(id) is State.SUCCEEDED


@pytest.mark.parametrize("order", [("cancel", "pause"), ("pause", "cancel")])
def test_a_cancel_asked_for_is_not_undone_by_a_pause(world: World, order: tuple[str, str]) -> None:
    id, held = world.job_in("running", None)
    for verb in order:
        job = world.run(getattr(control, verb), id)
    assert job.request == "cancel"
    assert world.settle((held, Snoozed(1.0))) == [State.CANCELLED]


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "complete"])
def test_a_verb_whose_answer_was_lost_can_be_said_again(world: World, verb: str) -> None:
    id, _ = world.job_in("paused" if verb == "resume" else "queued", "x")
    args = [None] if verb == "complete" else []
    operation = Operation(str(uuid.UUID(int=71)), verb, id)
    first = world.run(operations.once, operation, getattr(control, verb), id, *args)
    before = world.compared.everything()
    assert world.run(operations.once, operation, getattr(control, verb), id, *args) == first
    assert world.compared.everything() == before


def test_an_owner_learns_that_its_job_was_completed_by_somebody_else(world: World) -> None:
    id, held = world.job_in("running", None)
    world.run(control.complete, id, '"from outside"')
    assert world.settle((held, Succeeded('"mine"'))) == [None]
    job = world.get(id)
    assert job is not None
    assert job.result_json == '"from outside"'


def test_an_owner_whose_cancelled_job_was_reaped_learns_that_its_lease_is_lost(world: World) -> None:
    id, held = world.job_in("running", None)
    world.run(control.cancel, id)
    world.reap()
    assert world.state(id) is State.CANCELLED
    assert world.settle((held, Succeeded())) == [None]
