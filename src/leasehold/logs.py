"""Log records that say which job they belong to."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from .attempt import current

TEXT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s%(job_mark)s"


class JobContext(logging.Filter):
    """Adds `job_id`, `task` and `attempt` to every record of a handler: `handler.addFilter(JobContext())`.

    Outside of an attempt they are None. What a record has already under these names stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """All records pass."""
        attempt = current.get()
        job = attempt.job if attempt is not None else None
        facts = {"job_id": job and job.id, "task": job and job.task, "attempt": job and job.attempt}
        for name, value in facts.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        record.job_mark = f" [{job.task} {job.id} attempt {job.attempt}]" if job is not None else ""
        return True


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """What a machine wants to know of a record."""
        said: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: getattr(record, name) for name in ("job_id", "task", "attempt") if getattr(record, name, None)}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


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
