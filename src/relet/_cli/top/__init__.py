"""`relet top shop:app`: show queues, workers and jobs live, and change them by keys.

poller    reads the store once a second and runs actions, in a separate thread
state     the selection, the open question, the meaning of each key; knows no terminal
screen    draws the state, for any size of terminal
terminal  reads keys, sets modes and the alternate screen, and always restores them
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

from ..._client.client import Client
from .. import output
from ..arguments import add_app
from ..extras import imports_of
from ..load_app import CommandError, opened

KEYS = """\
keys: tab and shift-tab select a table, arrows or j and k a line; enter shows details; p pauses a queue or a job, or
resumes a queue; c cancels a job; r resumes failed jobs. p, c and r ask for confirmation. / filters, q quits.

Without a terminal, or with --once, it prints one page and exits. --json prints the same for programs."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "top",
        help="watch queues, workers and jobs live",
        description="Watch queues, workers and jobs live; pause, cancel and resume them.",
        epilog=KEYS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    parser.add_argument("--once", action="store_true", help="print one page and exit")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Draw live on a terminal; elsewhere print one page."""
    if options.json:
        with opened(options) as (_, client):
            return _as_json(client)
    with imports_of("top", "cli"):
        import rich  # noqa: F401 - only whether it is there
    with opened(options) as (_, client):
        if options.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return _once(client)
        return _live(client)


def _once(client: Client) -> int:
    from rich.console import Console

    from .poller import SnapshotReader
    from .screen import page
    from .state import TopState

    console = Console()
    console.print(page(TopState(SnapshotReader(client).read()), console.width))
    return 0


def _as_json(client: Client) -> int:
    from .poller import SnapshotReader

    snapshot = SnapshotReader(client).read()
    output.as_json({field.name: getattr(snapshot, field.name) for field in fields(snapshot) if field.name != "detail"})
    return 0


def _live(client: Client) -> int:
    if find_spec("termios") is None:
        raise CommandError("the live view needs a terminal of Linux or macOS; relet top --once prints one page")
    from .poller import Poller
    from .state import TopState
    from .terminal import Terminal

    with Poller(client) as poller, Terminal(wakeup=poller.wakeup) as terminal:
        state = TopState(poller.first)
        while True:
            terminal.draw(state)
            for key in terminal.wait():
                if state.press(key) == "quit":
                    return 0
            poller.watching = state.watched
            for action in state.take_actions():
                poller.submit(action)
            for update in poller.take_updates():
                state.update(update)
