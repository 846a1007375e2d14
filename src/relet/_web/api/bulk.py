"""Actions on all jobs that match a filter."""

from __future__ import annotations

from ..._core.filters import FILTERS
from ..._core.text import series
from ..._core.verbs import VERBS
from ..problems import Fault, invalid
from . import requests, responses
from .endpoint import Call, at
from .jobs import which


@at("POST /jobs/bulk", "operate", responses.BulkOut, {200: "The result, or its preview"}, body=requests.BulkIn)
def bulk(call: Call, _: None, body: requests.BulkIn) -> responses.BulkOut:
    """Apply an action to all jobs that match a filter.

    At least one filter is required. Without `state`, the action applies to jobs in any state that allows it. With
    `preview` nothing is changed: `matching` is the number of jobs that would be affected, counted up to `limit`. Jobs
    whose state no longer allows the action are counted as refused. If `more` is true, repeat the request with `next` as
    `cursor`.
    """
    criteria = which(body.filter, "body.filter")
    if not criteria:
        raise invalid([Fault("body.filter", f"filter by at least one of {series(list(FILTERS), 'or')}")])
    allowed = {**criteria, "state": criteria.get("state") or sorted(VERBS[body.action].sources)}
    matching = call.client.count(limit=body.limit + 1, scan=call.limits.count_scan, **allowed)  # type: ignore[arg-type]
    if body.preview:
        return responses.BulkOut(min(matching, body.limit), 0, 0, matching > body.limit, True)
    limits = {"limit": body.limit, "seconds": call.limits.bulk_seconds, "cursor": body.cursor}
    done = call.client.bulk(body.action, **limits, **criteria)  # type: ignore[arg-type]
    more = done.cursor is not None
    return responses.BulkOut(min(matching, body.limit), done.done, done.refused, more, False, done.cursor)


ENDPOINTS = [bulk]
