"""The real SDK, with exporters that keep spans and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from relet import App
from relet.contrib.opentelemetry import instrument, uninstrument
from tests.worker.working import until


class Telemetry:
    """The spans and metrics of an instrumented app."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.tracers.get_tracer("users")
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    @property
    def spans(self) -> list[ReadableSpan]:
        """All that have ended, oldest first."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str, number: int | None = None) -> list[ReadableSpan]:
        """Those of one name, once there are so many: a handler's ends a moment before its job."""
        if number is not None:
            until(lambda: len(self.named(name)) >= number, f"{[span.name for span in self.spans]}")
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (found,) = self.named(name, 1)
        return found

    def points(self, name: str) -> list[Any]:
        """The data points of a metric. Reading does not reset them."""
        data = self.reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        return [point for metric in metrics if metric.name == name for point in metric.data.data_points]

    def sums(self, name: str, *attributes: str) -> dict[tuple[Any, ...], float]:
        """The sum of a counter, or the count of a histogram, by attributes."""
        found: dict[tuple[Any, ...], float] = {}
        for point in self.points(name):
            key = tuple(point.attributes.get(one) for one in attributes)
            found[key] = found.get(key, 0) + (point.count if hasattr(point, "count") else point.value)
        return found


@contextmanager
def telemetry_of(app: App) -> Iterator[Telemetry]:
    """The app, instrumented for as long as this lasts."""
    watched = Telemetry()
    instrument(app, tracer_provider=watched.tracers, meter_provider=watched.meters)
    try:
        yield watched
    finally:
        uninstrument(app)
        watched.tracers.shutdown()
        watched.meters.shutdown()


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.span_id
    return found


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.trace_id
    return found
