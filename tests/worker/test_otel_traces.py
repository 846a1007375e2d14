"""Traces continue from the caller that enqueues a job to the handler that runs it."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.trace import SpanKind, StatusCode

from relet import App, Attempt, Backoff, Draft, Fail, Retry, Snooze
from relet.contrib.opentelemetry import instrument, uninstrument
from relet.contrib.opentelemetry.attributes import server
from relet.errors import JobNotFound
from relet.logs import JobContext
from tests.databases import Database
from tests.worker.tracing import Telemetry, id_of, parent_of, telemetry_of, trace_of
from tests.worker.working import over, until, working

AT_ONCE = Backoff(base=0, max=0)
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

each_kind = pytest.mark.parametrize("kind", ["async", "thread"])


@pytest.fixture
def watched(memory_app: App) -> Iterator[Telemetry]:
    with telemetry_of(memory_app) as watched:
        yield watched


def define(app: App, kind: str, body: Any, **options: Any) -> Any:
    if kind == "async":

        @app.task(**options)
        async def work(attempt: Attempt) -> Any:
            await asyncio.sleep(0)
            return body(attempt)
    else:

        @app.task(**options)
        def work(attempt: Attempt) -> Any:
            return body(attempt)

    return work


# Who is whose parent


@each_kind
def test_a_handler_runs_below_who_enqueued_its_job(two_apps: App, kind: str) -> None:
    seen: list[int] = []

    def body(attempt: Attempt) -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    work = define(two_apps, kind, body, queue="mail")
    with telemetry_of(two_apps) as watched:
        with watched.tracer.start_as_current_span("request") as request, working(two_apps) as worker:
            job = work.using(target="acct-7").enqueue()
            over(two_apps, job)
        sent, run = watched.one("enqueue mail"), watched.one("process mail")
    assert (parent_of(sent), sent.kind) == (request.get_span_context().span_id, SpanKind.PRODUCER)
    assert (parent_of(run), run.kind) == (id_of(sent), SpanKind.CONSUMER)
    assert [link.context.span_id for link in run.links][:1] == [id_of(sent)]
    assert trace_of(run) == request.get_span_context().trace_id
    assert seen == [id_of(run)]
    assert run.status.status_code is StatusCode.UNSET
    common = {"messaging.system": "relet", "messaging.destination.name": "mail", "messaging.message.id": job.id}
    common |= {"relet.task": "work", "relet.target": "acct-7"}
    values = {name: value for name, value in (sent.attributes or {}).items() if not name.startswith("server.")}
    assert values == common | {"messaging.operation.name": "enqueue", "messaging.operation.type": "send"}
    values = {name: value for name, value in (run.attributes or {}).items() if not name.startswith("server.")}
    assert values == common | {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.conversation_id": job.id,
        "messaging.client.id": worker.id,
        "relet.attempt": 1,
        "relet.outcome": "succeeded",
    }


@pytest.mark.parametrize(
    ("where", "attributes"),
    [
        ("postgresql://ada@db.example:5433/shop", {"server.address": "db.example", "server.port": 5433}),
        ("postgresql://db.example/shop", {"server.address": "db.example"}),
        ("postgresql:///shop", {}),
        ("postgresql://one:1,two:2/shop", {}),
        ("sqlite:////srv/shop.db", {}),
    ],
)
def test_the_server_is_named_where_there_is_one(where: str, attributes: dict[str, Any]) -> None:
    assert server(where) == attributes


def test_every_retry_hangs_below_the_same_producer(memory_app: App, watched: Telemetry) -> None:
    def body(attempt: Attempt) -> None:
        if attempt.job.attempt < 3:
            raise ValueError(f"not yet, {attempt.job.attempt}")

    work = define(memory_app, "thread", body, backoff=AT_ONCE)
    with working(memory_app):
        over(memory_app, work.enqueue())
    runs = watched.named("process default", 3)
    assert {parent_of(run) for run in runs} == {id_of(watched.one("enqueue default"))}
    results = [(dict(run.attributes or {}), run.status) for run in runs]
    assert [(values["relet.attempt"], values["relet.outcome"]) for values, _ in results] == [
        (1, "retried"),
        (2, "retried"),
        (3, "succeeded"),
    ]
    assert [values.get("error.type") for values, _ in results] == ["ValueError", "ValueError", None]
    assert [status.description for _, status in results] == ["ValueError: not yet, 1", "ValueError: not yet, 2", None]
    (event,) = runs[0].events
    assert (event.name, (event.attributes or {})["exception.message"]) == ("exception", "not yet, 1")


def test_the_span_of_a_successor_is_below_the_attempt_that_continued_the_chain(
    memory_app: App, watched: Telemetry
) -> None:
    @memory_app.task(queue="second")
    def second() -> str:
        return "end"

    @memory_app.task(queue="first")
    async def first(attempt: Attempt) -> str:
        return attempt.continue_with(second.draft())

    with working(memory_app):
        job = first.enqueue()
        assert memory_app.client.result(job, timeout=20) == "end"
        run = watched.one("process second")
    made = watched.one("create second")
    assert parent_of(made) == id_of(watched.one("process first"))
    assert parent_of(run) == id_of(made)
    assert len({trace_of(span) for span in watched.spans}) == 1
    assert (run.attributes or {})["messaging.message.conversation_id"] == job.id


def test_the_span_of_a_job_enqueued_by_a_handler_is_below_it(two_apps: App) -> None:
    @two_apps.task(queue="inner")
    def inner() -> None: ...

    @two_apps.task(queue="inner-tx")
    def inner_in_transaction() -> None: ...

    @two_apps.task(queue="outer")
    async def outer(attempt: Attempt) -> None:
        await inner.aenqueue()
        async with attempt.transaction() as tx:
            await tx.enqueue(inner_in_transaction.draft())
            await tx.succeed(None)

    with telemetry_of(two_apps) as watched, working(two_apps):
        over(two_apps, outer.enqueue())
        runs = [*watched.named("process inner", 1), *watched.named("process inner-tx", 1)]
        run = watched.one("process outer")
    assert [parent_of(watched.one(name)) for name in ("enqueue inner", "create inner-tx")] == [id_of(run)] * 2
    assert [parent_of(one) for one in runs] == [
        id_of(watched.one("enqueue inner")),
        id_of(watched.one("create inner-tx")),
    ]
    assert len({trace_of(span) for span in watched.spans}) == 1


def test_jobs_of_a_callers_transaction_are_traced(pg_database: Database, pg_app: App) -> None:
    work = define(pg_app, "thread", lambda attempt: None)
    with telemetry_of(pg_app) as watched, working(pg_app):
        with psycopg.connect(pg_database.url) as connection:
            job = work.using(connection=connection).enqueue()

        async def other() -> Any:
            async with await psycopg.AsyncConnection.connect(pg_database.url) as connection:
                return await work.using(connection=connection).aenqueue()

        over(pg_app, job, asyncio.run(other()))
        runs = watched.named("process default", 2)
    assert {parent_of(run) for run in runs} == {id_of(span) for span in watched.named("enqueue default")}


def test_drafts_are_made_one_by_one_and_sent_together(memory_app: App, watched: Telemetry) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    with watched.tracer.start_as_current_span("request"):
        drafts = [work.draft(), work.using(queue="mail").draft(), work.using(queue="mail").draft()]
    memory_app.client.enqueue_many(drafts)
    with working(memory_app):
        over(memory_app, *[draft.id for draft in drafts])
        runs = [*watched.named("process default", 1), *watched.named("process mail", 2)]
    made = {
        (span.attributes or {})["messaging.message.id"]: id_of(span) for span in watched.spans if "create" in span.name
    }
    assert {(run.attributes or {})["messaging.message.id"]: parent_of(run) for run in runs} == made
    sent = watched.one("enqueue")
    assert sent.kind is SpanKind.CLIENT
    assert (sent.attributes or {})["messaging.batch.message_count"] == 3
    assert [link.context.span_id for link in sent.links] == [made[draft.id] for draft in drafts]
    assert parent_of(sent) is None


def test_a_draft_is_enqueued_twice_under_its_first_span(memory_app: App, watched: Telemetry) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    draft = work.draft()
    first, again = memory_app.client.enqueue(draft), memory_app.client.enqueue(draft)
    assert (first.id, again.existing) == (again.id, True)
    assert first.context == again.context == draft.context
    assert len(watched.named("create default")) == 1


def test_a_job_that_was_there_already_is_the_one_that_the_span_names(memory_app: App, watched: Telemetry) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    first, second = work.using(unique="k").enqueue(), work.using(unique="k").enqueue()
    assert second.existing
    values = [dict(span.attributes or {}) for span in watched.named("enqueue default", 2)]
    assert [one["messaging.message.id"] for one in values] == [first.id, first.id]
    assert [one.get("relet.existing") for one in values] == [None, True]


def test_a_scheduled_job_begins_a_new_trace(memory_app: App, watched: Telemetry) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    with watched.tracer.start_as_current_span("start of the program"):
        memory_app.schedule(every=0.2)(work)
        memory_app.client.schedules.put("other", work.using(queue="mail").draft(), every=0.2)
        with working(memory_app):
            runs = [*watched.named("process default", 2), *watched.named("process mail", 2)]
    assert [run.parent for run in runs] == [None] * len(runs)
    assert len({trace_of(run) for run in runs}) == len(runs)
    assert watched.named("create default") == []


def test_a_job_from_elsewhere_goes_on_with_the_trace_that_it_carries(memory_app: App, watched: Telemetry) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    carried = [json.dumps({"traceparent": TRACEPARENT}), "no JSON", '["a list"]', '{"traceparent": 7}', "{}"]
    drafts: list[Draft[Any]] = [Draft(work.draft().id, "work", "{}", context=text) for text in carried]
    with working(memory_app):
        over(memory_app, *memory_app.client.enqueue_many(drafts))
        runs = {(run.attributes or {})["messaging.message.id"]: run for run in watched.named("process default", 5)}
    first, *others = [runs[draft.id] for draft in drafts]
    assert (trace_of(first), parent_of(first)) == (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)
    assert [one.parent for one in others] == [None] * 4


def test_baggage_arrives_and_the_excess_is_left_out(memory_app: App, watched: Telemetry) -> None:
    seen: list[object] = []
    work = define(memory_app, "thread", lambda attempt: seen.append(baggage.get_baggage("customer")))
    with working(memory_app):
        for value in ("ada", "x" * 4000):
            token = context.attach(baggage.set_baggage("customer", value))
            over(memory_app, work.enqueue())
            context.detach(token)
    assert seen[0] == "ada"
    assert [parent_of(run) is not None for run in watched.named("process default", 2)] == [True, True]


@each_kind
def test_one_attempt_does_not_see_the_span_of_another(memory_app: App, watched: Telemetry, kind: str) -> None:
    seen: dict[str, int] = {}

    def body(attempt: Attempt) -> None:
        seen[attempt.job.id] = trace.get_current_span().get_span_context().span_id

    work = define(memory_app, kind, body)
    with working(memory_app, concurrency=3):
        over(memory_app, *memory_app.client.enqueue_many([work.draft() for _ in range(30)]))
        runs = watched.named("process default", 30)
    assert seen == {(run.attributes or {})["messaging.message.id"]: id_of(run) for run in runs}


# How it ends


@each_kind
def test_a_span_has_the_outcome_of_the_attempt(memory_app: App, watched: Telemetry, kind: str) -> None:
    ends: dict[str, Any] = {
        "failed": Fail("no such account"),
        "snoozed": Snooze(0.0),
        "retried": Retry("later", delay=0.0),
        "raised": LookupError("nowhere"),
    }

    def body(attempt: Attempt) -> None:
        if attempt.job.attempt == 1 and attempt.version == 1:
            raise ends[attempt.job.queue]

    work = define(memory_app, kind, body, max_attempts=2, backoff=AT_ONCE)
    with working(memory_app):
        over(memory_app, *[work.using(queue=queue).enqueue() for queue in ends])
        firsts = {queue: watched.named(f"process {queue}", 1)[0] for queue in ends}
    results = {
        queue: ((span.attributes or {})["relet.outcome"], (span.attributes or {}).get("error.type"), span.status)
        for queue, span in firsts.items()
    }
    assert {queue: one[:2] for queue, one in results.items()} == {
        "failed": ("failed", "relet.errors.Fail"),
        "snoozed": ("snoozed", None),
        "retried": ("retried", "relet.errors.Retry"),
        "raised": ("retried", "LookupError"),
    }
    assert results["snoozed"][2].status_code is StatusCode.UNSET
    assert results["raised"][2].status_code is StatusCode.ERROR
    assert (firsts["snoozed"].attributes or {})["relet.delay"] == 0.0


def test_a_payload_or_result_that_does_not_fit_shows(memory_app: App, watched: Telemetry) -> None:
    @memory_app.task
    def work(number: int) -> Any:
        return object()

    with working(memory_app):
        over(memory_app, work.enqueue(1))
        memory_app.client.enqueue(Draft(work.draft(1).id, "work", '{"number": "x"}', queue="mail"))
        result, payload = watched.one("process default"), watched.one("process mail")
    assert "returned what cannot be stored" in str(result.status.description)
    assert "other arguments" in str(payload.status.description)
    assert (result.attributes or {})["relet.outcome"] == (payload.attributes or {})["relet.outcome"] == "failed"


@each_kind
def test_aborted_attempts_say_why(memory_app: App, watched: Telemetry, kind: str) -> None:
    begun: list[str] = []
    if kind == "async":

        @memory_app.task(max_attempts=1)
        async def work(attempt: Attempt) -> None:
            begun.append(attempt.job.id)
            await asyncio.sleep(30)
    else:

        @memory_app.task(max_attempts=1)
        def work(attempt: Attempt) -> None:
            begun.append(attempt.job.id)
            until(lambda: attempt.aborted)
            attempt.check()

    with working(memory_app):
        late = work.using(queue="late", timeout=0.1).enqueue()
        unwanted, gone = work.using(queue="unwanted").enqueue(), work.using(queue="gone").enqueue()
        until(lambda: {unwanted.id, gone.id} <= {*begun})
        memory_app.client.cancel(unwanted)
        memory_app.client.delete(gone)
        over(memory_app, late, unwanted)
        spans = {queue: watched.one(f"process {queue}") for queue in ("late", "unwanted", "gone")}
    values = {queue: dict(span.attributes or {}) for queue, span in spans.items()}
    assert {queue: (one["relet.outcome"], one["relet.reason"]) for queue, one in values.items()} == {
        "late": ("failed", "timeout"),
        "unwanted": ("cancelled", "cancelled"),
        "gone": ("lost", "deleted"),
    }
    assert [span.status.status_code for span in spans.values()] == [
        StatusCode.ERROR,
        StatusCode.UNSET,
        StatusCode.UNSET,
    ]
    assert values["late"]["error.type"] == "timeout"


def test_an_enqueue_that_fails_is_a_failed_span(memory_app: App, watched: Telemetry) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    unknown = work.draft().id
    with pytest.raises(JobNotFound, match="no such job"):
        work.using(depends_on=[unknown]).enqueue()
    span = watched.one("enqueue default")
    assert span.status.status_code is StatusCode.ERROR
    assert "error.type" in (span.attributes or {})
    assert not trace.get_current_span().get_span_context().is_valid


# Logs, and on and off


def test_log_records_of_a_handler_have_its_trace(memory_app: App, watched: Telemetry) -> None:
    seen: list[Any] = []

    def body(attempt: Attempt) -> None:
        record = logging.makeLogRecord({})
        JobContext().filter(record)
        seen.append((record.trace_id, record.span_id))  # type: ignore[attr-defined]

    work = define(memory_app, "thread", body)
    with working(memory_app):
        over(memory_app, work.enqueue())
        run = watched.one("process default")
    assert seen == [(f"{trace_of(run):032x}", f"{id_of(run):016x}")]


@pytest.mark.long
def test_log_lines_of_the_worker_about_a_job_have_its_trace(memory_app: App, caplog: pytest.LogCaptureFixture) -> None:
    @memory_app.task(max_attempts=1)
    def work() -> None:
        raise ValueError("no")

    context = json.dumps({"traceparent": TRACEPARENT})
    with working(memory_app):
        over(memory_app, memory_app.client.enqueue(Draft(work.draft().id, "work", "{}", context=context)))
        until(lambda: "failed (attempt 1" in caplog.text)
    (record,) = [one for one in caplog.records if "failed (attempt 1" in one.getMessage()]
    assert record.trace_id == "0af7651916cd43dd8448eb211c80319c"  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_missing_package_is_named_with_how_to_install_it() -> None:
    script = "import sys; sys.modules['opentelemetry'] = None; import relet.contrib.opentelemetry"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'relet[otel]'" in ran.stderr


def test_instrumenting_twice_traces_once_and_uninstrumenting_ends_it(memory_app: App, watched: Telemetry) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    instrument(memory_app, tracer_provider=watched.tracers, meter_provider=watched.meters)
    with working(memory_app):
        over(memory_app, work.enqueue())
        assert len(watched.named("process default", 1)) == 1
        until(lambda: watched.sums("relet.attempts", "relet.outcome"))  # counted after the span has ended
        assert watched.sums("relet.attempts", "relet.outcome") == {("succeeded",): 1}
        uninstrument(memory_app)
        job = work.enqueue()
        over(memory_app, job)
    assert job.context is None
    assert len(watched.spans) == 2


def test_without_an_sdk_nothing_is_carried_and_jobs_run(memory_app: App) -> None:
    work = define(memory_app, "thread", lambda attempt: None)
    instrument(memory_app)
    with working(memory_app):
        job = work.enqueue()
        assert over(memory_app, job)[0].context is None
    uninstrument(memory_app)
