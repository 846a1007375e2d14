"""Claims from queues that hold jobs of tasks which the worker does not know: by task, past all others."""

from __future__ import annotations

import random

import pytest

from relet._store.flows import claim as claim_flows
from relet._store.flows import inspect
from relet._store.flows.claim_scope import Scope
from tests.harness import StoreHarness, draft, token

KNOWN = ["a", "b"]


def claimed(harness: StoreHarness, want: int, *, by_task: bool, queues: tuple[str, ...] = ("default",)) -> list[str]:
    scopes = [Scope(queue, want, by_task=by_task) for queue in queues]
    claim = harness.run(claim_flows.claim, "w", token(), scopes, KNOWN, want=want, lease=30.0, random=random.random)
    return [job.id for job in claim.jobs]


def test_a_claim_by_task_takes_the_known_jobs_in_the_order_of_the_queue(harness: StoreHarness) -> None:
    tasks = ["a", "unknown", "b", "a", "unknown", "b", "a"]
    jobs = harness.enqueue(*(draft(task, priority=number % 3) for number, task in enumerate(tasks)))
    known = [job for job in jobs if job.task in KNOWN]
    expected = [job.id for job in sorted(known, key=lambda job: -job.priority)]
    assert claimed(harness, 2, by_task=True) == expected[:2]
    assert claimed(harness, 10, by_task=True) == expected[2:]
    assert claimed(harness, 10, by_task=True) == []


def test_a_claim_by_task_serves_several_queues_and_takes_no_more_than_wanted(harness: StoreHarness) -> None:
    harness.enqueue(*(draft(task, queue=queue) for queue in ("x", "y") for task in ("a", "unknown", "b")))
    assert len(claimed(harness, 3, by_task=True, queues=("x", "y"))) == 3
    assert len(claimed(harness, 3, by_task=True, queues=("x", "y"))) == 1


def test_a_claim_by_task_passes_over_locked_jobs(harness: StoreHarness) -> None:
    if not harness.on_postgres:
        pytest.skip("SQLite has one writer")
    first, second = harness.enqueue(draft("a"), draft("b"))
    session = harness.session()
    assert [job.id for job in session.leave_open(harness.claim_flow(1, tasks=["a"])).jobs] == [first.id]
    assert claimed(harness, 2, by_task=True) == [second.id]
    session.roll_back()
    assert claimed(harness, 2, by_task=True) == [first.id]


def test_the_tasks_of_queues_are_told_apart(harness: StoreHarness) -> None:
    harness.enqueue(draft("a"), draft("b"), draft("a"), draft("c", queue="x"), draft("later", delay=60.0))
    found = harness.run(inspect.queued_tasks, ["default", "x", "empty"])
    assert found == {"default": {"a", "b"}, "x": {"c"}}
