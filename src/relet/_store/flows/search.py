"""Finding jobs: a page of those that match a filter, newest first, and how many match.

Live and finished jobs are in two tables. Each is read separately, and only if the filter can match there. A job that
finishes between the two reads is found in both, and listed once.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ..._core.filters import Filter
from ..._core.job import Job, State
from ..._core.views import Page
from ..query import LONG, Flow, Query, as_json, bounded, read, read_only
from . import mapping

MAX_RARE = 5000  # jobs in a rare state that one page reads
MAX_TAGGED = 1000  # jobs with a tag that a page with a `scan` reads: each is found by its id

# For filters on one rare state; else for live jobs and for those that are over.
JOBS = ("inspect/jobs_rare", "inspect/jobs_live", "inspect/jobs_over")
COUNT = ("inspect/count_rare", "inspect/count_live", "inspect/count_over")
TAGGED = ("inspect/jobs_rare", "inspect/tagged_live", "inspect/tagged_over")  # for filters on a tag


@bounded(LONG)
@read_only
def jobs(which: Filter, limit: int, cursor: str | None = None, scan: int | None = None) -> Flow[Page]:
    """A page of jobs, newest first by id. With `scan`, at most so many rows of each table are read."""
    cursor = which.below(cursor)
    rare = yield from _rare_state(which)
    floor = None
    if rare is None:
        find_floor = _scan_floor if which.tag is None else _tag_floor
        floor = yield from find_floor(which, cursor, scan)
    params = _params(which, floor, cursor) | {"limit": limit + 1}
    found: dict[str, Job[Any]] = {}
    for statement in _statements(JOBS if which.tag is None else TAGGED, which, params, rare):
        found |= {row[0]: mapping.job(row) for row in (yield statement)}
    page = sorted(found.values(), key=lambda job: job.id, reverse=True)
    if len(page) > limit:
        return Page(page[:limit], page[limit - 1].id)
    return Page(page, floor)


@bounded(LONG)
@read_only
def count(which: Filter, limit: int | None = None, scan: int | None = None) -> Flow[int]:
    """How many jobs, counted no further than `limit`; with `scan`, among the newest so many of each table."""
    cursor = which.below(None)
    rare = which.rare_state
    floor = (yield from _scan_floor(which, cursor, scan)) if rare is None else None
    params = _params(which, floor, cursor)
    total = 0
    for statement in _statements(COUNT, which, params, rare):
        statement.params["limit"] = None if limit is None else max(limit - total, 0)
        ((number,),) = yield statement
        total += int(number)
    return total


def _params(which: Filter, floor: str | None, cursor: str | None) -> dict[str, Any]:
    values = structs.asdict(which)
    values["state"] = as_json([str(state) for state in which.state]) if which.state else None
    return values | {"lowest": floor or which.lowest_id, "cursor": cursor}


def _rare_state(which: Filter) -> Flow[State | None]:
    """The one state of the filter, if it has an index and few jobs are in it."""
    state = which.rare_state
    if state is None:
        return None
    ((is_rare,),) = yield read("inspect/is_rare", rare_state=str(state), limit=MAX_RARE)
    return state if is_rare else None


def _statements(
    names: tuple[str, str, str], which: Filter, params: dict[str, Any], rare_state: State | None
) -> list[Query]:
    """One statement for each table in which the filter can match."""
    rare, live, over = names
    if rare_state is not None:
        return [read(rare, rare_state=str(rare_state), **params)]
    included = [(live, which.includes_live), (over, which.includes_finished)]
    return [read(name, **params) for name, matches in included if matches]


def _scan_floor(which: Filter, cursor: str | None, scan: int | None) -> Flow[str | None]:
    """The id at which reading `scan` rows of a table ends; the greater of the two tables. None: read every row."""
    if scan is None:
        return None
    params = {"lowest": which.lowest_id, "cursor": cursor, "scan": scan}
    live = (yield read("inspect/scan_floor_live", **params)) if which.includes_live else []
    over = (yield read("inspect/scan_floor_over", **params)) if which.includes_finished else []
    return max((row[0] for row in [*live, *over]), default=None)


def _tag_floor(which: Filter, cursor: str | None, scan: int | None) -> Flow[str | None]:
    """The same for jobs with a tag, whose ids are in an index."""
    if scan is None:
        return None
    params = {"lowest": which.lowest_id, "cursor": cursor, "tag": which.tag, "scan": min(scan, MAX_TAGGED)}
    found = yield read("inspect/tag_floor", **params)
    return found[0][0] if found else None
