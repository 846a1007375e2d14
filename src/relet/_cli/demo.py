"""`relet demo`: see it at work."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """The arguments of the command: none."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="watch two workers, of which one is killed, lose nothing",
        description="Two workers share jobs on a SQLite file, one of them is killed with -9, and nothing is lost.",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """In a few seconds."""
    from .._demo.story import main  # for this command alone

    return main()
