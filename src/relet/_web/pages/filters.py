"""Which jobs, as the URL says it: the filters of the list, of its bulk actions and of its links."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...errors import InvalidInput

TEXTS = ("queue", "task", "target", "worker", "error")
MOMENTS = {"from": "created_from", "to": "created_to"}
FIELDS = ("state", *TEXTS, *MOMENTS)


def given(query: Mapping[str, str]) -> dict[str, str]:
    """The filters that a URL has, as it has them."""
    return {name: query[name] for name in FIELDS if query.get(name, "").strip()}


def arguments(filters: Mapping[str, str]) -> dict[str, Any]:
    """The same as the client takes them, or InvalidInput."""
    found: dict[str, Any] = {name: filters[name] for name in TEXTS if name in filters}
    if "state" in filters:
        found["state"] = filters["state"].split(",")
    for name, argument in MOMENTS.items():
        if name in filters:
            found[argument] = moment(name, filters[name])
    return found


def moment(name: str, text: str) -> datetime:
    """A moment as a form gives it; without a zone it is UTC, which is what all pages show."""
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{name} must be a moment such as 2026-11-16T09:30, not {text[:40]!r}") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def in_words(filters: Mapping[str, str]) -> str:
    """Which jobs, in words: "failed jobs of task charge"."""
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
            said = f"\u201c{filters[name]}\u201d" if name == "error" else filters[name]
            words += f" {preposition} {said}"
    return words
