"""`relet prune shop:app`: remove what has been over for long enough."""

from __future__ import annotations

import argparse
from typing import Any

from . import output, progress
from .arguments import add_app, duration
from .load_app import opened


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "prune",
        help="remove jobs that have been over for long",
        description="Remove jobs that have been over for long, in small steps. Workers do so by themselves, with what "
        "they were told to keep.",
    )
    add_app(parser)
    add = parser.add_argument
    add("--keep-finished", type=duration, default="7d", metavar="S", help="over for longer than this (default 7d)")
    add("--keep-failed", type=duration, default="30d", metavar="S", help="failed for longer than this (default 30d)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Remove, and say how many."""
    with opened(options) as (_, client), progress.stoppable() as check, progress.bar("removed", None) as advance:

        def step(so_far: Any) -> None:
            advance(so_far.finished + so_far.failed)
            check()

        gone = client.prune(keep_finished=options.keep_finished, keep_failed=options.keep_failed, on_step=step)
    if options.json:
        output.as_json({"finished": gone.finished, "failed": gone.failed, "partitions": gone.partitions})
        return 0
    days = f", and {len(gone.partitions)} partitions with all that was in them" if gone.partitions else ""
    print(f"removed {gone.finished} jobs that were over and {gone.failed} that had failed{days}")
    return 0
