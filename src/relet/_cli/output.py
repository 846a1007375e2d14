"""Print tables for people and JSON for programs. Control characters never reach a terminal.

On a terminal rich draws the tables, if it is installed (`relet[cli]`). Elsewhere they are aligned text, the same on
every machine and easy to grep.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from .._core.job import Job, Progress
from .._core.text import duration, printable

WIDE = 110  # columns of a terminal
SHORT_ID = 8  # digits

STYLES: Mapping[str, str] = {
    "running": "cyan", "queued": "blue", "paused": "yellow", "failed": "red", "succeeded": "green", "cancelled": "dim",
    "pending": "", "retried": "yellow", "lost": "red", "ok": "green", "info": "blue", "warning": "yellow",
    "error": "bold red", "stopping": "yellow", "yes": "yellow",
}  # fmt: skip


def table(heads: Sequence[str], lines: Sequence[Sequence[object]], *, one_line: bool = False) -> None:
    """Print columns as wide as their content, with numbers aligned right.

    `one_line`: cut cells that do not fit the terminal; else they are folded.
    """
    texts = [list(map(plain, line)) for line in lines]
    numbers = [_is_number(lines, column) for column in range(len(heads))]
    if on_terminal() and _draw(heads, texts, numbers, one_line):
        return
    rows = [list(heads), *texts]
    widths = column_widths(rows)
    for row in rows:
        cells = zip(row, widths, numbers, strict=True)
        print("  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip())


def _draw(heads: Sequence[str], texts: list[list[str]], numbers: list[bool], one_line: bool) -> bool:
    """Draw the table with rich, which folds wide cells, without empty columns. Returns False without rich."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    used = [column for column in range(len(heads)) if not texts or _is_used(texts, column)]
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    for column in used:
        justify: Literal["left", "right"] = "right" if numbers[column] else "left"
        overflow: Literal["ellipsis", "fold"] = "ellipsis" if one_line else "fold"
        grid.add_column(heads[column], justify=justify, overflow=overflow, no_wrap=one_line or heads[column] == "ID")
    for row in texts:
        # Text, not str: rich would interpret markup in a str.
        grid.add_row(*(Text(row[column], style=style(row[column])) for column in used))
    Console().print(grid)
    return True


def facts(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and values, one a line. Values of None are left out."""
    present = [(name, plain(value)) for name, value in pairs if value is not None]
    width = max(len(name) for name, _ in present)
    for name, value in present:
        print(f"{name.ljust(width)}  {value}")


def as_json(value: Any) -> None:
    """Print one JSON document. Payloads and results are values in it, not text."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(_with_values(value))).decode() + "\n")


def _with_values(value: Any) -> Any:
    """Replace the JSON text in the fields of records (`payload_json`, ...) by its value."""
    match value:
        case msgspec.Struct():
            names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
            return {label: _field(name, getattr(value, name)) for name, label in names}
        case dict():
            return {name: _with_values(one) for name, one in value.items()}
        case list() | tuple():
            return [_with_values(one) for one in value]
    return value


def _field(name: str, value: Any) -> Any:
    is_text = name.endswith("_json") and isinstance(value, str)
    return msgspec.Raw(value.encode()) if is_text else _with_values(value)


def plain(value: object) -> str:
    """Format a value as one line. Payloads and errors may contain control characters, which become U+FFFD."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:g}"
    return printable(str(value).replace("\n", " ").replace("\t", " "))


def lines(value: str) -> str:
    """Format text of several lines, each as `plain` does."""
    return "\n".join("\t".join(map(plain, line.split("\t"))) for line in value.splitlines())


def on_terminal() -> bool:
    return sys.stdout.isatty()


def is_narrow() -> bool:
    """Whether a row with whole ids and times would not fit the terminal."""
    return on_terminal() and shutil.get_terminal_size().columns < WIDE


def short_id(id: str) -> str:
    """The end of an id, which tells jobs apart: the beginning is the time. Commands accept it in place of the id."""
    return id[-SHORT_ID:]


def style(cell: str) -> str:
    """The colour of a state or outcome; empty for other text."""
    return STYLES.get(cell.partition(" ")[0], "") if len(cell) < 40 else ""


def progress(value: Progress | None) -> str:
    """Format the progress that a handler reported: `40% (4/10) rows written`."""
    if value is None:
        return ""
    share = f"{value.done:g}"
    if value.total:
        share = f"{100 * value.done / value.total:.0f}% ({value.done:g}/{value.total:g})"
    return f"{share} {value.note}" if value.note else share


def state(job: Job[Any]) -> str:
    """A job's state, with a pending request or the reason why it waits."""
    if job.request is not None:
        return f"{job.state} ({job.request} asked)"
    return f"{job.state} ({'signal' if job.awaits else job.wait})" if job.wait else str(job.state)


def count(number: int, at_least: bool) -> int | str:
    """A number; with a plus if counting stopped there."""
    return f"{number}+" if at_least else number


def seconds(number: float | None) -> str:
    """Format a duration for a table: `850ms`, `12s`, `4m5s`."""
    return "" if number is None else duration(number, compact=True)


def since(moment: datetime | None) -> str:
    """How long ago a time was."""
    return "" if moment is None else seconds(max((datetime.now(UTC) - moment).total_seconds(), 0.0))


def until(moment: datetime | None) -> str:
    """How far ahead a time is; negative if it is past."""
    return "" if moment is None else seconds((moment - datetime.now(UTC)).total_seconds())


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The length of the longest cell of each column."""
    return [max(map(len, cells)) for cells in zip(*rows, strict=True)]


def _is_number(lines: Sequence[Sequence[object]], column: int) -> bool:
    return bool(lines) and all(line[column] is None or isinstance(line[column], int | float) for line in lines)


def _is_used(texts: list[list[str]], column: int) -> bool:
    return any(row[column] for row in texts)
