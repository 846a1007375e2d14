"""The audit trail."""

from __future__ import annotations

import json

from ..._core.redact import redacted
from ..._core.verbs import VERBS
from .page import Page, PageContext

AT_ONCE = 100


def audit(view: PageContext) -> Page:
    """The audit trail, newest first."""
    cursor = view.query.get("cursor") or None
    page = redacted(view.client.audit(limit=AT_ONCE, cursor=cursor), view.redact)
    entries = [(one, _detail(one.detail), _about(one.what)) for one in page.entries]
    return Page("Audit", "audit.html", {"entries": entries, "next_cursor": page.cursor, "cursor": cursor})


def _detail(detail: dict[str, object]) -> str:
    return ", ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, default=str)}"
        for name, value in detail.items()
    )


def _about(what: str) -> str:
    """The kind of the entry's subject, which decides the page it links to."""
    if what in VERBS:
        return "job"
    return next((word for word in ("queue", "schedule") if word in what), "job")
