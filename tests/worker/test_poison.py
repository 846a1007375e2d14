"""A job that kills its worker: it ends failed, and takes no other job with it."""

from __future__ import annotations

from typing import Any

import pytest

from relet import Job, State
from relet._core.job import DEFAULT_POLICY
from tests.conftest import PG_KINDS
from tests.plugin.selection import rounds
from tests.worker import fault_tasks
from tests.worker.processes import TIMEOUT, WorkerProcesses, wait_until

INNOCENT = 500
ATTEMPTS = DEFAULT_POLICY.max_attempts
MANNERS = ("exit", "oom", "segfault")[: rounds(2, all=3)]
#: The store and the manner have little to do with each other, and a run takes six seconds.
ON_POSTGRES = [(kind, "segfault") for kind in PG_KINDS[:1] if isinstance(kind, str)]
ANY_STORE = pytest.mark.parametrize("processes", ["sqlite"], indirect=True)


@pytest.mark.long("segfault")
@pytest.mark.parametrize(("processes", "manner"), [("sqlite", "exit"), *ON_POSTGRES], indirect=["processes"])
def test_a_job_that_kills_its_worker_fails_and_500_others_succeed(processes: WorkerProcesses, manner: str) -> None:
    """A worker that is started again whenever it has died, as supervisors do."""
    innocent, bad = _enqueue(processes, fault_tasks.poison.draft("poison", manner))
    workers = [processes.worker()]

    def over() -> bool:
        if not workers[-1].lives:
            workers.append(processes.worker())
        return processes.job(bad).state is State.FAILED and _succeeded(processes) == INNOCENT

    wait_until(over, "the end of everything", 2 * TIMEOUT)
    assert len(workers) == ATTEMPTS + 1
    _failed_by_its_own_fault(processes, bad)
    for job in innocent[:: INNOCENT // 10]:
        assert processes.client.result(job) in [worker.pid for worker in workers]
    assert max(job.losses for job in _all_quick(processes)) <= 2, "an innocent job was lost beside one that ran alone"


@pytest.mark.long
@ANY_STORE
def test_a_job_that_kills_its_workers_does_so_under_a_supervisor_as_well(processes: WorkerProcesses) -> None:
    _, bad = _enqueue(processes, fault_tasks.poison.draft("poison", "oom"))
    supervisor = processes.worker("--processes", "2")
    wait_until(lambda: processes.job(bad).state is State.FAILED, "the end of the poison")
    wait_until(lambda: _succeeded(processes) == INNOCENT, "the success of all others")
    _failed_by_its_own_fault(processes, bad)
    assert supervisor.lives
    assert supervisor.log.count("exited with code -9") == ATTEMPTS


@ANY_STORE
def test_a_job_that_kills_its_own_process_harms_no_other_job(processes: WorkerProcesses) -> None:
    drafts = [fault_tasks.caged_poison.draft(f"poison by {manner}", manner) for manner in MANNERS]
    innocent, *poisons = _enqueue(processes, *drafts)
    worker = processes.worker()
    ended = [processes.wait(bad) for bad in poisons]
    wait_until(lambda: _succeeded(processes) == INNOCENT, "the success of all others")
    assert worker.lives
    for manner, bad in zip(MANNERS, ended, strict=True):
        assert (bad.state, bad.attempt, bad.losses) == (State.FAILED, ATTEMPTS, 0)
        assert "worker lost" in (bad.error or "")
        assert processes.starts(f"poison by {manner}") == ATTEMPTS
    assert len(processes.notes("start")) == INNOCENT + len(MANNERS) * ATTEMPTS
    assert {processes.client.result(job) for job in innocent[:: INNOCENT // 10]} == {worker.pid}


def _enqueue(processes: WorkerProcesses, *bad: Any) -> tuple[Any, ...]:
    """The innocent ones, and those in their middle that are not."""
    drafts = [fault_tasks.quick.draft(str(n)) for n in range(INNOCENT)]
    half = INNOCENT // 2
    jobs = processes.enqueue(*drafts[:half], *bad, *drafts[half:])
    return [*jobs[:half], *jobs[half + len(bad) :]], *jobs[half : half + len(bad)]


def _all_quick(processes: WorkerProcesses) -> list[Job[Any]]:
    page = processes.client.jobs(task="quick", limit=1000)
    assert len(page.jobs) == INNOCENT
    return page.jobs


def _succeeded(processes: WorkerProcesses) -> int:
    return processes.client.count(task="quick", state=State.SUCCEEDED)


def _failed_by_its_own_fault(processes: WorkerProcesses, bad: Job[Any]) -> None:
    failed = processes.job(bad)
    assert (failed.attempt, failed.losses) == (ATTEMPTS, ATTEMPTS)
    assert "worker lost" in (failed.error or "")
    assert processes.outcomes(bad) == ["lost"] * ATTEMPTS
    assert processes.starts("poison") == ATTEMPTS
