"""Completion in a transaction: the handler's writes, the completion and follow-up jobs are committed together or not.

Each handler runs in a thread and on the event loop, in a transaction of the store and in one of the user's own.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from relet import App, Attempt, Fail, InvalidInput, Retry, Snooze, State
from relet._attempts import runtime
from relet.errors import InvalidPayload, InvalidTransition, StoreBusy
from tests.harness import harness_of
from tests.worker.completions import FENCED, WAYS, Begin, CompletionRunner, Undo
from tests.worker.working import state, until

pytestmark = pytest.mark.every_store

ROLLED_BACK = "completion rolled back"


def first(attempt: Attempt) -> bool:
    return attempt.job.attempt == 1


def lines(caplog: pytest.LogCaptureFixture, words: str) -> int:
    return sum(words in record.getMessage() for record in caplog.records)


# All of it


def test_writes_completion_and_follow_ups_are_committed_together(runner: CompletionRunner) -> None:
    followed: list[str] = []
    seen: list[State | None] = []

    @runner.app.task
    def follow(key: str) -> str:
        followed.append(key)
        return key

    async def handler(attempt: Attempt, begin: Begin) -> int:
        async with begin() as tx:
            await tx.write("a")
            await tx.enqueue(follow.draft(attempt.job.id))
            result: int = await tx.succeed(7)
            await tx.write("b, after the completion")
            seen.append(state(runner.app, attempt.job.id))
        seen.append(state(runner.app, attempt.job.id))
        return result

    with runner.running(handler) as (_, jobs):
        for _, job in runner.ends(WAYS, jobs):
            assert (job.state, job.attempt, job.losses) == (State.SUCCEEDED, 1, 0)
            assert runner.app.client.result(job) == 7
            assert runner.written(job) == ["a", "b, after the completion"]
            assert runner.outcomes(job) == ["succeeded"]
        until(lambda: sorted(followed) == sorted(job.id for job in jobs))
    assert sorted(seen, key=str) == [State.RUNNING] * 4 + [State.SUCCEEDED] * 4


def test_a_chain_goes_on_with_the_completion(runner: CompletionRunner) -> None:
    @runner.app.task
    def end(word: str) -> str:
        return word

    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write("a")
            return str(await tx.succeed(attempt.continue_with(end.draft("the end"))))

    with runner.running(handler) as (_, jobs):
        for job in jobs:
            assert runner.app.client.result(job, timeout=20) == "the end"
            assert [one.state for one in runner.app.client.chain(job)] == [State.SUCCEEDED] * 2
            assert runner.written(job) == ["a"]


def test_a_successor_that_cannot_be_is_an_error_in_the_handler_and_nothing_is_written(runner: CompletionRunner) -> None:
    @runner.app.task
    def end() -> None: ...

    existing = end.using(delay=600).enqueue()

    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write("a")
            await tx.succeed(attempt.continue_with(end.using(id=existing.id).draft()))
        return "never reached"

    for _, job in runner.run(handler, max_attempts=1):
        assert (job.state, runner.written(job)) == (State.FAILED, [])
        assert f"job {existing.id} exists already" in (job.error or "")


def test_a_handler_whose_successor_is_refused_may_end_otherwise(runner: CompletionRunner) -> None:
    @runner.app.task
    def end() -> None: ...

    existing = end.using(delay=600).enqueue()

    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write("a")
            with pytest.raises(InvalidInput, match="exists already"):
                await tx.succeed(attempt.continue_with(end.using(id=existing.id).draft()))
        return "without it"

    for _, job in runner.run(handler):
        assert (job.state, job.attempt, runner.written(job)) == (State.SUCCEEDED, 1, ["a"])
        assert runner.app.client.result(job) == "without it"


def test_stages_read_in_one_transaction_work_outside_of_any_and_complete_in_another(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write("read")
        time.sleep(0.01)
        async with begin() as tx:
            await tx.write("done")
            await tx.succeed("both")
        return "both"

    for _, job in runner.run(handler):
        assert (job.state, job.attempt, runner.written(job)) == (State.SUCCEEDED, 1, ["done", "read"])


# Nothing of it


def test_an_exception_in_the_transaction_leaves_nothing_of_that_attempt(runner: CompletionRunner) -> None:
    @runner.app.task
    def follow() -> None: ...

    async def handler(attempt: Attempt, begin: Begin) -> int:
        async with begin() as tx:
            await tx.write(f"attempt {attempt.job.attempt}")
            await tx.enqueue(follow.using(delay=600).draft())
            await tx.succeed(attempt.job.attempt)
            if first(attempt):
                raise ValueError("no")
        return attempt.job.attempt

    for _, job in runner.run(handler):
        assert (job.state, job.attempt) == (State.SUCCEEDED, 2)
        assert runner.app.client.result(job) == 2
        assert runner.written(job) == ["attempt 2"]
        assert runner.reasons(job) == ["ValueError: no", None]
    assert runner.app.client.count(state="pending") == 4, "one follow-up each"


def test_a_completion_that_was_rolled_back_although_the_handler_returned_is_retried(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> str:
        try:
            async with begin() as tx:
                await tx.write(f"attempt {attempt.job.attempt}")
                await tx.succeed("done")
                if first(attempt):
                    raise Undo
        except Undo:
            pass
        return "done"

    for _, job in runner.run(handler):
        assert (job.state, job.attempt, job.losses) == (State.SUCCEEDED, 2, 0)
        assert runner.written(job) == ["attempt 2"]
        assert runner.outcomes(job) == ["retried", "succeeded"]
        assert runner.reasons(job) == [ROLLED_BACK, None]


def test_completions_that_are_rolled_back_each_time_spend_the_attempts(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> None:
        try:
            async with begin() as tx:
                await tx.write("a")
                await tx.succeed(None)
                raise Undo
        except Undo:
            pass

    for _, job in runner.run(handler, max_attempts=2):
        assert (job.state, job.attempt, job.error) == (State.FAILED, 2, ROLLED_BACK)
        assert runner.written(job) == []


def test_a_second_transaction_may_complete_a_job_that_the_first_did_not(runner: CompletionRunner) -> None:
    """As in a loop around a serialization failure."""

    async def handler(attempt: Attempt, begin: Begin) -> int:
        for turn in (1, 2, 3):
            try:
                async with begin() as tx:
                    await tx.write(f"turn {turn}")
                    await tx.succeed(turn)
                    if turn < 3:
                        raise Undo
            except Undo:
                continue
        return 3

    for _, job in runner.run(handler):
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
        assert runner.app.client.result(job) == 3
        assert runner.written(job) == ["turn 3"]


@pytest.mark.parametrize(
    ("said", "wanted", "attempt"),
    [
        (Snooze(600), (State.PENDING, ["snoozed"]), 0),
        (Retry("later", delay=600), (State.PENDING, ["retried"]), 1),
        (Fail("never"), (State.FAILED, ["failed"]), 1),
    ],
    ids=["snooze", "retry", "fail"],
)
def test_an_exception_after_a_completion_was_rolled_back_ends_the_attempt_as_usual(
    runner: CompletionRunner, said: Exception, wanted: tuple[State, list[str]], attempt: int
) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> None:
        try:
            async with begin() as tx:
                await tx.write("a")
                await tx.succeed(None)
                raise Undo
        except Undo:
            raise said from None

    with runner.running(handler) as (_, jobs):
        for job in jobs:
            until(lambda job=job: state(runner.app, job) not in (State.RUNNING, State.QUEUED))  # type: ignore[misc]
            found = runner.app.client.get(job)
            assert found is not None
            assert (found.state, runner.outcomes(job)) == wanted
            assert (found.attempt, runner.written(job)) == (attempt, [])


# After a commit


def test_an_exception_after_the_commit_is_a_warning_and_the_job_never_runs_again(
    runner: CompletionRunner, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> None:
        async with begin() as tx:
            await tx.write("a")
            await tx.succeed("done")
        raise ValueError("too late")

    for _, job in runner.run(handler):
        assert (job.state, job.attempt, runner.written(job)) == (State.SUCCEEDED, 1, ["a"])
        assert runner.app.client.result(job) == "done"
    assert lines(caplog, "failed after it was completed: ValueError: too late") == 4


def test_another_value_returned_after_a_completion_is_not_the_result_and_is_a_warning(
    runner: CompletionRunner, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> Any:
        async with begin() as tx:
            await tx.succeed("done")
        return {"something": "else"}

    for _, job in runner.run(handler):
        assert runner.app.client.result(job) == "done"
    assert lines(caplog, "returned something else than it was completed with") == 4


def test_a_continuation_that_is_returned_after_another_completion_is_dropped_with_a_warning(
    runner: CompletionRunner, caplog: pytest.LogCaptureFixture
) -> None:
    @runner.app.task
    def more() -> None: ...

    async def handler(attempt: Attempt, begin: Begin) -> Any:
        async with begin() as tx:
            await tx.succeed("done")
        return attempt.continue_with(more.draft())

    for _, job in runner.run(handler):
        assert (runner.app.client.result(job), len(runner.app.client.chain(job))) == ("done", 1)
    assert lines(caplog, "returned something else than it was completed with") == 4


@pytest.mark.long
def test_the_same_value_or_none_returned_after_a_completion_is_no_warning(
    runner: CompletionRunner, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> Any:
        async with begin() as tx:
            result = await tx.succeed({"a": [1, 2.5]})
        return None if first(attempt) and attempt.job.task.endswith("own") else result

    for _, job in runner.run(handler):
        assert runner.app.client.result(job) == {"a": [1, 2.5]}
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


# Twice


def test_a_completion_is_made_once(runner: CompletionRunner, caplog: pytest.LogCaptureFixture) -> None:
    """A second one is an error, in the same transaction and in another."""
    errors: list[str] = []

    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write("a")
            await tx.succeed("first")
            with pytest.raises(InvalidTransition) as raised:
                await tx.succeed("second")
            errors.append(str(raised.value))
        with pytest.raises(InvalidTransition) as again:
            async with begin() as tx:
                await tx.write("b")
                await tx.succeed("third")
        errors.append(str(again.value))
        return "first"

    for _, job in runner.run(handler):
        assert (job.state, job.attempt, runner.written(job)) == (State.SUCCEEDED, 1, ["a"])
        assert runner.app.client.result(job) == "first"
        said = f"cannot succeed job {job.id}: it is over: this attempt has completed it already"
        assert errors.count(said) == 2
    assert len(errors) == 8
    assert "returned something else" not in caplog.text


def test_once_the_job_is_completed_nothing_more_is_written_in_its_name(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> None:
        async with begin() as tx:
            await tx.succeed(None)
        with pytest.raises(InvalidTransition, match="completed it already"):
            async with begin() as tx:
                await tx.write("b")

    for _, job in runner.run(handler, FENCED):
        assert (job.state, job.attempt, runner.written(job)) == (State.SUCCEEDED, 1, [])


def test_a_transaction_within_another_is_refused_before_it_can_wait_for_that_one(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write("a")
            await tx.succeed("done")
            with pytest.raises(InvalidInput, match="open here already; use that one"):
                await begin().__aenter__()
        with pytest.raises(InvalidTransition):  # but one after another
            async with begin() as tx:
                await tx.write("b")
        return "done"

    for _, job in runner.run(handler, FENCED):
        assert (job.state, job.attempt, runner.written(job)) == (State.SUCCEEDED, 1, ["a"])


def test_a_completion_in_a_transaction_that_is_still_open_is_not_waited_for_for_ever(
    runner: CompletionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not runner.database.is_postgres:
        pytest.skip("SQLite has one writer, and says so by itself")
    monkeypatch.setattr(runtime, "RETRY_SECONDS", 0.2)

    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx, begin() as other:
            await tx.succeed("done")
            with pytest.raises(StoreBusy, match="completed its job in a transaction that is still open"):
                await other.succeed("done")
        return "done"

    for _, job in runner.run(handler, ["own", "aown"]):
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)


# Savepoints, and errors that are swallowed


def test_a_savepoint_that_is_rolled_back_takes_the_completion_along(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write(f"outside {attempt.job.attempt}")
            try:
                async with tx.savepoint():
                    await tx.write(f"inside {attempt.job.attempt}")
                    await tx.succeed("done")
                    if first(attempt):
                        raise Undo
            except Undo:
                pass
        return "done"

    for _, job in runner.run(handler):
        assert (job.state, job.attempt) == (State.SUCCEEDED, 2)
        assert runner.reasons(job) == [ROLLED_BACK, None]
        assert runner.written(job) == ["inside 2", "outside 1", "outside 2"]


@pytest.mark.long
def test_after_a_savepoint_that_was_rolled_back_the_job_can_be_completed(runner: CompletionRunner) -> None:
    async def handler(attempt: Attempt, begin: Begin) -> int:
        async with begin() as tx:
            try:
                async with tx.savepoint():
                    await tx.succeed(1)
                    raise Undo
            except Undo:
                pass
            result: int = await tx.succeed(2)
            return result

    for _, job in runner.run(handler):
        assert (job.state, job.attempt, runner.app.client.result(job)) == (State.SUCCEEDED, 1, 2)


def test_an_error_that_was_swallowed_in_the_transaction_is_none_that_can_be_committed(runner: CompletionRunner) -> None:
    """PostgreSQL has given the transaction up; to commit it would be to roll it back, in silence."""
    if not runner.database.is_postgres:
        pytest.skip("a transaction of SQLite survives the error of a statement")

    async def handler(attempt: Attempt, begin: Begin) -> str:
        async with begin() as tx:
            await tx.write(f"attempt {attempt.job.attempt}")
            await tx.succeed("done")
            if first(attempt):
                with suppress(psycopg.Error):
                    await tx.execute("select 1/0")
        return "done"

    for way, job in runner.run(handler):
        assert (job.state, job.attempt, runner.written(job)) == (State.SUCCEEDED, 2, ["attempt 2"])
        (reason, _) = runner.reasons(job)
        if way in FENCED:
            assert "the error was swallowed: nothing was committed" in (reason or "")
        else:
            assert reason == ROLLED_BACK


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_transaction_of_the_store_is_not_the_handlers_to_end(runner: CompletionRunner, how: str) -> None:
    """Its earlier writes would not be fenced, and its later writes would be committed by themselves."""

    async def handler(attempt: Attempt, begin: Begin) -> str:
        if not first(attempt):
            return "done"
        async with begin() as tx:
            await tx.write("a")
            await tx.execute(how)
        return "never reached"

    for _, job in runner.run(handler, FENCED):
        assert (job.state, job.attempt) == (State.SUCCEEDED, 2)
        assert "called commit or rollback inside this transaction block" in (runner.reasons(job)[0] or "")


# Refused completions


def test_a_result_that_is_refused_is_an_error_before_anything_is_written(runner: CompletionRunner) -> None:
    errors: list[str] = []

    async def handler(attempt: Attempt, begin: Begin) -> Any:
        async with begin() as tx:
            with pytest.raises(InvalidPayload) as raised:
                await tx.succeed(object())
            errors.append(str(raised.value))
            await tx.write("the transaction goes on")
        return "and so does the job"

    for _, job in runner.run(handler):
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
        assert runner.app.client.result(job) == "and so does the job"
        assert runner.written(job) == ["the transaction goes on"]
    assert len(errors) == 4


def test_an_attempt_that_no_worker_runs_says_so(memory_app: App) -> None:
    @memory_app.task
    def work(attempt: Attempt) -> None: ...

    work.enqueue()
    attempt = Attempt(harness_of(memory_app).claim(1)[0])
    for call in (attempt.transaction, lambda: attempt.succeed(None, connection=None)):
        with pytest.raises(InvalidInput, match=r"attempt\.\w+ needs a worker that runs the attempt"):
            call()
