"""The counts and times of OpenTelemetry; an error there reaches no job."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import propagate
from opentelemetry.metrics import NoOpMeter
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from relet import App, Attempt, Backoff, JobNotFound, Snooze, State
from relet.contrib.opentelemetry.instruments import Instruments
from tests.pages import DOCS
from tests.worker.tracing import Telemetry, telemetry_of
from tests.worker.working import over, take, until, working

QUEUE, TASK, ERROR = "messaging.destination.name", "relet.task", "error.type"
OPERATION = "messaging.operation.name"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def watched(memory_app: App) -> Iterator[Telemetry]:
    with telemetry_of(memory_app) as watched:
        yield watched


def test_messages_are_counted_where_they_are_sent_and_where_they_are_run(memory_app: App, watched: Telemetry) -> None:
    @memory_app.task
    def last() -> None: ...

    @memory_app.task(queue="mail")
    def work(attempt: Attempt) -> None:
        return attempt.continue_with(last.draft())

    with working(memory_app):
        jobs = memory_app.client.enqueue_many([work.draft(), work.draft(), last.draft()])
        over(memory_app, work.enqueue(), *jobs)
        with pytest.raises(JobNotFound):
            work.using(depends_on=[work.draft().id]).enqueue()
    assert watched.sums("messaging.client.sent.messages", OPERATION, QUEUE, ERROR) == {
        ("enqueue", "mail", None): 3,
        ("enqueue", "default", None): 1,
        ("enqueue", "mail", "relet.errors.JobNotFound"): 1,
        ("continue_with", "default", None): 3,
    }
    assert watched.sums("messaging.client.operation.duration", OPERATION, QUEUE, ERROR) == {
        ("enqueue", None, None): 1,
        ("enqueue", "mail", None): 1,
        ("enqueue", "mail", "relet.errors.JobNotFound"): 1,
    }
    by_queue_and_task = {("process", "mail", "work"): 3, ("process", "default", "last"): 4}
    assert watched.sums("messaging.client.consumed.messages", OPERATION, QUEUE, TASK) == by_queue_and_task
    assert watched.sums("messaging.process.duration", OPERATION, QUEUE, TASK) == by_queue_and_task
    assert watched.sums("relet.job.wait", OPERATION, QUEUE, TASK) == by_queue_and_task
    bounds = watched.points("messaging.process.duration")[0].explicit_bounds
    assert (bounds[0], bounds[-1]) == (0.005, 7200)
    assert all(point.attributes["messaging.system"] == "relet" for point in watched.points("relet.attempts"))


def test_attempts_are_counted_by_outcome(memory_app: App, watched: Telemetry) -> None:
    @memory_app.task(max_attempts=2, backoff=Backoff(base=0, max=0))
    def work(attempt: Attempt, how: str) -> None:
        if how == "snooze" and attempt.version == 1:
            raise Snooze(0)
        if how == "fail":
            raise ValueError("no")
        if how == "wait":
            until(lambda: attempt.aborted)
            attempt.check()

    with working(memory_app):
        over(memory_app, work.enqueue("snooze"), work.enqueue("fail"))
        waiting = [work.enqueue("wait") for _ in range(2)]
        until(lambda: all(memory_app.client.get(job).state is State.RUNNING for job in waiting))  # type: ignore[union-attr]
        until(lambda: watched.sums("relet.worker.slot.usage") == {(): 2})
        assert watched.sums("relet.worker.slot.limit") == {(): 10}
        memory_app.client.cancel(waiting[0])
        memory_app.client.delete(waiting[1])
        over(memory_app, waiting[0])
        until(lambda: watched.sums("relet.worker.slot.usage") == {(): 0})
        wanted = {("succeeded",): 1, ("snoozed",): 1, ("retried",): 1, ("failed",): 1, ("cancelled",): 1, ("lost",): 1}
        until(lambda: watched.sums("relet.attempts", "relet.outcome") == wanted)
    assert watched.sums("relet.lease.losses", QUEUE, "relet.reason") == {("default", "deleted"): 1}
    assert watched.sums("relet.worker.slot.limit") == {(): 0}
    assert watched.sums("messaging.process.duration", ERROR) == {(None,): 4, ("ValueError",): 2}


@pytest.mark.long
def test_reaps_are_counted_by_who_reaps(memory_app: App, watched: Telemetry) -> None:
    @memory_app.task
    def work() -> None: ...

    job = work.enqueue()
    assert take(memory_app, seconds=0.1)
    with working(memory_app):
        over(memory_app, job)
    assert watched.sums("relet.reaps", "relet.state") == {("queued",): 1}


def test_the_wait_of_a_job_is_measured_from_its_due_time(memory_app: App, watched: Telemetry) -> None:
    @memory_app.task
    def work() -> None: ...

    with working(memory_app):
        over(memory_app, work.using(delay=0.5).enqueue())
    (point,) = watched.points("relet.job.wait")
    assert 0 <= point.sum < 0.4


def test_the_guide_names_all_of_them() -> None:
    class Names(NoOpMeter):
        """Records the instruments that are made."""

        def __getattribute__(self, name: str) -> Any:
            if name.startswith("create_"):
                return lambda what, *args, **kwargs: names.append(what)
            return super().__getattribute__(name)

    names: list[str] = []
    Instruments(Names("guide"))
    text = (DOCS / "guides" / "telemetry.md").read_text()
    assert len(names) == 11
    assert [name for name in names if f"`{name}`" not in text] == []


# Nothing of it reaches a job


class Broken(SpanProcessor):
    """Raises at every turn."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("broken at the start")

    def on_end(self, span: Any) -> None:
        raise RuntimeError("broken at the end")


