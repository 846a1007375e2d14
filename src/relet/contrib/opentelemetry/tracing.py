"""Spans: one where a job is made, one where it is sent, one for each of its attempts.

    create -> (enqueue, linked to those that it sends) -> process, once for each attempt
    enqueue, where a single job is made and sent at once -> process

An attempt's span hangs below the span that made its job. What its handler enqueues, or continues with, hangs below the
attempt's.
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
from .instruments import Measures
from .propagation import give, read, span_of, written
from .safely import Quiet

MOST_LINKS = 128  # of a batch; exporters keep no more


class Follower:
    """What an app that is instrumented has as `telemetry`."""

    def __init__(self, tracer: Tracer, measures: Measures, quiet: Quiet, *, where: str) -> None:
        self.tracer = tracer
        self.measures = measures
        self.quiet = quiet
        self.server = attributes.server(where)

    def created(self, draft: Draft[Any], /) -> None:
        """A span for the making of a job that is stored later, or by others."""
        with self.quiet("a span for a draft"):
            self._create(draft)

    @contextmanager
    def sending(self, drafts: Sequence[Draft[Any]], /) -> Iterator[Stored]:
        """A span around the storing. It is the job's own, if that is made here and is the only one."""
        sending = Sending(self, drafts)
        with self.quiet("a span for an enqueue"):
            sending.begin()
        try:
            yield sending.stored
        except BaseException as error:
            sending.error = error
            raise
        finally:
            with self.quiet("the end of an enqueue"):
                sending.end()

    @contextmanager
    def running(self, attempt: Attempt, /, within: str | None = None) -> Iterator[Watch]:
        """A span around an attempt; in a child process that of its worker is made the current one."""
        watch: Elsewhere | Running = Running(self, attempt) if within is None else Elsewhere(within)
        with self.quiet("the beginning of an attempt"):
            watch.begin()
        try:
            yield watch
        finally:
            with self.quiet("the end of an attempt"):
                watch.end()
            attempt._error = None  # with all that it holds

    def _create(self, draft: Draft[Any]) -> None:
        if draft.context is None:
            said = attributes.operation("create", "create") | attributes.of_draft(draft) | self.server
            span = self.tracer.start_span(f"create {draft.queue}", kind=SpanKind.PRODUCER, attributes=said)
            try:
                give(draft, span)
            finally:
                span.end()

    def create_all(self, drafts: Sequence[Draft[Any]]) -> None:
        """Those of a batch that nobody has made spans for."""
        for draft in drafts:
            self._create(draft)


class Sending:
    """The storing of drafts."""

    def __init__(self, follower: Follower, drafts: Sequence[Draft[Any]]) -> None:
        self._follower = follower
        self._drafts = drafts
        self._began = time.perf_counter()
        self._span: Span | None = None
        self._token: Token[Context] | None = None
        self.error: BaseException | None = None

    def begin(self) -> None:
        """Start the span, and make it the current one: what the store does hangs below it."""
        drafts, tracer = self._drafts, self._follower.tracer
        said = attributes.operation("enqueue", "send") | self._follower.server
        if len(drafts) == 1 and drafts[0].context is None:
            said |= attributes.of_draft(drafts[0])
            self._span = tracer.start_span(f"enqueue {drafts[0].queue}", kind=SpanKind.PRODUCER, attributes=said)
            with self._follower.quiet("the context of a job"):
                give(drafts[0], self._span)
        else:
            self._follower.create_all(drafts)
            said |= attributes.of_draft(drafts[0]) if len(drafts) == 1 else attributes.of_batch(drafts)
            name = " ".join(["enqueue", *{draft.queue for draft in drafts}]) if attributes.QUEUE in said else "enqueue"
            links = [Link(made) for one in drafts[:MOST_LINKS] if (made := span_of(read(one.context))) is not None]
            self._span = tracer.start_span(name, kind=SpanKind.CLIENT, attributes=said, links=links)
        self._token = context.attach(trace.set_span_in_context(self._span))

    def stored(self, jobs: Sequence[Job[Any]]) -> None:
        """If there was such a job already, that is the one which was meant."""
        if self._span is not None and len(jobs) == 1 and jobs[0].existing:
            self._span.set_attribute(attributes.EXISTING, True)
            self._span.set_attribute(attributes.MESSAGE, jobs[0].id)

    def end(self) -> None:
        """End the span, and count."""
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
        said = attributes.operation("enqueue", "send") | self._follower.server | failed
        queues = Counter(draft.queue for draft in self._drafts)
        for queue, number in queues.items():
            self._follower.measures.sent.add(number, _without_type(said) | {attributes.QUEUE: queue})
        where = {attributes.QUEUE: next(iter(queues))} if len(queues) == 1 else {}
        self._follower.measures.operation.record(time.perf_counter() - self._began, said | where)


