"""Text for people: durations, sizes, lists of names, and untrusted text that is safe on a terminal and in a log."""

from __future__ import annotations

from collections.abc import Sequence

MAX_LINE = 300
MAX_TYPE_NAME = 512
_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
_SIZES = ("bytes", "KB", "MB", "GB", "TB")


def type_name(kind: type[BaseException]) -> str:
    """The class of an exception as module and name, such as `builtins.ValueError`."""
    return f"{kind.__module__}.{kind.__qualname__}"[:MAX_TYPE_NAME]


def duration(seconds: float, *, compact: bool = False) -> str:
    """A duration in its two largest units: `850 ms`, `3.5 s`, `3 min 20 s`, `2 d 4 h`; compact: `850ms`, `3m20s`."""
    text = f"-{_duration(-seconds)}" if seconds < 0 else _duration(seconds)
    return text.replace("min", "m").replace(" ", "") if compact else text


def _duration(seconds: float) -> str:
    if seconds < 0.0005:
        return "0 s"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.00995 else f"{seconds * 1000:.1f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    length, unit, smaller, smaller_unit = next(one for one in _UNITS if whole >= one[0])
    rest = whole % length // smaller
    return f"{whole // length} {unit}" + (f" {rest} {smaller_unit}" if rest else "")


def size(number: float) -> str:
    """A number of bytes: `812 bytes`, `3.4 MB`."""
    for unit in _SIZES[:-1]:
        if number < 1000:
            return f"{number:.0f} bytes" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} {_SIZES[-1]}"


def listed(names: Sequence[str], limit: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def series(names: Sequence[str], word: str = "and") -> str:
    """Names as a sentence has them: `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def printable(text: str, replacement: str = "\ufffd") -> str:
    """The text without control characters, which a terminal would obey."""
    return text if text.isprintable() else "".join(char if char.isprintable() else replacement for char in text)


def one_line(text: str | None, limit: int = MAX_LINE) -> str:
    """The first line that is not blank, printable, and cut at `limit` characters."""
    lines = (text or "").lstrip()[: limit + 1].splitlines() or [""]
    line = lines[0].rstrip()
    return printable(line if len(line) <= limit else f"{line[:limit]}...")


def quotable(name: str) -> str:
    """A name that an operator or another program chose, safe between quotation marks in a message."""
    return printable(name[:64], "?").replace("'", "?").replace("\\", "?")
