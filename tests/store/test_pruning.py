"""Retention: finished jobs are deleted in steps of a bounded size, whichever role prunes, however many processes do."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from relet import App
from relet._core.ids import make_id
from relet._core.job import Raised, Released, Snoozed, State
from relet._store import partitions
from relet._store.flows import enqueue, inspect, maintenance
from relet._store.postgres import PostgresStore
from tests.databases import Database
from tests.harness import StoreHarness, draft
from tests.store.interleave import Background

pytestmark = pytest.mark.every_store

WEEK = 7 * 86400.0
MONTH_AGO = 30 * 86400.0


def old_id() -> str:
    return make_id(time.time() - MONTH_AGO, os.urandom(10))


def add_steps(harness: StoreHarness, id: str, number: int) -> None:
    numbers = "with recursive n(n) as (select 1 union all select n + 1 from n where n < {number}) "
    insert = (
        "insert into {s}steps (job, kind, name, result, done_at) select '{id}', 'step', 's' || n, '1', {now} from n"
    )
    if harness.on_postgres:
        insert = insert.replace("'{id}'", "'{id}'::uuid").replace("'1'", "'1'::json").replace("|| n,", "|| n::text,")
    now = "now()" if harness.on_postgres else "1.0"
    filled = (numbers + insert).replace("{id}", id).replace("{number}", str(number)).replace("{now}", now)
    harness.query(filled)


def prune_all(harness: StoreHarness, **options: float) -> tuple[int, int, int]:
    """Prune until there is no more; how many finished and failed jobs went, and in how many steps."""
    finished = failed = 0
    for steps in range(1, 200):
        done = harness.prune(**options)
        finished, failed = finished + done.finished, failed + done.failed
        if not done.more:
            return finished, failed, steps
    raise AssertionError("pruning never ends")


# Any number of attempts and steps.


def test_a_finished_job_with_any_number_of_steps_is_pruned_in_bounded_steps(harness: StoreHarness) -> None:
    job = harness.claim_new()
    add_steps(harness, job.id, 137)
    harness.succeed(job)
    harness.later(60)
    left = []
    while harness.prune(limit=4).more:
        left.append(harness.count("steps"))
    assert all(before - after <= maintenance.DETAILS * 4 for before, after in zip([137, *left], left, strict=False))
    assert (harness.state(job.id), harness.count("steps")) == (None, 0)


def test_a_failed_job_with_more_steps_than_go_at_once_keeps_them_until_it_cannot_be_resumed(
    harness: StoreHarness,
) -> None:
    few, many = harness.claim_new(), harness.claim_new()
    add_steps(harness, few.id, 3)
    add_steps(harness, many.id, 137)
    harness.fail(few)
    harness.fail(many)
    harness.later(60)
    first = harness.prune(limit=4)
    assert (first.failed, first.more) == (1, True)
    assert (harness.state(few.id), harness.state(many.id)) == (None, State.CANCELLED)
    assert harness.get(many.id).error == "ValueError: no"  # type: ignore[union-attr]
    harness.later(60)
    prune_all(harness, limit=4)
    assert (harness.state(many.id), harness.count("steps")) == (None, 0)


def test_jobs_are_pruned_as_soon_as_they_are_as_old_as_asked(harness: StoreHarness) -> None:
    done, failed = harness.claim_new(), harness.claim_new()
    harness.later(1)  # the ids hold the time
    harness.succeed(done)
    harness.fail(failed)
    harness.prune(keep_finished=0.001, keep_failed=0.001)
    assert harness.count("finished") == harness.count("jobs") == 1
    harness.prune(keep_finished=0.0, keep_failed=0.0)
    assert harness.count("finished") == harness.count("jobs") == 0


def test_failed_jobs_are_pruned_with_their_rows_in_other_tables_a_bounded_number_at_once(harness: StoreHarness) -> None:
    jobs = [harness.claim_new() for _ in range(12)]
    for job in jobs:
        add_steps(harness, job.id, 8)
        harness.fail(job)
    harness.later(60)
    assert harness.prune(limit=4).failed == 2
    finished, failed, _ = prune_all(harness, limit=4)
    assert (finished, failed) == (0, 10)
    assert (harness.count("jobs"), harness.count("steps"), harness.count("attempts")) == (0, 0, 0)


def make_old_day(pg_harness: StoreHarness, jobs: int) -> str:
    """A partition of a month ago, of jobs with an attempt and two steps each; its name."""
    ids = [old_id() for _ in range(jobs)]
    pg_harness.enqueue(*(draft(id=id) for id in ids))
    for job in pg_harness.claim(jobs):
        pg_harness.succeed(job)
    pg_harness.query("update {s}finished set finished_at = now() - interval '29 days'")
    pg_harness.query(
        "insert into {s}attempts (job, version, attempt, worker, started_at, ended_at, outcome) "
        "select id, 0, 1, 'w', now(), now(), 'retried' from {s}finished"
    )
    pg_harness.query(
        "insert into {s}steps (job, kind, name, result, done_at) "
        "select id, 'step', n, '1', now() from {s}finished, unnest(array['a', 'b']) n"
    )
    day = time.gmtime(time.time() - MONTH_AGO)
    return f"finished_{time.strftime('%Y%m%d', day)}"


@pytest.mark.partitioned
def test_an_old_partition_goes_with_its_details_and_one_that_was_stopped_goes_on(
    pg_harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "BATCH_ROWS", 7)
    part = make_old_day(pg_harness, 10)
    asked = iter([False, False, False, True])
    assert pg_harness.store.drop_old(WEEK, lambda: next(asked, True)) == []
    assert 0 < pg_harness.count("attempts") + pg_harness.count("steps") < 30, (
        "what was deleted before it was stopped stays so"
    )
    assert part in pg_harness.store.drop_old(WEEK)
    assert (pg_harness.count("attempts"), pg_harness.count("steps"), pg_harness.count("finished")) == (0, 0, 0)


@pytest.mark.partitioned
def test_details_of_a_job_that_came_to_an_old_day_meanwhile_stay(
    pg_harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "BATCH_ROWS", 3)
    make_old_day(pg_harness, 5)
    young: list[str] = []

    def come() -> bool:
        """Asked before each batch, so after it was seen that all of the day may go."""
        if pg_harness.count("attempts") < 5 and not young:
            young.append(pg_harness.enqueue(draft(id=old_id()))[0].id)
            (job,) = pg_harness.claim()
            add_steps(pg_harness, young[0], 9)
            pg_harness.succeed(job)
        return False

    assert pg_harness.store.drop_old(WEEK, come) == []
    assert (pg_harness.state(young[0]), pg_harness.count("steps")) == (State.SUCCEEDED, 9)


# Many at once.


@pytest.mark.partitioned
def test_any_number_of_processes_prune_at_once_without_an_error(pg_harness: StoreHarness) -> None:
    assert isinstance(pg_harness.store, PostgresStore)
    stores = [PostgresStore(pg_harness.store._url, schema=pg_harness.store.schema) for _ in range(6)]
    errors: list[BaseException] = []
    dropped: list[str] = []

    def prune(store: PostgresStore) -> None:
        try:
            dropped.extend(store.drop_old(WEEK))
        except BaseException as error:
            errors.append(error)

    try:
        for _ in range(3):
            pg_harness.query("select {s}make_partitions(current_date - 40, current_date - 35)")
            threads = [threading.Thread(target=prune, args=(store,)) for store in stores]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        for store in stores:
            store.close()
    assert errors == []
    assert dropped
    pg_harness.store.drop_old(WEEK)
    assert pg_harness.query("select count(*) from pg_inherits where inhparent = '{s}finished'::regclass")[0][0] < 20


@pytest.mark.partitioned
def test_who_prunes_while_another_drops_partitions_skips_them(pg_harness: StoreHarness) -> None:
    part = make_old_day(pg_harness, 1)
    pg_harness.query("update {s}locks set until = now() + interval '30 s' where name = 'prune'")
    assert pg_harness.store.drop_old(WEEK) == []
    pg_harness.query("update {s}locks set until = now() - interval '1 s' where name = 'prune'")
    assert part in pg_harness.store.drop_old(WEEK), "a process that died in the middle is waited for no longer"


@pytest.mark.partitioned
def test_a_turn_that_ends_later_than_any_can_is_not_believed(pg_harness: StoreHarness) -> None:
    part = make_old_day(pg_harness, 1)
    pg_harness.query("update {s}locks set until = now() + interval '1 day' where name = 'prune'")
    assert part in pg_harness.store.drop_old(WEEK)


def test_jobs_of_old_days_settle_while_their_partitions_are_dropped_again_and_again(pg_harness: StoreHarness) -> None:
    store = pg_harness.store
    stop = threading.Event()
    errors: list[BaseException] = []

    def prune() -> None:
        while not stop.is_set():
            try:
                store.drop_old(0.0)
            except BaseException as error:
                errors.append(error)
                return

    pruners = [threading.Thread(target=prune) for _ in range(3)]
    for thread in pruners:
        thread.start()
    try:
        for _ in range(25):
            ids = [make_id(time.time() - days * 86400, os.urandom(10)) for days in (9, 10)]
            pg_harness.enqueue(*(draft(id=id) for id in ids))
            assert [pg_harness.succeed(job) for job in pg_harness.claim()] == [State.SUCCEEDED] * 2
    finally:
        stop.set()
        for thread in pruners:
            thread.join()
    assert errors == []
    assert pg_harness.count("jobs") == 0


# Roles.


@contextmanager
def role_of(database: Database, *functions: str) -> Iterator[str]:
    """A role that does not own the tables, and may call these functions."""
    role, s = f"r_{uuid.uuid4().hex[:8]}", database.schema
    with psycopg.connect(database.url, autocommit=True) as owner:
        owner.execute(f"create role {role}")
        try:
            owner.execute(f"grant usage on schema {s} to {role}")
            owner.execute(f"grant select, insert, update, delete on all tables in schema {s} to {role}")
            owner.execute(f"grant usage on all sequences in schema {s} to {role}")
            for function in functions:
                owner.execute(f"grant execute on function {s}.{function} to {role}")
            yield role
        finally:
            owner.execute(f"drop owned by {role}")
            owner.execute(f"drop role {role}")


@pytest.mark.partitioned
@pytest.mark.parametrize("functions", [(), ("make_partitions",), ("make_partitions", "drop_partition")])
def test_a_worker_that_does_not_own_the_tables_prunes(
    pg_harness: StoreHarness, pg_database: Database, functions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = make_old_day(pg_harness, 5)
    failed = pg_harness.claim_new()
    pg_harness.fail(failed)
    pg_harness.query("update {s}jobs set stopped_at = now() - interval '90 days'")
    with role_of(pg_database, *functions) as role:
        monkeypatch.setenv("PGOPTIONS", f"-c role={role}")
        with closing(App(pg_database.url, schema=pg_database.schema)) as app:
            done = app.client.prune()
        monkeypatch.delenv("PGOPTIONS")
    assert (
        pg_harness.count("finished"),
        pg_harness.count("jobs"),
        pg_harness.count("attempts"),
        pg_harness.count("steps"),
    ) == (0, 0, 0, 0)
    if "drop_partition" in functions:
        assert part in done.partitions
    else:
        assert (done.finished, done.partitions) == (5, ())
        assert part in pg_harness.store.drop_old(WEEK), "which is empty by now"


@pytest.mark.partitioned
def test_a_partition_in_use_blocks_no_other_when_a_role_that_is_not_the_owner_prunes(
    pg_harness: StoreHarness, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old_day(pg_harness, 2)
    late = pg_harness.claim_new()
    reader = pg_harness.session()
    reader.begin()
    reader.execute(f'select * from "{pg_database.schema}".finished')
    with role_of(pg_database, "make_partitions", "drop_partition") as role:
        monkeypatch.setenv("PGOPTIONS", f"-c role={role}")
        with closing(App(pg_database.url, schema=pg_database.schema)) as app:
            assert app._store().drop_old(WEEK) == []
        monkeypatch.delenv("PGOPTIONS")
    assert Background(lambda: pg_harness.succeed(late)).result(5) is State.SUCCEEDED
    reader.roll_back()


# Snoozes.


@pytest.mark.parametrize("outcome", [Snoozed(0.0), pytest.param(Released(), marks=pytest.mark.long)])
def test_a_job_that_gives_back_attempt_after_attempt_keeps_a_bounded_number_of_them(
    either_harness: StoreHarness, outcome: Snoozed | Released
) -> None:
    id = either_harness.add()
    (job,) = either_harness.claim()
    either_harness.settle((job.lease, Raised("boom")))
    for _ in range(230):
        either_harness.later(3600).promote()
        (job,) = either_harness.claim()
        either_harness.settle((job.lease, outcome))
    kept = either_harness.run(inspect.attempts, id)
    assert either_harness.count("attempts") == len(kept) == 101
    assert (kept[0].outcome, kept[0].version) == ("retried", 1), "what counts is kept, however old"
    assert [one.version for one in kept[1:]] == list(range(132, 232)), "and the last hundred"


# Unique keys.


def test_a_key_that_was_locked_when_its_job_ended_is_pruned_later(pg_harness: StoreHarness) -> None:
    job = pg_harness.claim_new(unique="k")
    rival = pg_harness.session()
    rival.begin()
    rival.execute(f"select * from {pg_harness.store.quoted}.keys for update")
    pg_harness.succeed(job)
    rival.roll_back()
    assert pg_harness.count("keys") == 1
    pg_harness.later(60)
    assert pg_harness.run(maintenance.prune_stale_keys) == (1, None)
    assert pg_harness.count("keys") == 0


def test_keys_of_jobs_that_live_stay_and_those_of_jobs_that_do_not_go_wherever_they_stand(
    either_harness: StoreHarness,
) -> None:
    either_harness.enqueue(*(draft(unique=f"k{n}") for n in range(9)))
    either_harness.enqueue(draft(unique="w", unique_for=600.0))
    dead = [either_harness.query(f"select job from {{s}}keys where key = 'k{n}'")[0][0] for n in (1, 4, 8)]
    for id in dead:
        either_harness.query(f"delete from {{s}}jobs where id = '{id}'")
    removed, steps = 0, 0
    beyond: str | None = ""
    while beyond is not None:
        number, beyond = either_harness.run(maintenance.prune_stale_keys, beyond, limit=2)
        removed, steps = removed + number, steps + 1
    assert (removed, steps) == (3, 5)
    assert [row[0] for row in either_harness.query("select key from {s}keys order by key")] == [
        "k0",
        "k2",
        "k3",
        "k5",
        "k6",
        "k7",
        "w",
    ]


def test_a_key_that_is_taken_again_for_the_same_id_is_not_pruned_meanwhile(pg_harness: StoreHarness) -> None:
    id = pg_harness.add(unique="k")
    pg_harness.query("delete from {s}jobs")  # the key is left
    caller = pg_harness.session()
    caller.leave_open(enqueue.enqueue([draft(id=id, unique="k", fresh=False)]))
    assert pg_harness.run(maintenance.prune_stale_keys) == (0, None)
    caller.commit()
    assert (pg_harness.count("keys"), pg_harness.count("jobs")) == (1, 1)
    assert pg_harness.run(maintenance.prune_stale_keys) == (0, None)


def test_pruning_a_failed_job_leaves_no_key_behind(harness: StoreHarness) -> None:
    job = harness.claim_new(unique="k")
    harness.fail(job)
    harness.query("delete from {s}keys")
    harness.query(f"insert into {{s}}keys (key, job) values ('k', '{job.id}')")  # as if it had been locked then
    harness.later(60).prune()
    harness.run(maintenance.prune_stale_keys)
    assert (harness.count("jobs"), harness.count("keys")) == (0, 0)


def test_an_app_prunes_keys_too(pg_database: Database, pg_harness: StoreHarness) -> None:
    pg_harness.add(unique="k")
    pg_harness.query("delete from {s}jobs")
    with closing(App(pg_database.url, schema=pg_database.schema)) as app:
        assert app.client.prune().keys == 1


# Jobs that another is about to wait for.


def test_a_job_enqueued_behind_one_that_is_pruned_before_the_commit_does_not_wait_for_ever(
    pg_harness: StoreHarness,
) -> None:
    blocker = pg_harness.claim_new()
    pg_harness.succeed(blocker, "7")
    pg_harness.later(60)
    caller = pg_harness.session()
    (job,) = caller.leave_open(enqueue.enqueue([draft(depends_on=(blocker.id,))]))
    assert pg_harness.prune().finished == 0
    caller.commit()
    assert pg_harness.prune().finished == 0
    pg_harness.promote_until_idle()
    assert pg_harness.state(job.id) is State.QUEUED
    assert [one.result_json for one in pg_harness.run(inspect.dependencies, job.id)] == ["7"]
    assert pg_harness.prune().finished == 1, "once its result is kept it may go"


def test_one_that_is_rolled_back_holds_nothing(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.claim_new()
    pg_harness.succeed(blocker)
    pg_harness.later(60)
    caller = pg_harness.session()
    caller.leave_open(enqueue.enqueue([draft(depends_on=(blocker.id,))]))
    caller.roll_back()
    assert pg_harness.prune().finished == 1


@pytest.mark.read_committed
def test_a_wait_that_is_committed_while_pruning_is_under_way_is_seen(pg_harness: StoreHarness) -> None:
    """A statement that began before that commit may have locked the job right after it."""
    blocker = pg_harness.claim_new()
    pg_harness.succeed(blocker, "7")
    pg_harness.later(60)
    steps = pg_harness.session().steps(maintenance.prune(keep_finished=1.0, keep_failed=1.0))
    steps.before("maintenance/prune_finished")
    dependent = pg_harness.add(run_at=pg_harness.now + 9000)
    pg_harness.query(
        f"insert into {{s}}dependencies (job, depends_on, position) values ('{dependent}', '{blocker.id}', 0)"
    )
    assert steps.finish().finished == 0
    assert pg_harness.state(blocker.id) is State.SUCCEEDED


@pytest.mark.partitioned
def test_an_old_partition_that_an_open_transaction_will_wait_for_stays(pg_harness: StoreHarness) -> None:
    make_old_day(pg_harness, 1)
    ((blocker,),) = pg_harness.query("select id::text from {s}finished")
    caller = pg_harness.session()
    (job,) = caller.leave_open(enqueue.enqueue([draft(depends_on=(blocker,))]))
    assert pg_harness.store.drop_old(WEEK) == []
    caller.commit()
    assert pg_harness.store.drop_old(WEEK) == []
    pg_harness.promote_until_idle()
    assert pg_harness.state(job.id) is State.QUEUED


@pytest.mark.partitioned
def test_a_job_that_sql_enqueues_behind_one_that_is_pruned_does_not_wait_for_ever(pg_harness: StoreHarness) -> None:
    blocker = pg_harness.claim_new()
    pg_harness.succeed(blocker, "7")
    caller = pg_harness.session()
    caller.begin()
    caller.execute(f"select {pg_harness.store.quoted}.enqueue('t', depends_on => array['{blocker.id}']::uuid[])")
    assert pg_harness.later(60).prune().finished == 0
    caller.commit()
    pg_harness.promote_until_idle()
    assert pg_harness.count("jobs", "state = 'queued'") == 1


def test_on_sqlite_an_enqueue_behind_a_finished_job_is_not_overtaken_by_pruning(harness: StoreHarness) -> None:
    blocker = harness.claim_new()
    harness.succeed(blocker, "7")
    harness.later(60)
    (job,) = harness.enqueue(draft(depends_on=(blocker.id,)))
    assert harness.prune().finished == 0
    harness.promote_until_idle()
    assert harness.state(job.id) is State.QUEUED
