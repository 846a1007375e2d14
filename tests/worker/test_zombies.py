"""Workers that were thought dead and come back, event loops that are blocked, handlers that do not listen."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from relet import Job, State
from tests.worker import fault_tasks
from tests.worker.processes import LEASE, TIMEOUT, WorkerProcess, WorkerProcesses, wait_until

pytestmark = pytest.mark.every_store

LONG = 3 * LEASE
ANY_STORE = pytest.mark.parametrize("processes", ["sqlite"], indirect=True)  # the store has no part in it


@pytest.mark.long("sqlite")
def test_a_worker_stopped_for_three_leases_loses_its_jobs_tells_its_handlers_and_goes_on(
    processes: WorkerProcesses,
) -> None:
    gate = processes.folder / "no renewals"
    jobs = processes.enqueue(
        fault_tasks.nap.draft("async", TIMEOUT),
        fault_tasks.checking.draft("thread", TIMEOUT),
        fault_tasks.work.draft("late", 2.0),
    )
    zombie = processes.worker(TASKS_GATE=str(gate))
    keys = ("async", "thread", "late")
    for key in keys:
        processes.wait_for_note("start", key)
    _stop_without_locks(processes, zombie)
    stopped = time.monotonic()
    new_owner = processes.worker()
    done = [processes.wait(job) for job in jobs]
    assert [processes.client.result(job) for job in jobs] == [new_owner.pid] * 3
    assert [len(processes.notes("end", key)) for key in keys] == [1] * 3
    time.sleep(max(stopped + LONG - time.monotonic(), 0.0))
    # The one that is over as soon as its worker goes on tries to settle before a heartbeat can tell it not to.
    gate.touch()
    zombie.signal(signal.SIGCONT)
    processes.wait_for_note("end", "late", 2)
    wait_until(lambda: "its outcome is not recorded" in zombie.log, "a settle that is refused")
    gate.unlink()
    assert processes.wait_for_note("cancelled", "async").detail == "relet: lease_lost"
    wait_until(lambda: _reasons(processes)[-1:] == ["lease_lost"], "the thread to hear of its loss")
    assert [len(processes.notes("end", key)) for key in keys] == [1, 1, 2]
    _nothing_was_recorded(processes, done, new_owner)
    new_owner.terminate()
    (another,) = processes.enqueue(fault_tasks.quick.draft("another"))
    assert processes.client.result(another, timeout=TIMEOUT) == zombie.pid


def _reasons(processes: WorkerProcesses) -> list[str]:
    return [note.detail for note in processes.notes("aborted", "thread")]


def _nothing_was_recorded(processes: WorkerProcesses, done: list[Job[Any]], new_owner: WorkerProcess) -> None:
    for before in done:
        now = processes.job(before)
        assert now == before
        assert (now.state, now.attempt, now.version, now.losses) == (State.SUCCEEDED, 2, 2, 1)
        assert processes.client.result(now) == new_owner.pid
        assert processes.outcomes(now) == ["lost", "succeeded"]


def _stop_without_locks(processes: WorkerProcesses, worker: WorkerProcess) -> None:
    """A process that is stopped in the middle of a write to SQLite holds up everybody: that is not the question."""

    def stopped() -> bool:
        worker.signal(signal.SIGSTOP)
        if processes.kind != "sqlite" or _is_free(processes.url.removeprefix("sqlite:///")):
            return True
        worker.signal(signal.SIGCONT)
        return False

    wait_until(stopped, "a moment at which the worker does not write")


def _is_free(path: str) -> bool:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0.5)) as connection:
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError:
            return False
        connection.execute("rollback")
        return True


@pytest.mark.long("sqlite")
def test_a_handler_that_blocks_the_event_loop_for_three_leases_keeps_its_job(processes: WorkerProcesses) -> None:
    blocked = processes.worker("-q", "blocked")
    (job,) = processes.enqueue(fault_tasks.block.using(queue="blocked").draft("block", LONG))
    start = processes.wait_for_note("start", "block")
    processes.worker()
    (proof,) = processes.enqueue(fault_tasks.nap.draft("proof", 0.0))
    processes.wait(proof)
    assert not processes.notes("end", "block"), "the other worker was to be there while it blocks"
    done = processes.wait(job)
    assert time.monotonic() - start.moment >= LONG
    assert (done.state, done.attempt, done.version, done.losses) == (State.SUCCEEDED, 1, 1, 0)
    assert processes.client.result(job) == blocked.pid
    assert processes.starts("block") == 1


@pytest.mark.parametrize("handler", [fault_tasks.stubborn, fault_tasks.deaf], ids=["async", "thread"])
def test_a_handler_that_ignores_its_cancellation_ends_cancelled_when_it_ends(
    processes: WorkerProcesses, handler: Any
) -> None:
    let_go = processes.folder / "let go"
    (job,) = processes.enqueue(handler.draft("stubborn", str(let_go)))
    worker = processes.worker("-c", "2")
    processes.wait_for_note("start", "stubborn")
    assert processes.client.cancel(job).state is State.RUNNING
    wait_until(lambda: "cancelled on request" in worker.log, "the request to reach the worker")
    if handler is fault_tasks.stubborn:
        assert processes.wait_for_note("caught", "stubborn").detail == "CancelledError"
    _is_usable(processes, worker)
    asked = processes.job(job)
    assert (asked.state, asked.request) == (State.RUNNING, "cancel")
    let_go.touch()
    done = processes.wait(job)
    assert (done.state, done.result_json, done.losses) == (State.CANCELLED, None, 0)
    assert processes.starts("stubborn") == 1


@ANY_STORE
def test_a_handler_that_ignores_its_timeout_is_settled_without_it_and_keeps_its_slot(
    processes: WorkerProcesses,
) -> None:
    let_go = processes.folder / "let go"
    handlers = {"stubborn": fault_tasks.stubborn, "deaf": fault_tasks.deaf}
    jobs = processes.enqueue(*(each.using(timeout=0.3).draft(key, str(let_go)) for key, each in handlers.items()))
    worker = processes.worker("-c", "3", "--lease", "10")
    for job in jobs:
        done = processes.wait(job)
        assert (done.state, done.attempt, done.losses) == (State.FAILED, 1, 0)
        assert done.error == "timed out after 0.3 s"
    assert not processes.notes("end")
    _is_usable(processes, worker)
    _has_one_slot_left(processes)
    let_go.touch()
    for key, job in zip(handlers, jobs, strict=True):
        processes.wait_for_note("end", key)
        assert processes.starts(key) == 1
        assert processes.job(job).result_json is None
    _has_slots_again(processes, 3)
    assert [processes.job(job).state for job in jobs] == [State.FAILED] * 2


@pytest.mark.long
@ANY_STORE
def test_a_handler_that_ignores_its_timeout_is_not_taken_for_a_lost_worker(processes: WorkerProcesses) -> None:
    """Its lease is not renewed any more, and is shorter than the moment that a handler has to end by itself."""
    let_go = processes.folder / "let go"
    (job,) = processes.enqueue(fault_tasks.deaf.using(timeout=1.6).draft("deaf", str(let_go)))
    processes.worker("--lease", "0.2")  # which reaps from 1.5 s after its start on, as the store was new
    done = processes.wait(job, timeout=10)
    assert (done.state, done.error, done.losses) == (State.FAILED, "timed out after 1.6 s", 0)
    assert processes.starts("deaf") == 1


def _is_usable(processes: WorkerProcesses, worker: WorkerProcess) -> None:
    drafts = [fault_tasks.nap.draft("usable, async", 0.0), fault_tasks.work.draft("usable, thread", 0.0)]
    for job in processes.enqueue(*drafts):
        assert processes.client.result(job, timeout=TIMEOUT) == worker.pid


def _has_one_slot_left(processes: WorkerProcesses) -> None:
    """Two jobs at once are one too many: they come one after the other."""
    for job in processes.enqueue(fault_tasks.work.draft("one", 0.2), fault_tasks.work.draft("two", 0.2)):
        processes.wait(job)
    moments = {key: [note.moment for note in processes.notes(key=key)] for key in ("one", "two")}
    first, second = sorted(moments.values())
    assert first[1] <= second[0]


def _has_slots_again(processes: WorkerProcesses, number: int) -> None:
    """So many jobs run at once, as none of them ends before all have begun."""
    let_go = processes.folder / "let go again"
    jobs = processes.enqueue(*(fault_tasks.deaf.draft(f"slot {n}", str(let_go)) for n in range(number)))
    for n in range(number):
        processes.wait_for_note("start", f"slot {n}")
    let_go.touch()
    for job in jobs:
        assert processes.wait(job).state is State.SUCCEEDED
