"""Turns what a handler returned or raised into an outcome that can be settled."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from msgspec.structs import replace

from .._attempts.attempt import Attempt, Continuation
from .._core import validate
from .._core.codecs import PREFIX
from .._core.job import Outcome, Raised, Released, Snoozed, Succeeded
from .._core.text import type_name
from .._tasks.task import Task
from ..errors import Aborted, CodecError, Fail, InvalidInput, Retry, Snooze, Suspended
from ..logs import job_facts

log = logging.getLogger("relet.worker")

_HERE = str(Path(__file__).parent)


#: In place of a return value, if a middleware swallowed what the handler raised: the attempt succeeds with no result.
SWALLOWED = object()


_NULL_RESULT = Succeeded("null")  # made once, because many handlers return None

MAX_FRAMES = 1000
#: Formatted traceback frames, by the id of the code object and the instruction. The code object is kept alive here, so
#: that no other one can get its id.
_frames: dict[tuple[int, int], tuple[str, CodeType]] = {}


class StartedTooLate(BaseException):
    """The lease may have expired before the handler could start. The job is released, if the lease still holds."""


class BadPayload(Exception):
    """The payload does not fit the function, which has changed since the job was enqueued. A retry would not help."""


class Undecodable(Exception):
    """This worker lacks the codec of the payload, or its key. Another worker, or a later release, may have them."""


def arguments_of(task: Task[..., Any], attempt: Attempt) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments for the handler, with the attempt first if it takes one, and with its resources."""
    text = attempt.job.payload_json
    if text.startswith(PREFIX):
        text = _decode_payload(task, attempt)
    try:
        args, kwargs = task.signature.decode(text)
    except InvalidInput as error:
        raise BadPayload(f"{task.name} was enqueued with other arguments than it takes now: {error}") from None
    if task.takes_resources:
        values = attempt._resources or {}
        kwargs |= {name: values[kind] for name, kind in task.signature.resources.items()}
    return ((attempt, *args) if task.signature.takes_attempt else args), kwargs


def _decode_payload(task: Task[..., Any], attempt: Attempt) -> str:
    """The payload as JSON. The job of the attempt gets it too, so that handler and middlewares see the arguments."""
    job = attempt.job
    try:
        text = task.decode(job.payload_json, f"the payload of job {job.id} ({job.task})")
    except CodecError as error:
        raise Undecodable(str(error)) from None
    attempt.job = replace(job, payload_json=text)
    return text


def of_value(task: Task[..., Any], attempt: Attempt, value: object) -> Outcome:
    """The outcome of a handler that returned. A result that cannot be stored fails the job: a retry would not help."""
    if attempt._completion.is_unconfirmed:
        _compare(task, attempt, value)
        return Succeeded()
    if value is None and task.signature.may_return_none:
        return _NULL_RESULT
    if isinstance(value, Continuation):
        return Succeeded(None, value.draft)
    if value is SWALLOWED:
        return Succeeded("null")
    try:
        return Succeeded(task.encode_result(value))
    except CodecError as error:
        return Raised(f"the result of {task.name} was not stored: {error}", error_type=type_name(type(error)))
    except Exception as error:  # encoding a value may raise anything
        why = error if isinstance(error, InvalidInput) else describe(error)
        text = f"{task.name} returned what cannot be stored: {why}"
        return Raised(text, fatal=True, error_type=type_name(type(error)))


def _compare(task: Task[..., Any], attempt: Attempt, value: object) -> None:
    """Warn if a handler returns another result than the one that it completed its job with, which is stored."""
    if value is None:
        return
    try:
        stored = task.decode(attempt._completion.result or "", "the result")
        limit = task.app.payload_limit
        same = stored == ("" if isinstance(value, Continuation) else task.signature.encode_result(value, limit))
    except Exception:
        same = False
    if not same:
        text = "%s %s: returned something else than it was completed with, which is kept"
        log.warning(text, task.name, attempt.job.id, extra=job_facts(attempt))


