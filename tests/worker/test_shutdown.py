"""P2: a signal drains, a second gives everything back, a third exits. Exit never hangs."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from relet._store.flows import lease
from tests.harness import harness_of
from tests.servers import PrivateServer, Server
from tests.worker.programs import TIMEOUT, Shop, a_shop, gone

LEASE = "2"
BOTH = (signal.SIGTERM, signal.SIGINT)
SOON = 8.0  # an exit takes at most 0.3 + 2 + 2 seconds after a second signal; the rest is for the machine
HOLDING = ("hold", "hold_in_thread", "hold_in_process")
STUCK = ("hold", "stuck", "stuck_in_process")
DEAF = ("deaf", "deaf_in_thread", "deaf_in_process")


def reap_for(shop: Shop, seconds: float) -> None:
    """The verbs of other workers meanwhile."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        harness_of(shop.app).record_pulse()
        assert shop.app._store().run(lease.reap, random.random) == []
        time.sleep(0.05)


@contextmanager
def writes_blocked(shop: Shop) -> Iterator[None]:
    """Another process has the write lock of the SQLite file."""
    with closing(sqlite3.connect(shop.place / "relet.db", isolation_level=None, timeout=TIMEOUT)) as other:
        other.execute("begin immediate")
        yield


def assert_given_back(shop: Shop, *tasks: str) -> None:
    """Queued again, as if no worker had ever run them."""
    jobs = [job for job in shop.client.jobs().jobs if job.task in tasks]
    assert {job.task for job in jobs} == set(tasks)
    assert {(job.state, job.attempt, job.losses) for job in jobs} == {("queued", 0, 0)}


def test_one_signal_lets_running_jobs_end_under_their_leases(shop: Shop) -> None:
    # The handlers ask whether they may go on: a short lease would be in doubt on a loaded machine.
    workers = [shop.start("-c", "3", "--lease", "4") for _ in BOTH]
    running = [job for task in HOLDING for job in shop.enqueue(task, number=2)]
    shop.started(*running)
    for worker, number in zip(workers, BOTH, strict=True):
        worker.send(number).says("Stopping: ")
    late = shop.one("quick")
    reap_for(shop, 5.0)  # longer than the lease
    assert shop.job(late).state == "queued"  # no more claims
    shop.go()
    assert [worker.code() for worker in workers] == [0, 0]
    assert {(shop.job(job).state, shop.job(job).attempt) for job in running} == {("succeeded", 1)}
    assert shop.job(late).state == "queued"
    assert "Traceback" not in shop.logs


def test_jobs_claimed_in_advance_are_released_uncounted(shop: Shop) -> None:
    worker = shop.start("-c", "1")
    shop.enqueue("quick", number=30)
    shop.over("succeeded")  # now it knows that jobs are quick
    jobs = shop.client.enqueue_many(
        [shop.app.tasks["hold"].draft(), *(shop.app.tasks["quick"].draft() for _ in range(10))]
    )
    shop.started(jobs[0])
    assert shop.client.count(state="running") > 1, "nothing was taken in advance, so that this shows nothing"
    worker.send(signal.SIGTERM).says("Stopping: ")
    shop.over("succeeded", "queued", "running")
    shop.go()
    assert worker.code() == 0
    assert shop.job(jobs[0]).state == "succeeded"
    assert {(shop.job(job).state, shop.job(job).attempt) for job in jobs[1:]} == {("queued", 0)}
    assert not any(shop.notes("start", job.id) for job in jobs[1:])


def test_when_the_grace_is_over_jobs_are_aborted_and_given_back_or_paused(shop: Shop) -> None:
    jobs = {task: shop.one(task) for task in (*HOLDING, "hold_or_pause")}
    worker = shop.start("--shutdown-timeout", "0.3")
    shop.started(*jobs.values())
    assert worker.send(signal.SIGTERM).code() == 0
    for job in jobs.values():
        assert [line[2] for line in shop.notes("stopped", job.id)] == ["shutdown"]
    assert_given_back(shop, *HOLDING)
    paused = shop.job(jobs["hold_or_pause"])
    assert (paused.state, paused.attempt) == ("paused", 0)


def test_a_second_signal_gives_everything_back_at_once(shop: Shop) -> None:
    workers = [shop.start("-c", "3") for _ in BOTH]
    jobs = [job for task in STUCK for job in shop.enqueue(task, number=2)]
    shop.started(*jobs)
    for worker, number in zip(workers, BOTH, strict=True):
        worker.send(number, times=2)
    assert [worker.code(SOON) for worker in workers] == [0, 0]
    assert_given_back(shop, *STUCK)


def test_a_third_signal_exits(shop: Shop) -> None:
    workers = [shop.start("-c", "3") for _ in BOTH]
    jobs = [job for task in DEAF for job in shop.enqueue(task, number=2)]
    shop.started(*jobs)
    with writes_blocked(shop):  # so that the second signal takes its time
        for worker, number in zip(workers, BOTH, strict=True):
            worker.send(number, times=3)
            assert worker.code(2.0) == 128 + number


