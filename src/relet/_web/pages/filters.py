"""Job filters in the URL: of the list of jobs, of its bulk actions and of its links."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...errors import InvalidInput

TEXTS = ("queue", "task", "target", "worker", "error")
MOMENTS = {"from": "created_from", "to": "created_to"}
FIELDS = ("state", *TEXTS, *MOMENTS)


def from_query(query: Mapping[str, str]) -> dict[str, str]:
    """The filters of a URL, as text."""
    return {name: query[name] for name in FIELDS if query.get(name, "").strip()}


def arguments(filters: Mapping[str, str]) -> dict[str, Any]:
    """The filters as keyword arguments of the client. Raises InvalidInput for a wrong timestamp."""
    found: dict[str, Any] = {name: filters[name] for name in TEXTS if name in filters}
    if "state" in filters:
        found["state"] = filters["state"].split(",")
    for name, argument in MOMENTS.items():
        if name in filters:
            found[argument] = moment(name, filters[name])
    return found


def moment(name: str, text: str) -> datetime:
    """A timestamp from a form. Without a time zone it is UTC, as on all pages."""
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{name} must be a timestamp such as 2026-11-16T09:30, not {text[:40]!r}") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def in_words(filters: Mapping[str, str]) -> str:
    """The filters as a phrase: "failed jobs of task charge"."""
    words = f"{filters['state'].replace(',', ' or ')} jobs" if "state" in filters else "jobs"
    for name, preposition in (
        ("task", "of task"),
        ("queue", "in queue"),
        ("target", "of target"),
        ("worker", "at worker"),
        ("error", "with an error that contains"),
        ("from", "created from"),
        ("to", "created before"),
    ):
        if name in filters:
            value = f"\u201c{filters[name]}\u201d" if name == "error" else filters[name]
            words += f" {preposition} {value}"
    return words
