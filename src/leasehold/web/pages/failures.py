"""Failures, grouped by what went wrong."""

from __future__ import annotations

from .view import Page, View

MOST = 100


def failures(view: View) -> Page:
    """Groups of failed jobs, the largest first."""
    groups = sorted(view.client.failures(limit=MOST), key=lambda one: (-one.number, one.task))
    context = {"groups": groups, "total": sum(one.number for one in groups), "cut": len(groups) >= MOST}
    return Page("Failures", "failures.html", context)
