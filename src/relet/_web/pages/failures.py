"""Failures, grouped by what went wrong."""

from __future__ import annotations

from ..._core.redact import redacted
from ..._core.views import FailureGroup
from .context import Page, View

MOST = 100


def failures(view: View) -> Page:
    """Groups of failed jobs, the largest first."""
    found = redacted(view.client.failures(limit=MOST), view.redact)
    groups = sorted(found, key=lambda one: (-one.number, one.task))
    alone = [
        one for one in groups if one.search and not any(_finds(one, other) for other in groups if other is not one)
    ]
    context = {"groups": groups, "total": sum(one.number for one in groups), "cut": len(groups) >= MOST, "alone": alone}
    return Page("Failures", "failures.html", context)


def _finds(one: FailureGroup, other: FailureGroup) -> bool:
    """Whether the words that find one group find another as well: then nothing is to be done with "all" of it."""
    return one.task == other.task and one.search.casefold() in other.error.casefold()
