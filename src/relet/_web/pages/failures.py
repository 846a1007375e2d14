"""Failed jobs, grouped by task and error."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.redact import redacted
from ..._core.views import FailureGroup
from .page import Page, PageContext

MAX_GROUPS = 100


def failures(view: PageContext) -> Page:
    """Groups of failed jobs, the largest first."""
    found = redacted(view.client.failures(limit=MAX_GROUPS), view.redact)
    groups = sorted(found, key=lambda one: (-one.number, one.task))
    unique = [one for one in groups if finds_no_other(one, groups)]
    context = {
        "groups": groups,
        "total": sum(one.number for one in groups),
        "cut": len(groups) >= MAX_GROUPS,
        "unique": unique,
    }
    return Page("Failures", "failures.html", context)


def finds_no_other(one: FailureGroup, groups: Sequence[FailureGroup]) -> bool:
    """True if the search text of a group finds no other group: then a bulk action may apply to all that it finds."""
    others = [other for other in groups if other is not one and other.task == one.task]
    return bool(one.search) and not any(one.search.casefold() in other.error.casefold() for other in others)
