"""Runs the cells of a plan one after the other, shows progress, and records figures, errors and skipped cells."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bench.cells import Wrong
from bench.environments import Unavailable
from bench.lab import Lab
from bench.plan import Cell, Measured, Plan
from bench.programs import Stuck
from bench.results import Results

Show = Callable[[str], None]
SUMMARY = ("rate", "p50", "p99", "mib", "round_trips")


def run(plan: Plan, lab: Lab, results: Results) -> None:
    """Everything of the plan that the results do not have yet."""
    turns = list(plan.only(lab.options.only).turns(lab.options.repeat or plan.repeat))
    left = [(turn, cell) for turn, cell in turns if not results.has(turn, cell.name, cell.system)]
    if not left and not results.records:
        raise SystemExit("Nothing to measure: --only names no system of this benchmark.")
    with progress(len(turns), len(turns) - len(left)) as show:
        for turn, cell in left:
            show(f"{cell.name}: {cell.system}, turn {turn}")
            _measure(turn, cell, lab, results)
            show("")
    results.head["facts"] = results.head.get("facts", {}) | lab.facts()


def _measure(turn: int, cell: Cell, lab: Lab, results: Results) -> None:
    at = time.strftime("%H:%M:%S")
    common = {"turn": turn, "cell": cell.name, "of": cell.system, "system": cell.system, "at": at}
    if cell.system in results.skipped():
        return
    try:
        measured = cell.measure(lab)
    except Unavailable as reason:
        results.add(**common, skipped=str(reason))
        print(f"bench: skipping {cell.system}: {reason}", file=sys.stderr)
    except Exception as error:
        results.add(**common, error=f"{type(error).__name__}: {error}")
        print(f"bench: ERROR in {cell.name}, {cell.system}: {error}", file=sys.stderr)
        if not isinstance(error, Wrong | Stuck):  # a mistake in the benchmark
            traceback.print_exc()
    else:
        _record(common, measured, results)


def _record(common: dict[str, object], measured: Measured, results: Results) -> None:
    for row, found in measured.items():
        for figures in [found] if isinstance(found, Mapping) else found:
            record = {**common, "row": row, "load": os.getloadavg()[0], **figures}
            results.add(**record)
            if not sys.stderr.isatty():
                print(_summary(record), file=sys.stderr, flush=True)


def _summary(record: dict[str, Any]) -> str:
    shown = [f"{name} {record[name]:,.5g}" for name in SUMMARY if isinstance(record.get(name), int | float)]
    others = [f"others used {record['others']:.2f} cores"] if "others" in record else []
    return f"  {record['row']:14} {record['system']:26} {', '.join(shown + others)}"


@contextmanager
def progress(total: int, done: int) -> Iterator[Show]:
    """A bar on a terminal, a line per cell elsewhere. The text names what begins; an empty one means that it ended."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description:48}"), BarColumn(), MofNCompleteColumn())
    clocks = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *clocks, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda text: bar.update(task, description=text) if text else bar.advance(task)
