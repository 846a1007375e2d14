"""Which worker may empty itself for a job that must run alone: one at a time, and never all of them."""

from __future__ import annotations

import pytest

from relet._core.worker import WorkerFacts
from relet._store.flows import quarantine, worker_reports
from relet._store.flows.quarantine import EXPIRES_AFTER
from relet._store.flows.workers import LOST_AFTER
from tests.harness import StoreHarness, token
from tests.store.interleave import Background


@pytest.fixture
def b(either_harness: StoreHarness) -> StoreHarness:
    return either_harness


def enter(harness: StoreHarness, worker: str) -> bool:
    return harness.run(quarantine.enter, worker)


def report(harness: StoreHarness, *workers: str, stopping: bool = False) -> None:
    for name in workers:
        facts = WorkerFacts(name, "host", 1, None, 10, ("t",), 30.0, "0")
        harness.run(worker_reports.report, token(), facts, 0, stopping)


def run_alone(harness: StoreHarness, worker: str) -> None:
    """Have a worker run a job that has lost two."""
    id = harness.add()
    harness.query(f"update {{s}}jobs set losses = 2, suspect = 2 where id = '{id}'")
    (job,) = harness.claim(1, worker=worker, alone=True)
    assert job.id == id


def test_one_worker_at_a_time_may_empty_itself(harness: StoreHarness) -> None:
    assert enter(harness, "a")
    assert not enter(harness, "b")
    assert enter(harness, "a"), "it has the right already: an answer may have been lost"
    harness.run(quarantine.leave, "b")
    assert not enter(harness, "b"), "it was not its own to leave"
    harness.run(quarantine.leave, "a")
    assert enter(harness, "b")


def test_the_right_of_a_worker_that_died_ends_by_itself(harness: StoreHarness) -> None:
    assert enter(harness, "a")
    harness.later(EXPIRES_AFTER - 0.1)
    assert not enter(harness, "b")
    harness.later(0.2)
    assert enter(harness, "b")


def test_a_right_that_lasts_longer_than_it_can_is_not_believed(harness: StoreHarness) -> None:
    assert enter(harness, "a")
    harness.later(-3600)  # the clock was put back
    assert enter(harness, "b")


def test_no_more_than_half_of_the_workers_are_there_for_one_job_each(harness: StoreHarness) -> None:
    workers = ["a", "b", "c", "d", "e"]
    report(harness, *workers)
    run_alone(harness, "a")
    assert enter(harness, "b"), "two of five"
    run_alone(harness, "b")
    harness.run(quarantine.leave, "b")
    assert not enter(harness, "c"), "the others are there for all other jobs"
    assert enter(harness, "b"), "one that runs such a job may go on with the next"


def test_of_two_workers_one_stays_for_all_other_jobs(harness: StoreHarness) -> None:
    report(harness, "a", "b")
    run_alone(harness, "a")
    assert not enter(harness, "b")


def test_workers_that_are_lost_or_about_to_stop_do_not_count(harness: StoreHarness) -> None:
    report(harness, "a", "b", "lost")
    harness.later(LOST_AFTER + 1)
    report(harness, "a", "b")
    report(harness, "c", stopping=True)
    run_alone(harness, "a")
    assert not enter(harness, "b"), "half of two is one"
    report(harness, "c", "d")
    assert enter(harness, "b")


def test_a_single_worker_may_in_any_case(harness: StoreHarness) -> None:
    assert enter(harness, "a")
    harness.run(quarantine.leave, "a")
    report(harness, "a")
    assert enter(harness, "a")


def test_of_two_that_ask_at_the_same_moment_one_gets_it(pg_harness: StoreHarness) -> None:
    other = pg_harness.session()
    assert other.leave_open(quarantine.enter("a"))
    asking = Background(lambda: enter(pg_harness, "b"))
    assert asking.blocked
    other.commit()
    assert not asking.result()