def of_error(error: BaseException, task: Task[..., Any], attempt: Attempt) -> Outcome:
    """The outcome of a handler that raised. Never raises itself."""
    try:
        outcome = _outcome_of(error) or _by_rules(error, task, attempt)
    except Exception as refused:
        outcome, error = Raised(f"{describe(refused)}\n\nwhile handling\n\n{describe(error)}"), refused
    return replace(outcome, error_type=type_name(type(error))) if isinstance(outcome, Raised) else outcome


def _outcome_of(error: BaseException) -> Outcome | None:
    """The outcome of an exception that has a meaning for Relet; None for all others."""
    match error:
        case Suspended():
            return Snoozed(error.delay, error.awaits)
        case BaseExceptionGroup() if error.split(Suspended)[1] is None:  # from tasks of a TaskGroup
            return _outcome_of(error.exceptions[0])
        case Snooze():
            return Snoozed(validate.seconds("Snooze", error.delay))
        case Retry():
            return Raised(str(error), delay=None if error.delay is None else validate.seconds("Retry", error.delay))
        case Fail():
            return Raised(_reason(error), fatal=True)
        case BadPayload():
            return Raised(str(error), fatal=True)
        case Undecodable():
            return Raised(str(error))
        case StartedTooLate():
            return Released("the lease may have expired before the handler started")
        case Aborted():
            return Released(f"aborted: {error.reason}")
    return None


def _by_rules(error: BaseException, task: Task[..., Any], attempt: Attempt) -> Raised:
    """Apply `fail_on`, `retry_on` and `retry_delay` of the task."""
    text = describe(error)
    if _has(error, task.fail_on) or (task.retry_on is not None and not _is_only(error, task.retry_on)):
        return Raised(text, fatal=True)
    delay = None if task.retry_delay is None else task.retry_delay(attempt, error)
    return Raised(text, None if delay is None else validate.seconds("retry_delay", delay))


def _has(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether the exception, or one in its group, is of one of these classes."""
    if isinstance(error, kinds):
        return True
    return isinstance(error, BaseExceptionGroup) and any(_has(one, kinds) for one in error.exceptions)


def _is_only(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether the exception, or every one in its group, is of one of these classes."""
    if isinstance(error, kinds):
        return True
    return isinstance(error, BaseExceptionGroup) and all(_is_only(one, kinds) for one in error.exceptions)


def _reason(error: Fail) -> str:
    """The text of a deliberate failure, without a traceback of the line that raised it; with that of its cause."""
    text = str(error) or "Fail"
    return text if error.__cause__ is None else f"{text}\n\n{describe(error.__cause__)}"


def describe(error: BaseException) -> str:
    """The error as text: its class and message first, then its traceback. Works if its `__str__` raises, too."""
    try:
        head = "".join(traceback.format_exception_only(error))
        where = _traceback(error, _user_frames(error.__traceback__), head)
    except Exception as broken:
        return f"{type(error).__name__} (which cannot be shown: {type(broken).__name__})"
    return f"{head.strip()}\n\n{where}"


def _traceback(error: BaseException, trace: TracebackType | None, head: str) -> str:
    """The text that `traceback.format_exception` returns, but faster for repeated errors.

    The standard library reads and parses the source of each frame every time. A handler that fails often fails at the
    same lines, so the texts of frames are cached.
    """
    frames: list[str] = []
    while trace is not None:
        frames.append(_frame(trace))
        trace = trace.tb_next
    is_alone = error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    is_recursive = len(set(frames)) < len(frames)  # then the standard library leaves some of them out
    if not frames or is_recursive or not is_alone or isinstance(error, BaseExceptionGroup):
        return "".join(traceback.format_exception(type(error), error, _user_frames(error.__traceback__)))
    return "".join(["Traceback (most recent call last):\n", *frames, head])


def _frame(trace: TracebackType) -> str:
    code = trace.tb_frame.f_code
    key = id(code), trace.tb_lasti  # not the code itself: code objects of two files may be equal
    known = _frames.get(key)
    if known is None:
        if len(_frames) >= MAX_FRAMES:
            _frames.clear()
        known = _frames[key] = "".join(traceback.extract_tb(trace, limit=1).format()), code
    return known[0]


def _user_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the worker, which come first."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_HERE):
        inner = inner.tb_next
    return inner or trace
