"""Where two of a kind meet: a zombie beside its successor, one key wanted twice, a claim said again."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from relet._core.job import Claimed, Lease, Outcome, Raised, Released, Snoozed, State, Succeeded
from relet._store.flows import control, inspect
from tests.harness import StoreHarness, draft
from tests.store.job_states import job_in, leases

pytestmark = pytest.mark.every_store

LATER = 1000.0  # seconds: longer than any lease or pause between attempts here
ENDS: dict[str, Outcome] = {
    "succeed": Succeeded('"done"'),
    "retry": Raised("boom"),
    "snooze": Snoozed(5.0),
    "release": Released(),
}


@pytest.fixture
def twice(shared_harness: StoreHarness) -> tuple[StoreHarness, Lease, Lease]:
    """A job whose worker lost it and claimed it anew: the zombie and the new attempt are in one process."""
    id, zombie = job_in(shared_harness, "running")
    shared_harness.later(LATER).reap()
    return shared_harness, zombie, leases(shared_harness.claim())[id]


@pytest.mark.parametrize("zombie_says", ["succeed", "retry", "release"])
@pytest.mark.parametrize("owner_says", ["succeed", "snooze"])
@pytest.mark.parametrize("zombie_first", [True, False])
def test_a_zombie_in_the_same_batch_settles_nothing(
    twice: tuple[StoreHarness, Lease, Lease], zombie_says: str, owner_says: str, zombie_first: bool
) -> None:
    shared_harness, zombie, owner = twice
    late = ENDS[zombie_says] if zombie_says != "succeed" else Succeeded('"late"', continue_with=draft())
    batch = [(zombie, late), (owner, ENDS[owner_says])]
    states = shared_harness.settle(*(batch if zombie_first else batch[::-1]))
    end = State.SUCCEEDED if owner_says == "succeed" else State.PENDING
    assert states == ([None, end] if zombie_first else [end, None])
    job = shared_harness.get(owner.id)
    assert job is not None
    assert (job.state, job.result_json) == (end, '"done"' if owner_says == "succeed" else None)
    assert len(shared_harness.run(inspect.chain, owner.id)) == 1
    assert [one.outcome for one in shared_harness.run(inspect.attempts, owner.id)] == [
        "lost",
        "snoozed" if end is State.PENDING else end,
    ]


@pytest.mark.parametrize("zombie_first", [True, False])
def test_a_zombie_shown_beside_the_new_attempt_is_lost_and_the_other_renewed(
    twice: tuple[StoreHarness, Lease, Lease], zombie_first: bool
) -> None:
    shared_harness, zombie, owner = twice
    shown = [zombie, owner] if zombie_first else [owner, zombie]
    answer = shared_harness.later(20).renew(*shown)
    job = shared_harness.get(owner.id)
    assert job is not None
    assert job.expires_at is not None
    assert job.expires_at.timestamp() == shared_harness.now + 30
    assert (list(answer.renewed), answer.lost, answer.unknown) == ([owner], [zombie], [])


def test_a_new_attempt_that_the_worker_was_never_told_of_is_found_beside_its_zombie(
    twice: tuple[StoreHarness, Lease, Lease],
) -> None:
    shared_harness, zombie, unheard = twice
    answer = shared_harness.renew(zombie)
    assert (answer.lost, answer.unknown) == ([zombie], [unheard])


def test_a_success_that_came_too_late_takes_no_key_for_its_successor(twice: tuple[StoreHarness, Lease, Lease]) -> None:
    shared_harness, zombie, _ = twice
    late = Succeeded(continue_with=draft(unique="k"))
    assert shared_harness.settle((zombie, late)) == [None]
    (job,) = shared_harness.enqueue(draft(unique="k"))
    assert not job.existing


def test_a_success_repeated_after_its_successor_is_over_takes_no_key(shared_harness: StoreHarness) -> None:
    _, held = job_in(shared_harness, "running")
    outcome = Succeeded(continue_with=draft(unique="k"))
    assert shared_harness.settle((held, outcome)) == [State.SUCCEEDED]
    shared_harness.run(control.cancel, outcome.continue_with.id)  # type: ignore[union-attr]
    assert shared_harness.settle((held, outcome)) == [State.SUCCEEDED]
    (job,) = shared_harness.enqueue(draft(unique="k"))
    assert not job.existing


def test_a_limit_for_all_queues_leaves_room_in_a_queue_that_is_running_already(shared_harness: StoreHarness) -> None:
    shared_harness.run(control.set_queue, "*", max_running=10)
    for number in range(4):
        shared_harness.add(priority=number)
    assert [len(shared_harness.claim(2)), len(shared_harness.claim(2))] == [2, 2]


def test_a_draft_after_one_whose_key_was_taken_waits_for_the_holder_of_the_key(shared_harness: StoreHarness) -> None:
    holder = shared_harness.add(unique="k")
    second = draft(unique="k")
    third = draft(depends_on=(second.id,))
    jobs = shared_harness.enqueue(second, third)
    assert [job.id for job in jobs] == [holder, third.id]
    assert shared_harness.promote().promoted == []
    shared_harness.settle((leases(shared_harness.claim())[holder], Succeeded('"done"')))
    assert shared_harness.promote().promoted == [third.id]


def test_jobs_that_lost_a_worker_are_reported_only_to_those_who_may_claim_them(shared_harness: StoreHarness) -> None:
    job_in(shared_harness, "running")
    shared_harness.later(LATER).reap()

    def suspects(tasks: list[str]) -> bool:
        flags = shared_harness.run(lambda: shared_harness.claim_flow(1, tasks=tasks, slots=0)).flags
        assert flags is not None
        return flags.suspects

    assert suspects(["t"])
    assert not suspects(["another task"])
    shared_harness.run(control.set_queue, "default", paused=True)
    assert not suspects(["t"])


def claim_again(shared_harness: StoreHarness, *, again: bool, **options: Any) -> list[Claimed]:
    """With the same token each time."""
    return shared_harness.claim(token=str(uuid.UUID(int=70)), again=again, **options)


def test_a_claim_said_again_answers_in_the_order_of_the_first(shared_harness: StoreHarness) -> None:
    for priority in (0, 5, -5, 5):
        shared_harness.add(priority=priority)
    first = claim_again(shared_harness, again=False)
    assert claim_again(shared_harness, again=True) == first
    assert [job.priority for job in first] == [5, 5, 0, -5]


def test_a_claim_of_one_job_to_run_alone_said_again_takes_no_second(shared_harness: StoreHarness) -> None:
    shared_harness.add()
    shared_harness.add()
    for _ in range(2):
        assert len(shared_harness.claim()) == 2
        assert len(shared_harness.later(LATER).reap()) == 2
    shared_harness.later(60).promote()
    first = claim_again(shared_harness, again=False, alone=True)
    assert len(first) == 1
    assert claim_again(shared_harness, again=True, alone=True) == first


def test_a_successor_inherits_its_jobs_key_although_another_of_the_batch_wants_it(shared_harness: StoreHarness) -> None:
    stranger, holder = shared_harness.add(), shared_harness.add(unique="k")
    held = leases(shared_harness.claim())
    batch = [(held[id], Succeeded(continue_with=draft(unique="k"))) for id in (stranger, holder)]
    assert shared_harness.settle(*batch) == [State.PENDING, State.SUCCEEDED]


def test_jobs_that_become_first_at_their_targets_together_are_queued_in_order_of_enqueue(
    shared_harness: StoreHarness,
) -> None:
    targets = ["c", "a", "d", "b"]
    ids = [shared_harness.add(target=target) for target in targets]
    assert sorted(shared_harness.promote().promoted) == sorted(ids)
    assert [job.id for job in shared_harness.claim()] == ids
