"""Which worker may empty itself for a job that must run alone: one at a time, and never all of them."""

from __future__ import annotations

import pytest

from relet._core.worker import WorkerFacts
from relet._store.flows import quarantine, worker_reports
from relet._store.flows.quarantine import EXPIRES_AFTER
from relet._store.flows.workers import LOST_AFTER
from tests.store.interleave import Background, Bench, token


@pytest.fixture
def b(either: Bench) -> Bench:
    return either


def enter(b: Bench, worker: str) -> bool:
    return b.run(quarantine.enter, worker)


def report(b: Bench, *workers: str, stopping: bool = False) -> None:
    for name in workers:
        facts = WorkerFacts(name, "host", 1, None, 10, ["t"], 30.0, "0")
        b.run(worker_reports.report, token(), facts, 0, stopping)


def run_alone(b: Bench, worker: str) -> None:
    """Have a worker run a job that has lost two."""
    id = b.add()
    b.query(f"update {{s}}jobs set losses = 2, suspect = 2 where id = '{id}'")
    (job,) = b.claim(1, worker=worker, alone=True)
    assert job.id == id


def test_one_worker_at_a_time_may_empty_itself(b: Bench) -> None:
    assert enter(b, "a")
    assert not enter(b, "b")
    assert enter(b, "a"), "it has the right already: an answer may have been lost"
    b.run(quarantine.leave, "b")
    assert not enter(b, "b"), "it was not its own to leave"
    b.run(quarantine.leave, "a")
    assert enter(b, "b")


def test_the_right_of_a_worker_that_died_ends_by_itself(b: Bench) -> None:
    assert enter(b, "a")
    b.later(EXPIRES_AFTER - 0.1)
    assert not enter(b, "b")
    b.later(0.2)
    assert enter(b, "b")


def test_a_right_that_lasts_longer_than_it_can_is_not_believed(b: Bench) -> None:
    assert enter(b, "a")
    b.later(-3600)  # the clock was put back
    assert enter(b, "b")


def test_no_more_than_half_of_the_workers_are_there_for_one_job_each(b: Bench) -> None:
    workers = ["a", "b", "c", "d", "e"]
    report(b, *workers)
    run_alone(b, "a")
    assert enter(b, "b"), "two of five"
    run_alone(b, "b")
    b.run(quarantine.leave, "b")
    assert not enter(b, "c"), "the others are there for all other jobs"
    assert enter(b, "b"), "one that runs such a job may go on with the next"


def test_of_two_workers_one_stays_for_all_other_jobs(b: Bench) -> None:
    report(b, "a", "b")
    run_alone(b, "a")
    assert not enter(b, "b")


def test_workers_that_are_lost_or_about_to_stop_do_not_count(b: Bench) -> None:
    report(b, "a", "b", "lost")
    b.later(LOST_AFTER + 1)
    report(b, "a", "b")
    report(b, "c", stopping=True)
    run_alone(b, "a")
    assert not enter(b, "b"), "half of two is one"
    report(b, "c", "d")
    assert enter(b, "b")


def test_a_single_worker_may_in_any_case(b: Bench) -> None:
    assert enter(b, "a")
    b.run(quarantine.leave, "a")
    report(b, "a")
    assert enter(b, "a")


def test_of_two_that_ask_at_the_same_moment_one_gets_it(pg: Bench) -> None:
    other = pg.session()
    assert other.leave_open(quarantine.enter("a"))
    asking = Background(lambda: enter(pg, "b"))
    assert asking.blocked
    other.commit()
    assert not asking.result()
