"""Rows that another release has written: unknown fields do not count, missing ones have a default."""

from __future__ import annotations

import pytest

from relet._core.job import Policy, Raised, State
from relet._core.worker import WorkerFacts
from relet._store.flows import inspect, lease, stats, worker_reports, workers
from tests.harness import StoreHarness, token

ABOUT = [
    ("{}", ()),
    ('{"tasks":["t"],"zone":"north"}', ("t",)),
    ('{"tasks":["t"],"slots":"many","queues":7,"version":null}', ("t",)),
    ("[]", ()),
]


def put(harness: StoreHarness, table: str, column: str, text: str) -> None:
    """As another release would have written it."""
    doubled = text.replace("{", "{{").replace("}", "}}")
    harness.query(f"update {{s}}{table} set {column} = '{doubled}'")


@pytest.mark.parametrize(("about", "tasks"), ABOUT)
def test_a_worker_that_says_more_or_less_of_itself_is_seen(
    harness: StoreHarness, about: str, tasks: tuple[str, ...]
) -> None:
    facts = WorkerFacts("w", "host", 7, ("default",), 4, ("t",), 30.0, "1.0")
    harness.run(worker_reports.report, token(), facts, 1, False)
    put(harness, "workers", "about", about)
    (seen,) = harness.run(workers.workers)
    assert (seen.name, seen.host, seen.pid, seen.running) == ("w", "host", 7, 1)
    assert (seen.tasks, seen.queues, seen.slots, seen.lease, seen.version) == (tasks, None, 0, 0.0, "unknown")
    assert harness.run(inspect.explain, harness.add()), "a look at a job asks who serves it"


@pytest.mark.parametrize(
    ("stored", "policy"),
    [
        ("{}", Policy()),
        ('{"zone":"north","on_failure":"continue"}', Policy(on_failure="continue")),
        ('{"backoff":[1,2],"timeout":"soon","on_failure":"continue"}', Policy(on_failure="continue")),
    ],
)
def test_a_policy_that_says_more_or_less_is_kept_as_far_as_it_is_known(
    harness: StoreHarness, stored: str, policy: Policy
) -> None:
    id = harness.add(policy={"timeout": 9.0})
    put(harness, "jobs", "policy", stored)
    (job,) = harness.claim()
    assert (job.id, job.policy) == (id, policy)
    assert harness.settle((job.lease, Raised("boom"))) == [State.PENDING]


@pytest.mark.parametrize("said", ['{"zone":1}', '{"done":"half"}', "7"])
def test_progress_that_is_said_in_another_way_is_not_shown(harness: StoreHarness, said: str) -> None:
    job = harness.claim_new()
    put(harness, "jobs", "progress", said)
    found = harness.get(job.id)
    assert found is not None
    assert (found.state, found.progress) == (State.RUNNING, None)
    assert harness.run(lease.renew, "w", [job.lease], lease=30.0).renewed


def test_a_histogram_with_more_classes_is_counted_in_those_that_are_known(harness: StoreHarness) -> None:
    harness.run(stats.add, [stats.Count("default", "runs", 1, bucket=1000), stats.Count("default", "else", 2)])
    (point,) = harness.run(stats.stats, 0.0, None, step=60, queues=["default"])
    assert (sum(point.runs.counts), point.counts["else"]) == (1, 2)
