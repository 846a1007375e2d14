"""Schedules: what is enqueued on a clock."""

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
    """All schedules."""
    return responses.SchedulesOut([responses.schedule_out(one, call.redact) for one in call.client.schedules.all()])


@at("GET /schedules/{name:path}", "read", responses.ScheduleOut, {200: "The schedule", **_NONE})
def show_schedule(call: Call, _: None, __: None) -> responses.ScheduleOut:
    """One schedule."""
    return responses.schedule_out(_existing(call), call.redact)


@at(
    "PUT /schedules/{name:path}",
    "operate",
    responses.ScheduleOut,
    {
        200: "The schedule as it was changed",
        201: "The schedule that was added",
        404: "This cannot be the name of a schedule",
    },
    body=requests.ScheduleIn,
)
def put_schedule(call: Call, _: None, body: requests.ScheduleIn) -> Result:
    """Add a schedule, or change the one of that name.

    It has either a `cron` expression or `every` so many seconds. Workers follow it from now on. If code declares it,
    too, what is said here stays until the code says something else than before.
    """
    name = call.path["name"]
    if (body.cron is None) == (body.every is None):
        raise invalid([Fault("body.cron", 'give either cron ("*/5 * * * *") or every (seconds)')])
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


@at("DELETE /schedules/{name:path}", "operate", None, {204: "It is gone; its jobs stay", **_NONE})
def remove_schedule(call: Call, _: None, __: None) -> Result:
    """Forget a schedule. Its jobs stay. One that code declares comes back when a worker starts."""
    call.client.schedules.remove(call.path["name"])
    return Result(None, 204)


@at("POST /schedules/{name:path}/pause", "operate", responses.ScheduleOut, _CHANGED)
def pause_schedule(call: Call, _: None, __: None) -> responses.ScheduleOut:
    """Let a schedule not tick until it is resumed."""
    return responses.schedule_out(call.client.schedules.pause(call.path["name"]), call.redact)


@at("POST /schedules/{name:path}/resume", "operate", responses.ScheduleOut, _CHANGED)
def resume_schedule(call: Call, _: None, __: None) -> responses.ScheduleOut:
    """Let a schedule tick again, from the next tick on."""
    return responses.schedule_out(call.client.schedules.resume(call.path["name"]), call.redact)


@at("POST /schedules/{name:path}/run-now", "operate", responses.JobOut, {201: "The job that was enqueued", **_NONE})
def run_schedule_now(call: Call, _: None, __: None) -> Result:
    """Enqueue what a schedule enqueues, beside its ticks."""
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
    """The latest ticks of a schedule: the job of each, or why there was none."""
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
