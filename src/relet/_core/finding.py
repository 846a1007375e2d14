"""The findings of `doctor`, and readable durations, sizes and names."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["ok", "info", "warning", "error"]

_SIZES = ("bytes", "KB", "MB", "GB", "TB")


class Finding(Struct, frozen=True):
    """The result of one check of `doctor`. `advice`: what to do about it; None: nothing.

    `ok`: as it should be. `info`: worth knowing, no action needed. `warning`: it has a cost, now or later. `error`:
    jobs do not run, or may be lost, until it is fixed.
    """

    check: str
    level: Level
    text: str
    advice: str | None = None


def duration(seconds: float) -> str:
    """A duration in its one or two largest units: `42 ms`, `3.5 s`, `12 min`, `5 h 20 min`, `3 d 4 h`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes // 60 % 24} h"


def size(number: float) -> str:
    """A number of bytes: `812 bytes`, `3.4 MB`."""
    for unit in _SIZES[:-1]:
        if number < 1000:
            return f"{number:.0f} bytes" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} {_SIZES[-1]}"


def plain(text: str) -> str:
    """A name from outside, made safe: no control characters for a terminal, nothing that ends a quotation."""
    return "".join(c if c.isprintable() and c not in "'\\" else "?" for c in text[:64])


def listed(names: list[str], limit: int = 5) -> str:
    """The first `limit` names, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
