"""Job filters in the URL: of the list of jobs, of its bulk actions and of its links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..._core.filters import FILTERS
from ...errors import InvalidInput


def from_query(query: Mapping[str, str]) -> dict[str, str]:
    """The filters of a URL, as text."""
    return {name: query[name] for name in FILTERS if query.get(name, "").strip()}


def arguments(filters: Mapping[str, str]) -> dict[str, Any]:
    """The filters as keyword arguments of the client. Raises InvalidInput for a wrong timestamp."""
    return {name: _argument(name, text) for name, text in filters.items()}


def _argument(name: str, text: str) -> Any:
    one = FILTERS[name]
    if one.comparison == "one_of":
        return text.split(",")
    if one.comparison == "has":
        return _form_arguments(text)
    return _form_time(name, text) if one.is_time else text


def _form_arguments(text: str) -> str | dict[str, Any]:
    """Arguments as JSON, or as the list of jobs displays them: account="acct-7", cents=500. Quotes may be left out."""
    if text.lstrip().startswith("{"):
        return text
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f'arguments must be such as account=7, or JSON: {{"account": 7}}, not {text[:80]!r}')
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value.strip()
    return found


def _form_time(name: str, text: str) -> datetime:
    """A timestamp that a user typed, in any form of ISO 8601, or that the date field of a browser sends.

    Such a field sends no time zone, so the time is then UTC, as on all pages. The API (`api.parsing`) requires one.
    """
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{name} must be a timestamp such as 2026-11-16T09:30, not {text[:40]!r}") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def in_words(filters: Mapping[str, str]) -> str:
    """The filters as a phrase: "failed jobs of task charge"."""
    words = f"{filters['state'].replace(',', ' or ')} jobs" if "state" in filters else "jobs"
    for name, one in FILTERS.items():
        if name in filters and one.phrase:
            value = f"\u201c{filters[name]}\u201d" if one.comparison == "contains" else filters[name]
            words += f" {one.phrase} {value}"
    return words
