"""Which exceptions are retried, and when: `retry_on`, `fail_on` and `retry_delay` of a task."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from relet import App, Attempt, Backoff, Fail, InvalidInput, Retry, State
from relet.testing import Harness, harness
from tests.conftest import PG_KINDS, SERVERS
from tests.worker import child_tasks
from tests.worker.working import over, working

#: The worker decides; both kinds of store settle its outcome.
pytestmark = pytest.mark.long("postgres")


@pytest.fixture(params=["memory", *PG_KINDS])
def relet(request: pytest.FixtureRequest) -> Iterator[Harness]:
    url = "sqlite:///:memory:"
    if request.param != "memory":
        url = request.config.stash[SERVERS].get(request.param).dsn
    with harness(App("sqlite:///:memory:"), url) as testing:
        yield testing


def end(relet: Harness, error: BaseException, **options: Any) -> tuple[State, float | None]:
    """The state of a job whose handler raises this, and the seconds until its next attempt."""

    @relet.app.task(name=f"raise_{len(relet.app.tasks)}", **options)
    def work() -> None:
        raise error

    job = work.enqueue()
    relet.drain()
    found = relet.client.get(job)
    assert found is not None
    wait = (found.run_at - relet.now).total_seconds() if found.state is State.PENDING else None
    return found.state, wait


class Declined(Exception): ...


class Expired(Declined): ...


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Declined(), State.FAILED),
        (Expired(), State.FAILED),  # a subclass
        (ConnectionError(), State.PENDING),
        (ExceptionGroup("both", [ConnectionError(), Expired()]), State.FAILED),
        (ExceptionGroup("both", [ConnectionError(), OSError()]), State.PENDING),
        (Retry("again"), State.PENDING),
    ],
    ids=repr,
)
def test_fail_on_fails_a_job_at_once(relet: Harness, error: BaseException, state: State) -> None:
    assert end(relet, error, fail_on=(Declined, KeyError))[0] is state


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ConnectionError(), State.PENDING),
        (ConnectionResetError(), State.PENDING),
        (Declined(), State.FAILED),
        (ExceptionGroup("all", [ConnectionError(), ConnectionResetError()]), State.PENDING),
        (ExceptionGroup("some", [ConnectionError(), Declined()]), State.FAILED),
        (Retry("again"), State.PENDING),
        (Fail("no"), State.FAILED),
    ],
    ids=repr,
)
def test_retry_on_retries_nothing_else(relet: Harness, error: BaseException, state: State) -> None:
    assert end(relet, error, retry_on=ConnectionError)[0] is state


def test_fail_on_wins_over_retry_on(relet: Harness) -> None:
    assert end(relet, Expired(), retry_on=Declined, fail_on=Expired)[0] is State.FAILED


def test_a_function_decides_the_delay(relet: Harness) -> None:
    seen: list[tuple[int, str]] = []

    def delay(attempt: Attempt, error: BaseException) -> float | timedelta | None:
        seen.append((attempt.job.attempt, str(error)))
        delays: dict[str, float | timedelta] = {"soon": 10.0, "later": timedelta(hours=1)}
        return delays.get(str(error))

    backoff = Backoff(base=77, max=77, jitter=False)
    for text, seconds in (("soon", 10.0), ("later", 3600.0), ("whenever", 77.0)):
        state, wait = end(relet, ValueError(text), retry_delay=delay, backoff=backoff)
        assert state is State.PENDING
        assert wait == pytest.approx(seconds, abs=0.01)
    assert seen == [(1, "soon"), (1, "later"), (1, "whenever")]


@pytest.mark.parametrize("answer", ["soon", -1, object()])
def test_a_delay_that_is_none_fails_the_attempt_and_says_so(relet: Harness, answer: Any) -> None:
    @relet.app.task(retry_delay=lambda attempt, error: answer)
    def work() -> None:
        raise ValueError("card declined")

    job = work.enqueue()
    relet.drain()
    found = relet.client.get(job)
    assert found is not None
    assert found.state is State.PENDING, "retried after the backoff"
    assert "retry_delay" in (found.error or "")
    assert "card declined" in (found.error or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retry_on": "ValueError"}, "retry_on must be an exception class"),
        ({"fail_on": (ValueError, 7)}, "fail_on must be an exception class"),
        ({"retry_delay": 60}, "backoff=Backoff"),
    ],
)
def test_wrong_rules_are_refused(options: dict[str, Any], message: str) -> None:
    app = App("sqlite:///:memory:")
    with pytest.raises(InvalidInput, match=message):

        @app.task(**options)
        def work() -> None: ...


@pytest.mark.long
def test_rules_hold_in_child_processes(app: App) -> None:
    child_tasks.register(app)
    with working(app):
        job = app.lookup("refuse").enqueue()
        over(app, job)
    assert len(app.client.attempts(job)) == 1
