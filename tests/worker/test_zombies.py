"""Workers that were thought dead and come back, event loops that are blocked, handlers that do not listen."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from relet import Job, State
from tests.worker import victim
from tests.worker.processes import LEASE, PATIENCE, Theatre, WorkerProcess, wait_until

pytestmark = pytest.mark.every_store

LONG = 3 * LEASE
ANY_STORE = pytest.mark.parametrize("theatre", ["sqlite"], indirect=True)  # the store has no part in it


@pytest.mark.long("sqlite")
def test_a_worker_stopped_for_three_leases_loses_its_jobs_tells_its_handlers_and_goes_on(theatre: Theatre) -> None:
    gate = theatre.folder / "no renewals"
    jobs = theatre.enqueue(
        victim.nap.draft("async", PATIENCE), victim.checking.draft("thread", PATIENCE), victim.work.draft("late", 2.0)
    )
    zombie = theatre.worker(VICTIM_GATE=str(gate))
    keys = ("async", "thread", "late")
    for key in keys:
        theatre.wait_for_note("start", key)
    _stop_without_locks(theatre, zombie)
    stopped = time.monotonic()
    heir = theatre.worker()
    done = [theatre.wait(job) for job in jobs]
    assert [theatre.client.result(job) for job in jobs] == [heir.pid] * 3
    assert [len(theatre.notes("end", key)) for key in keys] == [1] * 3
    time.sleep(max(stopped + LONG - time.monotonic(), 0.0))
    # The one that is over as soon as its worker goes on tries to settle before a heartbeat can tell it not to.
    gate.touch()
    zombie.signal(signal.SIGCONT)
    theatre.wait_for_note("end", "late", 2)
    wait_until(lambda: "its outcome is not recorded" in zombie.log, "a settle that is refused")
    gate.unlink()
    assert theatre.wait_for_note("cancelled", "async").detail == "relet: lease_lost"
    wait_until(lambda: _reasons(theatre)[-1:] == ["lease_lost"], "the thread to hear of its loss")
    assert [len(theatre.notes("end", key)) for key in keys] == [1, 1, 2]
    _nothing_was_recorded(theatre, done, heir)
    heir.terminate()
    (another,) = theatre.enqueue(victim.quick.draft("another"))
    assert theatre.client.result(another, timeout=PATIENCE) == zombie.pid


def _reasons(theatre: Theatre) -> list[str]:
    return [note.detail for note in theatre.notes("aborted", "thread")]


def _nothing_was_recorded(theatre: Theatre, done: list[Job[Any]], heir: WorkerProcess) -> None:
    for before in done:
        now = theatre.job(before)
        assert now == before
        assert (now.state, now.attempt, now.version, now.losses) == (State.SUCCEEDED, 2, 2, 1)
        assert theatre.client.result(now) == heir.pid
        assert theatre.outcomes(now) == ["lost", "succeeded"]


def _stop_without_locks(theatre: Theatre, worker: WorkerProcess) -> None:
    """A process that is stopped in the middle of a write to SQLite holds up everybody: that is not the question."""

    def stopped() -> bool:
        worker.signal(signal.SIGSTOP)
        if theatre.kind != "sqlite" or _is_free(theatre.url.removeprefix("sqlite:///")):
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
def test_a_handler_that_blocks_the_event_loop_for_three_leases_keeps_its_job(theatre: Theatre) -> None:
    blocked = theatre.worker("-q", "blocked")
    (job,) = theatre.enqueue(victim.block.using(queue="blocked").draft("block", LONG))
    start = theatre.wait_for_note("start", "block")
    theatre.worker()
    (proof,) = theatre.enqueue(victim.nap.draft("proof", 0.0))
    theatre.wait(proof)
    assert not theatre.notes("end", "block"), "the other worker was to be there while it blocks"
    done = theatre.wait(job)
    assert time.monotonic() - start.moment >= LONG
    assert (done.state, done.attempt, done.version, done.losses) == (State.SUCCEEDED, 1, 1, 0)
    assert theatre.client.result(job) == blocked.pid
    assert theatre.starts("block") == 1


@pytest.mark.parametrize("handler", [victim.stubborn, victim.deaf], ids=["async", "thread"])
def test_a_handler_that_ignores_its_cancellation_ends_cancelled_when_it_ends(theatre: Theatre, handler: Any) -> None:
    let_go = theatre.folder / "let go"
    (job,) = theatre.enqueue(handler.draft("stubborn", str(let_go)))
    worker = theatre.worker("-c", "2")
    theatre.wait_for_note("start", "stubborn")
    assert theatre.client.cancel(job).state is State.RUNNING
    wait_until(lambda: "cancelled on request" in worker.log, "the request to reach the worker")
    if handler is victim.stubborn:
        assert theatre.wait_for_note("caught", "stubborn").detail == "CancelledError"
    _is_usable(theatre, worker)
    asked = theatre.job(job)
    assert (asked.state, asked.request) == (State.RUNNING, "cancel")
    let_go.touch()
    done = theatre.wait(job)
    assert (done.state, done.result_json, done.losses) == (State.CANCELLED, None, 0)
    assert theatre.starts("stubborn") == 1


@ANY_STORE
def test_a_handler_that_ignores_its_timeout_is_settled_without_it_and_keeps_its_slot(theatre: Theatre) -> None:
    let_go = theatre.folder / "let go"
    handlers = {"stubborn": victim.stubborn, "deaf": victim.deaf}
    jobs = theatre.enqueue(*(each.using(timeout=0.3).draft(key, str(let_go)) for key, each in handlers.items()))
    worker = theatre.worker("-c", "3", "--lease", "10")
    for job in jobs:
        done = theatre.wait(job)
        assert (done.state, done.attempt, done.losses) == (State.FAILED, 1, 0)
        assert done.error == "timed out after 0.3 s"
    assert not theatre.notes("end")
    _is_usable(theatre, worker)
    _has_one_slot_left(theatre)
    let_go.touch()
    for key, job in zip(handlers, jobs, strict=True):
        theatre.wait_for_note("end", key)
        assert theatre.starts(key) == 1
        assert theatre.job(job).result_json is None
    _has_slots_again(theatre, 3)
    assert [theatre.job(job).state for job in jobs] == [State.FAILED] * 2


@ANY_STORE
def test_a_handler_that_ignores_its_timeout_is_not_taken_for_a_lost_worker(theatre: Theatre) -> None:
    """Its lease is not renewed any more, and is shorter than the moment that a handler has to end by itself."""
    let_go = theatre.folder / "let go"
    (job,) = theatre.enqueue(victim.deaf.using(timeout=1.6).draft("deaf", str(let_go)))
    theatre.worker("--lease", "0.2")  # which reaps from 1.5 s after its start on, as the store was new
    done = theatre.wait(job, timeout=10)
    assert (done.state, done.error, done.losses) == (State.FAILED, "timed out after 1.6 s", 0)
    assert theatre.starts("deaf") == 1


def _is_usable(theatre: Theatre, worker: WorkerProcess) -> None:
    drafts = [victim.nap.draft("usable, async", 0.0), victim.work.draft("usable, thread", 0.0)]
    for job in theatre.enqueue(*drafts):
        assert theatre.client.result(job, timeout=PATIENCE) == worker.pid


def _has_one_slot_left(theatre: Theatre) -> None:
    """Two jobs at once are one too many: they come one after the other."""
    for job in theatre.enqueue(victim.work.draft("one", 0.2), victim.work.draft("two", 0.2)):
        theatre.wait(job)
    moments = {key: [note.moment for note in theatre.notes(key=key)] for key in ("one", "two")}
    first, second = sorted(moments.values())
    assert first[1] <= second[0]


def _has_slots_again(theatre: Theatre, number: int) -> None:
    """So many jobs run at once, as none of them ends before all have begun."""
    let_go = theatre.folder / "let go again"
    jobs = theatre.enqueue(*(victim.deaf.draft(f"slot {n}", str(let_go)) for n in range(number)))
    for n in range(number):
        theatre.wait_for_note("start", f"slot {n}")
    let_go.touch()
    for job in jobs:
        assert theatre.wait(job).state is State.SUCCEEDED
