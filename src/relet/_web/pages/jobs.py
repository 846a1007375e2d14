"""The list of jobs: filters in the URL, pagination by cursor, a bounded search."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..._core.filters import FILTERS
from ..._core.ids import id_time
from ..._core.job import State
from ..._core.verbs import BULK, Verb
from ..._core.views import counted_at
from ...errors import InvalidInput
from . import filters
from .formatting import arguments_of
from .job import job
from .page import Page, PageContext
from .queues import totals

AT_ONCE = 50
SCAN = 20_000  # jobs that are read for one page, and as many again for the number of those that match
MAX_COUNTED = 10_000
FIRST_FILTERS = ("state", "task", "queue", "payload", "error")  # the form displays the others on request


def jobs(view: PageContext) -> Page:
    """The list of jobs; with `id` in the URL, the page of that job."""
    if view.query.get("id", "").strip():
        return job(view, view.query["id"].strip())
    criteria = filters.from_query(view.query)
    problem, page, total = "", None, None
    cursor = view.query.get("cursor") or None
    try:
        arguments = filters.arguments(criteria)
        page = view.client.jobs(**arguments, limit=AT_ONCE, cursor=cursor, scan=SCAN)
    except InvalidInput as error:
        problem = str(error)
    found = page.jobs if page else []
    if page is not None and criteria and view.may_act and not cursor and _cheap(criteria):
        total = max(view.client.count(**arguments, limit=MAX_COUNTED + 1, scan=SCAN), len(found))
    queues = view.client.queues()
    queue_names = {one.queue for one in queues if one.queue != "*"}
    numbers = totals(queues)
    tabs = [(str(state), numbers.get(state)) for state in State]
    more_filters = {name: one for name, one in FILTERS.items() if name not in FIRST_FILTERS}
    context: dict[str, Any] = {
        "criteria": criteria,
        "jobs": found,
        "arguments_of": arguments_of(found, view.redact),
        "next_cursor": page.cursor if page else None,
        "searched_to": datetime.fromtimestamp(id_time(page.cursor), UTC) if page and page.cursor else None,
        "short": bool(page and page.cursor and len(found) < AT_ONCE),
        "cursor": cursor,
        "problem": problem,
        "total": total,
        "has_more": sum(numbers.values()) > SCAN,
        "tabs": tabs,
        "counted_at": counted_at(queues),
        "at_least": any(one.at_least for one in queues),
        "queue_names": sorted(queue_names),
        "task_names": sorted(view.tasks),
        "more_filters": more_filters,
        "verbs": list(BULK.values()),
        "verbs_for_all": _verbs_for(criteria),
    }
    return Page("Jobs", "jobs.html", context, status=400 if problem else 200)


def _cheap(criteria: dict[str, str]) -> bool:
    """True if counting is affordable. Finished jobs may be millions, and have no bulk actions anyway."""
    states = set(criteria.get("state", "").split(","))
    return bool(states) and states <= {"pending", "queued", "running", "paused", "failed"}


def _verbs_for(criteria: dict[str, str]) -> list[Verb]:
    """The verbs that the filtered states allow."""
    states = set(criteria.get("state", "").split(","))
    return [verb for verb in BULK.values() if states & verb.sources]
