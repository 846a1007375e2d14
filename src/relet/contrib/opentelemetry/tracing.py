"""Spans: one for the creation of a job, one for enqueueing it, one for each attempt.

    create -> (enqueue, linked to the spans of its drafts) -> process, once for each attempt
    enqueue, if a single job is created and enqueued at once -> process

The parent of an attempt's span is the span that created the job. The attempt's span is the parent of the jobs that its
handler enqueues or continues with.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Token
from typing import Any

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer

from ..._attempts.attempt import Attempt
from ..._core.job import Draft, Job, Outcome, Raised, Snoozed, Succeeded
from ..._tasks.telemetry import Stored, Watch
from . import attributes
from .instruments import Instruments
from .propagation import attach, deserialize, serialize, span_of
from .safely import Safely

MAX_LINKS = 128  # of a batch; exporters keep no more


class Tracing:
    """The `telemetry` of an instrumented app."""

    def __init__(self, tracer: Tracer, instruments: Instruments, safely: Safely, *, where: str) -> None:
        self.tracer = tracer
        self.instruments = instruments
        self.safely = safely
        self.server = attributes.server(where)

    def created(self, draft: Draft[Any], /) -> None:
        """Make a span for a draft that is stored later, or by another program."""
        with self.safely("starting the span of a draft"):
            self._create(draft)

    @contextmanager
    def sending(self, drafts: Sequence[Draft[Any]], /) -> Iterator[Stored]:
        """Make a span for storing drafts. For a single new draft it is also the span that creates the job."""
        sending = Sending(self, drafts)
        with self.safely("starting the span of an enqueue"):
            sending.begin()
        try:
            yield sending.stored
        except BaseException as error:
            sending.error = error
            raise
        finally:
            with self.safely("ending the span of an enqueue"):
                sending.end()

    @contextmanager
    def running(self, attempt: Attempt, /, within: str | None = None) -> Iterator[Watch]:
        """Make a span for an attempt. In a child process, make the worker's span the current one."""
        watch: InChildProcess | Running = Running(self, attempt) if within is None else InChildProcess(within)
        with self.safely("beginning an attempt"):
            watch.begin()
        try:
            yield watch
        finally:
            with self.safely("ending an attempt"):
                watch.end()
            attempt._error = None  # frees its traceback and frames

    def _create(self, draft: Draft[Any]) -> None:
        if draft.context is None:
            values = attributes.operation("create", "create") | attributes.of_draft(draft) | self.server
            span = self.tracer.start_span(f"create {draft.queue}", kind=SpanKind.PRODUCER, attributes=values)
            try:
                attach(draft, span)
            finally:
                span.end()

    def create_all(self, drafts: Sequence[Draft[Any]]) -> None:
        """Make spans for those drafts of a batch that have none."""
        for draft in drafts:
            self._create(draft)


class Sending:
    """The span of an enqueue."""

    def __init__(self, tracing: Tracing, drafts: Sequence[Draft[Any]]) -> None:
        self._tracing = tracing
        self._drafts = drafts
        self._began = time.perf_counter()
        self._span: Span | None = None
        self._token: Token[Context] | None = None
        self.error: BaseException | None = None

    def begin(self) -> None:
        """Start the span, and make it the current one, so that it is the parent of the spans of the store."""
        drafts, tracer = self._drafts, self._tracing.tracer
        values = attributes.operation("enqueue", "send") | self._tracing.server
        if len(drafts) == 1 and drafts[0].context is None:
            values |= attributes.of_draft(drafts[0])
            self._span = tracer.start_span(f"enqueue {drafts[0].queue}", kind=SpanKind.PRODUCER, attributes=values)
            with self._tracing.safely("storing the context of a job"):
                attach(drafts[0], self._span)
        else:
            self._tracing.create_all(drafts)
            values |= attributes.of_draft(drafts[0]) if len(drafts) == 1 else attributes.of_batch(drafts)
            queue = values.get(attributes.QUEUE)  # missing if the drafts have several queues
            name = "enqueue" if queue is None else f"enqueue {queue}"
            spans = [span_of(deserialize(draft.context)) for draft in drafts[:MAX_LINKS]]
            links = [Link(span) for span in spans if span is not None]
            self._span = tracer.start_span(name, kind=SpanKind.CLIENT, attributes=values, links=links)
        self._token = context.attach(trace.set_span_in_context(self._span))

    def stored(self, jobs: Sequence[Job[Any]]) -> None:
        """If a job with this ID or unique key existed, name that job in the span."""
        if self._span is not None and len(jobs) == 1 and jobs[0].existing:
            self._span.set_attribute(attributes.EXISTING, True)
            self._span.set_attribute(attributes.MESSAGE, jobs[0].id)

    def end(self) -> None:
        """End the span, and record metrics."""
        if self._token is not None:
            context.detach(self._token)
        try:
            self._count()
        finally:
            if self._span is not None:
                if self.error is not None:
                    _fail(self._span, attributes.kind_of(self.error), str(self.error), self.error)
                self._span.end()

    def _count(self) -> None:
        failed: attributes.Attributes = {} if self.error is None else {attributes.ERROR: attributes.kind_of(self.error)}
        values = attributes.operation("enqueue", "send") | self._tracing.server | failed
        queues = Counter(draft.queue for draft in self._drafts)
        for queue, number in queues.items():
            self._tracing.instruments.sent.add(number, _without_type(values) | {attributes.QUEUE: queue})
        where = {attributes.QUEUE: next(iter(queues))} if len(queues) == 1 else {}
        self._tracing.instruments.operation.record(time.perf_counter() - self._began, values | where)


