"""Draws the state as a page that has exactly the size of the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..._core.job import AttemptOutcome, State
from ..._core.text import one_line
from ..._core.views import by_state, counted_at
from .. import output
from ..queues import limits_of
from ..workers import queues_of, state_of
from .poller import Detail, Snapshot, Watched
from .state import TABLES, TopState

KEYS = "tab table  j/k line  enter more  p pause  c cancel  r retry  / filter  q quit"
KEYS_IN_DETAIL = "esc back  j/k scroll  p pause  c cancel  r retry  q quit"
ALWAYS = 5  # lines of the header and the footer

Cells = list[str | Text]


def frame(state: TopState, width: int, height: int) -> RenderableType:
    """A page of exactly `height` lines, none wider than `width`."""
    room = max(height - ALWAYS, 4)
    body = _detail(state, state.watched, width, room) if state.watched is not None else _tables(state, width, room)
    return Group(*_head(state, width), *body, *_foot(state, width))


def page(state: TopState, width: int) -> RenderableType:
    """A page to print: all lines, no keys."""
    rows = {name: max(len(state.lines(name)), 1) for name in TABLES}
    return Group(*_head(state, width), *(_table(state, name, rows[name], width, live=False) for name in TABLES))


def _head(state: TopState, width: int) -> list[RenderableType]:
    snapshot = state.snapshot
    first = Table.grid(expand=True)
    first.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    first.add_column(no_wrap=True, justify="right")
    first.add_row(
        Text.assemble(("relet ", "bold"), output.plain(snapshot.where)),
        Text(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"), style="dim"),
    )
    return [first, _line(_totals(snapshot), width), _line(_rates(snapshot), width)]


def _totals(snapshot: Snapshot) -> Text:
    text = Text()
    for state in (one for one in State if not one.over):
        number = sum(by_state(queue)[state] for queue in snapshot.queues)
        text.append(f"{number:,}", style=f"bold {output.STYLES[state]}" if number else "dim")
        text.append(f" {state}   ")
    moment = counted_at(snapshot.queues)
    if moment is not None:
        text.append(f"counted {output.since(moment)} ago", style="dim")
    elif any(queue.at_least for queue in snapshot.queues):
        text.append("at least", style="dim")
    return text


def _rates(snapshot: Snapshot) -> Text:
    text = Text()
    for outcome in (one for one in AttemptOutcome if one.is_common):
        rate = snapshot.rates.get(outcome, 0.0)
        text.append(_rate(rate), style=f"bold {output.STYLES.get(outcome, '')}" if rate else "dim")
        text.append(f"/s {outcome}   ")
    alive = [worker for worker in snapshot.workers if not worker.lost]
    slots = sum(worker.slots for worker in alive)
    used = sum(worker.running for worker in alive)
    text.append(f"{used}/{slots} slots", style="" if slots else "bold red")
    return text


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def _foot(state: TopState, width: int) -> list[RenderableType]:
    if state.question is not None:
        line = Text(f"{output.plain(state.question.text)}  y/n", style="bold black on yellow")
    elif state.typing is not None:
        line = Text.assemble(
            ("/", "bold"), output.plain(state.typing), ("█", "dim"), ("  enter applies it, esc discards it", "dim")
        )
    elif state.down_since is not None and state.message is not None:
        why = output.plain(state.message.text.removeprefix(f"{state.snapshot.where}: "))  # the header names the store
        line = Text(f"No data for {output.since(state.down_since)}: {why}", style="bold white on red")
    elif state.message is not None:
        line = Text(output.plain(state.message.text), style="red" if state.message.bad else "green")
    else:
        line = Text.assemble(("filter ", "dim"), output.plain(state.filter)) if state.filter else Text()
    return [_line(line, width), _line(Text(KEYS if state.watched is None else KEYS_IN_DETAIL, style="dim"), width)]


def _line(text: Text, width: int) -> Text:
    text.truncate(max(width, 1), overflow="ellipsis")
    text.no_wrap = True
    return text


# The tables


def _tables(state: TopState, width: int, room: int) -> list[RenderableType]:
    rows = share(room - len(TABLES), [max(len(state.lines(name)), 1) for name in TABLES], state.focus)
    spare = room - len(TABLES) - sum(rows)
    between = 1 if spare >= len(TABLES) - 1 else 0
    drawn: list[RenderableType] = []
    for index, name in enumerate(TABLES):
        drawn += [*([Text()] * between if index else []), _table(state, name, rows[index], width)]
    return [*drawn, *[Text()] * (spare - between * (len(TABLES) - 1))]


def share(room: int, wanted: list[int], first: int) -> list[int]:
    """How many lines each table gets: as many as it wants, or an equal part. `first` gets the remainder first."""
    lines = [0] * len(wanted)
    order = [first, *(index for index in range(len(wanted)) if index != first)]
    while room > 0 and lines != wanted:
        for index in order:
            if room > 0 and lines[index] < wanted[index]:
                lines[index] += 1
                room -= 1
    return lines


def _table(state: TopState, name: str, rows: int, width: int, *, live: bool = True) -> Table:
    lines, focused = state.lines(name), live and name == state.table
    chosen = state.chosen(name) if focused else None
    start = 0 if chosen is None else max(0, min(chosen - rows // 2, len(lines) - rows))
    visible = [index for index, column in enumerate(COLUMNS[name]) if width >= column.min_width]
    title = f"{'▸ ' if focused else '  ' if live else ''}{name.upper()} {len(lines)}"
    style = "bold black on cyan" if focused else "bold white on grey30" if live else "bold"
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style=style, pad_edge=False)
    for index in visible:
        head, size, right, _ = COLUMNS[name][index]
        table.add_column(
            title if index == 0 else head, width=size if size > 0 else None, ratio=-size if size < 0 else None,
            no_wrap=True, overflow="ellipsis", justify="right" if right else "left",
        )  # fmt: skip
    indent = "  " if live else ""
    for index, line in enumerate(lines[start : start + rows], start):
        cells = ROWS[name](state.snapshot, line)
        cells[0] = Text(f"{indent}{cells[0]}")
        table.add_row(*(cells[column] for column in visible), style="reverse" if index == chosen else None)
    if not lines and rows:
        table.add_row(Text(f"{indent}none", style="dim"))
    return table


class Column(NamedTuple):
    """A column of a table. The first column shows the title of the table as its head."""

    head: str
    size: int  # below 0: its share of the remaining width
    right: bool = False
    min_width: int = 0  # the column is left out if the terminal is narrower


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


def _queue(snapshot: Snapshot, one: Any) -> Cells:
    state = Text("paused", style="yellow") if one.paused else Text("")
    failed = Text(f"{one.failed:,}", style="red" if one.failed else "dim")
    name = "all queues" if one.queue == "*" else output.plain(one.queue)
    numbers = [Text(f"{n:,}", style="" if n else "dim") for n in (one.pending, one.queued, one.running)]
    rate = snapshot.queue_rates.get(one.queue, 0.0)
    return [name, state, *numbers, failed, output.seconds(one.oldest), Text(_rate(rate), style="" if rate else "dim"),
            Text(output.plain(limits_of(one)))]  # fmt: skip


def _worker(snapshot: Snapshot, one: Any) -> Cells:
    state = state_of(one)
    style = {"lost": "bold red", "stopping": "yellow"}.get(state, "green")
    bar_length = 10
    used = min(one.running, one.slots)
    full = round(bar_length * used / one.slots) if one.slots > bar_length else used
    slots = Text.assemble(
        ("■" * full, style), ("□" * (min(one.slots, bar_length) - full), "dim"), f" {one.running}/{one.slots}"
    )
    return [
        output.plain(one.name), Text(state, style=style), slots, output.seconds(one.lease),
        output.since(one.started_at), output.since(one.seen_at), Text(output.plain(queues_of(one))),
    ]  # fmt: skip


def _running(snapshot: Snapshot, job: Any) -> Cells:
    left = (job.expires_at - datetime.now(UTC)).total_seconds() if job.expires_at else None
    style = "" if left is None or left > 5 else "yellow" if left > 0 else "bold red"
    progress = output.plain(f"{f'{job.request} asked ' if job.request else ''}{output.progress(job.progress)}")
    return [output.plain(job.task), Text(output.plain(job.queue)), short(job.id), output.since(job.started_at),
            Text(output.seconds(left), style=style), Text(progress)]  # fmt: skip


def _failed(snapshot: Snapshot, job: Any) -> Cells:
    error = Text(output.plain(one_line(job.error)), style="red")
    return [
        output.plain(job.task), Text(output.plain(job.queue)), short(job.id), output.since(job.finished_at),
        f"{job.attempt}/{job.max_attempts}", error,
    ]  # fmt: skip


ROWS = {"queues": _queue, "workers": _worker, "running": _running, "failed": _failed}


def short(job_id: str) -> str:
    """The end of an ID, which is random. The beginning is the time."""
    return f"…{job_id[-12:]}"


# Details of one line


def _detail(state: TopState, watched: Watched, width: int, room: int) -> list[RenderableType]:
    found = state.snapshot.detail
    table, key = watched
    what = {"queues": "queue", "workers": "worker"}.get(table, "job")
    title = Text(f" {what} {output.plain(key)} ".ljust(width), style="bold black on cyan")
    if found is None or found.watched != watched:
        return [_line(title, width), Text(" ...", style="dim"), *[Text()] * (room - 2)]
    lines = _detail_lines(found, width)
    state.scrolled = max(0, min(state.scrolled, len(lines) - (room - 1)))
    visible = lines[state.scrolled : state.scrolled + room - 1]
    return [_line(title, width), *visible, *[Text()] * (room - 1 - len(visible))]


def _detail_lines(found: Detail, width: int) -> list[Text]:
    facts = [(name, output.plain(value)) for name, value in found.facts if value is not None]
    label_width = max(len(name) for name, _ in facts) + 3
    lines: list[Text] = []
    for name, value in facts:
        room = max(width - label_width, 10)
        parts = [value[start : start + room] for start in range(0, len(value), room)] or [""]
        for index, part in enumerate(parts):
            label = f" {name}" if index == 0 else ""
            style = output.style(value) or ("red" if name == "error" else "")
            lines.append(_line(Text.assemble((label.ljust(label_width), "dim"), (part, style)), width))
    if found.lines:
        lines.append(Text())
        texts = [list(found.heads), *(list(map(output.plain, line)) for line in found.lines)]
        widths = output.column_widths(texts)
        for number, row in enumerate(texts):
            cells = [(cell.ljust(size) + "  ", "bold" if number == 0 else output.style(cell))
                     for cell, size in zip(row, widths, strict=True)]  # fmt: skip
            lines.append(_line(Text.assemble(" ", *cells), width))
    return lines
