"""Log records that name the job they belong to."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any

from ._attempts.attempt import Attempt, current

TEXT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s%(job_mark)s"

#: The fields of a record about its job and its trace, in this order.
FIELDS = ("job_id", "task", "queue", "attempt", "worker", "tenant", "trace_id", "span_id")

#: The attributes of every record; the others come from `extra`.
_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "job_mark",
    *FIELDS,
}

#: The trace ID in the context that a job carries.
_TRACEPARENT = re.compile(r'"traceparent": ?"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-')


class JobContext(logging.Filter):
    """Adds the current job to every record of a logging handler: `handler.addFilter(JobContext())`.

    It sets `job_id`, `task`, `queue`, `attempt`, `worker` and `tenant`, which are None outside an attempt. It also sets
    `trace_id` and `span_id` from the current OpenTelemetry span, inside an attempt or not. Without a span, `trace_id`
    is the trace that the job carries, if any. Attributes that a record already has are kept.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields. Never drops a record."""
        attempt = current.get()
        facts = dict.fromkeys(FIELDS) | ({} if attempt is None else job_facts(attempt)) | _trace()
        for name, value in facts.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        job = attempt.job if attempt is not None else None
        record.job_mark = f" [{job.task} {job.id} attempt {job.attempt}]" if job is not None else ""
        return True


def job_facts(attempt: Attempt) -> dict[str, Any]:
    """The fields of an attempt's job. Pass them as `extra` to log about a job from outside its handler."""
    job = attempt.job
    found = _TRACEPARENT.search(job.context) if job.context else None
    return {
        "job_id": job.id,
        "task": job.task,
        "queue": job.queue,
        "attempt": job.attempt,
        "worker": attempt.worker,
        "tenant": attempt.tenant,
        "trace_id": found["trace"] if found else None,
    }


def _trace() -> dict[str, Any]:
    """The current span. Empty if the program has not imported OpenTelemetry, which need not be installed."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    try:
        span = trace.get_current_span().get_span_context()
        return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"} if span.is_valid else {}
    except Exception:  # half imported, or another API: log the record without its trace
        return {}


class JsonLines(logging.Formatter):
    """Formats each record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record with its job, its trace and its `extra`."""
        fields: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        elif record.exc_text:
            fields["error"] = record.exc_text
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        extra = {
            name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES | fields.keys()
        }
        try:
            return json.dumps(fields | extra, ensure_ascii=False, allow_nan=False, default=str)
        except (TypeError, ValueError):  # not JSON: NaN or a circular reference
            return json.dumps(fields | {name: str(value) for name, value in extra.items()}, ensure_ascii=False)


def configured() -> tuple[str, bool]:
    """The log level of this process, and whether it logs JSON. Child processes use the same."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonLines) for handler in root.handlers)
    return logging.getLevelName(root.getEffectiveLevel()), as_json


def configure(level: str, *, as_json: bool) -> None:
    """Log to standard error: one readable line or one JSON object per record."""
    handler = logging.StreamHandler()
    handler.addFilter(JobContext())
    handler.setFormatter(JsonLines() if as_json else logging.Formatter(TEXT, "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if as_json:
        logging.captureWarnings(True)  # else they would be printed as plain text between the JSON lines
