"""Where two of a kind meet: a zombie beside its successor, one key wanted twice, a claim said again."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from relet._core.job import Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from relet._store.flows import claim as claim_flows
from relet._store.flows import control, enqueue, inspect, lease
from relet._store.flows.claim_scope import Claim, Scope
from tests.store.world import LATER, World, half

pytestmark = pytest.mark.every_store

ENDS: dict[str, Outcome] = {
    "succeed": Succeeded('"done"'),
    "retry": Raised("boom"),
    "snooze": Snoozed(5.0),
    "release": Released(),
}


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
    late = ENDS[zombie_says] if zombie_says != "succeed" else Succeeded('"late"', continue_with=world.draft())
    batch = [(zombie, late), (owner, ENDS[owner_says])]
    states = world.settle(*(batch if zombie_first else batch[::-1]), now=LATER)
    end = State.SUCCEEDED if owner_says == "succeed" else State.PENDING
    assert states == ([None, end] if zombie_first else [end, None])
    job = world.get(owner.id)
    assert job is not None
    assert (job.state, job.result_json) == (end, '"done"' if owner_says == "succeed" else None)
    assert len(world.run(inspect.chain, owner.id)) == 1
    assert [one.outcome for one in world.run(inspect.attempts, owner.id)] == [
        "lost",
        "snoozed" if end is State.PENDING else end,
    ]


@pytest.mark.parametrize("zombie_first", [True, False])
def test_a_zombie_shown_beside_the_new_attempt_is_lost_and_the_other_renewed(
    twice: tuple[World, Lease, Lease], zombie_first: bool
) -> None:
    world, zombie, owner = twice
    shown = [zombie, owner] if zombie_first else [owner, zombie]
    with world.at(LATER + 20):
        answer = world.run(lease.renew, "w", shown, lease=30.0)
    job = world.get(owner.id)
    assert job is not None
    assert job.expires_at is not None
    assert job.expires_at.timestamp() == LATER + 50
    assert (list(answer.renewed), answer.lost, answer.unknown) == ([owner], [zombie], [])


def test_a_new_attempt_that_the_worker_was_never_told_of_is_found_beside_its_zombie(
    twice: tuple[World, Lease, Lease],
) -> None:
    world, zombie, unheard = twice
    with world.at(LATER):
        answer = world.run(lease.renew, "w", [zombie], lease=30.0)
    assert (answer.lost, answer.unknown) == ([zombie], [unheard])


def test_a_success_that_came_too_late_takes_no_key_for_its_successor(twice: tuple[World, Lease, Lease]) -> None:
    world, zombie, _ = twice
    late = Succeeded(continue_with=world.draft(unique="k"))
    assert world.settle((zombie, late), now=LATER) == [None]
    with world.at(LATER):
        (job,) = world.run(enqueue.enqueue, [world.draft(unique="k")])
    assert not job.existing


def test_a_success_repeated_after_its_successor_is_over_takes_no_key(world: World) -> None:
    _, held = world.job_in("running", None)
    outcome = Succeeded(continue_with=world.draft(unique="k"))
    assert world.settle((held, outcome)) == [State.SUCCEEDED]
    world.run(control.cancel, outcome.continue_with.id)  # type: ignore[union-attr]
    assert world.settle((held, outcome)) == [State.SUCCEEDED]
    (job,) = world.run(enqueue.enqueue, [world.draft(unique="k")])
    assert not job.existing


def test_a_limit_for_all_queues_leaves_room_in_a_queue_that_is_running_already(world: World) -> None:
    world.run(control.set_queue, "*", max_running=10)
    for number in range(4):
        world.add(priority=number)
    first = world.run(
        claim_flows.claim, "w", str(uuid.UUID(int=7)), [Scope("default", 2)], ["t"], want=2, lease=30.0, random=half
    )
    more = world.run(
        claim_flows.claim, "w", str(uuid.UUID(int=8)), [Scope("default", 2)], ["t"], want=2, lease=30.0, random=half
    )
    assert [len(first.jobs), len(more.jobs)] == [2, 2]


def test_a_draft_after_one_whose_key_was_taken_waits_for_the_holder_of_the_key(world: World) -> None:
    holder = world.add(unique="k")
    second = world.draft(unique="k")
    third = world.draft(depends_on=(second.id,))
    jobs = world.run(enqueue.enqueue, [second, third])
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
        with world.at(LATER):
            claim = world.run(claim_flows.claim, "w", token, scopes, tasks, want=1, slots=0, lease=30.0, random=half)
        return claim.flags.suspects

    assert suspects(["t"])
    assert not suspects(["another task"])
    world.run(control.set_queue, "default", paused=True)
    assert not suspects(["t"])


def claim_again(world: World, *, again: bool, **how: Any) -> Claim:
    scopes, token = [Scope("default", 9)], str(uuid.UUID(int=70))
    flow = claim_flows.claim_again if again else claim_flows.claim
    return world.run(flow, "w", token, scopes, ["t"], lease=30.0, random=half, **{"want": 9} | how)


def test_a_claim_said_again_answers_in_the_order_of_the_first(world: World) -> None:
    for priority in (0, 5, -5, 5):
        world.add(priority=priority)
    first = claim_again(world, again=False)
    assert claim_again(world, again=True).jobs == first.jobs
    assert [job.priority for job in first.jobs] == [5, 5, 0, -5]


def test_a_claim_of_one_job_to_run_alone_said_again_takes_no_second(world: World) -> None:
    world.add()
    world.add()
    for _ in range(2):
        assert len(world.claim()) == 2
        assert len(world.reap()) == 2
    world.promote(LATER + 60)
    with world.at(LATER):
        first = claim_again(world, again=False, alone=True)
        assert len(first.jobs) == 1
        assert claim_again(world, again=True, alone=True).jobs == first.jobs


def test_a_successor_inherits_its_jobs_key_although_another_of_the_batch_wants_it(world: World) -> None:
    stranger, holder = world.add(), world.add(unique="k")
    held = world.claim()
    batch = [(held[id], Succeeded(continue_with=world.draft(unique="k"))) for id in (stranger, holder)]
    assert world.settle(*batch) == [State.PENDING, State.SUCCEEDED]


def test_jobs_that_come_to_the_head_of_their_lines_together_are_queued_in_order_of_enqueue(world: World) -> None:
    targets = ["c", "a", "d", "b"]
    ids = [world.add(target=target) for target in targets]
    assert sorted(world.promote()) == sorted(ids)
    assert list(world.claim()) == ids
