"""Log records that say which job they belong to."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any

from ._attempts.attempt import Attempt, current

TEXT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s%(job_mark)s"

#: What a record may say of its job and of the trace that it belongs to, in this order.
FIELDS = ("job_id", "task", "queue", "attempt", "worker", "tenant", "trace_id", "span_id")

#: What every record has; the rest is what somebody gave as `extra`.
_OF_ANY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "job_mark", *FIELDS}


#: In the context that a job carries: the trace that it belongs to.
_CARRIED = re.compile(r'"traceparent": ?"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-')


class JobContext(logging.Filter):
    """Adds to every record of a handler which job it belongs to: `handler.addFilter(JobContext())`.

    These are `job_id`, `task`, `queue`, `attempt`, `worker` and `tenant`; outside of an attempt they are None. And
    `trace_id` and `span_id`, where OpenTelemetry has a span that is current, inside of an attempt or not; else the
    trace that the job carries, if any. What a record has already under these names stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """All records pass."""
        attempt = current.get()
        facts = dict.fromkeys(FIELDS) | ({} if attempt is None else job_facts(attempt)) | _trace()
        for name, value in facts.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        job = attempt.job if attempt is not None else None
        record.job_mark = f" [{job.task} {job.id} attempt {job.attempt}]" if job is not None else ""
        return True


def job_facts(attempt: Attempt) -> dict[str, Any]:
    """What a record says of the job that it belongs to; also to be given as `extra` by those who log about one."""
    job = attempt.job
    carried = _CARRIED.search(job.context) if job.context else None
    return {
        "job_id": job.id,
        "task": job.task,
        "queue": job.queue,
        "attempt": job.attempt,
        "worker": attempt.worker,
        "tenant": attempt.tenant,
        "trace_id": carried["trace"] if carried else None,
    }


def _trace() -> dict[str, Any]:
    """The span that is current. Who has not imported OpenTelemetry has none, and need not have it installed."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    try:
        span = trace.get_current_span().get_span_context()
        return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"} if span.is_valid else {}
    except Exception:  # half imported, or not the one that we know: a record is worth more than its trace
        return {}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """What a machine wants to know of a record: what was given as `extra` is in it."""
        said: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            said["stack"] = self.formatStack(record.stack_info)
        extra = {name: value for name, value in vars(record).items() if name not in _OF_ANY_RECORD | said.keys()}
        try:
            return json.dumps(said | extra, ensure_ascii=False, allow_nan=False, default=str)
        except (TypeError, ValueError):  # something in it is no JSON: not a number, or a circle
            return json.dumps(said | {name: str(value) for name, value in extra.items()}, ensure_ascii=False)


def configured() -> tuple[str, bool]:
    """How this process logs, for others that are to do the same: the level, and whether it is JSON."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonLines) for handler in root.handlers)
    return logging.getLevelName(root.getEffectiveLevel()), as_json


def configure(level: str, *, as_json: bool) -> None:
    """Log to standard error, a readable line for each record, or JSON."""
    handler = logging.StreamHandler()
    handler.addFilter(JobContext())
    handler.setFormatter(JsonLines() if as_json else logging.Formatter(TEXT, "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if as_json:
        logging.captureWarnings(True)  # else they would stand between the lines
