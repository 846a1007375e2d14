"""Attempts whose lease was lost, and who do not know it yet: nothing that they write is committed, on any way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from relet import Attempt, Job, LeaseLost, State
from tests.worker.completions import FENCED, ON_POSTGRES, WAYS, Begin, CompletionRunner, Handler, reap
from tests.worker.working import TIMEOUT, until, until_state, working

#: The state of the job when its zombie wants to complete it, and its state in the end.
FATES = {
    "queued": State.QUEUED,
    "running": State.SUCCEEDED,
    "succeeded": State.SUCCEEDED,
    "failed": State.FAILED,
    "cancelled": State.CANCELLED,
    "completed": State.SUCCEEDED,
    "deleted": None,
}
ON_LOOP = ("atransaction", "aown")
WITH_HEIRS = ("running", "succeeded", "failed")


async def completes(attempt: Attempt, begin: Begin) -> None:
    async with begin() as tx:
        await tx.write("a zombie's")
        await tx.succeed("a zombie's")


async def goes_on(attempt: Attempt, begin: Begin) -> None:
    async with begin() as tx:
        await tx.write("a zombie's")
        follow = tx.runner.app.lookup("follow")
        await tx.enqueue(follow.draft())
        await tx.succeed(attempt.continue_with(follow.draft()))


async def only_writes(attempt: Attempt, begin: Begin) -> None:
    async with begin() as tx:
        await tx.write("a zombie's")
        await tx.enqueue(tx.runner.app.lookup("follow").draft())


async def swallows(attempt: Attempt, begin: Begin) -> None:
    async with begin() as tx:
        await tx.write("a zombie's")
        with pytest.raises(LeaseLost):
            await tx.succeed("a zombie's")


async def swallows_in_a_savepoint(attempt: Attempt, begin: Begin) -> None:
    async with begin() as tx:
        await tx.write("a zombie's")
        with pytest.raises(LeaseLost):
            async with tx.savepoint():
                await tx.succeed("a zombie's")


HANDLERS: dict[Handler, tuple[str, ...]] = {
    completes: WAYS,
    goes_on: WAYS,
    only_writes: FENCED,
    swallows: FENCED,
    swallows_in_a_savepoint: FENCED,
}


class Robbery:
    """The jobs of a worker that is cut off are taken away from it, and go to new owners in another."""

    def __init__(self, runner: CompletionRunner, fate: str) -> None:
        self.runner, self.fate = runner, fate
        self.told: list[str] = []  # zombies that were told of their loss
        self._started = threading.Semaphore(0)
        self._cut_off = threading.Event()
        self._buried = threading.Event()

    def task(self, way: str, handler: Handler) -> Any:
        async def robbed(attempt: Attempt, begin: Begin) -> Any:
            if attempt.version > 1:
                return self._inherit()
            self._started.release()
            while way in ON_LOOP and not self._cut_off.is_set():
                await asyncio.sleep(0.005)
            assert self._cut_off.wait(TIMEOUT)
            self._rob(attempt)
            try:
                return await handler(attempt, begin)
            except LeaseLost as error:
                self.told.append(error.job_id)
                raise

        most = 2 if self.fate == "failed" else 4
        return self.runner.task(way, robbed, name=f"{handler.__name__}-{way}", max_attempts=most)

    @contextmanager
    def committed(self, number: int) -> Iterator[list[Job[Any]]]:
        """The jobs, when all zombies have spoken."""
        client = self.runner.app.client
        with ExitStack() as stack:
            worker = stack.enter_context(working(self.runner.app, lease=30.0, concurrency=number))
            drafts = [task.draft() for task in self.runner.app.tasks.values() if task.name != "follow"]
            jobs = client.enqueue_many(drafts)
            for _ in jobs:
                assert self._started.acquire(timeout=TIMEOUT)
            worker._sessions[0].heartbeat.stop()
            worker._sessions[0].drain()
            if self.fate in WITH_HEIRS:
                stack.enter_context(working(self.runner.app, lease=30.0, concurrency=number))
                stack.callback(self._buried.set)
            self._cut_off.set()
            until(lambda: len(self.told) == number, "some zombies were not told")
            self._buried.set()
            yield jobs

    def _rob(self, attempt: Attempt) -> None:
        client, job = self.runner.app.client, attempt.job.id
        match self.fate:
            case "deleted":
                client.delete(job)
            case "completed":
                client.complete(job, "by others")
            case "cancelled":
                reap(self.runner, attempt)
                client.cancel(job)
            case _:
                reap(self.runner, attempt)
                until_state(self.runner.app, job, State(self.fate))

    def _inherit(self) -> str:
        if self.fate == "running":
            assert self._buried.wait(TIMEOUT)
        if self.fate == "failed":
            raise ValueError("the new owner has failed")
        return "the new owner's"


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.long("failed", "cancelled", "completed")
@pytest.mark.read_committed
def test_nothing_that_a_zombie_writes_is_committed(runner: CompletionRunner, fate: str) -> None:
    robbery = Robbery(runner, fate)
    followed: list[str] = []

    @runner.app.task
    def follow(attempt: Attempt) -> None:
        followed.append(attempt.job.id)

    for handler, ways in HANDLERS.items():
        for way in ways:
            robbery.task(way, handler)
    number = sum(map(len, HANDLERS.values()))
    with robbery.committed(number) as jobs:
        for job in jobs:
            until_state(runner.app, job, FATES[fate])
            assert runner.written(job) == []
            if FATES[fate] is State.SUCCEEDED:
                assert runner.app.client.result(job) == ("by others" if fate == "completed" else "the new owner's")
                assert len(runner.app.client.chain(job)) == 1
    assert sorted(robbery.told) == sorted(job.id for job in jobs)
    assert followed == []
    assert not [job for job in runner.app.client.jobs(limit=100).jobs if job.task == "follow"]


@ON_POSTGRES
@pytest.mark.read_committed
def test_a_zombie_that_wrote_before_it_lost_its_lease_loses_its_writes(runner: CompletionRunner) -> None:
    """The transaction is open while the job goes to another: SQLite has no room for that."""
    robbery = Robbery(runner, "succeeded")

    async def writes_first(attempt: Attempt, begin: Begin) -> str:
        if attempt.version > 1:
            return "the new owner's"
        try:
            async with begin() as tx:
                await tx.write("a zombie's")
                robbery._rob(attempt)
                await tx.succeed("a zombie's")
        except LeaseLost:
            robbery.told.append(attempt.job.id)
            raise
        return "a zombie's"

    with runner.running(writes_first, ("transaction", "own"), worker={"lease": 30.0}) as (worker, jobs):
        worker._sessions[0].heartbeat.stop()
        until(lambda: len(robbery.told) == 2)
        for _, job in runner.ends(("transaction", "own"), jobs):
            assert (job.state, job.attempt, job.losses) == (State.SUCCEEDED, 2, 1)
            assert runner.app.client.result(job) == "the new owner's"
            assert runner.written(job) == []
