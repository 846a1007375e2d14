"""`relet doctor shop:app`: is the store in good health, and if not, what to do."""

from __future__ import annotations

import argparse
from typing import Any

from . import output
from .arguments import add_app
from .load_app import opened


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="check the store and the workers, and say what to do",
        description="Check the store and the workers. Exits with 1 if there is an error.",
    )
    add_app(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """All findings, the worst first; 1 if one of them is an error."""
    with opened(options) as (_, client):
        found = client.doctor()
    ill = any(one.level == "error" for one in found)
    if options.json:
        output.as_json({"findings": found})
        return 1 if ill else 0
    order = ("error", "warning", "info", "ok")
    lines: list[tuple[str, str, str]] = []
    for one in sorted(found, key=lambda one: order.index(one.level)):
        lines.append((one.level, one.check, one.text))
        lines += [("", "", f"-> {one.advice}")] if one.advice else []
    output.table(("LEVEL", "CHECK", "FINDING"), lines)
    return 1 if ill else 0
