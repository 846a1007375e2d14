"""Draws a desk: a page that is as large as the terminal, whatever size that has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..._core.job import AttemptOutcome, State
from ..._core.views import by_state, counted_at
from .. import output
from ..queues import limits_of
from ..workers import queues_of, state_of
from .poller import Detail, Snapshot, Watched
from .state import TABLES, Desk

KEYS = "tab table  j/k line  enter more  p pause  c cancel  r retry  / filter  q quit"
KEYS_IN_DETAIL = "esc back  j/k scroll  p pause  c cancel  r retry  q quit"
ALWAYS = 5  # lines of the head and the foot

Cells = list[str | Text]


def frame(desk: Desk, width: int, height: int) -> RenderableType:
    """What a terminal shows: exactly so many lines, none wider than it is."""
    room = max(height - ALWAYS, 4)
    body = _detail(desk, desk.watched, width, room) if desk.watched is not None else _tables(desk, width, room)
    return Group(*_head(desk, width), *body, *_foot(desk, width))


def page(desk: Desk, width: int) -> RenderableType:
    """The same for paper: all lines, no keys."""
    rows = {name: max(len(desk.lines(name)), 1) for name in TABLES}
    return Group(*_head(desk, width), *(_table(desk, name, rows[name], width, live=False) for name in TABLES))


def _head(desk: Desk, width: int) -> list[RenderableType]:
    seen = desk.snapshot
    first = Table.grid(expand=True)
    first.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    first.add_column(no_wrap=True, justify="right")
    first.add_row(
        Text.assemble(("relet ", "bold"), output.plain(seen.where)),
        Text(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"), style="dim"),
    )
    return [first, _line(_totals(seen), width), _line(_rates(seen), width)]


def _totals(seen: Snapshot) -> Text:
    text = Text()
    for state in (one for one in State if not one.over):
        number = sum(by_state(queue)[state] for queue in seen.queues)
        text.append(f"{number:,}", style=f"bold {output.STYLES[state]}" if number else "dim")
        text.append(f" {state}   ")
    moment = counted_at(seen.queues)
    if moment is not None:
        text.append(f"counted {output.since(moment)} ago", style="dim")
    elif any(queue.at_least for queue in seen.queues):
        text.append("at least", style="dim")
    return text


def _rates(seen: Snapshot) -> Text:
    text = Text()
    for how in (one for one in AttemptOutcome if one.is_common):
        rate = seen.rates.get(how, 0.0)
        text.append(_rate(rate), style=f"bold {output.STYLES[how]}" if rate else "dim")
        text.append(f"/s {how}   ")
    there = [worker for worker in seen.workers if not worker.lost]
    slots, used = sum(worker.slots for worker in there), sum(worker.running for worker in there)
    text.append(f"{used}/{slots} slots", style="" if slots else "bold red")
    return text


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def _foot(desk: Desk, width: int) -> list[RenderableType]:
    if desk.question is not None:
        said = Text(f"{output.plain(desk.question.text)}  y/n", style="bold black on yellow")
    elif desk.typing is not None:
        said = Text.assemble(
            ("/", "bold"), output.plain(desk.typing), ("█", "dim"), ("  enter keeps it, esc drops it", "dim")
        )
    elif desk.down_since is not None and desk.said is not None:
        why = output.plain(desk.said.text.removeprefix(f"{desk.snapshot.where}: "))  # which stands above
        said = Text(f"nothing seen for {output.since(desk.down_since)}: {why}", style="bold white on red")
    elif desk.said is not None:
        said = Text(output.plain(desk.said.text), style="red" if desk.said.bad else "green")
    else:
        said = Text.assemble(("filter ", "dim"), output.plain(desk.filter)) if desk.filter else Text()
    return [_line(said, width), _line(Text(KEYS if desk.watched is None else KEYS_IN_DETAIL, style="dim"), width)]


def _line(text: Text, width: int) -> Text:
    text.truncate(max(width, 1), overflow="ellipsis")
    text.no_wrap = True
    return text


# The tables


def _tables(desk: Desk, width: int, room: int) -> list[RenderableType]:
    rows = share(room - len(TABLES), [max(len(desk.lines(name)), 1) for name in TABLES], desk.focus)
    spare = room - len(TABLES) - sum(rows)
    between = 1 if spare >= len(TABLES) - 1 else 0
    drawn: list[RenderableType] = []
    for at, name in enumerate(TABLES):
        drawn += [*([Text()] * between if at else []), _table(desk, name, rows[at], width)]
    return [*drawn, *[Text()] * (spare - between * (len(TABLES) - 1))]


def share(room: int, wanted: list[int], first: int) -> list[int]:
    """How many lines each table gets: as many as it wants, or a fair part; the focused one before others."""
    given = [0] * len(wanted)
    order = [first, *(at for at in range(len(wanted)) if at != first)]
    while room > 0 and given != wanted:
        for at in order:
            if room > 0 and given[at] < wanted[at]:
                given[at] += 1
                room -= 1
    return given


def _table(desk: Desk, name: str, rows: int, width: int, *, live: bool = True) -> Table:
    lines, focused = desk.lines(name), live and name == desk.table
    chosen = desk.chosen(name) if focused else None
    start = 0 if chosen is None else max(0, min(chosen - rows // 2, len(lines) - rows))
    shown = [at for at, column in enumerate(COLUMNS[name]) if width >= column.least]
    title = f"{'▸ ' if focused else '  ' if live else ''}{name.upper()} {len(lines)}"
    style = "bold black on cyan" if focused else "bold white on grey30" if live else "bold"
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style=style, pad_edge=False)
    for at in shown:
        head, size, right, _ = COLUMNS[name][at]
        table.add_column(
            title if at == 0 else head, width=size if size > 0 else None, ratio=-size if size < 0 else None,
            no_wrap=True, overflow="ellipsis", justify="right" if right else "left",
        )  # fmt: skip
    indent = "  " if live else ""
    for at, line in enumerate(lines[start : start + rows], start):
        cells = ROWS[name](desk.snapshot, line)
        cells[0] = Text(f"{indent}{cells[0]}")
        table.add_row(*(cells[column] for column in shown), style="reverse" if at == chosen else None)
    if not lines and rows:
        table.add_row(Text(f"{indent}none", style="dim"))
    return table


class Column(NamedTuple):
    """A column of a table. The first one has the table's title for its head."""

    head: str
    size: int  # below 0: its part of what is left
    right: bool = False
    least: int = 0  # it is left out where the terminal is narrower than this


