"""Operations: a change carries an id, so that a repeated try has one effect and gets the answer of the first.

The id is inserted first, under a unique key, in the transaction that makes the change. A try that is repeated because
the outcome of the first is unknown waits for that transaction to end. If it was committed, its answer is returned. The
stored answer has no payload and no result: those are read from the job, if it still exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from ..._core.job import Job
from ..._core.schedule import ScheduleInfo
from ...errors import IdempotencyConflict
from ..query import BEGIN, LONG, Flow, as_json, bounded, read, read_only, write
from . import mapping, schedules

R = TypeVar("R")

LOCK_TIMEOUT = 2.0  # seconds to wait for an earlier try; the store then tries again


class Operation(Struct, frozen=True):
    """One change by one caller. `request` tells apart requests that use the same idempotency key."""

    id: str
    verb: str
    subject: str
    request: str | None = None


class _Answer(msgspec.Struct, omit_defaults=True):
    jobs: list[Job[Any]] | None = None
    schedule: ScheduleInfo | None = None
    value: Any = None
    many: bool = False


_decoder = msgspec.json.Decoder(_Answer)


def once(operation: Operation, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> Flow[R]:
    """Run a flow under the id of an operation, or return the answer of the first run."""
    yield BEGIN
    yield write("control/set_lock_timeout", seconds=LOCK_TIMEOUT)
    name = {"id": operation.id, "verb": operation.verb, "subject": operation.subject}
    if not (yield write("operations/begin", **name, request=operation.request)):
        answer: R = yield from _answer_of(operation)
        return answer
    result = yield from flow(*args, **kwargs)
    yield write("operations/end", id=operation.id, outcome=as_json(_without_content(result)))
    return result


@bounded(LONG)
def once_long(operation: Operation, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> Flow[R]:
    """`once` for a flow that reads many rows."""
    return once(operation, flow, *args, **kwargs)


@read_only
def earlier(operation: Operation) -> Flow[Any]:
    """The answer of an operation; None if it has not been carried out."""
    if not (yield read("operations/find", id=operation.id)):
        return None
    return (yield from _answer_of(operation))


def _answer_of(operation: Operation) -> Flow[Any]:
    ((verb, request, outcome),) = yield read("operations/find", id=operation.id)
    if (verb, request) != (operation.verb, operation.request):
        raise IdempotencyConflict(verb)
    answer = _decoder.decode(outcome)
    if answer.schedule is not None:
        named = yield from schedules.schedules(answer.schedule.name)
        return structs.replace(answer.schedule, payload_json=named[0].payload_json) if named else answer.schedule
    if answer.jobs is None:
        return answer.value
    found = yield read("inspect/get", ids=as_json([job.id for job in answer.jobs]))
    now = {row[0]: mapping.job(row) for row in found}
    jobs = [_with_content(job, now.get(job.id)) for job in answer.jobs]
    return jobs if answer.many else jobs[0]


def _without_content(result: Any) -> _Answer:
    match result:
        case Job():
            return _Answer(jobs=[_bare(result)])
        case [Job(), *_]:
            return _Answer(jobs=[_bare(job) for job in result], many=True)
        case ScheduleInfo():
            return _Answer(schedule=structs.replace(result, payload_json="null"))
    return _Answer(value=result)


def _bare(job: Job[Any]) -> Job[Any]:
    return structs.replace(job, payload_json="null", result_json=None, error=None, progress=None, context=None)


def _with_content(job: Job[Any], now: Job[Any] | None) -> Job[Any]:
    if now is None:
        return job
    content = {"payload_json": now.payload_json, "error": now.error, "progress": now.progress, "context": now.context}
    return structs.replace(job, **content, result_json=now.result_json if now.state is job.state else None)
