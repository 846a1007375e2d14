"""Money is moved by jobs that complete in the transaction that moves it, and workers are killed at every point of that.

Each transfer happens exactly once, and the attempt that crashed has counted.
"""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sized
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from relet import App, Attempt, Job, State
from tests.plugin.selection import rounds
from tests.worker import transfer_tasks
from tests.worker.completions import FENCED, ON_POSTGRES, WAYS, Begin, CompletionRunner, Tx
from tests.worker.processes import TIMEOUT, WorkerProcesses
from tests.worker.proxy import COMPLETE, Trap, proxy_to
from tests.worker.working import over, until, working

TRANSFERS = rounds(300, all=1000)
STALLED = 90.0  # seconds without a success
AT_FIRST = 1_000_000


class Bank:
    """Two accounts and a ledger, in the database that the jobs live in."""

    def __init__(self, processes: WorkerProcesses) -> None:
        self.processes = processes
        prefix = "" if processes.kind == "sqlite" else f"{processes.schema}."
        self._accounts, self._ledger = f"{prefix}accounts", f"{prefix}ledger"
        self.run(
            f"create table {self._accounts} (name text primary key, balance bigint)",
            f"create table {self._ledger} (job text primary key, cents bigint)",
            f"insert into {self._accounts} values ('here', {AT_FIRST}), ('there', 0)",
        )

    def run(self, *statements: str) -> list[Any]:
        with closing(self._connect()) as connection:
            cursors = [connection.execute(statement) for statement in statements]
            found = cursors[-1].fetchall() if cursors[-1].description else []
            connection.commit()
            return list(found)

    def balances(self) -> dict[str, int]:
        return dict(self.run(f"select name, balance from {self._accounts}"))

    def ledger(self) -> dict[str, int]:
        return dict(self.run(f"select job, cents from {self._ledger}"))

    def _connect(self) -> Any:
        if self.processes.kind == "sqlite":
            return sqlite3.connect(self.processes.url.removeprefix("sqlite:///"), timeout=TIMEOUT)
        return psycopg.connect(self.processes.url)

    def adds_up(self, given: dict[str, int]) -> None:
        """Each of these transfers, by job, has happened once, and nothing else has."""
        assert self.ledger() == given
        moved = sum(given.values())
        assert self.balances() == {"here": AT_FIRST - moved, "there": moved}


@pytest.fixture
def bank(processes: WorkerProcesses) -> Bank:
    return Bank(processes)


# At random


