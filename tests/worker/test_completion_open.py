"""A transaction that completes a job is open, for long or after its handler has returned: nothing else waits for it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from relet import Aborted, App, Attempt, Backoff, State
from relet._core.ids import make_id
from relet._worker import Worker
from relet.errors import InvalidTransition, ReletError
from tests.harness import harness_of
from tests.worker.completions import ON_POSTGRES, Begin, CompletionRunner
from tests.worker.working import TIMEOUT, connect, over, state, until, until_state, working

IN_THREADS = ("transaction", "own")
LATER = Backoff(base=600.0, max=600.0)
ENDS = {"commit": (State.SUCCEEDED, ["a"]), "rollback": (State.PENDING, [])}


class Leaving:
    """A task that completes its job on a separate connection, returns, and leaves the transaction open."""

    def __init__(self, runner: CompletionRunner, lease: float = 30.0) -> None:
        self.left: list[Any] = []

        @runner.app.task(lease=lease, backoff=LATER)
        def leaves(attempt: Attempt) -> str:
            # Not the thread that will end it: no document promises that.
            connection = connect(runner.database, runner.app, check_same_thread=False)
            connection.execute(f"insert into {runner.table} (job, word) values ('{attempt.job.id}', 'a')")
            attempt.succeed("done", connection=connection)
            self.left.append(connection)
            return "done"

        self.task = leaves

    def end(self, how: str) -> None:
        (connection,) = self.left
        getattr(connection, how)()
        connection.close()


@pytest.mark.parametrize("how", ENDS)
def test_a_transaction_left_open_blocks_no_other_and_counts_when_it_ends(runner: CompletionRunner, how: str) -> None:
    @runner.app.task(lease=0.6)
    def others(seconds: float) -> None:
        time.sleep(seconds)

    leaving = Leaving(runner)
    with working(runner.app, lease=30.0):
        job = leaving.task.enqueue()
        until(lambda: leaving.left)
        if runner.database.is_postgres:  # SQLite has one writer, and that is the handler
            slow, quick = others.enqueue(1.3), others.enqueue(0.0)
            done = over(runner.app, quick, slow)
            assert [(one.state, one.attempt, one.losses) for one in done] == [(State.SUCCEEDED, 1, 0)] * 2
        assert state(runner.app, job) is State.RUNNING
        assert runner.written(job) == []
        leaving.end(how)
        wanted, written = ENDS[how]
        until_state(runner.app, job, wanted)
        found = runner.app.client.get(job)
        assert found is not None
        assert (found.attempt, found.losses, runner.written(job)) == (1, 0, written)
        assert runner.reasons(job) == [None if how == "commit" else "completion rolled back"]
        over(runner.app, others.enqueue(0.0))


@ON_POSTGRES
def test_a_transaction_left_open_is_not_reaped_while_it_is_open(runner: CompletionRunner) -> None:
    """Its lease cannot be renewed, as the row is locked, and runs out."""
    leaving = Leaving(runner, lease=0.5)
    with working(runner.app, lease=0.5):
        job = leaving.task.enqueue()
        until(lambda: leaving.left)
        time.sleep(2.0)  # the reaper has come by
        leaving.end("commit")
        (done,) = over(runner.app, job)
        assert (done.state, done.attempt, done.losses) == (State.SUCCEEDED, 1, 0)


def test_a_worker_stops_although_a_transaction_was_left_open(runner: CompletionRunner) -> None:
    leaving = Leaving(runner)
    with working(runner.app, lease=30.0, shutdown_timeout=0.1) as worker:
        job = leaving.task.enqueue()
        until(lambda: leaving.left)
        worker.stop()
        worker.stop()
        assert worker.finished.wait(10.0), "it hangs"
        assert worker.left_behind == 1
    leaving.end("commit")
    assert (state(runner.app, job), runner.written(job)) == (State.SUCCEEDED, ["a"])


class Holding:
    """A handler that completes its job, and waits for an event before it commits or rolls back."""

    def __init__(self, how: str) -> None:
        self.inside = threading.Semaphore(0)
        self.go = threading.Event()

        async def handler(attempt: Attempt, begin: Begin) -> None:
            async with begin() as tx:
                await tx.write("a")
                await tx.succeed("done")
                self.inside.release()
                assert self.go.wait(TIMEOUT)
                if how == "rollback":
                    raise ValueError("no")

        self.handler = handler


@pytest.mark.parametrize("way", IN_THREADS)
@pytest.mark.parametrize("how", ENDS)
def test_a_cancel_that_comes_while_the_completion_is_open_counts_if_that_is_rolled_back(
    runner: CompletionRunner, how: str, way: str
) -> None:
    holding = Holding(how)
    with runner.running(holding.handler, [way], backoff=LATER) as (_, (job,)), ThreadPoolExecutor(1) as pool:
        assert holding.inside.acquire(timeout=TIMEOUT)
        asked = pool.submit(runner.app.client.cancel, job)
        time.sleep(0.2)
        holding.go.set()
        if how == "commit":
            with pytest.raises(InvalidTransition):
                asked.result(TIMEOUT)
        else:
            asked.result(TIMEOUT)
        wanted = State.SUCCEEDED if how == "commit" else State.CANCELLED
        until_state(runner.app, job, wanted)
        assert runner.written(job) == ENDS[how][1]


def test_a_cancel_that_was_requested_before_the_completion_does_not_undo_it(runner: CompletionRunner) -> None:
    """The handler has not heard of it yet: a client that has done the work may complete the job."""

    async def handler(attempt: Attempt, begin: Begin) -> None:
        (worker,) = workers
        worker._sessions[0].heartbeat.stop()
        for thread in threading.enumerate():
            if thread.name.endswith("heartbeat"):
                thread.join(TIMEOUT)
        runner.app.client.cancel(attempt.job.id)
        async with begin() as tx:
            await tx.write("a")
            await tx.succeed("done")

    workers: list[Worker] = []
    for way in IN_THREADS:
        runner.task(way, handler)
    for way in IN_THREADS:
        with working(runner.app, lease=30.0) as running:
            workers[:] = [running]
            job = runner.app.client.enqueue(runner.app.lookup(f"handler-{way}").draft())
            assert (over(runner.app, job)[0].state, runner.written(job)) == (State.SUCCEEDED, ["a"])


@pytest.mark.parametrize("why", ["cancelled", "timeout"])
def test_an_attempt_that_was_aborted_completes_no_more(runner: CompletionRunner, why: str) -> None:
    raised: list[str] = []
    started = threading.Semaphore(0)

    async def handler(attempt: Attempt, begin: Begin) -> None:
        started.release()
        until(lambda: attempt.aborted is not None)
        with pytest.raises(Aborted) as aborted:
            async with begin() as tx:
                await tx.write("a")
                await tx.succeed("done")
        raised.append(aborted.value.reason)

    _abort(runner, handler, why, started)
    assert raised == [why] * 2


@pytest.mark.parametrize("why", ["cancelled", "timeout"])
@ON_POSTGRES
def test_an_attempt_that_is_aborted_in_its_transaction_completes_no_more(runner: CompletionRunner, why: str) -> None:
    raised: list[str] = []
    started = threading.Semaphore(0)

    async def handler(attempt: Attempt, begin: Begin) -> None:
        with pytest.raises(Aborted) as aborted:
            async with begin() as tx:
                await tx.write("a")
                started.release()
                until(lambda: attempt.aborted is not None)
                await tx.succeed("done")
        raised.append(aborted.value.reason)

    _abort(runner, handler, why, started)
    assert raised == [why] * 2


def _abort(runner: CompletionRunner, handler: Any, why: str, started: threading.Semaphore) -> None:
    limit: dict[str, Any] = {"timeout": 0.3} if why == "timeout" else {}
    with runner.running(handler, IN_THREADS, max_attempts=1, **limit) as (_, jobs):
        for _ in jobs:
            assert started.acquire(timeout=TIMEOUT)
        for job in jobs if why == "cancelled" else []:
            runner.app.client.cancel(job)
        for job in over(runner.app, *jobs):
            assert job.state is (State.CANCELLED if why == "cancelled" else State.FAILED)
            assert runner.written(job) == []


@pytest.mark.long
def test_a_timeout_that_passes_while_the_completion_is_open_counts_if_that_is_rolled_back(
    runner: CompletionRunner,
) -> None:
    for how, wanted in (("commit", State.SUCCEEDED), ("rollback", State.FAILED)):
        holding = Holding(how)
        holding.handler.__name__ = how
        with runner.running(holding.handler, ["transaction"], timeout=0.2, max_attempts=1) as (_, (job,)):
            assert holding.inside.acquire(timeout=TIMEOUT)
            time.sleep(1.5)  # so long that it was to be settled without the handler
            holding.go.set()
            (done,) = over(runner.app, job)
            assert (done.state, done.attempt, runner.written(job)) == (wanted, 1, ENDS[how][1])
            assert done.error == (None if how == "commit" else "timed out after 0.2 s")


@pytest.mark.long
@ON_POSTGRES
def test_after_a_savepoint_took_the_completion_back_a_timeout_ends_the_writes(
    runner: CompletionRunner,
) -> None:
    """The job was settled meanwhile: by the same lease, but not by this transaction."""
    raised: list[ReletError] = []

    async def handler(attempt: Attempt, begin: Begin) -> None:
        with pytest.raises(ReletError) as refused:
            async with begin() as tx:
                await tx.write("a")
                try:
                    async with tx.savepoint():
                        await tx.succeed("done")
                        raise KeyError
                except KeyError:
                    pass
                until_state(runner.app, attempt.job.id, State.FAILED)
        raised.append(refused.value)

    ((_, job),) = runner.run(handler, ["transaction"], timeout=0.2, max_attempts=1)
    until(lambda: raised)
    assert (job.error, runner.written(job)) == ("timed out after 0.2 s", [])
    assert "its lease was lost" in str(raised[0])


# Ten slots, ten connections


@ON_POSTGRES
def test_handlers_that_call_the_client_in_their_transactions_do_not_use_up_each_others_connections(
    runner: CompletionRunner,
) -> None:
    together = threading.Barrier(10)

    async def handler(attempt: Attempt, begin: Begin) -> None:
        async with begin() as tx:
            together.wait(TIMEOUT)
            assert state(runner.app, attempt.job.id) is State.RUNNING
            await tx.succeed(None)

    task = runner.task("transaction", handler)
    with working(runner.app, lease=30.0, concurrency=10):
        begun = time.monotonic()
        jobs = runner.app.client.enqueue_many([task.draft() for _ in range(10)])
        assert {job.attempt for job in over(runner.app, *jobs)} == {1}
        assert time.monotonic() - begun < 9.0, "they waited until one of them gave up"


# Trap 13


@ON_POSTGRES
def test_a_job_whose_day_has_no_partition_completes_and_pruning_goes_on_beside_it(runner: CompletionRunner) -> None:
    app: App = runner.app
    month_ago = time.time() - 30 * 86400
    holding = Holding("commit")
    ways = ("transaction", "own", "atransaction", "aown")
    old = [_old_draft(runner, way, holding.handler if way in IN_THREADS else _at_once, month_ago) for way in ways]
    harness_of(app).record_pulse()

    @app.task
    def other() -> None: ...

    with working(app, lease=30.0), ThreadPoolExecutor(1) as pool:
        jobs = app.client.enqueue_many(old)
        for _ in IN_THREADS:
            assert holding.inside.acquire(timeout=TIMEOUT)
        pruned = pool.submit(app._store().drop_old, 7 * 86400.0)
        for _ in range(3):
            begun = time.monotonic()
            over(app, other.enqueue())
            assert time.monotonic() - begun < 4.0
        holding.go.set()
        pruned.result(TIMEOUT)
        assert {(job.state, job.attempt) for job in over(app, *jobs)} == {(State.SUCCEEDED, 1)}
        assert [runner.written(job) for job in jobs] == [["a"]] * 4


async def _at_once(attempt: Attempt, begin: Begin) -> None:
    async with begin() as tx:
        await tx.write("a")
        await tx.succeed("done")


def _old_draft(runner: CompletionRunner, way: str, handler: Any, moment: float) -> Any:
    task = runner.task(way, handler)
    return task.using(id=make_id(moment, f"{way:<10}"[:10].encode())).draft()


def test_a_transaction_that_an_interrupt_left_open_ends_with_its_handler(two_apps: App) -> None:
    """It may be raised where the block's `__exit__` begins: nothing but the end of the handler can be relied upon."""
    kept: list[object] = []

    @two_apps.task
    def follow() -> None: ...

    @two_apps.task(max_attempts=1)
    def interrupted(attempt: Attempt) -> None:
        block = attempt.transaction()
        kept.append(block)  # as a traceback does that the program keeps
        block.__enter__().enqueue(follow.draft())
        raise KeyboardInterrupt

    with working(two_apps):
        job = interrupted.enqueue()
        assert over(two_apps, job)[0].state is State.FAILED
        assert over(two_apps, follow.enqueue())[0].state is State.SUCCEEDED
    assert two_apps.client.count(task="follow") == 1
