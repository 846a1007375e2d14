"""Failed jobs, grouped by task and error."""

from __future__ import annotations

from ..._core.redact import redacted
from ..._core.views import FailureGroup
from .page import Page, PageContext

MAX_GROUPS = 100


def failures(view: PageContext) -> Page:
    """Groups of failed jobs, the largest first."""
    found = redacted(view.client.failures(limit=MAX_GROUPS), view.redact)
    groups = sorted(found, key=lambda one: (-one.number, one.task))
    alone = [
        one for one in groups if one.search and not any(_finds(one, other) for other in groups if other is not one)
    ]
    context = {
        "groups": groups,
        "total": sum(one.number for one in groups),
        "cut": len(groups) >= MAX_GROUPS,
        "alone": alone,
    }
    return Page("Failures", "failures.html", context)


def _finds(one: FailureGroup, other: FailureGroup) -> bool:
    """True if the search text of one group also finds another: a bulk action on "all" of it would be wrong."""
    return one.task == other.task and one.search.casefold() in other.error.casefold()
