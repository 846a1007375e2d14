"""Endpoints for schedules, which enqueue jobs periodically."""

from __future__ import annotations

from ..._core.schedule import ScheduleInfo
from ...errors import InvalidInput, ScheduleNotFound
from ..problems import Fault, invalid
from . import requests, responses
from .drafts import draft_of
from .endpoint import Call, Result, at, base

_NONE = {404: "There is no such schedule"}
_CHANGED = {200: "The schedule as it is now", **_NONE}


@at("GET /schedules", "read", responses.SchedulesOut, {200: "The schedules, by name"})
def list_schedules(call: Call, _: None, __: None) -> responses.SchedulesOut:
    """List all schedules."""
    return responses.SchedulesOut([responses.schedule_out(one, call.redact) for one in call.client.schedules.all()])


@at("GET /schedules/{name:path}", "read", responses.ScheduleOut, {200: "The schedule", **_NONE})
def show_schedule(call: Call, _: None, __: None) -> responses.ScheduleOut:
    """Show one schedule."""
    return responses.schedule_out(_existing(call), call.redact)


@at(
    "PUT /schedules/{name:path}",
    "operate",
    responses.ScheduleOut,
    {
        200: "The schedule as it was changed",
        201: "The schedule that was added",
        404: "This is not a valid schedule name",
    },
    body=requests.ScheduleIn,
)
def put_schedule(call: Call, _: None, body: requests.ScheduleIn) -> Result:
    """Add a schedule, or change the one of that name.

    It has either a `cron` expression or an interval `every` in seconds. Workers follow it from now on. If code declares
    the schedule as well, this change lasts until the declaration in the code changes.
    """
    name = call.path["name"]
    if (body.cron is None) == (body.every is None):
        raise invalid([Fault("body.cron", 'send either cron ("*/5 * * * *") or every (seconds)')])
    draft = draft_of(call, body, "body")
    new = call.client.schedules.get(name) is None
    try:
        put = call.client.schedules.put(
            name, draft, body.cron, every=body.every, timezone=body.timezone, missed=body.missed, overlap=body.overlap
        )
    except InvalidInput as error:
        where = "timezone" if "time zone" in str(error) else "cron" if body.cron is not None else "every"
        raise invalid([Fault(f"body.{where}", str(error))]) from None
    return Result(responses.schedule_out(put, call.redact), 201 if new else 200)


@at("DELETE /schedules/{name:path}", "operate", None, {204: "The schedule is removed; its jobs stay", **_NONE})
def remove_schedule(call: Call, _: None, __: None) -> Result:
    """Remove a schedule. Its jobs stay. A schedule that code declares is added again when a worker starts."""
    call.client.schedules.remove(call.path["name"])
    return Result(None, 204)


@at("POST /schedules/{name:path}/pause", "operate", responses.ScheduleOut, _CHANGED)
def pause_schedule(call: Call, _: None, __: None) -> responses.ScheduleOut:
    """Pause a schedule: it does not tick until it is resumed."""
    return responses.schedule_out(call.client.schedules.pause(call.path["name"]), call.redact)


@at("POST /schedules/{name:path}/resume", "operate", responses.ScheduleOut, _CHANGED)
def resume_schedule(call: Call, _: None, __: None) -> responses.ScheduleOut:
    """Resume a schedule, from the next tick on."""
    return responses.schedule_out(call.client.schedules.resume(call.path["name"]), call.redact)


@at("POST /schedules/{name:path}/run-now", "operate", responses.JobOut, {201: "The job that was enqueued", **_NONE})
def run_schedule_now(call: Call, _: None, __: None) -> Result:
    """Enqueue the job of a schedule now, in addition to its ticks."""
    job = call.client.schedules.run_now(call.path["name"])
    return Result(responses.job_out(job, call.redact), 201, {"Location": f"{base(call.root)}/jobs/{job.id}"})


@at(
    "GET /schedules/{name:path}/ticks",
    "read",
    responses.Ticks,
    {200: "Its latest ticks, the latest first", **_NONE},
    query=requests.LimitQuery,
)
def list_ticks(call: Call, query: requests.LimitQuery, _: None) -> responses.Ticks:
    """List the latest ticks of a schedule: the job of each, or why there was none."""
    _existing(call)
    return responses.ticks_out(call.client.schedules.ticks(call.path["name"], limit=query.limit))


ENDPOINTS = [
    list_schedules, list_ticks, pause_schedule, resume_schedule, run_schedule_now, show_schedule, put_schedule,
    remove_schedule,
]  # fmt: skip


def _existing(call: Call) -> ScheduleInfo:
    info = call.client.schedules.get(call.path["name"])
    if info is None:
        raise ScheduleNotFound(call.path["name"])
    return info
