"""Formats values for people: untrusted text made safe to display, numbers, durations and timestamps."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ..._core.codecs import codec_of
from ..._core.job import Job
from ..._core.redact import Redact, without_passwords
from ..._core.text import duration as format_duration

LINE = 120  # characters of a text in a list
WHOLE = 64 * 1024  # characters of a text in a block


class _Pictures(dict[int, str]):
    """Maps each character to its visible form. Computes an entry at its first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        picture = char if char.isprintable() or char in "\n\t" else _picture(char)
        if len(self) < 20_000:
            self[code] = picture
        return picture


_pictures = _Pictures()


def visible(text: str) -> str:
    """The text with invisible characters, and those that change the writing direction, replaced by visible ones."""
    return text if text.isprintable() else text.translate(_pictures)


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if unicodedata.category(char) == "Zs":
        return " "
    return {0x7F: "\u2421", 0x2028: "\u2424", 0x2029: "\u2424"}.get(code) or f"\u27e8U+{code:04X}\u27e9"


def visible_line(text: str | None, limit: int = LINE) -> str:
    """The first non-blank line, shortened to `limit`.

    Unlike `_core.text.one_line`, which is for terminals and logs, it shows which character is invisible, and hides
    passwords. It does so before it shortens the line: a URL that is cut within its password is not recognized.
    """
    for line in (text or "")[: limit * 20].splitlines():
        if line.strip():
            return cut(visible(without_passwords(line.strip())), limit)
    return ""


def cut(text: str, limit: int) -> str:
    """The text shortened to `limit` characters, with an ellipsis at the end."""
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def middle(text: str, limit: int) -> str:
    """The text shortened in the middle, because names often differ only at the end."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}\u2026{text[-tail:]}"


def whole(text: str, limit: int = WHOLE) -> str:
    """A text for a block. If it is longer than `limit`, a note says how much is missing."""
    if len(text) <= limit:
        return visible(without_passwords(text))
    return f"{visible(without_passwords(text[:limit]))}\n\u2026 {len(text) - limit:,} more characters are not shown"


def pretty(text: str) -> str:
    """JSON text with line breaks. Text that is not JSON, or is nested too deeply, stays unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def arguments_line(job: Job[Any], redact: Redact, limit: int = 200) -> str:
    """The arguments of a job on one line: account="acct-7", cents=500. Empty if a codec encodes them."""
    if codec_of(job.payload_json) is not None or len(job.payload_json) > WHOLE:
        return ""
    try:
        arguments = json.loads(redact(job.payload_json))
        if isinstance(arguments, dict):
            pairs = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
            return cut(", ".join(pairs), limit)
        return cut(json.dumps(arguments, ensure_ascii=False), limit)
    except (ValueError, RecursionError):
        return ""


def arguments_of(jobs: Iterable[Job[Any]], redact: Redact) -> dict[str, str]:
    """The line of arguments of each job, by its id."""
    return {job.id: arguments_line(job, redact) for job in jobs}


def json_source(value: object) -> str:
    """JSON text for a field that is edited. Invisible characters are escaped, so that the user sees and keeps them."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def number(value: float) -> str:
    """12,345"""
    return f"{value:,.0f}"


def short_number(value: float) -> str:
    """12.3k"""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 0.99995:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def capped(value: int, limit: int = 10_000) -> str:
    """A count that stopped at `limit` + 1: 10,000+"""
    return f"{limit:,}+" if value > limit else f"{value:,}"


def sentence(text: str) -> str:
    """The text with its first letter capitalized."""
    return text[:1].upper() + text[1:]


def many(value: int, one: str, several: str = "") -> str:
    """1 job, 2 jobs"""
    return f"{value:,} {one if value == 1 else several or one + 's'}"


def duration(seconds: float | None) -> str:
    """A duration, or a dash."""
    return "\u2013" if seconds is None else format_duration(seconds)


def about(seconds: float) -> str:
    """A duration in one unit, for times that keep changing: smaller units would only flicker."""
    seconds = abs(seconds)
    for size, unit in ((86400 * 1.5, "d"), (5400, "h"), (90, "min")):
        if seconds >= size:
            per = {"d": 86400, "h": 3600, "min": 60}[unit]
            return f"{seconds / per:.0f} {unit}"
    return f"{seconds:.0f} s"


def ago(moment: datetime | None, now: datetime) -> str:
    """5 min ago, in 3 s"""
    if moment is None:
        return "\u2013"
    passed = (now - moment).total_seconds()
    if abs(passed) < 0.5:
        return "now"
    return f"{about(passed)} ago" if passed > 0 else f"in {about(passed)}"


def iso(moment: datetime) -> str:
    """2026-11-16T06:20:11.000+00:00, for the scripts of the page"""
    return moment.isoformat(timespec="milliseconds")


def clock(moment: datetime | None, *, fraction: bool = False) -> str:
    """2026-11-16 06:20:11 UTC"""
    if moment is None:
        return "\u2013"
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{moment.microsecond // 1000:03d} UTC" if fraction else f"{text} UTC"
