"""Every state and every verb on every store, against the one table: `core.machine.TRANSITIONS`.

What the table allows leads where it says; what it does not allow is refused, and changes not a single column.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from leasehold.core.errors import InvalidTransition
from leasehold.core.job import Draft, Job, Lease, Outcome, Policy, Raised, Released, Snoozed, State, Succeeded
from leasehold.core.machine import TRANSITIONS
from leasehold.store.flows import enqueue, lease, look, promote, steer, upkeep
from leasehold.store.flows.lease import Scope
from tests.conftest import PG_KINDS, SQLITE_KINDS
from tests.store.subjects import Subject, subjects_of

NOW = 1_767_225_600.0  # the moment in the ids below
LATER = NOW + 1000.0
SITUATIONS = ["pending-time", "pending-jobs", "pending-target", *(s.value for s in State if s is not State.PENDING)]
OUTCOMES: dict[str, Outcome] = {
    "succeed": Succeeded('"done"'),
    "retry": Raised("boom"),
    "snooze": Snoozed(5.0),
    "fail": Raised("boom", fatal=True),
    "release": Released(),
}
STEERED = ["cancel", "pause", "resume", "run_now", "complete"]


@pytest.fixture(scope="module", params=[*SQLITE_KINDS, *PG_KINDS])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    names = [] if request.param in SQLITE_KINDS else [request.param]
    with subjects_of(request.config, tmp_path_factory.mktemp("table"), names) as found:
        yield next(subject for subject in found if subject.name == request.param)


@pytest.fixture
def world(shared: Subject) -> World:
    shared.wipe()
    return World(shared)


class World:
    """An empty store with a few hands to bring jobs into any state."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.run = subject.store.run
        self._numbers = count(1)

    def draft(self, **options: Any) -> Draft[Any]:
        return Draft(f"019b76da-a800-7000-8000-{next(self._numbers):012x}", "t", "{}", **options)

    def add(self, **options: Any) -> str:
        (job,) = self.run(enqueue.enqueue, [self.draft(**options)], now=NOW)
        return job.id

    def promote(self, now: float = NOW) -> list[str]:
        return self.run(promote.promote, now=now).promoted

    def claim(self, now: float = NOW, queue: str = "default") -> dict[str, Lease]:
        token, scopes = str(uuid.UUID(int=next(self._numbers))), [Scope(queue, 9)]
        found = self.run(lease.claim, "w", token, scopes, ["t"], want=9, lease=30.0, random=half, now=now)
        return {job.id: job.lease for job in found.jobs}

    def settle(self, *batch: tuple[Lease, Outcome], now: float = NOW) -> list[State | None]:
        return [one.state for one in self.run(lease.settle, list(batch), half, now=now)]

    def reap(self, now: float = LATER) -> list[str]:
        self.run(upkeep.beat, grace=0.0, now=now)
        return [change.id for change in self.run(lease.reap, half, now=now)]

    def get(self, id: str) -> Job[Any] | None:
        return self.run(look.get, id)

    def state(self, id: str) -> State | None:
        job = self.get(id)
        return job.state if job else None

    def job_in(self, situation: str, target: str | None, **policy: Any) -> tuple[str, Lease]:
        """A job that has really come into this state, and the lease to show for it: its own if it runs."""
        stranger = str(uuid.UUID(int=999))
        options: dict[str, Any] = {"target": target, "policy": Policy(**policy)}
        match situation:
            case "pending-time":
                id = self.add(delay=60.0, **options)
            case "pending-jobs":
                id = self.add(after=(self.add(queue="elsewhere"),), **options)
                self.promote()
            case "pending-target":
                self.add(target="x", queue="elsewhere")
                self.promote()
                id = self.add(target="x", policy=Policy(**policy))
            case _:
                id = self.add(**options)
                self.promote()
                if situation not in ("queued", "paused"):
                    held = self.claim()[id]
                    if situation == "running":
                        return id, held
                    self.settle((held, Raised("boom", fatal=True) if situation != "succeeded" else Succeeded()))
                if situation == "paused":
                    self.run(steer.pause, id, now=NOW)
                if situation == "cancelled":
                    self.run(steer.cancel, id, now=NOW)
        assert self.state(id) == situation.split("-")[0]
        return id, Lease(id, stranger)


def half() -> float:
    return 0.5


def perform(world: World, verb: str, id: str, held: Lease) -> bool:
    """Say a verb to a job. False: it was refused, whichever way this verb is refused."""
    if verb in OUTCOMES:
        return world.settle((held, OUTCOMES[verb])) != [None]
    if verb in STEERED:
        try:
            world.run(getattr(steer, verb), id, *([None] if verb == "complete" else []), now=NOW)
        except InvalidTransition as error:
            return (error.job_id, error.verb) != (id, verb)
        return True
    match verb:
        case "enqueue":
            (job,) = world.run(enqueue.enqueue, [Draft(id, "other", "[]", fresh=False)], now=NOW)
            return not job.existing
        case "promote":
            return id in world.promote()
        case "claim":
            return id in world.claim()
        case "renew":
            return held in world.run(lease.renew, "w", [held], lease=30.0, now=NOW).renewed
        case "reap":
            return id in world.reap()
        case "delete":
            return world.run(steer.delete, id, now=NOW)
    raise AssertionError(verb)


