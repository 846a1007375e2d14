"""Targets: the job that holds each, and the jobs in line behind it."""

from __future__ import annotations

from .page import Page, PageContext

AT_ONCE = 50
LINE = 100


def targets(view: PageContext) -> Page:
    """All targets that are held or waited for; with `name` in the URL, the page of that target."""
    if "name" in view.query:
        return target(view, view.query["name"])
    cursor = view.query.get("cursor") or None
    page = view.client.targets(limit=AT_ONCE, cursor=cursor)
    context = {"targets": page.targets, "next_cursor": page.cursor, "cursor": cursor}
    return Page("Targets", "targets.html", context)


def target(view: PageContext, target: str) -> Page:
    """One target: its holder, and the jobs in line behind it, in order."""
    found = view.client.target(target, limit=LINE)
    context = {
        "found": found,
        "over": view.client.jobs(target=target, state=["succeeded", "cancelled"], limit=10, scan=5000).jobs,
    }
    return Page(f"Target {target}", "target.html", context)
