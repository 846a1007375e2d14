"""What commands print: tables for people, JSON for programs. Nothing that a terminal would obey gets through.

On a terminal tables are drawn by rich, if it is installed (`relet[cli]`). Anywhere else they are aligned text, the
same on every machine, good to grep.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from .._core.job import Job, Progress

STYLES: Mapping[str, str] = {
    "running": "cyan", "queued": "blue", "paused": "yellow", "failed": "red", "succeeded": "green", "cancelled": "dim",
    "pending": "", "retried": "yellow", "lost": "red", "ok": "green", "info": "blue", "warning": "yellow",
    "error": "bold red", "stopping": "yellow", "yes": "yellow",
}  # fmt: skip


def table(heads: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Columns as wide as they need to be; numbers to the right."""
    texts = [[plain(cell) for cell in line] for line in lines]
    numbers = [_is_number([line[column] for line in lines]) for column in range(len(heads))]
    if on_terminal() and _drawn(heads, texts, numbers):
        return
    widths = [max(len(row[column]) for row in [list(heads), *texts]) for column in range(len(heads))]
    for row in [list(heads), *texts]:
        cells = zip(row, widths, numbers, strict=True)
        print("  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip())


def _drawn(heads: Sequence[str], texts: list[list[str]], numbers: list[bool]) -> bool:
    """The same by rich, which folds what is too wide, without empty columns; False where rich is not installed."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    used = [column for column in range(len(heads)) if not texts or any(row[column] for row in texts)]
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    for column in used:
        justify: Literal["left", "right"] = "right" if numbers[column] else "left"
        drawn.add_column(heads[column], justify=justify, overflow="fold", no_wrap=heads[column] == "ID")
    for row in texts:
        # As Text, not as str: whatever looks like markup is no markup.
        drawn.add_row(*(Text(row[column], style=style(row[column])) for column in used))
    Console().print(drawn)
    return True


def facts(pairs: Sequence[tuple[str, object]]) -> None:
    """One thing in detail; what is not there is not mentioned."""
    there = [(name, plain(value)) for name, value in pairs if value is not None]
    width = max(len(name) for name, _ in there)
    for name, value in there:
        print(f"{name.ljust(width)}  {value}")


def as_json(value: Any) -> None:
    """The same for programs: one document."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")


def plain(value: object) -> str:
    """A value as one line of text. What a payload or an error may contain must not move the cursor of a terminal."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:g}"
    return "".join(
        letter if letter.isprintable() else "\ufffd" for letter in str(value).replace("\n", " ").replace("\t", " ")
    )


def lines(text: str) -> str:
    """The same of text that may have several lines."""
    return "\n".join("\t".join(plain(part) for part in line.split("\t")) for line in text.splitlines())


def on_terminal() -> bool:
    """Whether somebody is looking."""
    return sys.stdout.isatty()


def style(cell: str) -> str:
    """The colour of a word such as a state; none of any other text."""
    return STYLES.get(cell.partition(" ")[0], "") if len(cell) < 40 else ""


def progress(said: Progress | None) -> str:
    """How far a handler says that it is: `40% (4/10) rows written`."""
    if said is None:
        return ""
    share = f"{100 * said.done / said.total:.0f}% ({said.done:g}/{said.total:g})" if said.total else f"{said.done:g}"
    return f"{share} {said.note}" if said.note else share


def state(job: Job[Any]) -> str:
    """A job's state, and what it waits for."""
    if job.request is not None:
        return f"{job.state} ({job.request} asked)"
    return f"{job.state} ({'signal' if job.awaits else job.wait})" if job.wait else str(job.state)


def seconds(number: float | None) -> str:
    """A duration that can be taken in at a glance: `850ms`, `12s`, `4m 05s`, `3h 12m`, `2d 04h`."""
    if number is None:
        return ""
    if number == 0:
        return "0s"
    if number < 0:
        return f"-{seconds(-number)}"
    if number < 1:
        return f"{number * 1000:.0f}ms"
    if number < 60:
        return f"{number:.1f}s" if number < 10 else f"{number:.0f}s"
    for unit, below, large, small in ((60, 3600, "m", "s"), (3600, 86400, "h", "m"), (86400, 1e12, "d", "h")):
        if number < below:
            part = {60: 1, 3600: 60, 86400: 3600}[unit]
            return f"{int(number // unit)}{large} {int(number % unit // part):02}{small}"
    return "for ever"


def since(moment: datetime | None) -> str:
    """How long ago."""
    return "" if moment is None else seconds(max((datetime.now(UTC) - moment).total_seconds(), 0.0))


def until(moment: datetime | None) -> str:
    """How far ahead; what is past is overdue."""
    return "" if moment is None else seconds((moment - datetime.now(UTC)).total_seconds())


def first_line(text: str | None) -> str:
    """Of an error: its first line, which names it."""
    return (text or "").strip().partition("\n")[0]


def _is_number(cells: Sequence[object]) -> bool:
    return bool(cells) and all(cell is None or isinstance(cell, int | float) for cell in cells)