def _cases() -> list[Any]:
    cases = [(s, v, t) for s in SITUATIONS for v in TRANSITIONS for t in (None, "x") if t or s != "pending-target"]
    return [pytest.param(*case, id=f"{case[0]}-{case[1]}{'-target' if case[2] else ''}") for case in cases]


@pytest.mark.parametrize(("situation", "verb", "target"), _cases())
def test_the_store_does_what_the_table_says(world: World, situation: str, verb: str, target: str | None) -> None:
    id, held = world.job_in(situation, target)
    state = world.state(id)
    assert state is not None
    allowed = state in TRANSITIONS[verb].sources
    if verb == "run_now":
        allowed = situation == "pending-time"  # only a time can be brought forward
    if verb == "promote" and allowed:
        return  # needs what it waits for to happen first: see below
    before = world.subject.everything()
    done = perform(world, verb, id, held)
    assert done == allowed
    if verb == "delete":
        assert world.get(id) is None
    elif allowed:
        assert world.state(id) in TRANSITIONS[verb].targets
    else:
        after = world.subject.everything()
        if verb == "promote":  # it takes nudges away, whether or not they lead to anything
            before["nudges"] = after["nudges"] = []
        assert after == before


@pytest.mark.parametrize("target", [None, "x"])
@pytest.mark.parametrize("what", ["time", "jobs", "target"])
def test_a_pending_job_is_promoted_once_what_it_waits_for_has_come(world: World, what: str, target: str | None) -> None:
    if what == "target" and target is None:
        pytest.skip("without a target there is no line")
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
    before = world.subject.everything()
    assert world.settle((held, OUTCOMES[verb]), now=LATER) == first
    assert world.subject.everything() == before
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
    asked = world.run(getattr(steer, request_), id, now=NOW)
    assert (asked.state, asked.request) == (State.RUNNING, request_)
    assert world.run(lease.renew, "w", [held], lease=30.0, now=NOW).renewed == {held: request_}
    EXITS[exit](world, id, held)
    job = world.get(id)
    assert job is not None
    assert (job.state, job.request) == (end, None)
    # A cancelled job lets its target go, a paused one holds it.
    assert world.promote(LATER) == ([behind] if end is State.CANCELLED else [])
    if end is State.PAUSED:
        world.run(steer.resume, id, now=LATER)
        assert world.promote(LATER) == [id]


@pytest.mark.parametrize("request_", ["cancel", "pause"])
def test_success_wins_over_a_request(world: World, request_: str) -> None:
    id, held = world.job_in("running", None)
    world.run(getattr(steer, request_), id, now=NOW)
    assert world.settle((held, Succeeded('"done"'))) == [State.SUCCEEDED]
    assert world.state(id) is State.SUCCEEDED


@pytest.mark.parametrize("order", [("cancel", "pause"), ("pause", "cancel")])
def test_a_cancel_asked_for_is_not_undone_by_a_pause(world: World, order: tuple[str, str]) -> None:
    id, held = world.job_in("running", None)
    for verb in order:
        job = world.run(getattr(steer, verb), id, now=NOW)
    assert job.request == "cancel"
    assert world.settle((held, Snoozed(1.0))) == [State.CANCELLED]


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "complete"])
def test_a_verb_whose_answer_was_lost_can_be_said_again(world: World, verb: str) -> None:
    id, _ = world.job_in("paused" if verb == "resume" else "queued", "x")
    args = [None] if verb == "complete" else []
    first = world.run(getattr(steer, verb), id, *args, now=NOW)
    before = world.subject.everything()
    assert world.run(getattr(steer, verb), id, *args, now=NOW, again=True) == first
    assert world.subject.everything() == before


def test_an_owner_learns_that_its_job_was_completed_by_somebody_else(world: World) -> None:
    id, held = world.job_in("running", None)
    world.run(steer.complete, id, '"from outside"', now=NOW)
    assert world.settle((held, Succeeded('"mine"'))) == [None]
    job = world.get(id)
    assert job is not None
    assert job.result == '"from outside"'


def test_an_owner_whose_cancelled_job_was_reaped_learns_that_its_lease_is_lost(world: World) -> None:
    id, held = world.job_in("running", None)
    world.run(steer.cancel, id, now=NOW)
    world.reap()
    assert world.state(id) is State.CANCELLED
    assert world.settle((held, Succeeded())) == [None]


@pytest.fixture
def twice(world: World) -> tuple[World, Lease, Lease]:
    """A job whose worker lost it and claimed it anew: the zombie and the new attempt are in one process."""
    id, zombie = world.job_in("running", None)
    world.reap()
    return world, zombie, world.claim(LATER)[id]


