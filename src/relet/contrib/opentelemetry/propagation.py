"""The context that a job takes along: the headers of the propagator that is configured, as JSON text."""

from __future__ import annotations

import json

from msgspec.structs import force_setattr
from opentelemetry import propagate, trace
from opentelemetry.context import Context

from ..._core.job import Draft

MOST_CHARACTERS = 16 * 1024  # baggage may have half of it
ESSENTIAL = ("traceparent", "tracestate")


def written(context: Context | None = None) -> str | None:
    """A context, by default the current one, as text; None if there is nothing in it."""
    headers: dict[str, str] = {}
    propagate.inject(headers, context)
    # As in HTTP, from where they come, or go next. Whatever else somebody puts there, a store might refuse.
    kept = {name: value for name, value in headers.items() if f"{name}{value}".isascii() and value.isprintable()}
    text = json.dumps(kept)
    if len(text) > MOST_CHARACTERS:
        kept = {name: kept[name] for name in ESSENTIAL if name in kept}
        text = json.dumps(kept)
    return text if kept and len(text) <= MOST_CHARACTERS else None


def read(text: str | None) -> Context:
    """The context of a job. Nothing of where we are now is in it: a job that carries none begins a trace of its own."""
    nothing = Context()
    if text is None:
        return nothing
    try:
        headers = json.loads(text)
    except ValueError:
        return nothing
    if not isinstance(headers, dict):
        return nothing
    said = {name: value for name, value in headers.items() if isinstance(value, str)}
    return propagate.extract(said, nothing)


def span_of(context: Context) -> trace.SpanContext | None:
    """Who made the job."""
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def give(draft: Draft[object], span: trace.Span) -> None:
    """From here on the draft belongs to this span. It is the same draft: who enqueues it marks it as spent."""
    force_setattr(draft, "context", written(trace.set_span_in_context(span)))