def test_signals_that_come_together_count_once(shop: Shop) -> None:
    """`timeout` sends its signal to the process, and again to the group."""
    worker = shop.start("-c", "1")
    job = shop.one("hold")
    shop.started(job)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        worker.process.send_signal(number)
    worker.says("waiting up to 5 min")
    shop.go()
    assert worker.code() == 0
    assert worker.log.count("relet.worker: Received SIG") == 1
    assert (shop.job(job).state, shop.job(job).attempt) == ("succeeded", 1)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_worker_that_has_stopped_exits_in_good_order_whatever_signals_come_late(shop: Shop, processes: int) -> None:
    """Also while the interpreter shuts down, from the moment on at which everything is settled."""
    for started, number in enumerate(BOTH, start=1):
        worker = shop.run("worker", "shop:app", "--processes", str(processes))
        shop.noted("WorkerStarted", times=started * processes)
        worker.send(number).says("relet.worker: Stopped", times=processes)
        if processes > 1:
            gone(*worker.children)
        while worker.runs:
            worker.process.send_signal(number)
            time.sleep(0.002)
        assert worker.code() == 0


def test_handlers_that_catch_everything_do_not_hold_up_the_exit(shop: Shop) -> None:
    workers = [shop.start("-c", "3", "--shutdown-timeout", "0.3"), shop.start("-c", "3")]
    jobs = [job for task in DEAF for job in shop.enqueue(task, number=2)]
    shop.started(*jobs)
    for signals, worker in enumerate(workers, start=1):
        worker.send(signal.SIGTERM, times=signals)
    assert [worker.code(SOON) for worker in workers] == [0, 0]
    assert_given_back(shop, *DEAF)


def test_a_blocked_event_loop_does_not_hold_up_the_exit(shop: Shop) -> None:
    workers = [shop.start("-c", "1", "--shutdown-timeout", grace) for grace in ("0.3", "300", "300")]
    jobs = shop.enqueue("block_the_loop", number=3)
    shop.started(*jobs)
    with writes_blocked(shop):  # so that the second signal takes its time
        assert workers.pop().send(signal.SIGTERM, times=3).code(SOON) == 128 + signal.SIGTERM
    for signals, worker in enumerate(workers, start=1):
        worker.send(signal.SIGTERM, times=signals)
    assert [worker.code(SOON) for worker in workers] == [0, 0]
    assert sorted(shop.job(job).state for job in jobs) == ["queued", "queued", "running"]


@pytest.mark.long
def test_a_thread_whose_job_is_settled_is_not_waited_for(shop: Shop) -> None:
    job = shop.one("stuck_beyond_its_timeout")
    worker = shop.start()
    shop.over("failed")
    assert worker.send(signal.SIGTERM).code(SOON) == 0
    assert shop.job(job).state == "failed"


def test_a_slot_that_rests_between_jobs_is_not_waited_for(shop: Shop) -> None:
    worker = shop.start("--rest", "60")
    shop.one("quick")
    shop.over("succeeded")
    assert worker.send(signal.SIGTERM).code(SOON) == 0


@pytest.mark.long
def test_an_idle_worker_stops_with_the_database_down(fragile_shop: Shop, fragile_server: PrivateServer) -> None:
    workers = [fragile_shop.start(), fragile_shop.start()]
    fragile_server.stop()
    for worker, number in zip(workers, BOTH, strict=True):
        worker.says("Lost connection to the database")
        assert worker.send(number).code(SOON) == 0


def test_exit_does_not_hang_with_the_database_down(fragile_shop: Shop, fragile_server: PrivateServer) -> None:
    workers = [fragile_shop.start("-c", "4", "--shutdown-timeout", grace) for grace in ("0.3", "300", "300")]
    jobs = [job for task in (*STUCK, "deaf") for job in fragile_shop.enqueue(task, number=3)]
    fragile_shop.started(*jobs)
    fragile_server.stop()
    for signals, worker in enumerate(workers, start=1):
        worker.says("Lost connection to the database").send(signal.SIGTERM, times=signals)
    assert [worker.code(SOON) for worker in workers] == [3, 3, 128 + signal.SIGTERM]
    for worker in workers[:2]:
        assert "4 jobs could not be settled" in worker.log


def test_a_job_that_ended_while_the_database_was_down_is_recorded_during_the_drain(
    fragile_shop: Shop, fragile_server: PrivateServer
) -> None:
    job = fragile_shop.one("hold")
    worker = fragile_shop.start()
    fragile_shop.started(job)
    fragile_server.stop()
    worker.says("Lost connection to the database").send(signal.SIGTERM).says("Stopping: ")
    fragile_shop.go()
    fragile_shop.noted("end", job.id)
    assert worker.runs
    fragile_server.start()
    assert worker.code() == 0
    assert (fragile_shop.job(job).state, fragile_shop.job(job).attempt) == ("succeeded", 1)


@pytest.mark.long
def test_an_idle_worker_does_not_wait_for_a_database_that_does_not_answer(
    pg_server: Server, tmp_path: Path, schema: str
) -> None:
    try:
        with a_shop(tmp_path, pg_server.dsn, schema) as shop, psycopg.connect(pg_server.dsn) as other:
            worker = shop.start("-q", "default", "-q", "unknown")  # claims, and looks up the unknown queue
            other.execute(f"lock table {schema}.jobs in access exclusive mode".encode())
            time.sleep(0.5)  # now its claim waits for the lock
            assert worker.send(signal.SIGTERM).code(SOON) == 0
    finally:
        pg_server.drop_schema(schema)
