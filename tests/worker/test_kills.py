"""A worker is killed at each stage of an attempt: a job that must run again does, a settled one does not."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from relet import Job, State
from tests.worker import fault_tasks
from tests.worker.processes import WorkerProcess, WorkerProcesses, lives, wait_until

ANY_STORE = pytest.mark.parametrize("processes", ["sqlite"], indirect=True)  # the store has no part in it


@pytest.mark.long("sqlite")
def test_killed_at_any_stage_a_worker_takes_no_job_with_it(processes: WorkerProcesses) -> None:
    """The stages do not touch each other: five workers, each with a separate queue, die side by side."""
    deaths = [_dies(processes, stage) for stage in ("after-claim", "before-settle", "after-settle")]
    running = _killed_while_running(processes)
    slow, behind = _killed_with_jobs_in_advance(processes)
    assert [worker.wait_for_death() for _, worker in deaths] == [-signal.SIGKILL] * 3
    unseen, unsettled, settled = (job for job, _ in deaths)
    rescuer = processes.worker()
    _ran_in_the_second_attempt_only(processes, unseen, rescuer)
    _ran_twice(processes, unsettled, rescuer, ends=2)
    _ran_twice(processes, running, rescuer, ends=1)
    _ran_once(processes, settled, rescuer)
    _ran_twice(processes, slow, rescuer, ends=1)
    for job in behind:
        _ran_in_the_second_attempt_only(processes, job, rescuer)
    assert rescuer.lives


@ANY_STORE
def test_with_a_worker_die_its_child_processes_and_the_processes_that_they_started(processes: WorkerProcesses) -> None:
    processes.enqueue(fault_tasks.parent.draft("parent"))
    worker = processes.worker()
    _, _, child, grandchild, _ = processes.wait_for_note("start", "parent")
    assert lives(child)
    assert lives(grandchild)
    worker.kill()
    wait_until(lambda: not lives(child) and not lives(grandchild), "the end of the child and of its child")


@ANY_STORE
def test_with_a_worker_dies_a_child_process_whose_handler_holds_the_gil(processes: WorkerProcesses) -> None:
    """No thread of the child can notice anything, and such handlers are what processes are for."""
    processes.enqueue(fault_tasks.holding_the_gil.draft("gil"))
    worker = processes.worker()
    child = processes.wait_for_note("start", "gil").pid
    worker.kill()
    wait_until(lambda: not lives(child), "the end of the child", 10.0)


@ANY_STORE
def test_a_supervisor_told_to_stop_while_its_workers_start_ends_in_good_order(processes: WorkerProcesses) -> None:
    """Nothing has run, nothing is left behind: a process manager is not to take that for a failure."""
    supervisor = processes.worker("--processes", "2")
    wait_until(lambda: "Started worker process 2 " in supervisor.log, "the start of both")
    assert supervisor.terminate() == 0


def _dies(processes: WorkerProcesses, stage: str) -> tuple[Job[Any], WorkerProcess]:
    """A worker that kills itself at a stage that cannot be hit from outside, and the job that it dies with."""
    (job,) = processes.enqueue(fault_tasks.work.using(queue=stage).draft(stage, 0.0))
    return job, processes.worker("-q", stage, TASKS_DIES=stage)


def _killed_while_running(processes: WorkerProcesses) -> Job[Any]:
    (job,) = processes.enqueue(fault_tasks.work.using(queue="running").draft("running", 30.0))
    worker = processes.worker("-q", "running")
    processes.wait_for_note("start", "running")
    worker.kill()
    return job


def _killed_with_jobs_in_advance(processes: WorkerProcesses) -> tuple[Job[Any], list[Job[Any]]]:
    """One slot: quick jobs, so that more are taken in advance, then a slow one; returns that and those behind it."""
    drafts = [fault_tasks.quick.using(queue="ahead").draft(f"ahead {n}") for n in range(10)]
    *_, slow = processes.enqueue(*drafts[:5], fault_tasks.work.using(queue="ahead").draft("slow", 30.0))
    others = processes.enqueue(*drafts[5:])
    worker = processes.worker("-q", "ahead", "-c", "1")
    behind = wait_until(lambda: _taken_in_advance(processes, worker, others), "jobs taken in advance")
    worker.kill()
    return slow, behind


def _taken_in_advance(processes: WorkerProcesses, worker: WorkerProcess, jobs: list[Job[Any]]) -> list[Job[Any]]:
    """The worker is stopped first: its state is then that at the kill."""
    if not processes.starts("slow"):
        return []
    worker.signal(signal.SIGSTOP)
    found = [job for job in jobs if processes.job(job).state is State.RUNNING]
    if not found:
        worker.signal(signal.SIGCONT)
    return found


def _ran_in_the_second_attempt_only(processes: WorkerProcesses, job: Job[Any], rescuer: WorkerProcess) -> None:
    done = processes.wait(job)
    assert (done.state, done.attempt, done.losses) == (State.SUCCEEDED, 2, 1)
    assert processes.client.result(job) == rescuer.pid
    assert processes.outcomes(job) == ["lost", "succeeded"]
    key = fault_tasks.app.tasks[job.task].arguments(job.payload_json)[0][0]
    assert [note.pid for note in processes.notes("start", key)] == [rescuer.pid]


def _ran_twice(processes: WorkerProcesses, job: Job[Any], rescuer: WorkerProcess, *, ends: int) -> None:
    done = processes.wait(job)
    assert (done.state, done.attempt, done.losses) == (State.SUCCEEDED, 2, 1)
    assert processes.client.result(job) == rescuer.pid
    assert processes.outcomes(job) == ["lost", "succeeded"]
    key = fault_tasks.app.tasks[job.task].arguments(job.payload_json)[0][0]
    starts = [note.pid for note in processes.notes("start", key)]
    assert len(starts) == 2
    assert starts[0] != starts[1] == rescuer.pid
    assert len(processes.notes("end", key)) == ends


def _ran_once(processes: WorkerProcesses, job: Job[Any], rescuer: WorkerProcess) -> None:
    done = processes.wait(job)
    assert (done.state, done.attempt, done.losses) == (State.SUCCEEDED, 1, 0)
    assert processes.client.result(job) != rescuer.pid
    assert processes.outcomes(job) == ["succeeded"]
    assert processes.starts("after-settle") == 1
