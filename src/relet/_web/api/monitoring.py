"""Endpoints for monitoring: workers, statistics, failures, the audit trail, and the tasks."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ..._core.redact import redacted
from ..._core.stats import BOUNDS, StatPage
from ..._tasks.task import Task
from . import requests, responses
from .endpoint import Call, at
from .parsing import an_hour_ago, rfc3339_time


@at("GET /workers", "read", responses.Workers, {200: "The workers"})
def list_workers(call: Call, _: None, __: None) -> responses.Workers:
    """List live workers, and those lost within a day."""
    return responses.Workers(call.client.workers())


@at("GET /stats", "read", responses.Points, {200: "Statistics by step and queue"}, query=requests.StatsQuery)
def show_stats(call: Call, query: requests.StatsQuery, _: None) -> responses.Points:
    """Show statistics: ended attempts, durations, numbers of jobs. Steps without any activity are left out.

    Steps of 60 seconds are kept for 3 hours, of 600 for 3 days, of 3600 for 8 days, of 21600 for 400 days. Without
    `queue`, the response is a page with the statistics of some queues, by name: as long as its `cursor` is not null,
    pass it to continue. Queue `*` is all queues together. With `queue`, `cursor` has no effect.
    """
    which: dict[str, Any] = {
        "since": an_hour_ago() if query.since is UNSET else rfc3339_time(query.since, "query.since"),
        "until": None if query.until is UNSET else rfc3339_time(query.until, "query.until"),
        "step": None if query.step is UNSET else query.step,
    }
    if query.queue is UNSET:
        return _points(call.client._stats_page(**which, cursor=None if query.cursor is UNSET else query.cursor))
    return _points(StatPage(call.client.stats(**which, queue=query.queue), None))


@at("GET /totals", "read", responses.Points, {200: "One point for each queue"}, query=requests.TotalsQuery)
def show_totals(call: Call, query: requests.TotalsQuery, _: None) -> responses.Points:
    """Show the totals since the beginning, as counters that never decrease.

    The response is a page with some queues, by name: as long as its `cursor` is not null, pass it to continue.
    """
    return _points(call.client._totals_page(cursor=None if query.cursor is UNSET else query.cursor))


@at("GET /failures", "read", responses.Failures, {200: "Failures, grouped"}, query=requests.LimitQuery)
def list_failures(call: Call, query: requests.LimitQuery, _: None) -> responses.Failures:
    """List failed jobs, grouped by task and error, the latest first.

    Numbers and ids in errors are left out. Use `search` as the `error` filter to find the jobs of a group.
    """
    return responses.Failures(redacted(call.client.failures(limit=query.limit), call.redact))


@at("GET /audit", "read", responses.AuditOut, {200: "A page of changes, the latest first"}, query=requests.AuditQuery)
def list_audit(call: Call, query: requests.AuditQuery, _: None) -> responses.AuditOut:
    """List changes and who made them, the latest first."""
    page = call.client.audit(limit=query.limit, cursor=None if query.cursor is UNSET else query.cursor)
    return responses.AuditOut([responses.entry_out(entry, call.redact) for entry in page.entries], page.cursor)


@at("GET /tasks", "read", responses.TasksOut, {200: "The tasks, by name"})
def list_tasks(call: Call, _: None, __: None) -> responses.TasksOut:
    """List the tasks that can be enqueued, with the JSON schemas of their payloads and results."""
    return responses.TasksOut([_task(task) for _, task in sorted(call.app.tasks.items())])


ENDPOINTS = [list_workers, show_stats, show_totals, list_failures, list_audit, list_tasks]


def _points(page: StatPage) -> responses.Points:
    return responses.Points(list(BOUNDS), [responses.point_out(point) for point in page.points], page.cursor)


def _task(task: Task[..., Any]) -> responses.TaskOut:
    payload, result = task.signature.schemas()
    summary = (task.__doc__ or "").strip().partition("\n")[0] or None
    return responses.TaskOut(
        task.name,
        summary,
        task.queue,
        task.priority,
        task.policy.max_attempts,
        task.policy.timeout,
        payload,
        result,
    )
