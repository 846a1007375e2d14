"""OpenTelemetry: metrics, and traces that continue from the caller that enqueues a job to its handler.

    from relet.contrib.opentelemetry import instrument

    instrument(app)

Names and attributes follow the semantic conventions for messaging, version 1.44. An error in here never
reaches a job: it is logged once.
"""

from __future__ import annotations

from ..._version import __version__

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("relet.contrib.opentelemetry needs opentelemetry-api: pip install 'relet[otel]'") from missing

from ...app import App
from .instruments import Instruments
from .safely import Safely
from .tracing import Tracing

__all__ = ["instrument", "uninstrument"]

SCOPE = "relet"
SCHEMA = "https://opentelemetry.io/schemas/1.44.0"


def instrument(
    app: App,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> None:
    """Trace and measure the jobs of this app, in this process: where they are enqueued, and where they run.

    Call it next to `app = App()`, before the worker starts. Child processes (`process=True`) import the same module, so
    they are instrumented too. The default providers are the global ones, even if those are set later. A second call
    replaces the first.
    """
    uninstrument(app)
    tracer = trace.get_tracer(SCOPE, __version__, tracer_provider, SCHEMA)
    meter = metrics.get_meter(SCOPE, __version__, meter_provider, SCHEMA)
    safely = Safely()
    tracing = Tracing(tracer, Instruments(meter), safely, where=app._store().where)
    tracing.instruments.listen(app.events, safely)
    app.telemetry = tracing


def uninstrument(app: App) -> None:
    """Undo `instrument`. Spans that are open still end normally."""
    if isinstance(app.telemetry, Tracing):
        app.telemetry.instruments.ignore(app.events)
        app.telemetry = None
