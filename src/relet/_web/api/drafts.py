"""Makes drafts of request bodies: finds the task, sets its options, validates the payload by its annotations."""

from __future__ import annotations

import difflib
import re
from datetime import datetime
from typing import Any

from msgspec import UNSET, structs

from ..._core.backoff import Backoff
from ..._core.job import Draft
from ..._tasks.task import Task
from ...errors import InvalidInput
from ..problems import Fault, Refusal, invalid
from .endpoint import Call
from .parsing import LATEST, rfc3339_time
from .requests import CallIn

_NOT_OPTIONS = frozenset({"task", "payload", "args", "cron", "every", "timezone", "missed", "overlap"})
_LOCATION = re.compile(r"(?s)\((?P<name>\w*)\)(?P<rest>[^:\s]*): (?P<what>.*)")


def draft_of(call: Call, asked: CallIn, where: str) -> Draft[Any]:
    """A validated draft. Raises a Refusal that names the wrong field."""
    task = _task(call, asked.task, where)
    if asked.payload is not None and asked.args is not None:
        raise invalid([Fault(f"{where}.args", "send either payload or args, not both")])
    try:
        prepared = task.using(**_options(asked, where))
    except InvalidInput as error:
        raise invalid([Fault(where, str(error).removeprefix(f"{task.name}.using(): "))]) from None
    try:
        args, kwargs = (asked.args or (), {}) if asked.payload is None else task.signature.call_of(asked.payload)
        return prepared.draft(*args, **kwargs)
    except InvalidInput as error:
        raise invalid([_fault(task.name, str(error), where)]) from None


def _task(call: Call, name: str, where: str) -> Task[..., Any]:
    task = call.app.tasks.get(name)
    if task is not None:
        return task
    near = difflib.get_close_matches(name, call.app.tasks, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else "GET /tasks lists all tasks."
    what = f"This app has no task {name[:128]!r}. {hint}"
    raise Refusal("unknown-task", what, [Fault(f"{where}.task", what)])


def _options(asked: CallIn, where: str) -> dict[str, Any]:
    options = {
        name: value for name, value in structs.asdict(asked).items() if name not in _NOT_OPTIONS and value is not UNSET
    }
    if asked.backoff is not UNSET:
        options["backoff"] = Backoff(**structs.asdict(asked.backoff))
    if options.get("run_at") is not None:
        options["run_at"] = _run_at(options["run_at"], where)
    return options


def _run_at(text: str, where: str) -> datetime:
    when = rfc3339_time(text, f"{where}.run_at")
    if when == LATEST:
        raise invalid([Fault(f"{where}.run_at", f"must be before 2100, not {text[:80]}")])
    return when


def _fault(task: str, message: str, where: str) -> Fault:
    """The client's message `charge(cents)[0]: ...` as a fault at `body.payload.cents[0]`."""
    match = _LOCATION.fullmatch(message.removeprefix(task)) if message.startswith(task) else None
    if match is None or not match["name"]:
        return Fault(f"{where}.payload", message)
    return Fault(f"{where}.payload.{match['name']}{match['rest']}", match["what"])
