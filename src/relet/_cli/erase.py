"""`relet erase shop:app --tag customer-7`: delete jobs and everything that the store holds of them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..errors import InvalidInput
from . import output, progress
from .arguments import add_app, describe
from .load_app import opened

WHICH = ("tag", "group", "target")


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "erase",
        help="delete all jobs of a tag, group or target, and all traces of them",
        description="Delete all jobs of a tag, group or target, in any state, and everything that the store holds of "
        "them: attempts, steps, signals, results, unique keys and details of audited actions.",
    )
    add_app(parser)
    for name in WHICH:
        parser.add_argument(f"--{name}", metavar="NAME", help=f"the {name} of the jobs")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    which = {name: getattr(options, name) for name in WHICH if getattr(options, name) is not None}
    if not which:
        raise InvalidInput("erase needs --tag, --group or --target.")
    with opened(options) as (_, client):
        question = f"erase {client.count(**which):,} jobs ({output.plain(describe(which))}) in {client.where}?"
        if not progress.confirmed(question, yes=options.yes):
            print("Nothing was changed.", file=sys.stderr)
            return 1
        done = client.erase(**which)
    if options.json:
        output.as_json({"erased": done})
    else:
        print(f"{done} jobs erased")
    return 0
