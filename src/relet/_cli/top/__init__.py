"""`relet top shop:app`: queues, workers and jobs as they are now, and keys to steer them.

feed      looks once a second, and does what was asked for, in a thread of its own
desk      what is selected, what was asked, what each key means; no terminal in it
screen    draws a desk, for any size of terminal
terminal  keys in, modes and alternate screen, put back however it ends
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from typing import Any

from ..._client.client import Client
from .. import output
from ..arguments import add_app
from ..load_app import Wrong, opened

KEYS = """\
keys: tab and shift-tab go from table to table, arrows or j and k to a line; enter shows more of it; p pauses or resumes
a queue or a job, c cancels a job, r lets failed jobs go on; each of them asks first. / filters, q quits.

Without a terminal it prints what it would show, once; so does --once, and --json for programs."""


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "top",
        help="watch queues, workers and jobs live, and steer them",
        description="Watch queues, workers and jobs live, and steer them.",
        epilog=KEYS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    parser.add_argument("--once", action="store_true", help="print it once and end")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Live on a terminal, else once."""
    if options.json:
        with opened(options) as (_, client):
            return _as_json(client)
    try:
        import rich  # noqa: F401
    except ImportError:
        raise Wrong("relet top draws with rich, which is not installed: pip install 'relet[cli]'") from None
    with opened(options) as (_, client):
        if options.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return _once(client)
        return _live(client)


def _once(client: Client) -> int:
    from rich.console import Console

    from .poller import Looker
    from .screen import page
    from .state import Desk

    console = Console()
    console.print(page(Desk(Looker(client).look()), console.width))
    return 0


def _as_json(client: Client) -> int:
    from .poller import Looker

    seen = Looker(client).look()
    output.as_json({field.name: getattr(seen, field.name) for field in fields(seen) if field.name != "detail"})
    return 0


def _live(client: Client) -> int:
    from .poller import Feed
    from .state import Desk
    from .terminal import Terminal

    with Feed(client) as feed, Terminal(wakes=feed.wakes) as terminal:
        desk = Desk(feed.first)
        while True:
            terminal.draw(desk)
            for key in terminal.wait():
                if desk.press(key) == "quit":
                    return 0
            feed.watching = desk.watched
            for asked in desk.take_asked():
                feed.ask(asked)
            for news in feed.take_news():
                desk.hear(news)
