"""Open transactions, stopped processes, refused rows, partitions, ids: each a trap for a design which looks right."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from relet._core.ids import make_id
from relet._core.job import Lease, Outcome, Raised, State, Succeeded
from relet._store.adapters.drivers import run_on
from relet._store.flows import control, enqueue, settle, stats
from relet._store.flows.stats import Count
from relet._store.postgres import PostgresStore
from relet._store.retry import RetryFor
from relet._store.runner import drive
from relet.errors import RowRejected, StoreBusy
from tests import forks
from tests.databases import Database
from tests.harness import StoreHarness, draft, half, store_harness, token
from tests.store.interleave import Background

pytestmark = pytest.mark.every_store

# Two who do the same at once.


def test_of_two_who_sum_up_statistics_at_once_one_counts(pg_harness: StoreHarness) -> None:
    """What is old is counted in longer steps by one statement, and removed by another."""
    with pg_harness.at(pg_harness.now - 5 * 3600):
        pg_harness.run(stats.add, [Count("q", "succeeded", 7)])
    first = pg_harness.session()
    first.leave_open(stats.roll_up())
    second = Background(lambda: pg_harness.run(stats.roll_up))
    assert second.blocked
    first.commit()
    second.result()
    while pg_harness.run(stats.roll_up):
        pass
    points = pg_harness.run(stats.stats, pg_harness.now - 86400, None, step=600, queues=["q"])
    assert [point.counts for point in points] == [{"succeeded": 7}]
    assert pg_harness.count("stats", "step in (60, -60)") == 0


# An open transaction of a handler, and processes that stop in the middle.


def test_an_open_completion_holds_up_neither_renewal_nor_reaping_nor_cancel(
    pg_harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relet._store.store.DEFAULT_RETRY", RetryFor(0.1))
    pg_harness.enqueue(*(draft() for _ in range(3)))
    mine, *others = pg_harness.claim()
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(mine.lease, Succeeded("1"))], half))
    answer = Background(lambda: pg_harness.later(60).renew(*(job.lease for job in [mine, *others]))).result(5)
    assert (list(answer.locked), sorted(answer.renewed), answer.lost) == (
        [mine.lease],
        sorted(job.lease for job in others),
        [],
    )
    assert Background(pg_harness.reap).result(5) == []
    with pytest.raises(StoreBusy):
        Background(lambda: pg_harness.store.run_with(RetryFor(0.1), control.cancel, mine.id)).result(8)
    handler.commit()
    assert pg_harness.state(mine.id) is State.SUCCEEDED


def test_a_zombie_that_completes_in_its_transaction_is_told_inside_it(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new()
    handler = pg_harness.session()
    handler.execute("begin")
    pg_harness.later(60).reap()
    (settled,) = handler.leave_open(settle.settle([(job.lease, Succeeded("1"))], half))
    assert settled.state is None


def test_a_completion_that_rolled_back_leaves_the_job_as_it_was(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new(unique="k", target="x")
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(job.lease, Succeeded("1", continue_with=draft()))], half))
    handler.roll_back()
    assert (pg_harness.count("jobs"), pg_harness.count("finished"), pg_harness.count("keys")) == (1, 0, 1)
    assert list(pg_harness.renew(job.lease).renewed) == [job.lease]
    assert pg_harness.settle((job.lease, Raised("completion rolled back"))) == [State.PENDING]


STOPPED = """
import os, signal, sys
from relet._store import postgres
from relet._store.query import Query
from relet._store.postgres import PostgresStore
from tests.harness import StoreHarness
harness = StoreHarness(PostgresStore(sys.argv[1], schema=sys.argv[2]))
harness.stop_clock()
execute = postgres.OwnConnection.execute
def stop_after(self, query):
    rows = execute(self, query)
    if query.name == sys.argv[3] and not os.environ.pop("STOPPED", ""):
        os.environ["STOPPED"] = "1"
        print("stopped", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        postgres.OwnConnection.execute = execute
    return rows
postgres.OwnConnection.execute = stop_after
stopped_in_promote = sys.argv[3] == "promote/take_nudges"
print(len(harness.promote().promoted if stopped_in_promote else harness.claim(1)), flush=True)
"""


@pytest.mark.parametrize("point", ["promote/take_nudges", "limits/lock"])
def test_a_process_stopped_in_the_middle_of_a_transaction_does_not_stop_the_others(
    pg_database: Database, pg_harness: StoreHarness, point: str
) -> None:
    """The server ends its transaction; and once it goes on, it tries again rather than give up."""
    pg_harness.limit("default", 5)
    pg_harness.enqueue(draft(target="x"), draft())
    command = [sys.executable, "-c", STOPPED, pg_database.url, pg_database.schema, point]
    with forks.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "stopped\n", process.stderr.read()
            started = time.monotonic()
            if point == "limits/lock":
                assert len(Background(lambda: pg_harness.claim(1)).result(8)) == 1
                pg_harness.add()
            else:
                assert len(Background(pg_harness.promote).result(8).promoted) == 1
                pg_harness.enqueue(draft(target="y"))
            assert time.monotonic() - started < 5
            process.send_signal(signal.SIGCONT)
            assert process.wait(20) == 0, process.stderr.read()
            assert process.stdout.read() == "1\n"
        finally:
            process.kill()


# Rows that the database refuses, and partitions.


@pytest.mark.partitioned
def test_a_batch_with_a_row_that_the_database_refuses_changes_nothing_and_its_parts_go_through(
    pg_harness: StoreHarness,
) -> None:
    pg_harness.enqueue(*(draft() for _ in range(3)))
    one, bad, two = pg_harness.claim()
    outcomes: list[tuple[Lease, Outcome]] = [
        (one.lease, Succeeded("1")),
        (bad.lease, Succeeded("{not json")),
        (two.lease, Raised("x")),
    ]
    with pytest.raises(RowRejected, match="json"):
        pg_harness.settle(*outcomes)
    assert {pg_harness.state(job.id) for job in (one, bad, two)} == {State.RUNNING}
    assert pg_harness.settle(outcomes[0]) + pg_harness.settle(outcomes[2]) == [State.SUCCEEDED, State.PENDING]
    assert pg_harness.settle((bad.lease, Raised("result refused", fatal=True))) == [State.FAILED]


@pytest.mark.parametrize("text", ["nul \x00 in it", "\ud800 alone", "\N{SNOWMAN}" * 100_000])
def test_a_settle_never_fails_because_of_the_text_of_an_error(harness: StoreHarness, text: str) -> None:
    job = harness.claim_new()
    assert harness.settle((job.lease, Raised(text, fatal=True))) == [State.FAILED]


def test_a_settle_makes_the_partition_that_is_missing(pg_harness: StoreHarness) -> None:
    for days in (-400, 40):
        id = make_id(time.time() + days * 86400, os.urandom(10))
        pg_harness.enqueue(draft(id=id))
        (job,) = pg_harness.claim()
        assert pg_harness.succeed(job) is State.SUCCEEDED
        assert pg_harness.state(id) is State.SUCCEEDED


def test_a_missing_partition_is_made_whatever_language_the_server_speaks(
    pg_harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What decides is the error's code, not its words."""
    original = psycopg.Error.__str__
    monkeypatch.setattr(
        psycopg.Error, "__str__", lambda error: original(error).replace("no partition", "keine Partition")
    )
    pg_harness.enqueue(draft(id=make_id(time.time() - 99 * 86400, os.urandom(10))))
    (job,) = pg_harness.claim()
    assert pg_harness.succeed(job) is State.SUCCEEDED


def test_a_reap_a_cancel_and_a_promote_make_the_partition_that_is_missing(pg_harness: StoreHarness) -> None:
    old = [make_id(time.time() - days * 86400, os.urandom(10)) for days in (100, 101, 102)]
    pg_harness.enqueue(draft(id=old[0]))
    (job,) = pg_harness.claim()
    pg_harness.run(control.cancel, job.id)
    pg_harness.later(60).reap()
    pg_harness.enqueue(draft(id=old[1]))
    pg_harness.run(control.cancel, old[1])
    blocker = pg_harness.claim_new()
    pg_harness.enqueue(draft(id=old[2], depends_on=(blocker.id,), policy={"on_dependency_failure": "cancel"}))
    pg_harness.fail(blocker)
    pg_harness.promote_until_idle()
    assert [pg_harness.state(id) for id in old] == [State.CANCELLED] * 3


@pytest.mark.long
def test_dropping_old_partitions_does_not_lose_a_job_that_finishes_in_one_at_that_moment(
    pg_harness: StoreHarness,
) -> None:
    assert isinstance(pg_harness.store, PostgresStore)
    store = pg_harness.store
    old = time.time() - 30 * 86400
    pg_harness.enqueue(draft(id=make_id(old, os.urandom(10))), draft(id=make_id(old, os.urandom(10))))
    first, second = pg_harness.claim()
    pg_harness.succeed(first)  # makes the partition
    pg_harness.query("update {s}finished set finished_at = now() - interval '30 days'")
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(second.lease, Succeeded("1"))], half))
    dropping = Background(lambda: store.drop_old(7 * 86400.0))
    _ = dropping.blocked
    handler.commit()
    dropping.result()
    assert pg_harness.state(second.id) is State.SUCCEEDED


