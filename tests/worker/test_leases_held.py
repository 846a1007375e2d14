"""Leases and obstacles to their renewal: locks on the table, late starts, isolation levels, dead workers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from relet import App, Attempt, State
from relet._worker import Worker
from tests.databases import Database
from tests.worker.working import connect, over, take, until, until_state, working

LEASE = 2.0
HELD_FOR = 2 * LEASE  # seconds


@pytest.mark.parametrize("mode", ["share", "share row exclusive", "access exclusive"])
def test_living_workers_keep_their_jobs_while_the_table_is_locked(
    pg_database: Database, pg_app: App, mode: str
) -> None:
    starts: list[int] = []
    go = threading.Event()

    @pg_app.task
    def work(n: int) -> int:
        starts.append(n)
        go.wait(30)
        return n

    with working(pg_app, concurrency=6, lease=LEASE), working(pg_app, concurrency=6, lease=LEASE):
        jobs = [work.enqueue(n) for n in range(10)]
        until(lambda: len(starts) == 10)
        with closing(psycopg.connect(pg_database.url)) as other:
            other.execute(f"lock table {pg_database.schema}.jobs in {mode} mode".encode())
            time.sleep(HELD_FOR)
            other.rollback()
        time.sleep(HELD_FOR)  # the grace, and time enough for a reaper that would err
        go.set()
        over(pg_app, *jobs)
    assert sorted(starts) == list(range(10))
    assert [job.losses for job in (pg_app.client.get(job) for job in jobs) if job] == [0] * 10


def test_a_renewal_that_skipped_a_locked_row_is_repeated_before_the_next_is_due(
    pg_database: Database, pg_app: App
) -> None:
    started, go = threading.Event(), threading.Event()

    @pg_app.task
    def work() -> None:
        started.set()
        go.wait(60)

    with working(pg_app, lease=600.0) as worker:
        job = work.enqueue()
        assert started.wait(20)
        (session,) = worker._sessions

        def seconds_to_the_next() -> float:
            session.heartbeat.beat()
            session.heartbeat.loop.was_woken = False  # else the step reads requests, and returns at once
            return session.heartbeat.step()

        assert seconds_to_the_next() > 190, "a third of the lease"
        with closing(psycopg.connect(pg_database.url)) as other:
            other.execute(f"select from {pg_database.schema}.jobs for update".encode())
            assert 0 < seconds_to_the_next() <= 50
            other.rollback()
        assert seconds_to_the_next() > 190
        go.set()
        over(pg_app, job)


#: As on a disk that is full for this table: updates of a running job fail, those of the pulse do not.
NO_ROOM = """
    create table {schema}.room (there boolean);
    insert into {schema}.room values (true);
    create function {schema}.check_room() returns trigger language plpgsql as $$ begin
        if exists (select from {schema}.room where not there) then
            raise exception 'could not extend file' using errcode = 'disk_full';
        end if;
        return new;
    end $$;
    create trigger check_room before update on {schema}.jobs for each row when (old.state = 'running')
        execute function {schema}.check_room();
"""


def test_living_workers_keep_their_jobs_while_renewals_fail_and_the_pulse_does_not(
    pg_database: Database, pg_app: App
) -> None:
    starts: list[int] = []
    go = threading.Event()

    @pg_app.task
    def work(n: int) -> int:
        starts.append(n)
        go.wait(60)
        return n

    with (
        closing(psycopg.connect(pg_database.url, autocommit=True)) as other,
        working(pg_app, concurrency=3),
        working(pg_app, concurrency=3),
        working(pg_app, concurrency=3),
    ):
        other.execute(NO_ROOM.replace("{schema}", pg_database.schema).encode())
        jobs = [work.enqueue(n) for n in range(9)]
        until(lambda: len(starts) == 9)
        for _ in range(2):
            other.execute(f"update {pg_database.schema}.room set there = false".encode())
            time.sleep(HELD_FOR)
            other.execute(f"update {pg_database.schema}.room set there = true".encode())
            time.sleep(HELD_FOR)
        go.set()
        over(pg_app, *jobs)
        drop = "drop trigger check_room on {schema}.jobs; drop function {schema}.check_room; drop table {schema}.room"
        other.execute(drop.replace("{schema}", pg_database.schema).encode())
    assert [job.losses for job in (pg_app.client.get(job) for job in jobs) if job] == [0] * 9
    assert sorted(starts) == list(range(9))


def test_living_workers_keep_their_jobs_while_a_transaction_holds_the_file(tmp_path: object) -> None:
    database = Database("sqlite", f"sqlite:///{tmp_path}/relet.db", "relet")
    app, starts, go = database.app(), list[int](), threading.Event()

    @app.task
    def work(n: int) -> int:
        starts.append(n)
        go.wait(30)
        return n

    with working(app, concurrency=6), working(app, concurrency=6):
        jobs = [work.enqueue(n) for n in range(10)]
        until(lambda: len(starts) == 10)
        with closing(connect(database, app)) as other:
            other.execute("begin immediate")
            time.sleep(HELD_FOR)
            other.rollback()
        time.sleep(HELD_FOR)
        go.set()
        over(app, *jobs)
    assert sorted(starts) == list(range(10))
    app.close()


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_no_handler_starts_past_its_deadline(two_apps: App, kind: str) -> None:
    """The attempt is given back, and runs under a lease that is good."""
    ran: list[int] = []
    held_up = threading.Event()

    def hold_up(attempt: Attempt) -> None:
        if not held_up.is_set():
            held_up.set()
            attempt.deadline = time.monotonic() - 0.001  # as if the process had been stopped until now

    if kind == "loop":

        @two_apps.task
        async def work(attempt: Attempt) -> None:
            ran.append(attempt.version)
    else:

        @two_apps.task
        def work(attempt: Attempt) -> None:
            ran.append(attempt.version)

    @two_apps.middleware
    def late(attempt: Attempt) -> Iterator[None]:
        hold_up(attempt)
        yield

    with working(two_apps):
        job = work.enqueue()
        (done,) = over(two_apps, job)
    assert done.state is State.SUCCEEDED
    assert ran == [2]
    assert done.attempt == 1
    assert [one.outcome for one in two_apps.client.attempts(job)][:1] == ["released"]


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_completing_in_a_transaction_that_a_renewal_would_break_is_refused_at_once(
    pg_database: Database, pg_app: App, level: psycopg.IsolationLevel
) -> None:
    @pg_app.task(max_attempts=1)
    def work(attempt: Attempt) -> None:
        with psycopg.connect(pg_database.url) as connection:
            connection.isolation_level = level
            attempt.succeed(None, connection=connection)

    with working(pg_app):
        (done,) = over(pg_app, work.enqueue())
    assert done.state is State.FAILED
    assert "needs a transaction at READ COMMITTED" in str(done.error)
    assert f"this one is {level.name.replace('_', ' ')}" in str(done.error)


def test_until_idle_runs_jobs_that_a_dead_worker_has_left(two_apps: App) -> None:
    """Also right at the start, when the pulse is old and workers that may live have a grace to renew."""

    @two_apps.task
    def work() -> str:
        return "done"

    two_apps.client.migrate()
    job = work.enqueue()
    take(two_apps, seconds=0.2)
    until(lambda: _is_expired(two_apps, job.id))
    asyncio.run(Worker(two_apps, lease=1.0).run(until_idle=True))
    until_state(two_apps, job, State.SUCCEEDED)


def _is_expired(app: App, job_id: str) -> bool:
    job = app.client.get(job_id)
    return job is not None and job.expires_at is not None and job.expires_at.timestamp() < time.time() - 0.1
