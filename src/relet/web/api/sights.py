"""What there is to see beside jobs: workers, statistics, failures, the audit trail, the tasks, and the API itself."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ...core.stats import BOUNDS, StatPoint
from ...redact import shown
from ...tasks import Task
from .. import asks, wire
from .endpoint import Call, at
from .reading import an_hour_ago, moment


@at("GET /workers", "read", wire.Workers, {200: "The workers"})
def list_workers(call: Call, _: None, __: None) -> wire.Workers:
    """Every worker that is there, or was lost within a day."""
    return wire.Workers(call.client.workers())


@at("GET /stats", "read", wire.Points, {200: "What was counted, by step and queue"}, query=asks.StatsQuery)
def show_stats(call: Call, query: asks.StatsQuery, _: None) -> wire.Points:
    """What happened: attempts that ended, times taken, jobs there. Steps in which nothing happened are left out.

    Steps of 60 seconds are kept for 3 hours, of 600 for 3 days, of 3600 for 8 days, of 21600 for 400 days.
    """
    return _points(
        call.client.stats(
            since=an_hour_ago() if query.since is UNSET else moment(query.since, "query.since"),
            until=None if query.until is UNSET else moment(query.until, "query.until"),
            step=None if query.step is UNSET else query.step,
            queue=None if query.queue is UNSET else query.queue,
        )
    )


@at("GET /totals", "read", wire.Points, {200: "One point for each queue"})
def show_totals(call: Call, _: None, __: None) -> wire.Points:
    """All that was ever counted: what never goes down, as monitoring wants it."""
    return _points(call.client.totals())


@at("GET /failures", "read", wire.Failures, {200: "Failures, grouped"}, query=asks.LimitQuery)
def list_failures(call: Call, query: asks.LimitQuery, _: None) -> wire.Failures:
    """Jobs that have failed, by task and error, the latest first.

    Numbers and ids in errors are left out; `search` finds the jobs by the `error` filter.
    """
    return wire.Failures(shown(call.client.failures(limit=query.limit), call.redact))


@at("GET /audit", "read", wire.AuditOut, {200: "Who did what, the latest first"}, query=asks.AuditQuery)
def list_audit(call: Call, query: asks.AuditQuery, _: None) -> wire.AuditOut:
    """Who did what, the latest first."""
    page = call.client.audit(limit=query.limit, before=None if query.before is UNSET else query.before)
    return wire.AuditOut([wire.entry_out(entry, call.redact) for entry in page.entries], page.next)


@at("GET /tasks", "read", wire.TasksOut, {200: "The tasks, by name"})
def list_tasks(call: Call, _: None, __: None) -> wire.TasksOut:
    """The tasks that can be enqueued, with the JSON schemas of their payloads and results."""
    return wire.TasksOut([_task(task) for _, task in sorted(call.app.tasks.items())])


ENDPOINTS = [list_workers, show_stats, show_totals, list_failures, list_audit, list_tasks]


def _points(points: list[StatPoint]) -> wire.Points:
    return wire.Points(list(BOUNDS), [wire.point_out(point) for point in points])


def _task(task: Task[..., Any]) -> wire.TaskOut:
    payload, result = task.signature.schemas()
    summary = (task.__doc__ or "").strip().partition("\n")[0] or None
    return wire.TaskOut(
        task.name,
        summary,
        task.queue,
        task.priority,
        task.policy.max_attempts,
        task.policy.timeout,
        payload,
        result,
    )