COLUMNS: dict[str, list[Column]] = {
    "queues": [
        Column("", -3), Column("", 6), Column("PENDING", 8, True), Column("QUEUED", 8, True), Column("RUN", 5, True),
        Column("FAILED", 6, True), Column("OLDEST", 7, True, 70), Column("/S", 6, True, 60),
        Column("LIMITS", -2, False, 80),
    ],
    "workers": [
        Column("", -4), Column("", 8), Column("SLOTS", 18), Column("LEASE", 5, True, 75), Column("UP", 7, True, 70),
        Column("SEEN", 5, True, 60), Column("QUEUES", -2, False, 80),
    ],
    "running": [
        Column("", -2), Column("QUEUE", 8, False, 75), Column("JOB", 13, False, 60), Column("RUNS", 7, True),
        Column("LEASE", 6, True), Column("PROGRESS", -3),
    ],
    "failed": [
        Column("", -2), Column("QUEUE", 8, False, 75), Column("JOB", 13, False, 60), Column("AGO", 7, True),
        Column("TRIES", 6, True, 50), Column("ERROR", -3),
    ],
}  # fmt: skip


def _queue(seen: Snapshot, one: Any) -> Cells:
    state = Text("paused", style="yellow") if one.paused else Text("")
    failed = Text(f"{one.failed:,}", style="red" if one.failed else "dim")
    name = "all queues" if one.queue == "*" else output.plain(one.queue)
    numbers = [Text(f"{n:,}", style="" if n else "dim") for n in (one.pending, one.queued, one.running)]
    rate = seen.queue_rates.get(one.queue, 0.0)
    return [name, state, *numbers, failed, output.seconds(one.oldest), Text(_rate(rate), style="" if rate else "dim"),
            Text(output.plain(limits_of(one)))]  # fmt: skip


