"""Endpoints for queues and targets."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, structs

from ..._core.views import QueueInfo
from ...errors import JobNotFound
from ..problems import Fault, invalid
from . import requests, responses
from .endpoint import Call, at
from .jobs import existing

_QUEUE = {200: "The queue as it is now", 404: "This is not a valid queue name"}


@at("GET /queues", "read", responses.Queues, {200: "The queues, by name"})
def list_queues(call: Call, _: None, __: None) -> responses.Queues:
    """List every queue that has live jobs or settings."""
    return responses.Queues(call.client.queues())


@at("POST /queues/{queue:path}/pause", "operate", QueueInfo, _QUEUE)
def pause_queue(call: Call, _: None, __: None) -> QueueInfo:
    """Pause a queue: workers stop claiming from it. Running jobs continue."""
    call.client.pause_queue(call.path["queue"])
    return _queue(call, call.path["queue"])


@at("POST /queues/{queue:path}/resume", "operate", QueueInfo, _QUEUE)
def resume_queue(call: Call, _: None, __: None) -> QueueInfo:
    """Resume a queue: workers claim from it again."""
    call.client.resume_queue(call.path["queue"])
    return _queue(call, call.path["queue"])


@at("PATCH /queues/{queue:path}/limits", "operate", QueueInfo, _QUEUE, body=requests.LimitsIn)
def limit_queue(call: Call, _: None, body: requests.LimitsIn) -> QueueInfo:
    """Limit how many jobs of a queue run at once, how many start per period, and whether keys are served in turn.

    Fields that are left out stay unchanged; null lifts a limit.
    """
    for limits in _limits(body):
        call.client.limit_queue(call.path["queue"], **limits)
    return _queue(call, call.path["queue"])


@at("PATCH /limits", "operate", QueueInfo, {200: "The limits of all queues together"}, body=requests.AllLimitsIn)
def limit_all_queues(call: Call, _: None, body: requests.AllLimitsIn) -> QueueInfo:
    """Limit how many jobs of all queues together run at once, and how many start per period."""
    for limits in _limits(body):
        call.client.limit_queue(None, **limits)
    return _queue(call, "*")


@at(
    "GET /targets",
    "read",
    responses.TargetPageOut,
    {200: "A page of targets, and the cursor of the next page"},
    query=requests.TargetsQuery,
)
def list_targets(call: Call, query: requests.TargetsQuery, _: None) -> responses.TargetPageOut:
    """List targets that are held or waited for, by name."""
    page = call.client.targets(limit=query.limit, cursor=None if query.cursor is UNSET else query.cursor)
    return responses.TargetPageOut([responses.target_info_out(one, call.redact) for one in page.targets], page.cursor)


@at(
    "GET /targets/{target:path}",
    "read",
    responses.TargetOut,
    {200: "The target; an unused one is free", 404: "This is not a valid target name"},
    query=requests.LimitQuery,
)
def show_target(call: Call, query: requests.LimitQuery, _: None) -> responses.TargetOut:
    """Show the job that holds a target, and the jobs in line behind it."""
    return responses.target_out(call.client.target(call.path["target"], limit=query.limit), call.redact)


@at(
    "POST /targets/{target:path}/jobs/{id}/resume",
    "operate",
    responses.JobOut,
    {
        200: "The job as it is now",
        404: "There is no such job, or it belongs to another target",
        409: "The state of the job does not allow this",
    },
)
def resume_target_job(call: Call, _: None, __: None) -> responses.JobOut:
    """Resume the paused or failed job that holds a target."""
    if existing(call).target != call.path["target"]:
        raise JobNotFound(call.path["id"])
    return responses.job_out(call.client.resume(call.path["id"]), call.redact)


ENDPOINTS = [
    list_queues, pause_queue, resume_queue, limit_queue, limit_all_queues, list_targets, show_target, resume_target_job,
]  # fmt: skip


def _queue(call: Call, name: str) -> QueueInfo:
    return next((info for info in call.client.queues() if info.queue == name), responses.no_queue(name))


def _limits(body: Struct) -> list[dict[str, Any]]:
    """Keyword arguments for calls of `client.limit_queue`: the limits of a group take a separate call."""
    changes = {name: value for name, value in structs.asdict(body).items() if value is not UNSET}
    if not changes:
        raise invalid([Fault("body", f"set at least one of {', '.join(body.__struct_fields__)}")])
    calls = [structs.asdict(changes.pop("group_limit"))] if "group_limit" in changes else []
    if "rate" in changes:
        rate = structs.asdict(changes.pop("rate"))
        calls.append(rate if rate["rate"] is not None else {**rate, "per": None})  # a lifted rate has no period
    return [changes, *calls] if changes else calls
