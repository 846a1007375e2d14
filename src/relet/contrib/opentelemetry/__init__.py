"""OpenTelemetry: traces that go on from whoever enqueues a job to the handler that runs it, and metrics.

    from relet.contrib.opentelemetry import instrument

    instrument(app)

Names and attributes follow the semantic conventions for messaging, version 1.44. Nothing that goes wrong here reaches
a job: it is logged, once.
"""

from __future__ import annotations

from ..._version import __version__

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("relet.contrib.opentelemetry needs opentelemetry-api: pip install 'relet[otel]'") from missing

from ...app import App
from .instruments import Measures
from .safely import Quiet
from .tracing import Follower

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

    To be called beside `app = App()`, before the worker starts; so child processes (`process=True`), which import the
    same module, do the same. The providers are by default the global ones, also if those are set later. Said again, it
    replaces what was said before.
    """
    uninstrument(app)
    known = __version__
    tracer = trace.get_tracer(SCOPE, known, tracer_provider, SCHEMA)
    meter = metrics.get_meter(SCOPE, known, meter_provider, SCHEMA)
    quiet = Quiet()
    follower = Follower(tracer, Measures(meter), quiet, where=app._store().where)
    follower.measures.listen(app.events, quiet)
    app.telemetry = follower


def uninstrument(app: App) -> None:
    """Undo `instrument`. What is under way is followed to its end."""
    if isinstance(app.telemetry, Follower):
        app.telemetry.measures.ignore(app.events)
        app.telemetry = None
