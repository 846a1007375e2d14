"""`relet prune shop:app`: remove old jobs."""

from __future__ import annotations

import argparse
from typing import Any

from . import output, progress
from .arguments import add_app, duration
from .load_app import opened


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "prune",
        help="remove old finished and failed jobs",
        description="Remove old finished and failed jobs, in small steps. Workers also prune, by their own settings.",
    )
    add_app(parser)
    add = parser.add_argument
    add(
        "--keep-finished",
        type=duration,
        default="7d",
        metavar="S",
        help="remove jobs that finished longer ago (default 7d)",
    )
    add(
        "--keep-failed",
        type=duration,
        default="30d",
        metavar="S",
        help="remove jobs that failed longer ago (default 30d)",
    )
    add(
        "--keep-payloads",
        type=duration,
        metavar="S",
        help="remove arguments and results of jobs that finished longer ago",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Remove jobs, and print how many."""
    with opened(options) as (_, client), progress.stoppable() as check, progress.bar("removed", None) as advance:

        def step(so_far: Any) -> None:
            advance(so_far.finished + so_far.failed)
            check()

        ages = {name: getattr(options, name) for name in ("keep_finished", "keep_failed", "keep_payloads")}
        removed = client.prune(**ages, on_step=step)
    if options.json:
        output.as_json({"finished": removed.finished, "failed": removed.failed, "partitions": removed.partitions,
                        "stripped": removed.stripped})  # fmt: skip
        return 0
    dropped = f", and dropped {len(removed.partitions)} partitions with all their jobs" if removed.partitions else ""
    print(f"Removed {removed.finished} finished and {removed.failed} failed jobs{dropped}.")
    if removed.stripped:
        print(f"Removed the arguments and results of {removed.stripped} jobs.")
    return 0
