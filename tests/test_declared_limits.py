"""Limits that code declares: stored when a worker starts, changed by operators, changed again by new code."""

from __future__ import annotations

import asyncio

import pytest

from relet import App, InvalidInput, Worker
from relet._store.flows import control
from relet.types import GroupLimit, QueueInfo, RateInfo
from tests.worker.working import until, working


def start(app: App) -> QueueInfo:
    """Store the declared limits, as a worker does when it starts."""
    app._store().run(control.declare_limits, app.limits)
    return next(info for info in app.client.queues() if info.queue == "mail")


def send() -> None: ...


def test_declared_limits_are_stored_and_operators_change_them(app: App) -> None:
    app.client.migrate()
    app.limit_queue("mail", max_running=4, rate=100, per=60)
    app.limit_queue("mail", max_running=2, group="*")
    app.limit_queue("mail", max_running=1, group="acme")
    app.limit_queue("mail", rate=5, per=1, group="*", fair=True)
    info = start(app)
    assert (info.max_running, info.fair) == (4, True)
    assert info.group_limits == (GroupLimit("*", 2), GroupLimit("acme", 1))
    assert info.rates == (RateInfo(None, 100, 60.0), RateInfo("*", 5, 1.0))

    app.client.limit_queue("mail", max_running=9)
    app.client.limit_queue("mail", max_running=None, group="acme")
    info = start(app)
    assert info.max_running == 9
    assert info.group_limits == (GroupLimit("*", 2),)

    app.limits.clear()  # as the next release of the code declares
    app.limit_queue("mail", max_running=5)
    app.limit_queue("mail", max_running=2, group="*")
    info = start(app)
    assert info.max_running == 5
    assert info.group_limits == (GroupLimit("*", 2),)
    assert (info.rates, info.fair) == ((), False)


def test_a_task_declares_the_limits_of_its_queue() -> None:
    app = App("sqlite:///:memory:")

    app.limit(max_running=2)(app.task(queue="mail")(send))
    with working(app):
        until(lambda: [one.max_running for one in app.client.queues()] == [2])
    app.task(queue="mail", name="other")(send)
    with pytest.raises(InvalidInput, match="the limits of task send apply to queue mail, which task other uses, too"):
        Worker(app)


def test_bad_declarations_are_refused() -> None:
    app = App("sqlite:///:memory:")
    app.limit_queue("mail", max_running=2)
    with pytest.raises(InvalidInput, match="queue mail: max_running is declared twice, as 2 and as 3"):
        app.limit_queue("mail", max_running=3)
    with pytest.raises(InvalidInput, match="pass rate and per"):
        app.limit_queue("mail", rate=3)
    with pytest.raises(InvalidInput, match="needs something to set"):
        app.limit_queue("mail")
    with pytest.raises(InvalidInput, match="is not a task"):
        app.limit(max_running=1)(lambda: None)  # type: ignore[type-var]


def test_jobs_without_a_group_run_when_the_code_declares_a_limit_by_group_for_their_queue(app: App) -> None:
    task = app.task(queue="mail")(send)
    app.client.migrate()
    app.client.enqueue_many([task.draft() for _ in range(3)])
    app.limit_queue("mail", max_running=1, group="*")
    with working(app):
        until(lambda: app.client.count(state="succeeded") == 3)


def test_the_first_claims_keep_a_limit_that_the_code_declares(app: App) -> None:
    """The worker stores the limit before it claims, not beside its first claims."""
    running: list[int] = []
    most: list[int] = []

    @app.limit(max_running=2)
    @app.task(queue="few")
    async def few() -> None:
        running.append(1)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.pop()

    app.client.migrate()
    app.client.enqueue_many([few.draft() for _ in range(20)])
    with working(app, concurrency=20):
        until(lambda: app.client.count(state="succeeded") == 20)
    assert max(most) <= 2