def test_settles_go_on_while_a_partition_is_dropped_under_an_open_completion(pg_harness: StoreHarness) -> None:
    assert isinstance(pg_harness.store, PostgresStore)
    store = pg_harness.store
    old = time.time() - 30 * 86400
    pg_harness.enqueue(*(draft(id=make_id(old, os.urandom(10))) for _ in range(3)), draft())
    jobs = {job.id: job for job in pg_harness.claim()}
    first, second, third, fresh = (jobs[id] for id in sorted(jobs))
    pg_harness.succeed(first)
    pg_harness.query("update {s}finished set finished_at = now() - interval '30 days'")
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(second.lease, Succeeded("1"))], half))
    dropping = Background(lambda: store.drop_old(7 * 86400.0))
    assert Background(lambda: pg_harness.succeed(fresh)).result(5) is State.SUCCEEDED
    assert Background(lambda: pg_harness.succeed(third)).result(5) is State.SUCCEEDED
    handler.commit()
    dropping.result()
    assert pg_harness.state(third.id) is State.SUCCEEDED


# Ids.


def test_an_enqueue_repeated_with_the_id_of_a_finished_job_returns_it(harness: StoreHarness) -> None:
    job = harness.claim_new()
    harness.succeed(job)
    (again,) = harness.enqueue(draft(id=job.id, fresh=False))
    assert (again.existing, again.state) == (True, State.SUCCEEDED)
    assert harness.count("jobs") == 0


