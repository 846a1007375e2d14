"""Settling: jobs that end together are settled together, and one that the database refuses delays no other."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from relet import App, Attempt, State
from relet._core.stats import BOUNDS
from relet._worker.execution import Execution
from relet._worker.meter import _Histogram
from tests.databases import Database
from tests.harness import harness_of
from tests.worker.working import connect, never_reap, over, run_sql, state, until, until_state, working

pytestmark = pytest.mark.every_store

REFUSING = {
    True: (
        "create function {t}refuse() returns trigger language plpgsql as "
        "$$ begin raise exception 'this one not'; end $$",
        "create trigger refuse before insert on {t}finished for each row when (new.target = 'refused') "
        "execute function {t}refuse()",
    ),
    False: (
        "create trigger refuse before insert on {t}finished when new.target = 'refused' "
        "begin select raise(abort, 'this one not'); end",
    ),
}


@contextmanager
def refusing_some(database: Database, app: App) -> Iterator[None]:
    """The database will not have jobs of one target as finished."""
    app._store().ready()
    run_sql(database, app, *REFUSING[database.is_postgres])
    try:
        yield
    finally:
        if database.is_postgres:
            run_sql(database, app, "drop function {t}refuse() cascade")


def test_a_handler_that_ends_while_its_outcome_is_sorted_does_not_lose_it(
    memory_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settled without it, and so taken for one that may be open; then it ends, and is not any more."""
    checks: Counter[str] = Counter()

    def may_be_open(run: Execution) -> bool:
        checks[run.job.id] += 1
        return checks[run.job.id] == 1

    monkeypatch.setattr(Execution, "may_have_open_completion", property(may_be_open))

    @memory_app.task
    def work() -> str:
        return "done"

    with working(memory_app, lease=30.0):
        assert memory_app.client.result(work.enqueue(), timeout=10) == "done"


def test_one_outcome_that_the_database_refuses_does_not_hold_up_the_others(database: Database, app: App) -> None:
    go_on = threading.Event()

    @app.task
    async def work() -> str:
        while not go_on.is_set():
            await asyncio.sleep(0.005)
        return "done"

    with refusing_some(database, app), working(app, concurrency=20, lease=30.0):
        drafts = [work.draft() for _ in range(14)]
        drafts[5:5] = [work.using(target="refused").draft()]
        jobs = app.client.enqueue_many(drafts)
        until(lambda: app.client.count(state="running") == 15)
        go_on.set()
        found = over(app, *jobs)
        following = work.enqueue()
        assert app.client.result(following, timeout=20) == "done", "nor those that come after"
    refused = found.pop(5)
    assert {one.state for one in found} == {State.SUCCEEDED}
    assert refused.state is State.FAILED
    assert refused.error is not None
    assert refused.error.startswith("the database rejected the outcome")
    assert "this one not" in refused.error


def test_a_job_whose_every_outcome_is_refused_is_not_run_for_ever_at_no_cost(tmp_path: Path) -> None:
    """Its lease runs out, and that counts: it is not given back as a claim whose answer was lost."""
    database = Database("sqlite", f"sqlite:///{tmp_path / 'relet.db'}", "relet")
    app = database.app()

    @app.task
    async def work() -> str:
        return "done"

    harness_of(app).record_pulse()
    never = (
        "create trigger never before update on {t}jobs when new.state = 'failed' begin select raise(abort, 'no'); end"
    )
    run_sql(database, app, *REFUSING[False], never)
    with working(app, lease=0.5):
        job = work.using(target="refused").enqueue()
        until(lambda: app.client.get(job).version >= 2)  # type: ignore[union-attr]
        found = app.client.get(job)
    app.close()
    assert found is not None
    assert found.losses == found.version - 1, "every run but the last has cost it an attempt"


@pytest.mark.long
def test_a_batch_of_every_kind_of_outcome_is_settled_together(app: App) -> None:
    go_on = threading.Event()

    @app.task(max_attempts=1)
    async def work(number: int) -> int:
        while not go_on.is_set():
            await asyncio.sleep(0.005)
        if number % 2:
            raise ValueError(number)
        return number

    with working(app, concurrency=30, lease=30.0):
        jobs = app.client.enqueue_many([work.draft(n) for n in range(30)])
        until(lambda: app.client.count(state="running") == 30)
        go_on.set()
        found = over(app, *jobs)
    assert [one.state for one in found] == [State.FAILED if n % 2 else State.SUCCEEDED for n in range(30)]
    assert [one.result_json for one in found[::2]] == [str(n) for n in range(0, 30, 2)]


