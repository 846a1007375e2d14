"""`relet doctor shop:app`: check the health of the store, and print what to do about problems."""

from __future__ import annotations

import argparse
from typing import Any

from . import output
from .arguments import add_app
from .load_app import opened


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="check the store and the workers, and advise",
        description="Check the store and the workers. Exits with 1 if a finding is an error.",
    )
    add_app(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print all findings, the worst first. Returns 1 if one is an error."""
    with opened(options) as (_, client):
        found = client.doctor()
    has_error = any(one.level == "error" for one in found)
    if options.json:
        output.as_json({"findings": found})
        return 1 if has_error else 0
    order = ("error", "warning", "info", "ok")
    lines: list[tuple[str, str, str]] = []
    for one in sorted(found, key=lambda one: order.index(one.level)):
        lines.append((one.level, one.check, one.text))
        lines += [("", "", f"-> {one.advice}")] if one.advice else []
    output.table(("LEVEL", "CHECK", "FINDING"), lines)
    return 1 if has_error else 0
