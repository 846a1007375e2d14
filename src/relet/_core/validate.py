"""Checks of names, numbers, durations and times. Each returns the value to store, or raises InvalidInput."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from ..errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9_.:/@+-]{1,128}", re.ASCII)
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}", re.ASCII)
MAX_SECONDS = 10 * 366 * 86400.0  # ten years
YEAR_2100 = 4_102_444_800.0

Seconds = float | timedelta  # a duration, as an argument of callers


def name(kind: str, value: object) -> str:
    """A queue's or task's name: letters, digits and _ . : / @ + -, at most 128 of them."""
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    raise InvalidInput(f"{kind} must be 1 to 128 letters, digits or _ . : / @ + -, not {value!r:.80}")


def text(kind: str, value: object) -> str:
    """A target or unique key: any printable text of 1 to 512 characters that both stores accept."""
    if isinstance(value, str) and 1 <= len(value) <= 512 and value.isprintable():
        return value  # isprintable is false for control characters and lone surrogates
    raise InvalidInput(f"{kind} must be 1 to 512 printable characters, not {value!r:.80}")


def schema(value: object) -> str:
    """The name of a PostgreSQL schema. SQL quotes it as well."""
    if isinstance(value, str) and SCHEMA.fullmatch(value):
        return value
    raise InvalidInput(f"a schema is named by 1 to 48 of a-z 0-9 _, not starting with a digit, not {value!r:.80}")


def integer(kind: str, value: object, low: int, high: int) -> int:
    """An integer from `low` to `high`. True and 3.0 are refused."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise InvalidInput(f"{kind} must be a whole number from {low} to {high}, not {value!r}")


def seconds(kind: str, value: object, *, minimum: float = 0.0, maximum: float = MAX_SECONDS) -> float:
    """A duration in seconds, from a number or a timedelta."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, int | float) and not isinstance(value, bool) and minimum <= value <= maximum:
        return float(value)
    hint = "; a timedelta will do, too" if isinstance(value, str) else ""
    raise InvalidInput(f"{kind} must be seconds from {minimum:g} to {maximum:.10g}, not {value!r}{hint}")


def timestamp(kind: str, value: object) -> float:
    """A time as seconds since 1970, from an aware datetime."""
    if not isinstance(value, datetime):
        raise InvalidInput(f"{kind} must be a datetime with a timezone, not {value!r}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInput(f"{kind} must have a timezone (datetime.now(timezone.utc), say): {value!r} has none")
    try:
        stamp = value.astimezone(UTC).timestamp()
    except (OverflowError, ValueError):
        stamp = math.inf
    if not 0 <= stamp < YEAR_2100:
        raise InvalidInput(f"{kind} must lie between 1970 and 2100: {value.isoformat()} does not")
    return stamp


def one_of(kind: str, value: object, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if isinstance(value, str) and value in allowed:
        return value
    raise InvalidInput(f"{kind} must be one of {', '.join(allowed)}, not {value!r}")
