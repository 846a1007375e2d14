"""Long operations: a progress bar, Ctrl-C between two steps, and confirmation."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from . import output

Advance = Callable[[int], None]

INTERRUPTED = 130  # the exit code after Ctrl-C


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Advance]:
    """Show progress if there is a terminal. Call the yielded function with the number of items done."""
    if not (sys.stderr.isatty() and output.on_terminal()):
        yield lambda done: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        with _counter(what, total) as advance:
            yield advance
        return
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(output.plain(what), total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def _counter(what: str, total: int | None) -> Iterator[Advance]:
    """Show progress without rich: one line that is overwritten."""
    of = "" if total is None else f" of {total}"
    try:
        yield lambda done: print(f"\r{output.plain(what)} {done}{of}", end="", file=sys.stderr, flush=True)
    finally:
        print(file=sys.stderr)


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed. Raised between two steps, so that no step is interrupted."""


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """After Ctrl-C the yielded function raises `Stopped`: call it between steps. A second Ctrl-C interrupts at once."""
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt

    def check() -> None:
        if received:
            raise Stopped

    before = signal.signal(signal.SIGINT, receive)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def confirmed(question: str, *, yes: bool) -> bool:
    """True after `--yes` or a yes at the terminal. Without a terminal the answer is no."""
    if yes:
        return True
    if not sys.stdin.isatty():
        print(f"{question} Standard input is not a terminal: pass --yes to confirm.", file=sys.stderr)
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
