"""What commands print: tables for people, JSON for programs. Nothing that a terminal would obey gets through."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ..core.job import Job, Progress


def table(heads: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Columns as wide as they need to be."""
    texts = [[plain(cell) for cell in line] for line in lines]
    widths = [max(len(row[column]) for row in [list(heads), *texts]) for column in range(len(heads))]
    for row in [list(heads), *texts]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


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
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(value).replace("\n", " "))


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