def _worker(seen: Snapshot, one: Any) -> Cells:
    state = state_of(one)
    style = {"lost": "bold red", "stopping": "yellow"}.get(state, "green")
    most = 10
    used = min(one.running, one.slots)
    full = round(most * used / one.slots) if one.slots > most else used
    slots = Text.assemble(
        ("■" * full, style), ("□" * (min(one.slots, most) - full), "dim"), f" {one.running}/{one.slots}"
    )
    return [
        output.plain(one.name), Text(state, style=style), slots, output.seconds(one.lease),
        output.since(one.started_at), output.since(one.seen_at), Text(output.plain(queues_of(one))),
    ]  # fmt: skip


def _running(seen: Snapshot, job: Any) -> Cells:
    left = (job.expires_at - datetime.now(UTC)).total_seconds() if job.expires_at else None
    style = "" if left is None or left > 5 else "yellow" if left > 0 else "bold red"
    how = output.plain(f"{f'{job.request} asked ' if job.request else ''}{output.progress(job.progress)}")
    return [output.plain(job.task), Text(output.plain(job.queue)), short(job.id), output.since(job.started_at),
            Text(output.seconds(left), style=style), Text(how)]  # fmt: skip


def _failed(seen: Snapshot, job: Any) -> Cells:
    error = Text(output.plain(output.first_line(job.error)), style="red")
    return [
        output.plain(job.task), Text(output.plain(job.queue)), short(job.id), output.since(job.finished_at),
        f"{job.attempt}/{job.max_attempts}", error,
    ]  # fmt: skip


ROWS = {"queues": _queue, "workers": _worker, "running": _running, "failed": _failed}


def short(job_id: str) -> str:
    """The end of an id: it tells jobs apart, the beginning is the time."""
    return f"…{job_id[-12:]}"


# One thing


def _detail(desk: Desk, watched: Watched, width: int, room: int) -> list[RenderableType]:
    found = desk.snapshot.detail
    table, key = watched
    what = {"queues": "queue", "workers": "worker"}.get(table, "job")
    title = Text(f" {what} {output.plain(key)} ".ljust(width), style="bold black on cyan")
    if found is None or found.watched != watched:
        return [_line(title, width), Text(" ...", style="dim"), *[Text()] * (room - 2)]
    lines = _detail_lines(found, width)
    desk.scrolled = max(0, min(desk.scrolled, len(lines) - (room - 1)))
    shown = lines[desk.scrolled : desk.scrolled + room - 1]
    return [_line(title, width), *shown, *[Text()] * (room - 1 - len(shown))]


def _detail_lines(found: Detail, width: int) -> list[Text]:
    there = [(name, output.plain(value)) for name, value in found.facts if value is not None]
    across = max(len(name) for name, _ in there) + 3
    lines: list[Text] = []
    for name, value in there:
        room = max(width - across, 10)
        parts = [value[at : at + room] for at in range(0, len(value), room)] or [""]
        for at, part in enumerate(parts):
            label = f" {name}" if at == 0 else ""
            style = output.style(value) or ("red" if name == "error" else "")
            lines.append(_line(Text.assemble((label.ljust(across), "dim"), (part, style)), width))
    if found.lines:
        lines.append(Text())
        texts = [list(found.heads), *([output.plain(cell) for cell in line] for line in found.lines)]
        widths = [max(len(row[at]) for row in texts) for at in range(len(found.heads))]
        for number, row in enumerate(texts):
            cells = [(cell.ljust(size) + "  ", "bold" if number == 0 else output.style(cell))
                     for cell, size in zip(row, widths, strict=True)]  # fmt: skip
            lines.append(_line(Text.assemble(" ", *cells), width))
    return lines
