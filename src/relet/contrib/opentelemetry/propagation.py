"""The trace context that a job carries: the headers of the configured propagator, as JSON text."""

from __future__ import annotations

import json

from msgspec.structs import force_setattr
from opentelemetry import propagate, trace
from opentelemetry.context import Context

from ..._core.job import Draft

MAX_CHARACTERS = 16 * 1024  # baggage may use half of it
ESSENTIAL = ("traceparent", "tracestate")


def serialize(context: Context | None = None) -> str | None:
    """Write a context, by default the current one, as text. Returns None if it is empty."""
    headers: dict[str, str] = {}
    propagate.inject(headers, context)
    # Only values that HTTP headers allow: a store might refuse others.
    kept = {name: value for name, value in headers.items() if f"{name}{value}".isascii() and value.isprintable()}
    text = json.dumps(kept)
    if len(text) > MAX_CHARACTERS:
        kept = {name: kept[name] for name in ESSENTIAL if name in kept}
        text = json.dumps(kept)
    return text if kept and len(text) <= MAX_CHARACTERS else None


def deserialize(text: str | None) -> Context:
    """Read the context of a job. It does not inherit the current context: a job without one starts a new trace."""
    empty = Context()
    if text is None:
        return empty
    try:
        headers = json.loads(text)
    except ValueError:
        return empty
    if not isinstance(headers, dict):
        return empty
    strings = {name: value for name, value in headers.items() if isinstance(value, str)}
    return propagate.extract(strings, empty)


def span_of(context: Context) -> trace.SpanContext | None:
    """The span in a context, if it has one: the span that created the job."""
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def attach(draft: Draft[object], span: trace.Span) -> None:
    """Store a span's context in a draft. Changes the draft in place, because enqueueing marks that object as used."""
    force_setattr(draft, "context", serialize(trace.set_span_in_context(span)))
