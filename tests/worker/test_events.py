"""Events: one for each change, emitted after the commit."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from typing import Any

import pytest

from relet import App, Attempt, Backoff, Fail, InvalidInput, Snooze, State, events
from tests.databases import Database
from tests.harness import harness_of
from tests.worker.working import over, take, until, until_state, working, writes_held_up


class ReceivedEvents:
    """All events, with the state of each job in the store when its event came."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.all: list[events.Event] = []
        self.found: dict[str, list[tuple[str, State | None, State | None]]] = defaultdict(list)
        app.on(events.Event)(self.all.append)
        app.on(events.JobEvent)(self._note)

    def _note(self, event: events.JobEvent) -> None:
        if isinstance(event, events.LeaseLost):
            return  # another worker owns the job now
        job = self.app.client.get(event.job_id)
        self.found[event.job_id].append((type(event).__name__, event.state, job.state if job else None))

    @property
    def kinds(self) -> set[str]:
        return {type(event).__name__ for event in self.all}

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in list(self.all) if isinstance(event, kind)]


EVERYTHING_BUT_OUTAGES = {
    "Enqueued", "Promoted", "Claimed", "Renewed", "Succeeded", "Retried", "Snoozed", "Failed", "Released", "Cancelled",
    "Paused", "Resumed", "MadeDue", "Completed", "Deleted", "Reaped", "LeaseLost", "WorkerStarted", "WorkerStopping",
    "WorkerStopped",
}  # fmt: skip


def test_one_of_each_kind_is_emitted_when_the_store_can_show_it(app: App) -> None:
    received = ReceivedEvents(app)
    running: dict[str, threading.Event] = defaultdict(threading.Event)

    @app.task(backoff=Backoff(base=600, max=600, jitter=False))
    async def work(how: str) -> None:
        running[how].set()
        if how == "retry":
            raise ValueError("no")
        if how == "snooze":
            raise Snooze(600)
        if how == "fail":
            raise Fail("never")
        if how not in ("fine", "reaped"):
            await asyncio.sleep(60)

    harness_of(app).record_pulse()
    dead = work.enqueue("reaped")
    take(app, seconds=0.1)
    with working(app, lease=2.0, shutdown_timeout=0.0):
        jobs = {how: work.enqueue(how) for how in ("fine", "retry", "snooze", "fail", "cancel", "pause", "complete")}
        jobs |= {how: work.enqueue(how) for how in ("delete", "shutdown")}
        later = work.using(delay=600).enqueue("fine")
        until(lambda: all(running[how].is_set() for how in jobs))
        app.client.run_now(later)
        app.client.cancel(jobs["cancel"])
        app.client.pause(jobs["pause"])
        app.client.complete(jobs["complete"])
        app.client.delete(jobs["delete"])
        until_state(app, jobs["pause"], State.PAUSED)
        running["pause"].clear()
        app.client.resume(jobs["pause"])
        over(app, dead, later, jobs["fine"], jobs["cancel"], jobs["fail"])
        until(lambda: len(received.of(events.LeaseLost)) == 2)
        until(lambda: received.of(events.Renewed))
        assert running["pause"].wait(20)
        until(lambda: "Retried" in received.kinds and "Snoozed" in received.kinds)
    assert received.kinds == EVERYTHING_BUT_OUTAGES, "and StoreDown is not emitted without cause"
    assert [one.reason for one in sorted(received.of(events.LeaseLost), key=lambda one: one.reason)] == [
        "completed",
        "deleted",
    ]
    for noted in received.found.values():
        for kind, state, found in noted:
            # Others may have been quicker since: what was queued, runs; what ran, has ended. But never is it behind.
            if kind in ("Succeeded", "Failed", "Retried", "Snoozed", "Completed", "Deleted", "Reaped"):
                assert found is state or kind == "Reaped", (kind, state, found)
            if state in (State.CANCELLED, State.PAUSED):
                assert found is not State.RUNNING or kind == "Paused", (kind, state, found)
    (fine,) = [one for one in received.of(events.Succeeded) if one.job_id == jobs["fine"].id]
    assert (fine.task, fine.queue, fine.attempt, fine.version, fine.state) == ("work", "default", 1, 1, State.SUCCEEDED)
    assert fine.seconds >= 0
    (retried,) = received.of(events.Retried)
    assert retried.error.startswith("ValueError: no")


def test_events_of_a_job_are_emitted_in_order(memory_app: App) -> None:
    received: list[str] = []
    memory_app.on(events.JobEvent)(lambda event: received.append(type(event).__name__))

    @memory_app.task(backoff=Backoff(base=60, max=60, jitter=False))
    async def work(attempt: Attempt) -> None:
        if attempt.job.attempt == 1:
            raise ValueError("not yet")

    with working(memory_app, lease=30.0):
        job = work.enqueue()
        until(lambda: "Retried" in received)  # emitted by the settling thread, once the job can be claimed again
        memory_app.client.run_now(job)
        over(memory_app, job)
    received.remove("Promoted")  # emitted by maintenance, and the producer may have claimed the job meanwhile
    received.remove("MadeDue")  # emitted by the caller, likewise
    assert received == ["Enqueued", "Claimed", "Retried", "Claimed", "Succeeded"]


def test_a_listener_that_fails_harms_no_job(app: App, caplog: pytest.LogCaptureFixture) -> None:
    received: list[events.Succeeded] = []

    @app.on(events.Event)
    def broken(event: events.Event) -> None:
        raise RuntimeError("no ears")

    app.on(events.Succeeded)(received.append)

    @app.task
    async def work() -> str:
        return "done"

    with working(app):
        jobs = [work.enqueue() for _ in range(5)]
        assert [app.client.result(job, timeout=20) for job in jobs] == ["done"] * 5
        until(lambda: len(received) == 5)
    assert "A listener failed" in caplog.text


def test_a_listener_to_a_class_receives_its_subclasses(memory_app: App) -> None:
    ended, of_workers = [], []
    memory_app.on(events.Ended)(lambda event: ended.append(type(event).__name__))
    memory_app.on(events.WorkerEvent)(lambda event: of_workers.append(type(event).__name__))

    @memory_app.task(max_attempts=1)
    def work(fine: bool) -> None:
        assert fine

    with working(memory_app):
        over(memory_app, work.enqueue(True))
        over(memory_app, work.enqueue(False))
        until(lambda: len(ended) == 2)
    assert ended == ["Succeeded", "Failed"]
    assert of_workers == ["WorkerStarted", "WorkerStopping", "WorkerStopped"]


def test_a_store_that_is_merely_busy_is_not_down(two_databases: Database, two_apps: App) -> None:
    received: list[events.StoreDown] = []
    two_apps.on(events.StoreDown)(received.append)

    @two_apps.task
    async def work() -> None: ...

    with working(two_apps):
        over(two_apps, work.enqueue())
        with writes_held_up(two_databases, two_apps):
            threading.Event().wait(0.5)
        over(two_apps, work.enqueue())
    assert received == []


def test_listeners_and_events_of_the_wrong_type_are_refused(memory_app: App) -> None:
    async def coroutine(event: events.Event) -> None: ...

    with pytest.raises(InvalidInput, match="plain function"):
        memory_app.on(events.Failed)(coroutine)
    with pytest.raises(InvalidInput, match="plain function"):
        memory_app.on(events.Failed)("nothing")  # type: ignore[arg-type]
    for kind in ("Failed", ValueError, events.Failed(job_id="1", state=None, worker="w", attempt=1, version=1)):
        with pytest.raises(InvalidInput, match=r"app\.on takes an event"):
            memory_app.on(kind)(print)  # type: ignore[arg-type, type-var]