@pytest.mark.parametrize("zombie_says", ["succeed", "retry", "release"])
@pytest.mark.parametrize("owner_says", ["succeed", "snooze"])
@pytest.mark.parametrize("zombie_first", [True, False])
def test_a_zombie_in_the_same_batch_settles_nothing(
    twice: tuple[World, Lease, Lease], zombie_says: str, owner_says: str, zombie_first: bool
) -> None:
    world, zombie, owner = twice
    late = OUTCOMES[zombie_says] if zombie_says != "succeed" else Succeeded('"late"', continue_with=world.draft())
    batch = [(zombie, late), (owner, OUTCOMES[owner_says])]
    states = world.settle(*(batch if zombie_first else batch[::-1]), now=LATER)
    end = State.SUCCEEDED if owner_says == "succeed" else State.PENDING
    assert states == ([None, end] if zombie_first else [end, None])
    job = world.get(owner.id)
    assert job is not None
    assert (job.state, job.result) == (end, '"done"' if owner_says == "succeed" else None)
    assert len(world.run(look.chain, owner.id)) == 1
    assert [one.outcome for one in world.run(look.attempts, owner.id)] == [
        "lost",
        "snoozed" if end is State.PENDING else end,
    ]


@pytest.mark.parametrize("zombie_first", [True, False])
def test_a_zombie_shown_beside_the_new_attempt_is_lost_and_the_other_renewed(
    twice: tuple[World, Lease, Lease], zombie_first: bool
) -> None:
    world, zombie, owner = twice
    shown = [zombie, owner] if zombie_first else [owner, zombie]
    answer = world.run(lease.renew, "w", shown, lease=30.0, now=LATER + 20)
    job = world.get(owner.id)
    assert job is not None
    assert job.expires_at is not None
    assert job.expires_at.timestamp() == LATER + 50
    assert (list(answer.renewed), answer.lost, answer.strangers) == ([owner], [zombie], [])


def test_a_new_attempt_that_the_worker_was_never_told_of_is_found_beside_its_zombie(
    twice: tuple[World, Lease, Lease],
) -> None:
    world, zombie, unheard = twice
    answer = world.run(lease.renew, "w", [zombie], lease=30.0, now=LATER)
    assert (answer.lost, answer.strangers) == ([zombie], [unheard])


def test_a_success_that_came_too_late_takes_no_key_for_its_successor(twice: tuple[World, Lease, Lease]) -> None:
    world, zombie, _ = twice
    late = Succeeded(continue_with=world.draft(unique="k"))
    assert world.settle((zombie, late), now=LATER) == [None]
    (job,) = world.run(enqueue.enqueue, [world.draft(unique="k")], now=LATER)
    assert not job.existing


def test_a_success_repeated_after_its_successor_is_over_takes_no_key(world: World) -> None:
    _, held = world.job_in("running", None)
    outcome = Succeeded(continue_with=world.draft(unique="k"))
    assert world.settle((held, outcome)) == [State.SUCCEEDED]
    world.run(steer.cancel, outcome.continue_with.id, now=NOW)  # type: ignore[union-attr]
    assert world.settle((held, outcome)) == [State.SUCCEEDED]
    (job,) = world.run(enqueue.enqueue, [world.draft(unique="k")], now=NOW)
    assert not job.existing


def test_a_limit_for_all_queues_leaves_room_in_a_queue_that_is_running_already(world: World) -> None:
    world.run(steer.set_queue, "*", max_running=10)
    for number in range(4):
        world.add(priority=number)
    first = world.run(
        lease.claim, "w", str(uuid.UUID(int=7)), [Scope("default", 2)], ["t"], want=2, lease=30.0, random=half, now=NOW
    )
    more = world.run(
        lease.claim, "w", str(uuid.UUID(int=8)), [Scope("default", 2)], ["t"], want=2, lease=30.0, random=half, now=NOW
    )
    assert [len(first.jobs), len(more.jobs)] == [2, 2]


def test_a_draft_after_one_whose_key_was_taken_waits_for_the_holder_of_the_key(world: World) -> None:
    holder = world.add(unique="k")
    second = world.draft(unique="k")
    third = world.draft(after=(second.id,))
    jobs = world.run(enqueue.enqueue, [second, third], now=NOW)
    assert [job.id for job in jobs] == [holder, third.id]
    assert world.promote() == []
    world.settle((world.claim()[holder], Succeeded('"done"')))
    assert world.promote() == [third.id]


def test_jobs_that_lost_a_worker_are_reported_only_to_those_who_may_claim_them(world: World) -> None:
    world.job_in("running", None)
    world.reap()
    scopes = [Scope("default", 1)]

    def suspects(tasks: list[str]) -> bool:
        token = str(uuid.UUID(int=77))
        return world.run(
            lease.claim, "w", token, scopes, tasks, want=1, suspects=0, lease=30.0, random=half, now=LATER
        ).suspects

    assert suspects(["t"])
    assert not suspects(["another task"])
    world.run(steer.set_queue, "default", paused=True)
    assert not suspects(["t"])
