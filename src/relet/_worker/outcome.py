"""What the end of a handler means: what it returned or raised, as an outcome that can be settled."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from .._attempts.attempt import Attempt, Continuation
from .._core import validate
from .._core.job import Outcome, Raised, Released, Snoozed, Succeeded
from .._tasks.task import Task
from ..errors import Aborted, Fail, InvalidInput, Retry, Snooze, Suspended
from ..logs import job_facts

log = logging.getLogger("relet.worker")

_HERE = str(Path(__file__).parent)


#: A middleware has swallowed what the handler raised: the attempt succeeds, with no result.
SWALLOWED = object()


_NOTHING = Succeeded("null")

MOST_FRAMES = 1000
#: The text of a frame in a traceback, by the id of its code and the instruction; and the code, so that its id stays.
_frames: dict[tuple[int, int], tuple[str, CodeType]] = {}


class StartedTooLate(BaseException):
    """The lease may have expired before the handler could start. The job is given back if it is still ours."""


class BadPayload(Exception):
    """The payload does not fit the function, which has changed since: it will not fit the next time either."""


def arguments_of(task: Task[..., Any], attempt: Attempt) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What to call the function with."""
    try:
        args, kwargs = task.signature.decode(attempt.job.payload_json)
    except InvalidInput as error:
        raise BadPayload(f"{task.name} was enqueued with other arguments than it takes now: {error}") from None
    return ((attempt, *args) if task.signature.takes_attempt else args), kwargs


def of_value(task: Task[..., Any], attempt: Attempt, value: object) -> Outcome:
    """The handler returned. A result that cannot be stored fails the job: it would be no better the next time."""
    if attempt._completion.is_unconfirmed:
        _compare(task, attempt, value)
        return Succeeded()
    if value is None and task.signature.may_return_none:
        return _NOTHING
    if isinstance(value, Continuation):
        return Succeeded(None, value.draft)
    if value is SWALLOWED:
        return Succeeded("null")
    try:
        return Succeeded(task.encode_result(value))
    except Exception as error:  # whatever a value may do while it is looked at
        why = error if isinstance(error, InvalidInput) else describe(error)
        return Raised(f"{task.name} returned what cannot be stored: {why}", fatal=True)


def _compare(task: Task[..., Any], attempt: Attempt, value: object) -> None:
    """What the job was completed with stands, whatever is returned afterwards; but somebody should know."""
    if value is None:
        return
    try:
        same = attempt._completion.result == ("" if isinstance(value, Continuation) else task.encode_result(value))
    except Exception:
        same = False
    if not same:
        text = "%s %s: returned something else than it was completed with"
        log.warning(text, task.name, attempt.job.id, extra=job_facts(attempt))


def of_error(error: BaseException) -> Outcome:
    """The handler raised: what it said by that, or that the attempt failed. Never raises itself."""
    try:
        return _meant_by(error)
    except Exception as refused:
        return Raised(f"{describe(refused)}\n\nwhile looking at\n\n{describe(error)}")


def _meant_by(error: BaseException) -> Outcome:
    match error:
        case Suspended():
            return Snoozed(error.delay, error.awaits)
        case BaseExceptionGroup() if error.split(Suspended)[1] is None:  # from tasks of a TaskGroup
            return _meant_by(error.exceptions[0])
        case Snooze():
            return Snoozed(validate.seconds("Snooze", error.delay))
        case Retry():
            return Raised(str(error), delay=None if error.delay is None else validate.seconds("Retry", error.delay))
        case Fail():
            return Raised(describe(error), fatal=True)
        case BadPayload():
            return Raised(str(error), fatal=True)
        case StartedTooLate():
            return Released("the lease may have expired before the handler started")
        case Aborted():
            return Released(f"aborted: {error.reason}")
    return Raised(describe(error))


def describe(error: BaseException) -> str:
    """What was raised first, where it was raised below. Works for exceptions that cannot show themselves, too."""
    try:
        head = "".join(traceback.format_exception_only(error))
        where = _traceback(error, _users(error.__traceback__), head)
    except Exception as broken:
        return f"{type(error).__name__} (which cannot be shown: {type(broken).__name__})"
    return f"{head.strip()}\n\n{where}"


def _traceback(error: BaseException, trace: TracebackType | None, head: str) -> str:
    """What `traceback.format_exception` returns. It reads and parses the source of each frame, every time; a handler
    that fails often fails in the same places, so their texts are kept."""
    frames: list[str] = []
    while trace is not None:
        frames.append(_frame(trace))
        trace = trace.tb_next
    is_alone = error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    is_recursive = len(set(frames)) < len(frames)  # then it leaves some of them out
    if not frames or is_recursive or not is_alone or isinstance(error, BaseExceptionGroup):
        return "".join(traceback.format_exception(type(error), error, _users(error.__traceback__)))
    return "".join(["Traceback (most recent call last):\n", *frames, head])


def _frame(trace: TracebackType) -> str:
    code = trace.tb_frame.f_code
    place = id(code), trace.tb_lasti  # not the code itself: that of two files may be equal
    known = _frames.get(place)
    if known is None:
        if len(_frames) >= MOST_FRAMES:
            _frames.clear()
        known = _frames[place] = "".join(traceback.extract_tb(trace, limit=1).format()), code
    return known[0]


def _users(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that is not the worker's own."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_HERE):
        inner = inner.tb_next
    return inner or trace