def test_a_handler_that_has_its_own_row_locked_does_not_hold_up_the_leases_of_others(
    pg_database: Database, pg_app: App
) -> None:
    """Trap 3: it has completed in its own transaction, say, and that is still open."""
    app, locked, unlock, go_on = pg_app, threading.Event(), threading.Event(), threading.Event()

    @app.task
    def locker(attempt: Attempt) -> str:
        with closing(connect(pg_database, app)) as connection:
            statement = f"select id from {pg_database.schema}.jobs where id = '{attempt.job.id}' for update"
            connection.execute(statement.encode())
            locked.set()
            unlock.wait(20)
            connection.rollback()
        return f"{attempt.aborted}"

    @app.task
    async def neighbour() -> str:
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return "never lost"

    with working(app, lease=0.9):
        other = neighbour.enqueue()
        until_state(app, other, State.RUNNING)
        job = locker.enqueue()
        assert locked.wait(20)
        begin = time.monotonic()
        seen = set()
        while time.monotonic() < begin + 1.5:  # longer than the lease
            found = app.client.get(other)
            assert found is not None
            seen.add(found.expires_at)
            time.sleep(0.02)
        assert len(seen) >= 3, "its neighbour's lease is renewed meanwhile"
        assert state(app, job) is State.RUNNING, "nor has anybody reaped what is locked"
        never_reap(pg_database, app)  # the lock is gone before the next renewal: this test is not about that race
        unlock.set()
        assert app.client.result(job, timeout=20) == "None", "a lock is not a loss: it was not aborted"
        go_on.set()
        assert app.client.result(other, timeout=20) == "never lost"
    for one in (job, other):
        assert app.client.get(one).version == 1  # type: ignore[union-attr]


def test_a_caller_who_has_a_successors_key_in_hand_holds_up_that_chain_alone(
    pg_database: Database, pg_app: App
) -> None:
    """Two transactions of callers are open, and each has taken a key that a chain would go on with."""
    app = pg_app

    @app.task
    def end(value: int) -> int:
        return value

    @app.task(lease=1.5)
    def begin(attempt: Attempt, key: str, value: int) -> int:
        return attempt.continue_with(end.using(unique=key).draft(value))

    with closing(connect(pg_database, app)) as one, closing(connect(pg_database, app)) as two, working(app):
        for key, connection in (("one", one), ("two", two)):
            end.using(unique=key, connection=connection).enqueue(0)
        held = [begin.enqueue("one", 1), begin.enqueue("two", 2)]
        until(lambda: app.client.count(state="running") == 2)
        free = [end.enqueue(3), begin.enqueue("another", 4)]
        assert app.client.results(free, timeout=20) == [3, 4]
        two.rollback()
        assert app.client.result(held[1], timeout=20) == 2
        time.sleep(1.6)  # longer than the lease: it is renewed, though the handler has ended
        assert state(app, held[0]) is State.RUNNING
        one.rollback()
        assert app.client.result(held[0], timeout=20) == 1
    assert [app.client.get(job).version for job in held] == [1, 1]  # type: ignore[union-attr]


@pytest.mark.long
def test_a_job_that_runs_alone_waits_until_the_others_are_settled(tmp_path: Path) -> None:
    """Were it to take the worker down now, the one that has just ended would lose its attempt with it."""
    database = Database("sqlite", f"sqlite:///{tmp_path / 'relet.db'}", "relet")
    app = database.app()
    gone: list[str] = []
    beside: list[int] = []
    settling = threading.Event()

    @app.task
    async def work(name: str) -> None:
        beside.append(app.client.count(state="running"))
        gone.append(name)

    harness_of(app).record_pulse()
    jobs = [work.enqueue(name) for name in ("first", "second")]
    run_sql(database, app, "update {t}jobs set losses = 2, suspect = 2")
    with working(app, lease=30.0) as worker:
        (session,) = worker._sessions
        settle = session.settler._settle

        def slowly(batch: list[Any], **options: Any) -> None:
            time.sleep(0.2)
            settling.set()
            settle(batch, **options)

        session.settler._settle = slowly  # type: ignore[method-assign]
        over(app, *jobs)
    app.close()
    assert settling.is_set()
    assert sorted(gone) == ["first", "second"]
    assert beside == [1, 1], "the second ran while the first was not settled"


def test_many_durations_are_counted_as_each_of_them_would_be() -> None:
    seconds = [*BOUNDS, *(bound * 1.5 for bound in BOUNDS), 0.0, 1e9]
    together, singly = _Histogram(), _Histogram()
    together.add(list(seconds))
    for one in seconds:
        singly.add([one])
    assert together.classes == singly.classes
    assert together.total == pytest.approx(singly.total)
