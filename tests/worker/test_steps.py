"""Durable steps: a step that ended is not run again, however its attempt ends, and every attempt sees its result."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pydantic
import pytest

from relet import App, Attempt, Backoff, Fail, InvalidInput, LeaseLost, Snooze, State
from relet._attempts.runtime import AttemptRuntime
from relet._core.job import Claimed, Released
from relet._store.flows import completion, lease, maintenance
from relet._store.flows.completion import Called, Kept
from relet._store.retry import Transient
from relet.errors import StoreUnavailable
from tests.clocks import at
from tests.databases import inventory
from tests.harness import harness_of
from tests.worker import fault_tasks
from tests.worker.processes import WorkerProcesses, wait_until
from tests.worker.working import error_of, state, take, until, working

SOON = Backoff(base=0.001, max=0.001)


@pytest.fixture
def app(two_apps: App) -> App:
    return two_apps


@dataclass
class Money:
    cents: int
    of: tuple[str, str] = ("a", "b")


class Parcel(pydantic.BaseModel):
    weight: int
    tags: tuple[str, ...] = ()


# Once


def test_a_step_runs_once_over_retries_snoozes_and_resumes(app: App) -> None:
    calls: list[str] = []

    def do(what: str) -> str:
        calls.append(what)
        return what.upper()

    @app.task(backoff=SOON, max_attempts=2)
    def order(attempt: Attempt) -> list[str]:
        done = [attempt.step("charge", do, "charge")]
        if attempt.version == 1:
            raise Snooze(0.01)
        done.append(attempt.step("pack", do, what="pack"))
        if attempt.version == 2:
            raise ValueError("the post office is closed")
        if attempt.version == 3:
            raise Fail("for good, until an operator resumes it")
        return [*done, attempt.step("send", do, "send")]

    with working(app):
        job = order.enqueue()
        until(lambda: state(app, job) is State.FAILED)
        app.client.resume(job)
        assert app.client.result(job) == ["CHARGE", "PACK", "SEND"]
    assert calls == ["charge", "pack", "send"]


async def _adds(attempt: Attempt, calls: list[int]) -> int:
    total = 0
    for number in range(3):

        async def one(number: int = number) -> int:
            calls.append(number)
            return number

        total += await attempt.astep(f"step {number}", one)
        if attempt.version == number + 1:
            raise ValueError("again")
    return total


def test_a_step_of_an_async_handler_runs_once(app: App) -> None:
    calls: list[int] = []

    @app.task(backoff=SOON)
    async def add(attempt: Attempt) -> int:
        return await _adds(attempt, calls)

    with working(app):
        assert app.client.result(add.enqueue()) == 3
    assert calls == [0, 1, 2]


def test_a_worker_that_is_killed_between_steps_has_done_them(processes: WorkerProcesses) -> None:
    (job,) = processes.enqueue(fault_tasks.stepwise.draft("steps"))
    assert processes.worker().wait_for_death() == -signal.SIGKILL
    assert [note.detail for note in processes.notes("step")] == [0, 1]
    processes.worker()
    assert processes.wait(job).state is State.SUCCEEDED
    assert [note.detail for note in processes.notes("step")] == [0, 1, 2, 3]
    assert processes.client.result(job) == [0, 1, 2, 3]


@pytest.mark.long("sqlite")
def test_a_child_process_that_dies_between_steps_has_done_them(processes: WorkerProcesses) -> None:
    """And it sleeps, and waits for a signal, as others do."""
    (job,) = processes.enqueue(fault_tasks.caged_stepwise.draft("steps"))
    processes.worker()
    wait_until(lambda: "signal 'word'" in processes.client.explain(job)[0], "the job to wait for a signal")
    processes.client.signal(job, "word", "go")
    assert processes.client.result(job, timeout=20) == [0, 1, 2, 3, "go"]
    assert [note.detail for note in processes.notes("step")] == [0, 1, 2, 3]
    assert processes.outcomes(job) == ["retried", "snoozed", "snoozed", "succeeded"]


def noting(calls: list[int], value: int) -> Callable[[], int]:
    """A function that returns the value, and notes each call."""

    def call() -> int:
        calls.append(value)
        return value

    return call


def test_a_thousand_steps_of_one_job(two_apps: App) -> None:
    calls: list[int] = []

    @two_apps.task(backoff=SOON)
    def many(attempt: Attempt) -> int:
        total = sum(attempt.step(f"{n}", noting(calls, n)) for n in range(1000))
        if attempt.job.attempt == 1:
            raise ValueError("again")
        return total

    with working(two_apps, lease=10.0):
        assert two_apps.client.result(many.enqueue()) == 499_500
    assert calls == list(range(1000))


# Results


class Clerk:
    def weigh(self, grams: int) -> Parcel:
        return Parcel(weight=grams, tags=("heavy",))


def pair(first: int) -> tuple[int, str]:
    return first, "x"


def bill(cents: int) -> Money:
    return Money(cents)


def plain(value: Any):  # type: ignore[no-untyped-def]
    return value


STEPS: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "a tuple": (pair, (1,), (1, "x")),
    "a dataclass": (bill, (5,), Money(5)),
    "a model, by a method": (Clerk().weigh, (7,), Parcel(weight=7, tags=("heavy",))),
    "a partial": (partial(pair, 1), (), (1, "x")),
    "a partial of a partial": (partial(partial(bill), 9), (), Money(9)),
    "no annotation": (plain, ((1, 2),), [1, 2]),
    "a lambda": (lambda: (1, 2), (), [1, 2]),
    "nothing": (plain, (None,), None),
    "a builtin": (sum, ([1, 2],), 3),
}


def test_a_result_has_the_type_of_the_annotation_the_first_time_as_well(app: App) -> None:
    seen: list[dict[str, Any]] = []

    @app.task(backoff=SOON)
    def typed(attempt: Attempt) -> None:
        seen.append({name: attempt.step(name, function, *args) for name, (function, args, _) in STEPS.items()})
        if len(seen) == 1:
            raise ValueError("again")

    with working(app):
        app.client.result(typed.enqueue())
    expected = {name: result for name, (_, _, result) in STEPS.items()}
    assert seen == [expected, expected]


def test_an_exception_of_a_step_is_not_kept(app: App) -> None:
    calls: list[int] = []

    def shaky() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("no connection")
        return len(calls)

    @app.task(backoff=SOON)
    def work(attempt: Attempt) -> int:
        return attempt.step("shaky", shaky)

    with working(app):
        assert app.client.result(work.enqueue()) == 3
    assert inventory(app._store())["steps"] == 1


def _wrong_type() -> int:
    return "seven"  # type: ignore[return-value]


async def _coroutine() -> int:
    return 1


BAD: dict[str, tuple[Any, str]] = {
    "not JSON": (lambda: {"a": object()}, r"step 'it' of work\.a: .*object"),
    "not a number": (lambda: float("nan"), r"step 'it' of work: nan is not JSON"),
    "too large": (lambda: "x" * 300_000, r"step 'it' of work: .*the limit is 262,144"),
    "not what it says": (_wrong_type, r"step 'it' of work: does not fit int"),
    "a coroutine function": (_coroutine, r"step 'it' of work is a coroutine function: write `await attempt\.astep"),
}


@pytest.mark.parametrize("which", BAD)
def test_a_result_that_cannot_be_kept_is_an_error_that_says_so_and_is_not_kept(memory_app: App, which: str) -> None:
    """Not kept: mended code would find it for ever."""
    app, (function, says) = memory_app, BAD[which]

    @app.task(max_attempts=1)
    def work(attempt: Attempt) -> Any:
        return attempt.step("it", function)

    with working(app):
        job = work.enqueue()
        error = error_of(app, job)
    assert re.search(says, error.splitlines()[0]), error
    assert inventory(app._store())["steps"] == 0


# Whose it is


def test_a_zombies_step_is_refused_and_that_of_the_new_owner_counts(app: App) -> None:
    @app.task
    def work(attempt: Attempt) -> None: ...

    harness_of(app).record_pulse()
    job = work.enqueue()
    (dead,) = take(app, seconds=0.01)
    zombie = _backed(app, dead)
    assert zombie.step("first", lambda: "in time") == "in time"
    until(lambda: app._store().run(lease.reap, random.random))
    with pytest.raises(LeaseLost):
        zombie.step("second", lambda: "too late")
    (new_owner,) = take(app, seconds=30.0)
    new = _backed(app, new_owner)
    with pytest.raises(LeaseLost):
        zombie.step("third", lambda: "much too late")
    assert new.step("first", lambda: "again") == "in time"
    assert new.step("second", lambda: "the new owner's") == "the new owner's"
    for suspends in (lambda: zombie.sleep("nap", 1), lambda: zombie.wait_for("word", timeout=1)):
        with pytest.raises(LeaseLost):
            suspends()
    kept = app._store().run(completion.steps, job.id)
    assert {name: one.result for (_, name), one in kept.items()} == {
        "first": '"in time"',
        "second": '"the new owner\'s"',
    }


def test_a_step_whose_answer_was_lost_is_repeated_and_finds_itself(app: App) -> None:
    @app.task
    def work(attempt: Attempt) -> None: ...

    job = work.enqueue()
    (claimed,) = harness_of(app).claim(1)
    store = app._store()
    lost: list[object] = []
    run_once = store.run_once

    def losing(make: Any, *how: Any) -> Any:
        answer = run_once(make, *how)
        if getattr(make, "func", None) is completion.keep and len(lost) < 2:
            lost.append(answer)
            raise Transient(StoreUnavailable("the answer was lost"), may_be_committed=True)
        return answer

    store.run_once = losing  # type: ignore[method-assign,assignment]
    try:
        calls: list[int] = []
        assert _backed(app, claimed).step("once", noting(calls, 7)) == 7
    finally:
        store.run_once = run_once  # type: ignore[method-assign]
    assert calls == [7]
    assert len(lost) == 2
    assert list(store.run(completion.steps, job.id).values()) == [Kept("7", 0)]


def test_the_first_result_of_a_step_counts_when_it_is_kept_again(app: App) -> None:
    """The first writer wins: the value of a repeated statement is dropped."""

    @app.task
    def work(attempt: Attempt) -> None: ...

    work.enqueue()
    (claimed,) = harness_of(app).claim(1)
    run = app._store().run
    assert run(completion.keep, claimed.lease, "step", "a", Called("1"), None) == Kept("1", 0)
    assert run(completion.keep, claimed.lease, "step", "a", Called("2"), None) == Kept("1", 0)
    for seconds, precision in ((60.0, 1), (6000.0, 5)):
        kept = run(completion.keep, claimed.lease, "sleep", "a", Called(), seconds)
        assert kept is not None
        assert kept.left == pytest.approx(60, abs=precision)


def test_a_step_within_a_transaction_of_the_store_is_refused_before_it_is_done(app: App) -> None:
    """SQLite has one writer at a time: it would wait for itself."""
    calls: list[int] = []

    @app.task(max_attempts=1)
    def work(attempt: Attempt) -> int:
        attempt.step("before", lambda: 1)
        with attempt.transaction():
            assert attempt.step("before", lambda: 2) == 1
            return attempt.step("within", noting(calls, 3))

    @app.task(max_attempts=1)
    async def awork(attempt: Attempt) -> None:
        async with attempt.transaction():
            await attempt.asleep("within", 1.0)

    with working(app):
        assert "step 'within' of work: steps, sleeps and waits have their own transactions" in error_of(
            app, work.enqueue()
        )
        assert "use them before attempt.transaction()" in error_of(app, awork.enqueue())
    assert calls == []


# How long it lasts


def test_steps_and_signals_go_with_the_job(app: App) -> None:
    @app.task
    def work(attempt: Attempt) -> None: ...

    jobs = [work.enqueue() for _ in range(3)]
    for claimed in harness_of(app).claim(3):
        backing = _backed(app, claimed)
        backing.step("a", lambda: 1)
        app.client.signal(claimed.id, "word", 1)
        if claimed.id == jobs[0].id:
            harness_of(app).end(claimed, Released())
        else:
            harness_of(app).succeed(claimed)
    assert _details(app) == (3, 3)
    app.client.delete(jobs[0])
    assert _details(app) == (2, 2)
    app.client.delete(jobs[1])
    assert _details(app) == (1, 1)
    with at(app._store(), time.time() + 3600):
        app._store().run(maintenance.prune, keep_finished=60.0, keep_failed=60.0)
    assert app.client.get(jobs[2]) is None
    assert _details(app) == (0, 0)


def test_a_handler_called_by_hand_runs_its_steps_and_keeps_nothing(memory_app: App) -> None:
    calls: list[int] = []

    @memory_app.task
    def work(attempt: Attempt) -> int:
        return attempt.step("a", noting(calls, 5))

    @memory_app.task
    async def awork(attempt: Attempt) -> int:
        return await attempt.astep("a", _coroutine)

    work.enqueue()
    made = Attempt(harness_of(memory_app).claim(1)[0])
    assert [work(made), work(made)] == [5, 5]
    assert calls == [5, 5]
    assert asyncio.run(awork(made)) == 1
    with pytest.raises(InvalidInput, match=r"attempt\.sleep needs a worker that runs the attempt"):
        made.sleep("x", 1)
    with pytest.raises(InvalidInput, match=r"attempt\.wait_for needs a worker"):
        made.wait_for("x")


def _details(app: App) -> tuple[int, int]:
    found = inventory(app._store())
    return found["steps"], found["signals"]


def _backed(app: App, job: Claimed) -> Attempt:
    """As a worker makes it."""
    attempt = Attempt(job)
    AttemptRuntime(app._store(), app.tasks[job.task], attempt)
    return attempt
