"""Long work: a bar that shows how far it is, and an end that can be asked for."""

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
    """Shows how far something is on the terminal, if there is one; what is yielded is told how far."""
    if not (sys.stderr.isatty() and output.on_terminal()):
        yield lambda done: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        with _counted(what, total) as advance:
            yield advance
        return
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(output.plain(what), total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def _counted(what: str, total: int | None) -> Iterator[Advance]:
    """The same without rich: a line that is written over."""
    of = "" if total is None else f" of {total}"
    try:
        yield lambda done: print(f"\r{output.plain(what)} {done}{of}", end="", file=sys.stderr, flush=True)
    finally:
        print(file=sys.stderr)


class Stopped(KeyboardInterrupt):
    """Asked to stop between two steps, in good order."""


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Ctrl-C ends the work at the next step: what is yielded raises `Stopped` then. Said twice, it ends at once."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt

    def check() -> None:
        if asked:
            raise Stopped

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether it is to be done: `--yes`, or the answer to the question. Nobody to ask: no."""
    if yes:
        return True
    if not sys.stdin.isatty():
        print(f"{question} There is nobody to ask: say --yes to do it.", file=sys.stderr)
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
