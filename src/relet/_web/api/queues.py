"""Queues and targets: where jobs stand in line."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, structs

from ..._core.views import QueueInfo
from ...errors import JobNotFound
from ..problems import Fault, invalid
from . import requests, responses
from .endpoint import Call, at
from .jobs import existing

_QUEUE = {200: "The queue as it is now", 404: "This cannot be the name of a queue"}


@at("GET /queues", "read", responses.Queues, {200: "The queues, by name"})
def list_queues(call: Call, _: None, __: None) -> responses.Queues:
    """Every queue that has live jobs, or of which something was said."""
    return responses.Queues(call.client.queues())


@at("POST /queues/{queue:path}/pause", "operate", QueueInfo, _QUEUE)
def pause_queue(call: Call, _: None, __: None) -> QueueInfo:
    """Let no worker claim from a queue; what runs goes on."""
    call.client.pause_queue(call.path["queue"])
    return _queue(call, call.path["queue"])


@at("POST /queues/{queue:path}/resume", "operate", QueueInfo, _QUEUE)
def resume_queue(call: Call, _: None, __: None) -> QueueInfo:
    """Let workers claim from a queue again."""
    call.client.resume_queue(call.path["queue"])
    return _queue(call, call.path["queue"])


@at("PATCH /queues/{queue:path}/limits", "operate", QueueInfo, _QUEUE, body=requests.LimitsIn)
def limit_queue(call: Call, _: None, body: requests.LimitsIn) -> QueueInfo:
    """Limit how many jobs of a queue run at once, how many start in a time, and whether keys are served in turn.

    What is not given stays as it is; null lifts a limit.
    """
    call.client.limit_queue(call.path["queue"], **_limits(body))
    return _queue(call, call.path["queue"])


@at("PATCH /limits", "operate", QueueInfo, {200: "What counts for all queues together"}, body=requests.AllLimitsIn)
def limit_all_queues(call: Call, _: None, body: requests.AllLimitsIn) -> QueueInfo:
    """Limit how many jobs of all queues together run at once, and how many start in a time."""
    call.client.limit_queue(None, **_limits(body))
    return _queue(call, "*")


@at(
    "GET /targets",
    "read",
    responses.TargetPageOut,
    {200: "Some targets, and where to go on"},
    query=requests.TargetsQuery,
)
def list_targets(call: Call, query: requests.TargetsQuery, _: None) -> responses.TargetPageOut:
    """Targets that are held or waited for, by name."""
    page = call.client.targets(limit=query.limit, after=None if query.after is UNSET else query.after)
    return responses.TargetPageOut([responses.target_info_out(one, call.redact) for one in page.targets], page.next)


@at(
    "GET /targets/{target:path}",
    "read",
    responses.TargetOut,
    {200: "The target; one that nobody wants is free", 404: "This cannot be the name of a target"},
    query=requests.LimitQuery,
)
def show_target(call: Call, query: requests.LimitQuery, _: None) -> responses.TargetOut:
    """Who holds a target, and who stands in line behind."""
    return responses.target_out(call.client.target(call.path["target"], limit=query.limit), call.redact)


@at(
    "POST /targets/{target:path}/jobs/{id}/resume",
    "operate",
    responses.JobOut,
    {
        200: "The job as it is now",
        404: "There is no such job, or it is of another target",
        409: "The state of the job does not allow this",
    },
)
def resume_target_job(call: Call, _: None, __: None) -> responses.JobOut:
    """Let the paused or failed job that holds a target go on."""
    if existing(call).target != call.path["target"]:
        raise JobNotFound(call.path["id"])
    return responses.job_out(call.client.resume(call.path["id"]), call.redact)


ENDPOINTS = [
    list_queues, pause_queue, resume_queue, limit_queue, limit_all_queues, list_targets, show_target, resume_target_job,
]  # fmt: skip


def _queue(call: Call, name: str) -> QueueInfo:
    return next((info for info in call.client.queues() if info.queue == name), responses.no_queue(name))


def _limits(body: Struct) -> dict[str, Any]:
    """As `limit_queue` takes them. A rate that is lifted has no time."""
    given = {name: value for name, value in structs.asdict(body).items() if value is not UNSET}
    if not given:
        raise invalid([Fault("body", f"something is to be set: {', '.join(body.__struct_fields__)}")])
    if "rate" in given:
        rate = structs.asdict(given.pop("rate"))
        given.update(rate if rate["rate"] is not None else {**rate, "per": None})
    return given
