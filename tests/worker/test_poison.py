"""A job that kills its worker: it ends failed, and takes nobody with it."""

from __future__ import annotations

from typing import Any

import pytest

from relet import Job, State
from relet._core.job import DEFAULT_POLICY
from tests.conftest import PG_KINDS
from tests.worker import victim
from tests.worker.processes import PATIENCE, Theatre, wait_until

INNOCENT = 500
ATTEMPTS = DEFAULT_POLICY.max_attempts
MANNERS = ("exit", "segfault", "oom")
#: The store and the manner have little to do with each other, and a run takes six seconds.
ON_POSTGRES = [(kind, "segfault") for kind in PG_KINDS[:1] if isinstance(kind, str)]
ANY_STORE = pytest.mark.parametrize("theatre", ["sqlite"], indirect=True)


@pytest.mark.parametrize(("theatre", "manner"), [("sqlite", "exit"), *ON_POSTGRES], indirect=["theatre"])
def test_a_job_that_kills_its_worker_fails_and_500_others_succeed(theatre: Theatre, manner: str) -> None:
    """A worker that is started again whenever it has died, as supervisors do."""
    innocent, bad = _enqueue(theatre, victim.poison.draft("poison", manner))
    workers = [theatre.worker()]

    def over() -> bool:
        if not workers[-1].lives:
            workers.append(theatre.worker())
        return theatre.job(bad).state is State.FAILED and _succeeded(theatre) == INNOCENT

    wait_until(over, "the end of everything", 2 * PATIENCE)
    assert len(workers) == ATTEMPTS + 1
    _failed_by_its_own_fault(theatre, bad)
    for job in innocent[:: INNOCENT // 10]:
        assert theatre.client.result(job) in [worker.pid for worker in workers]
    assert max(job.losses for job in _all_quick(theatre)) <= 2, "an innocent job was lost beside one that ran alone"


@pytest.mark.long
@ANY_STORE
def test_a_job_that_kills_its_workers_does_so_under_a_supervisor_as_well(theatre: Theatre) -> None:
    _, bad = _enqueue(theatre, victim.poison.draft("poison", "oom"))
    supervisor = theatre.worker("--processes", "2")
    wait_until(lambda: theatre.job(bad).state is State.FAILED, "the end of the poison")
    wait_until(lambda: _succeeded(theatre) == INNOCENT, "the success of all others")
    _failed_by_its_own_fault(theatre, bad)
    assert supervisor.lives
    assert supervisor.log.count("exited with code -9") == ATTEMPTS


@ANY_STORE
def test_a_job_that_kills_its_own_process_hurts_nobody(theatre: Theatre) -> None:
    drafts = [victim.caged_poison.draft(f"poison by {manner}", manner) for manner in MANNERS]
    innocent, *poisons = _enqueue(theatre, *drafts)
    worker = theatre.worker()
    ended = [theatre.wait(bad) for bad in poisons]
    wait_until(lambda: _succeeded(theatre) == INNOCENT, "the success of all others")
    assert worker.lives
    for manner, bad in zip(MANNERS, ended, strict=True):
        assert (bad.state, bad.attempt, bad.losses) == (State.FAILED, ATTEMPTS, 0)
        assert "worker lost" in (bad.error or "")
        assert theatre.starts(f"poison by {manner}") == ATTEMPTS
    assert len(theatre.notes("start")) == INNOCENT + len(MANNERS) * ATTEMPTS
    assert {theatre.client.result(job) for job in innocent[:: INNOCENT // 10]} == {worker.pid}


def _enqueue(theatre: Theatre, *bad: Any) -> tuple[Any, ...]:
    """The innocent ones, and those in their middle that are not."""
    drafts = [victim.quick.draft(str(n)) for n in range(INNOCENT)]
    half = INNOCENT // 2
    jobs = theatre.enqueue(*drafts[:half], *bad, *drafts[half:])
    return [*jobs[:half], *jobs[half + len(bad) :]], *jobs[half : half + len(bad)]


def _all_quick(theatre: Theatre) -> list[Job[Any]]:
    page = theatre.client.jobs(task="quick", limit=1000)
    assert len(page.jobs) == INNOCENT
    return page.jobs


def _succeeded(theatre: Theatre) -> int:
    return theatre.client.count(task="quick", state=State.SUCCEEDED)


def _failed_by_its_own_fault(theatre: Theatre, bad: Job[Any]) -> None:
    failed = theatre.job(bad)
    assert (failed.attempt, failed.losses) == (ATTEMPTS, ATTEMPTS)
    assert "worker lost" in (failed.error or "")
    assert theatre.outcomes(bad) == ["lost"] * ATTEMPTS
    assert theatre.starts("poison") == ATTEMPTS