class Running:
    """One attempt, where it is run: or, where its handler runs in a child process, where that is waited for."""

    def __init__(self, follower: Follower, attempt: Attempt) -> None:
        self._follower = follower
        self._attempt = attempt
        self._began = time.perf_counter()
        self._measured = attributes.operation("process", "process") | follower.server
        self._measured |= {attributes.QUEUE: attempt.job.queue, attributes.TASK: attempt.job.task}
        self._span: Span | None = None
        self._token: Token[Context] | None = None
        self._counted = False

    def begin(self) -> None:
        """Start the span below the one that made the job, and make it the current one."""
        job, quiet = self._attempt.job, self._follower.quiet
        origin = Context()
        with quiet("reading the context of a job"):
            origin = read(job.context)
        with quiet("a span for an attempt"):
            makers = (span_of(origin), span_of(context.get_current()))  # the latter: whoever started the worker
            self._span = self._follower.tracer.start_span(
                f"process {job.queue}",
                context=origin,
                kind=SpanKind.CONSUMER,
                links=[Link(one) for one in makers if one is not None],
                attributes=self._measured | attributes.of_attempt(self._attempt),
            )
            self._token = context.attach(trace.set_span_in_context(self._span, origin))
        measures, said = self._follower.measures, _without_type(self._measured)
        measures.used.add(1, {attributes.SYSTEM: "relet"})
        self._counted = True
        measures.consumed.add(1, said)
        measures.wait.record(max(time.time() - job.run_at, 0.0), said)

    def handed_over(self) -> str | None:
        """The current context, for a child process."""
        with self._follower.quiet("the context of a child process"):
            return written()
        return None

    def ended(self, outcome: Outcome) -> None:
        """Note what came of it."""
        came_to = attributes.verdict(self._attempt, outcome)
        with self._follower.quiet("the outcome of an attempt"):
            error = attributes.error_of(self._attempt, outcome)
            if error is not None:
                self._measured |= {attributes.ERROR: error[0]}
            if self._span is not None and self._span.is_recording():
                self._note(self._span, came_to, outcome, error)
        with self._follower.quiet("counting what came of an attempt"):
            self._count(came_to, outcome)

    def _note(self, span: Span, came_to: str, outcome: Outcome, error: tuple[str, str] | None) -> None:
        span.set_attribute(attributes.OUTCOME, came_to)
        if self._attempt.aborted is not None:
            span.set_attribute(attributes.REASON, self._attempt.aborted)
            span.add_event("relet.aborted", {attributes.REASON: self._attempt.aborted})
        if came_to == "snoozed" and isinstance(outcome, Snoozed):
            span.set_attribute(attributes.DELAY, outcome.delay)
        if error is not None:
            _fail(span, *error, self._attempt._error, outcome.error if isinstance(outcome, Raised) else "")

    def _count(self, came_to: str, outcome: Outcome) -> None:
        measures, job = self._follower.measures, self._attempt.job
        if came_to in ("cancelled", "paused"):  # which is not told as the end of an attempt
            measures.attempt(came_to, job.queue, job.task)
        if isinstance(outcome, Succeeded) and outcome.continue_with is not None and came_to == "succeeded":
            said = attributes.operation("continue_with", "send") | self._follower.server
            measures.sent.add(1, _without_type(said) | {attributes.QUEUE: outcome.continue_with.queue})

    def end(self) -> None:
        """End the span, and count."""
        measures = self._follower.measures
        if self._token is not None:
            context.detach(self._token)
        try:
            if self._counted:
                measures.used.add(-1, {attributes.SYSTEM: "relet"})
            measures.process.record(time.perf_counter() - self._began, self._measured)
        finally:
            if self._span is not None:
                self._span.end()


class Elsewhere:
    """An attempt in a child process, of which its worker has the span."""

    def __init__(self, within: str) -> None:
        self._within = within
        self._token: Token[Context] | None = None

    def begin(self) -> None:
        """Make the worker's span the current one."""
        self._token = context.attach(read(self._within))

    def handed_over(self) -> str | None:
        """It goes no further."""
        return None

    def ended(self, outcome: Outcome) -> None:
        """The worker is told."""

    def end(self) -> None:
        """Not any more."""
        if self._token is not None:
            context.detach(self._token)


def _fail(span: Span, kind: str, line: str, error: BaseException | None, told: str = "") -> None:
    """Mark a span as failed. `told`: what is known of an exception that was raised in another process."""
    span.set_attribute(attributes.ERROR, kind)
    span.set_status(Status(StatusCode.ERROR, line))
    if error is not None:
        span.record_exception(error)
    elif "Traceback" in told:
        span.add_event("exception", {"exception.type": kind, "exception.message": line, "exception.stacktrace": told})


def _without_type(said: attributes.Attributes) -> attributes.Attributes:
    """Counters are told by the name of the operation alone."""
    return {name: value for name, value in said.items() if name != attributes.OPERATION_TYPE}
