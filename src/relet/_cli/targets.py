"""`relet targets shop:app`: list targets, the job that holds each, and the jobs that wait for it."""

from __future__ import annotations

import argparse
from typing import Any

from .._client.client import Client
from . import output
from .arguments import add_app
from .jobs import table_of
from .load_app import opened


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "targets",
        help="list targets, or show the jobs that wait for one",
        description="List targets with the job that holds each and how many wait; or show the jobs that wait for one.",
    )
    add_app(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the jobs that wait for this target, in order")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="number of targets (default 50), or of waiting jobs (default 100)"
    )
    parser.add_argument("--cursor", metavar="NAME", help="continue after this target")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with opened(options) as (_, client):
        return _list(client, options) if options.name is None else _show(client, options)


def _list(client: Client, options: argparse.Namespace) -> int:
    page = client.targets(limit=options.limit or 50, cursor=options.cursor)
    if options.json:
        output.as_json({"targets": page.targets, "cursor": page.cursor})
        return 0
    lines = [
        (one.target, one.holder and one.holder.id, one.holder and one.holder.task,
         one.holder and output.state(one.holder), output.count(one.waiting, one.at_least))
        for one in page.targets
    ]  # fmt: skip
    output.table(("TARGET", "HELD BY", "TASK", "STATE", "WAITING"), lines)
    if page.cursor:
        print(f"more: --cursor {output.plain(page.cursor)}")
    return 0


def _show(client: Client, options: argparse.Namespace) -> int:
    view = client.target(options.name, limit=options.limit or 100)
    if options.json:
        output.as_json(view)
        return 0
    holder = "no job" if view.holder is None else f"{view.holder.id} {view.holder.task} {output.state(view.holder)}"
    output.facts([("target", view.target), ("held by", holder), ("waiting", output.count(view.waiting, view.at_least))])
    if view.line:
        print()
        table_of(list(view.line))
    return 0