class EndsBroken(Broken):
    def on_start(self, span: Any, parent_context: Any = None) -> None: ...


class BrokenExporter(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError("no collector")


class BrokenPropagator:
    fields: frozenset[str] = frozenset()

    def inject(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("cannot write")

    def extract(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("cannot read")


class OddPropagator(BrokenPropagator):
    """It writes values that no store accepts, and reads nonsense."""

    def inject(self, carrier: Any, *args: Any, **kwargs: Any) -> None:
        carrier.update(odd="a\x00b\ud800", big="x" * 100_000, traceparent=TRACEPARENT)

    def extract(self, *args: Any, **kwargs: Any) -> Any:
        return {"no": "context"}


@pytest.mark.parametrize("broken", [Broken(), EndsBroken(), SimpleSpanProcessor(BrokenExporter())])
def test_jobs_run_whatever_the_sdk_raises(
    memory_app: App, watched: Telemetry, broken: SpanProcessor, caplog: pytest.LogCaptureFixture
) -> None:
    watched.tracers.add_span_processor(broken)
    messages = run_some(memory_app, caplog)
    assert bool(messages) == isinstance(broken, Broken)  # the SDK itself logs an exporter's exception


@pytest.mark.parametrize("broken", [BrokenPropagator(), OddPropagator()])
def test_jobs_run_whatever_the_propagator_raises(two_apps: App, broken: Any, caplog: pytest.LogCaptureFixture) -> None:
    before = propagate.get_global_textmap()
    propagate.set_global_textmap(broken)
    try:
        with telemetry_of(two_apps) as watched:
            messages = run_some(two_apps, caplog)
    finally:
        propagate.set_global_textmap(before)
    assert bool(messages) == (type(broken) is BrokenPropagator)
    carried = {json.dumps({"traceparent": TRACEPARENT})} if type(broken) is OddPropagator else {None}
    assert {job.context for job in two_apps.client.jobs(limit=100).jobs} == carried
    assert len(watched.named("process default")) >= 21, "there are spans, if none that hang together"


def test_jobs_run_whatever_the_meters_raise(
    memory_app: App, watched: Telemetry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def add(self, *args: Any) -> None:
            raise RuntimeError("cannot count")

        record = add

    instruments: Any = memory_app.telemetry.instruments  # type: ignore[union-attr]
    for name in ("sent", "consumed", "operation", "process", "wait", "attempts", "losses", "reaps", "used", "slots"):
        monkeypatch.setattr(instruments, name, Broken())
    assert run_some(memory_app, caplog)
    assert len(watched.named("process default")) >= 21


def run_some(app: App, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Run jobs of every kind. Returns the messages of the telemetry, each of which was logged once."""

    @app.task
    def last() -> str:
        return "end"

    @app.task
    def plain(attempt: Attempt) -> str:
        return attempt.continue_with(last.draft())

    @app.task
    async def on_loop() -> str:
        await last.aenqueue()
        return "end"

    @app.task(max_attempts=1)
    def fails() -> None:
        raise ValueError("as it should")

    with caplog.at_level(logging.ERROR, "relet.telemetry"), working(app):
        for _ in range(3):
            many = app.client.enqueue_many([plain.draft(), on_loop.draft()])
            assert app.client.results([plain.enqueue(), on_loop.enqueue(), *many], timeout=20) == ["end"] * 4
            assert over(app, fails.enqueue())[0].error.startswith("ValueError: as it should")  # type: ignore[union-attr]
    messages = [record.getMessage() for record in caplog.records if record.name == "relet.telemetry"]
    assert len(messages) == len(set(messages))
    assert not [record for record in caplog.records if record.name == "relet.events"]
    return messages