class Running:
    """The span of an attempt, in the worker process, even if the handler runs in a child process."""

    def __init__(self, tracing: Tracing, attempt: Attempt) -> None:
        self._tracing = tracing
        self._attempt = attempt
        self._began = time.perf_counter()
        self._measured = attributes.operation("process", "process") | tracing.server
        self._measured |= {attributes.QUEUE: attempt.job.queue, attributes.TASK: attempt.job.task}
        self._span: Span | None = None
        self._token: Token[Context] | None = None
        self._counted = False

    def begin(self) -> None:
        """Start the span as a child of the span that created the job, and make it the current one."""
        job, safely = self._attempt.job, self._tracing.safely
        origin = Context()
        with safely("reading the context of a job"):
            origin = deserialize(job.context)
        with safely("starting the span of an attempt"):
            # The span that created the job, and the span in which the worker was started.
            linked = (span_of(origin), span_of(context.get_current()))
            self._span = self._tracing.tracer.start_span(
                f"process {job.queue}",
                context=origin,
                kind=SpanKind.CONSUMER,
                links=[Link(one) for one in linked if one is not None],
                attributes=self._measured | attributes.of_attempt(self._attempt),
            )
            self._token = context.attach(trace.set_span_in_context(self._span, origin))
        instruments, values = self._tracing.instruments, _without_type(self._measured)
        instruments.used.add(1, {attributes.SYSTEM: "relet"})
        self._counted = True
        instruments.consumed.add(1, values)
        instruments.wait.record(max(time.time() - job.run_at, 0.0), values)

    def handed_over(self) -> str | None:
        """The current context, for a child process."""
        with self._tracing.safely("writing the context of a child process"):
            return serialize()
        return None

    def ended(self, outcome: Outcome) -> None:
        """Record the outcome."""
        name = attributes.outcome_of(self._attempt, outcome)
        with self._tracing.safely("recording the outcome of an attempt"):
            error = attributes.error_of(self._attempt, outcome)
            if error is not None:
                self._measured |= {attributes.ERROR: error[0]}
            if self._span is not None and self._span.is_recording():
                self._record(self._span, name, outcome, error)
        with self._tracing.safely("counting the outcome of an attempt"):
            self._count(name, outcome)

    def _record(self, span: Span, name: str, outcome: Outcome, error: tuple[str, str] | None) -> None:
        span.set_attribute(attributes.OUTCOME, name)
        if self._attempt.aborted is not None:
            span.set_attribute(attributes.REASON, self._attempt.aborted)
            span.add_event("relet.aborted", {attributes.REASON: self._attempt.aborted})
        if name == "snoozed" and isinstance(outcome, Snoozed):
            span.set_attribute(attributes.DELAY, outcome.delay)
        if error is not None:
            _fail(span, *error, self._attempt._error, outcome.error if isinstance(outcome, Raised) else "")

    def _count(self, name: str, outcome: Outcome) -> None:
        instruments, job = self._tracing.instruments, self._attempt.job
        if name in ("cancelled", "paused"):  # their events are not `Ended`, which the listener counts
            instruments.attempt(name, job.queue, job.task)
        if isinstance(outcome, Succeeded) and outcome.continue_with is not None and name == "succeeded":
            values = attributes.operation("continue_with", "send") | self._tracing.server
            instruments.sent.add(1, _without_type(values) | {attributes.QUEUE: outcome.continue_with.queue})

    def end(self) -> None:
        """End the span, and record metrics."""
        instruments = self._tracing.instruments
        if self._token is not None:
            context.detach(self._token)
        try:
            if self._counted:
                instruments.used.add(-1, {attributes.SYSTEM: "relet"})
            instruments.process.record(time.perf_counter() - self._began, self._measured)
        finally:
            if self._span is not None:
                self._span.end()


class InChildProcess:
    """An attempt in a child process. Its span is in the worker process."""

    def __init__(self, within: str) -> None:
        self._within = within
        self._token: Token[Context] | None = None

    def begin(self) -> None:
        """Make the worker's span the current one."""
        self._token = context.attach(deserialize(self._within))

    def handed_over(self) -> str | None:
        """None: the handler runs in this process."""
        return None

    def ended(self, outcome: Outcome) -> None:
        """Nothing: the worker process records the outcome."""

    def end(self) -> None:
        """Restore the context before `begin`."""
        if self._token is not None:
            context.detach(self._token)


def _fail(span: Span, kind: str, line: str, error: BaseException | None, text: str = "") -> None:
    """Mark a span as failed. `text`: the traceback of an exception that was raised in another process."""
    span.set_attribute(attributes.ERROR, kind)
    span.set_status(Status(StatusCode.ERROR, line))
    if error is not None:
        span.record_exception(error)
    elif "Traceback" in text:
        span.add_event("exception", {"exception.type": kind, "exception.message": line, "exception.stacktrace": text})


def _without_type(values: attributes.Attributes) -> attributes.Attributes:
    """Attributes for counters, which have the name of the operation but not its type."""
    return {name: value for name, value in values.items() if name != attributes.OPERATION_TYPE}
