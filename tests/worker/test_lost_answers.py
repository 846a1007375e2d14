"""The connection is cut when PostgreSQL has committed and cannot say so: nothing is lost, nothing runs twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from relet import Job, State
from tests.worker import fault_tasks
from tests.worker.processes import WorkerProcess, WorkerProcesses
from tests.worker.proxy import CLAIM, COMMIT, MINE, RENEW, SUCCEED, Proxy, proxy_to

LEASE = 6.0  # so that a beat comes every 2 s


@pytest.fixture
def proxy(pg_processes: WorkerProcesses) -> Iterator[Proxy]:
    with proxy_to(pg_processes.url) as proxy:
        yield proxy


@pytest.fixture
def worker(pg_processes: WorkerProcesses, proxy: Proxy) -> WorkerProcess:
    """A worker that is at work. No lease of it runs out within one of these tests."""
    worker = pg_processes.worker("--lease", str(LEASE), url=proxy.url)
    (first,) = pg_processes.enqueue(fault_tasks.quick.draft("first"))
    pg_processes.wait(first)
    return worker


def test_a_claim_whose_answer_is_lost_is_found_when_it_is_repeated(
    pg_processes: WorkerProcesses, proxy: Proxy, worker: WorkerProcess
) -> None:
    hold = proxy.hold(CLAIM)
    jobs = pg_processes.enqueue(*(fault_tasks.quick.draft(f"claimed {n}") for n in range(5)))
    seen: list[int] = []
    trap = proxy.lose_answer(CLAIM, then=lambda: seen.append(pg_processes.client.count(state=State.RUNNING)))
    hold.over.set()
    trap.wait()
    assert seen == [5], "the claim was to bring them all"
    for n, job in enumerate(jobs):
        _succeeded_at_once(pg_processes, job, worker)
        assert pg_processes.starts(f"claimed {n}") == 1


def test_a_claim_that_is_committed_after_its_client_has_gone_is_found_and_released(
    pg_processes: WorkerProcesses, proxy: Proxy, worker: WorkerProcess
) -> None:
    trap = proxy.delay(CLAIM)
    trap.wait()
    hold = proxy.hold(CLAIM)
    (job,) = pg_processes.enqueue(fault_tasks.quick.draft("stranger"))
    trap.deliver()
    claimed = pg_processes.job(job)
    assert (claimed.state, claimed.version) == (State.RUNNING, 1)
    assert not pg_processes.starts("stranger")
    hold.over.set()
    done = pg_processes.wait(job, timeout=LEASE)
    # Given back, not run out: the attempt was not lost.
    assert (done.state, done.attempt, done.version, done.losses) == (State.SUCCEEDED, 1, 2, 0)
    assert pg_processes.outcomes(job) == ["released", "succeeded"]
    assert pg_processes.starts("stranger") == 1
    assert claimed.expires_at is not None
    assert done.started_at is not None
    assert done.started_at < claimed.expires_at


def test_renewals_whose_answers_are_lost_lose_no_job(pg_processes: WorkerProcesses, proxy: Proxy) -> None:
    worker = pg_processes.worker("--lease", "1.5", url=proxy.url)
    (job,) = pg_processes.enqueue(fault_tasks.checking.draft("renewed", 2.5))
    pg_processes.wait_for_note("start", "renewed")
    for _ in range(3):
        proxy.lose_answer(RENEW).wait()
    _succeeded_at_once(pg_processes, job, worker)
    assert [note.what for note in pg_processes.notes(key="renewed")] == ["start", "end"]


@pytest.mark.partitioned  # the variant rows has no function that settles
def test_a_settle_whose_answer_is_lost_is_recognised_when_it_is_repeated(
    pg_processes: WorkerProcesses, proxy: Proxy, worker: WorkerProcess
) -> None:
    trap = proxy.lose_answer(SUCCEED)
    jobs = pg_processes.enqueue(*(fault_tasks.quick.draft(f"settled {n}") for n in range(5)))
    trap.wait()
    for n, job in enumerate(jobs):
        _succeeded_at_once(pg_processes, job, worker)
        assert pg_processes.starts(f"settled {n}") == 1
    _keeps_quiet(pg_processes, worker)


@pytest.mark.parametrize(
    ("task", "outcomes", "attempt"),
    [
        (fault_tasks.second_time_lucky, ["retried", "succeeded"], 2),
        (fault_tasks.snoozing, ["snoozed", "succeeded"], 1),
        (fault_tasks.relay, ["succeeded"], 1),
    ],
    ids=["retry", "snooze", "continue"],
)
def test_a_commit_whose_answer_is_lost_counts_once(
    pg_processes: WorkerProcesses, proxy: Proxy, worker: WorkerProcess, task: Any, outcomes: list[str], attempt: int
) -> None:
    trap = proxy.lose_answer(COMMIT, after=MINE)
    (job,) = pg_processes.enqueue(task.draft("settled"))
    trap.wait()
    last = pg_processes.wait(job)
    done = pg_processes.job(job)
    assert (done.state, done.attempt, done.losses) == (State.SUCCEEDED, attempt, 0)
    assert pg_processes.outcomes(job) == outcomes
    assert pg_processes.starts("settled") == len(outcomes)
    chain = pg_processes.client.chain(job)
    assert [one.id for one in chain] == ([job.id, last.id] if task is fault_tasks.relay else [job.id])
    assert pg_processes.starts("settled, continued") == len(chain) - 1
    _keeps_quiet(pg_processes, worker)


def _succeeded_at_once(processes: WorkerProcesses, job: Job[Any], worker: WorkerProcess) -> None:
    done = processes.wait(job)
    assert (done.state, done.attempt, done.version, done.losses) == (State.SUCCEEDED, 1, 1, 0)
    assert processes.client.result(job) == worker.pid
    assert processes.outcomes(job) == ["succeeded"]


def _keeps_quiet(processes: WorkerProcesses, worker: WorkerProcess) -> None:
    """It knows that its outcomes are settled; and it goes on."""
    (another,) = processes.enqueue(fault_tasks.quick.draft("another"))
    _succeeded_at_once(processes, another, worker)
    assert "lease was lost" not in worker.log
    assert "lost its lease" not in worker.log
