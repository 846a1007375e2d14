"""`relet demo`: two workers run jobs, and one of them is killed."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="watch two workers run jobs while one is killed",
        description="Run jobs on two workers with a SQLite file, kill one worker with -9, and lose no job.",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from .._demo.story import main  # only this command needs it

    return main()