@pytest.mark.long("sqlite")
@pytest.mark.timeout(600)
def test_transfers_happen_once_each_while_workers_are_killed_all_the_time(
    processes: WorkerProcesses, bank: Bank
) -> None:
    tasks = (transfer_tasks.transaction, transfer_tasks.own, transfer_tasks.atransaction, transfer_tasks.own)
    jobs: list[Job[Any]] = []

    def transfer(number: int) -> None:
        first = len(jobs)
        drafts = [tasks[n % 4].draft(n + 1) for n in range(first, first + number)]
        jobs.extend(processes.client.enqueue_many(drafts))

    transfer(TRANSFERS)
    group = processes.program("tests.worker.worker_group", "--again", *["default"] * 3)
    kills = 0
    for done in _successes(processes, jobs):
        time.sleep(0.4 + random.random())
        young = children_of(group.pid)
        if young and done:  # as often as they get anything done, however slow the machine is
            kills += _kill(random.choice(young))
        if kills < 5 and processes.client.count(state=State.SUCCEEDED) > len(jobs) - TRANSFERS // 2:
            transfer(TRANSFERS // 2)  # however fast the machine is
    bank.adds_up({job.id: n + 1 for n, job in enumerate(jobs)})
    losses = sum(processes.job(job).losses for job in jobs)
    print(f"{kills} kills took {losses} attempts, at {_where_they_died(processes)}")
    assert kills >= 5
    assert losses >= 5
    errors = [record.error or "" for job in jobs[::10] for record in processes.client.attempts(job)]
    assert not [error for error in errors if "unique" in error.lower()], "a transfer was tried twice"


def _successes(processes: WorkerProcesses, jobs: Sized) -> Iterator[int]:
    """Until all these jobs have succeeded: how many more have since the last time. Fails if none does for a while."""
    before, give_up = 0, time.monotonic() + STALLED
    while (done := processes.client.count(state=State.SUCCEEDED)) < len(jobs):
        if done > before:
            give_up = time.monotonic() + STALLED
        assert time.monotonic() < give_up, f"{done} of {len(jobs)} have succeeded"
        yield done - before
        before = done


def _kill(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _where_they_died(processes: WorkerProcesses) -> dict[str, int]:
    """The last word of attempts that were followed by another."""
    last: dict[str, dict[int, str]] = {}
    for note in processes.notes():
        last.setdefault(note.key, {})[note.detail] = note.what
    return Counter(said[version] for said in last.values() for version in said if version < max(said))


# At each point


@pytest.mark.long
def test_a_worker_killed_at_any_point_has_moved_the_money_once_or_not_at_all_and_the_next_owner_does_the_rest(
    processes: WorkerProcesses, bank: Bank
) -> None:
    """Each of them alone in a separate worker: twelve that start at once may not lose a lease before they begin."""
    ways = (transfer_tasks.transaction, transfer_tasks.atransaction, transfer_tasks.own)
    deaths = {f"{task.name}-{point}": (task, point) for task in ways for point in transfer_tasks.POINTS}
    jobs = processes.enqueue(*(task.using(queue=queue).draft(7, point) for queue, (task, point) in deaths.items()))
    processes.program("tests.worker.worker_group", "--again", "--lease", "4", *deaths)
    for job, (_, point) in zip(jobs, deaths.values(), strict=True):
        done = processes.wait(job)
        _crashed_once(processes, done, point)
        assert done.losses == (0 if point == "committed" else 1)
    bank.adds_up({job.id: 7 for job in jobs})


@pytest.mark.long("sqlite")
def test_a_child_process_killed_at_any_point_has_moved_the_money_once_or_not_at_all(
    processes: WorkerProcesses, bank: Bank
) -> None:
    ways = (transfer_tasks.in_process, transfer_tasks.own_in_process)
    jobs = {
        job: point
        for point in transfer_tasks.POINTS
        for job in processes.enqueue(*(task.using(target=task.name).draft(7, point) for task in ways))
    }
    worker = processes.program("tests.worker.worker_group", "default")
    for job, point in jobs.items():
        _crashed_once(processes, processes.wait(job), point)
        if point != "committed":
            assert "worker lost: its process was killed" in (processes.client.attempts(job)[0].error or "")
    until(lambda: worker.log.count("failed after it was completed: worker lost") == len(ways))
    bank.adds_up({job.id: 7 for job in jobs})


def _crashed_once(processes: WorkerProcesses, done: Job[Any], point: str) -> None:
    """The attempt that crashed has counted; one that had committed was the last."""
    attempts = 1 if point == "committed" else 2
    assert (done.state, done.attempt) == (State.SUCCEEDED, attempts)
    assert processes.client.result(done) == 7
    assert [note.detail for note in processes.notes("begun", done.id)] == list(range(1, attempts + 1))
    processes.wait_for_note("committed", done.id)
    assert len(processes.notes("committed", done.id)) == 1


# The connection


@ON_POSTGRES
@pytest.mark.parametrize("point", ["wrote", "completed"])
def test_a_transaction_whose_connection_is_terminated_leaves_nothing_and_the_attempt_has_counted(
    runner: CompletionRunner, point: str
) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write(f"attempt {attempt.job.attempt}")
            if point == "wrote":
                _terminate(runner, tx, attempt)
            await tx.succeed("done")
            if point == "completed":
                _terminate(runner, tx, attempt)
        return "done"

    for way, job in runner.run(handler):
        assert (job.state, job.attempt, job.losses) == (State.SUCCEEDED, 2, 0)
        assert runner.written(job) == ["attempt 2"]
        assert runner.outcomes(job) == ["retried", "succeeded"]
        wanted = "StoreUnavailable" if way in FENCED else "AdminShutdown"
        assert wanted in (runner.reasons(job)[0] or "")


def _terminate(runner: CompletionRunner, tx: Tx, attempt: Attempt) -> None:
    if attempt.job.attempt == 1:
        with psycopg.connect(runner.database.url, autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s, 5000)", (tx.connection.info.backend_pid,))


@ON_POSTGRES
def test_a_commit_whose_answer_is_lost_has_completed_the_job(
    runner: CompletionRunner, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler cannot know, and fails; the lease does know."""
    with proxy_to(runner.database.url) as proxy:
        far = CompletionRunner(
            dataclasses.replace(runner.database, url=proxy.url), App(proxy.url, schema=runner.database.schema)
        )
        traps: list[Trap] = []

        async def handler(attempt: Attempt, begin: Begin) -> str:
            async with begin() as tx:
                await tx.write("a")
                await tx.succeed("done")
                words = b"commit" if attempt.job.task.endswith("transaction") else b"COMMIT"
                traps.append(proxy.lose_answer(words, after=COMPLETE))
            return "never reached"

        for way in WAYS:
            far.task(way, handler)
        with working(far.app, lease=10.0):
            for number, way in enumerate(WAYS, 1):
                job = far.app.client.enqueue(far.app.lookup(f"handler-{way}").draft())
                (done,) = over(runner.app, job)
                until(lambda number=number: len(traps) == number)  # type: ignore[misc]
                traps[-1].wait()
                assert (done.state, done.attempt, runner.written(done)) == (State.SUCCEEDED, 1, ["a"])
                assert runner.app.client.result(done) == "done"
                assert runner.outcomes(done) == ["succeeded"]
            until(lambda: caplog.text.count("failed after it was completed") == len(WAYS))
        far.app.close()
