"""Ten thousand that wait for one, and one that waits for ten thousand: in small steps, and to the end."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from relet._core.job import Claimed, State, Succeeded
from relet._store.flows import control, inspect, promote, settle
from relet._store.query import Flow, Query
from tests.harness import StoreHarness, draft, half

MOST = promote.MAX_PROMOTED


@pytest.fixture
def many(request: pytest.FixtureRequest) -> int:
    """Ten thousand in one batch, in a file and on the newest server; a fifth elsewhere: it is the same code."""
    return 2_000 if any(kind in request.node.name for kind in ("memory", "pg15", "separately")) else 10_000


def finish(harness: StoreHarness, jobs: list[Claimed], at_once: int = 2500) -> None:
    for start in range(0, len(jobs), at_once):
        harness.settle(*((job.lease, Succeeded('"r"')) for job in jobs[start : start + at_once]))


def steps(harness: StoreHarness, **options: int) -> list[promote.Promotion]:
    """Promote until there is no more to do, as upkeep does."""
    done = [harness.promote(**options)]
    while done[-1].more:
        done.append(harness.promote(**options))
        assert len(done) < 2000, "promote never ends"
    return done


@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "separately"])
@pytest.mark.long(False)
def test_one_job_waits_for_ten_thousand(harness: StoreHarness, together: bool, many: int) -> None:
    blockers = [draft() for _ in range(many)]
    last = draft(depends_on=tuple(one.id for one in blockers))
    if together:
        harness.enqueue(last, *blockers)
        assert harness.count("jobs", "watched") == many, "promote need not mark them"
    else:
        harness.enqueue(*blockers)
        harness.enqueue(last)
    taken = len(steps(harness))
    assert taken == 1 if together else taken >= many / MOST, "new jobs of the batch need no look before they end"
    assert harness.count("jobs", "watched") == many
    jobs = harness.claim(many)
    finish(harness, jobs[:-1])
    assert sum(len(step.promoted) for step in steps(harness)) == 0
    finish(harness, jobs[-1:])
    assert [step.promoted for step in steps(harness)] == [[last.id]]
    assert Counter(one.result_json for one in harness.run(inspect.dependencies, last.id)) == {'"r"': many}
    assert harness.count("nudges") == 0


@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "separately"])
@pytest.mark.long(False)
def test_ten_thousand_jobs_wait_for_one(harness: StoreHarness, together: bool, many: int) -> None:
    first = draft()
    others = [draft(depends_on=(first.id,), queue="others") for _ in range(many)]
    if together:
        harness.enqueue(*others, first)
    else:
        harness.enqueue(first)
        harness.enqueue(*others)
    steps(harness)
    (job,) = harness.claim(1)
    harness.succeed(job)
    done = steps(harness)
    assert max(len(step.promoted) for step in done) == MOST
    assert sorted(id for step in done for id in step.promoted) == sorted(one.id for one in others)
    assert len(harness.claim(many, ("others",))) == many
    assert harness.count("dependencies", "state is null") == harness.count("nudges") == 0


@pytest.mark.long
def test_no_promote_looks_at_more_than_its_share_and_none_starves(harness: StoreHarness) -> None:
    """Big and small ones, chains that ended and chains that go on: all that is free is let go, a few at a time."""
    chance = random.Random(7)
    blockers = [draft() for _ in range(40)]
    harness.enqueue(*blockers)
    waiting = [
        draft(depends_on=tuple(one.id for one in chance.sample(blockers, chance.choice([1, 2, 40]))), queue="waiting")
        for _ in range(200)
    ]
    harness.enqueue(*waiting)
    jobs = {job.id: job for job in harness.claim(40)}
    over: set[str] = set()
    free: set[str] = set()
    for blocker in blockers:
        for _ in range(chance.choice([0, 1, 3])):
            free |= set(one_step(harness, limit=30).promoted)
        finish(harness, [jobs[blocker.id]])
        over.add(blocker.id)
        small = draft(depends_on=(blocker.id,), queue="waiting")
        harness.enqueue(small)
        waiting.append(small)
        assert free <= {one.id for one in waiting if over.issuperset(one.depends_on)}
    free |= {id for step in steps(harness, limit=30) for id in step.promoted}
    assert free == {one.id for one in waiting}
    assert harness.count("nudges") == 0


def one_step(harness: StoreHarness, limit: int) -> promote.Promotion:
    """A promote that is watched: of neither kind does it decide about more than it may."""
    sent: list[int] = []

    def watched() -> Flow[promote.Promotion]:
        flow = promote.promote(limit=limit)
        try:
            step = next(flow)
            while True:
                answer = yield step
                if isinstance(step, Query) and step.name.startswith("promote/dependencies_"):
                    sent.append(len(answer))
                step = flow.send(answer)
        except StopIteration as end:
            promotion: promote.Promotion = end.value
            return promotion

    done = harness.run(watched)
    assert all(number <= limit + 1 for number in sent)
    return done


def test_the_cost_of_the_end_of_a_chain_is_that_of_the_jobs_that_wait_for_it(harness: StoreHarness) -> None:
    """Of ten thousand that one job waits for, each end looks at one edge."""
    blockers = [draft() for _ in range(3000)]
    harness.enqueue(*blockers, draft(depends_on=tuple(one.id for one in blockers), queue="end"))
    steps(harness)
    looked = []
    for job in harness.claim(5):
        harness.succeed(job)
        looked.append(one_step(harness, limit=2))
    assert [step.more for step in looked] == [False] * 5
    assert harness.count("nudges") == 0


@pytest.mark.long
def test_a_chain_with_many_dependents_can_be_deleted_once_it_is_over(harness: StoreHarness) -> None:
    (job,) = (harness.claim_new(),)
    waiting = [draft(depends_on=(job.id,), queue="waiting") for _ in range(2500)]
    harness.enqueue(*waiting)
    harness.succeed(job, '"r"')
    harness.run(control.delete, job.id)
    assert harness.count("dependencies", "state = 'succeeded'") == 2500
    assert sum(len(step.promoted) for step in steps(harness)) == 2500


@pytest.mark.long
def test_a_locked_blocker_does_not_keep_a_thousand_others_from_being_looked_at(pg_harness: StoreHarness) -> None:
    busy, fine = pg_harness.claim_new(), pg_harness.claim_new()
    many = [draft(depends_on=(busy.id,)) for _ in range(30)]
    pg_harness.enqueue(*many)
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(busy.lease, Succeeded("1"))], half))
    free = pg_harness.add(depends_on=(fine.id,), queue="free")
    pg_harness.succeed(fine)
    promoted = [id for _ in range(10) for id in pg_harness.promote(limit=10).promoted]
    assert promoted == [free]
    assert not pg_harness.promote(limit=10).more
    assert pg_harness.count("nudges") <= 2, "thirty that wait for one locked chain are one nudge"
    handler.commit()
    assert sum(len(step.promoted) for step in steps(pg_harness, limit=10)) == 30
    assert {pg_harness.state(one.id) for one in many} == {State.QUEUED}
