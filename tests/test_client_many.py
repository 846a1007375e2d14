"""Many jobs in one call: all or none, and in bounded memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from relet import App, Draft, InvalidInput, JobNotFound, State, new_id
from relet._tasks.task import PlainTask
from tests.conftest import PG_KINDS
from tests.databases import Database, inventory

MANY = 100_000


def test_a_hundred_thousand_drafts_are_one_transaction_in_bounded_memory(
    app: App, database: Database, task: PlainTask[..., Any]
) -> None:
    """Beyond the drafts, which the caller made: the jobs that are returned, a part on its way, and little else."""
    if database.kind not in ("sqlite", *PG_KINDS[:1]):
        pytest.skip("it takes seconds, and one of each kind will do")
    drafts = [task.draft(n) for n in range(MANY)]
    app.client.count()
    tracemalloc.start()
    jobs = app.client.enqueue_many(drafts)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [job.id for job in jobs] == [draft.id for draft in drafts]
    assert app.client.count() == MANY
    assert kept < 400 * MANY
    assert peak - kept < 200 * MANY


@pytest.mark.long
def test_drafts_may_come_from_a_generator(app: App, task: PlainTask[..., Any]) -> None:
    def drafts() -> Iterator[Draft[Any]]:
        first = task.draft("first")
        yield first
        for n in range(4500):
            yield task.using(depends_on=[first], unique=f"key {n % 4000}").draft(n)

    jobs = app.client.enqueue_many(drafts())
    assert [job.existing for job in jobs] == [False] * 4001 + [True] * 500
    assert [job.id for job in jobs[4001:]] == [job.id for job in jobs[1:501]]
    assert app.client.count(state="pending") == 4000
    assert app.client.enqueue_many(iter([])) == []
    assert len(asyncio.run(app.aclient.enqueue_many(task.draft(n) for n in range(3)))) == 3


@pytest.mark.parametrize("where", [10, 4900])
def test_one_that_is_refused_refuses_all(app: App, task: PlainTask[..., Any], where: int) -> None:
    drafts = [task.using(unique=f"key {n}").draft(n) for n in range(5000)]
    drafts[where] = task.using(depends_on=[new_id()]).draft("waits for an unknown job")
    with pytest.raises(JobNotFound):
        app.client.enqueue_many(drafts)
    drafts[where] = drafts[where + 1]
    with pytest.raises(InvalidInput, match="two drafts with the same id"):
        app.client.enqueue_many(drafts)
    left = inventory(app._store())
    assert left["jobs"] == left["keys"] == left["dependencies"] == 0


def test_parts_of_a_batch_are_found_where_they_are_known(app: App, task: PlainTask[..., Any]) -> None:
    """Over the bounds of what one statement carries: known ids, taken keys and new ones come back in their order."""
    known = [task.using(id=new_id()).draft(n) for n in range(3)]
    held = [task.using(unique=f"key {n}").draft(n) for n in range(3)]
    before = app.client.enqueue_many([*known, *held])
    fillers = [task.draft(n) for n in range(3000)]
    rivals = [task.using(unique=f"key {n}").draft("rival") for n in range(3)]
    waiting = task.using(depends_on=[rivals[2], fillers[2999]]).draft("waits for who has the key")
    jobs = app.client.enqueue_many([known[0], waiting, *fillers, rivals[0], known[1], rivals[2]])
    assert [job.id for job in (jobs[0], *jobs[-3:])] == [before[n].id for n in (0, 3, 1, 5)]
    assert [job.existing for job in jobs] == [True, False, *[False] * 3000, True, True, True]
    assert jobs[1].state is State.PENDING
    assert [one.chain for one in app.client.dependencies(waiting.id)] == [held[2].id, fillers[2999].id]


def test_a_circle_is_found_over_the_bounds_of_parts(app: App, task: PlainTask[..., Any]) -> None:
    first, last = new_id(), new_id()
    drafts = [
        task.using(id=first, depends_on=[last]).draft(),
        *(task.draft(n) for n in range(2500)),
        task.using(id=last, depends_on=[first]).draft(),
    ]
    with pytest.raises(InvalidInput, match="in a circle"):
        app.client.enqueue_many(drafts)