@pytest.mark.read_committed
def test_an_id_that_lives_and_finishes_between_two_statements_of_an_enqueue_is_not_revived(
    pg_harness: StoreHarness,
) -> None:
    blocker = pg_harness.claim_new(queue="elsewhere")
    new = draft(fresh=False, unique="k", target="x", depends_on=(blocker.id,))
    steps = pg_harness.session().steps(enqueue.enqueue([new]))
    steps.before("enqueue/take_keys")
    pg_harness.enqueue(new)
    pg_harness.run(control.complete, new.id, None)
    (job,) = steps.finish()
    assert (job.existing, job.state) == (True, State.SUCCEEDED)
    assert (pg_harness.count("jobs", "queue = 'default'"), pg_harness.count("keys")) == (0, 0)
    pg_harness.promote_until_idle()


@pytest.mark.read_committed
def test_an_enqueue_repeated_while_its_job_is_completed_in_an_open_transaction_is_not_a_second_job(
    pg_harness: StoreHarness,
) -> None:
    new = draft(fresh=False)
    steps = pg_harness.session().steps(enqueue.enqueue([new]))
    steps.before("enqueue/insert")
    pg_harness.enqueue(new)
    (job,) = pg_harness.claim()
    handler = pg_harness.session()
    handler.leave_open(settle.settle([(job.lease, Succeeded("1"))], half))
    repeating = Background(steps.finish)
    assert repeating.blocked
    handler.commit()
    assert repeating.result()[0].state is State.SUCCEEDED
    assert pg_harness.count("jobs") == 0


# SQLite.


def test_two_threads_on_one_memory_store_claim_each_job_once(sqlite_url: str, schema: str) -> None:
    with store_harness(sqlite_url, schema) as harness:
        harness.enqueue(*(draft() for _ in range(200)))
        found: list[str] = []

        def work() -> None:
            while jobs := harness.claim(3, worker=token()):
                found.extend(job.id for job in jobs)
                harness.settle(*((job.lease, Succeeded("1")) for job in jobs))

        for thread in [Background(work) for _ in range(4)]:
            thread.result(60)
        assert len(found) == len(set(found)) == 200


def test_a_callers_deferred_transaction_that_has_read_gets_a_clear_error_when_it_enqueues_too_late(
    tmp_path: Path, schema: str
) -> None:
    path = tmp_path / "relet.db"
    with store_harness(f"sqlite:///{path}", schema) as harness:
        caller = sqlite3.connect(path, isolation_level=None)
        try:
            caller.execute("begin")
            caller.execute("select count(*) from relet_jobs").fetchall()
            harness.add()  # its snapshot is old now: it can never write
            with pytest.raises(StoreBusy, match=r"(?i)immediate"):
                run_on(harness.store, caller, enqueue.enqueue, [draft()])
            caller.execute("rollback")
            caller.execute("begin immediate")
            (job,) = run_on(harness.store, caller, enqueue.enqueue, [draft()])
            caller.execute("commit")
        finally:
            caller.close()
        assert harness.state(job.id) is State.QUEUED
        assert harness.count("jobs") == 2


def test_a_completion_in_a_repeatable_read_transaction_survives_a_heartbeat_or_says_that_it_may_be_tried_again(
    pg_harness: StoreHarness,
) -> None:
    """The heartbeat changed the row after the handler's snapshot: PostgreSQL refuses, and nothing is half done."""
    job = pg_harness.claim_new()
    handler = pg_harness.session()
    handler.execute("begin isolation level repeatable read")
    handler.execute("select 1")
    pg_harness.renew(job.lease)
    try:
        (settled,) = drive(settle.settle([(job.lease, Succeeded("1"))], half), handler.connection)[0]
        handler.execute("commit")
    except psycopg.errors.SerializationFailure:
        handler.execute("rollback")
        assert pg_harness.state(job.id) is State.RUNNING
        assert pg_harness.succeed(job) is State.SUCCEEDED
    else:
        assert settled.state is pg_harness.state(job.id) is State.SUCCEEDED
