"""`relet migrate shop:app`: bring the store's schema up to date."""

from __future__ import annotations

import argparse
from typing import Any

from . import output, progress
from .load_app import load_app, who


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "migrate", help="bring the store's schema up to date", description="Bring the store's schema up to date."
    )
    add = parser.add_argument
    add("app", metavar="APP", help="where the app is, as in shop:app")
    add("--tenant", action="append", default=[], metavar="NAME", help="that tenant's store; repeatable")
    add("--json", action="store_true", help="print JSON, one document")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Safe when many do it at once."""
    app = load_app(options.app)
    clients = [app.client.tenant(name) for name in options.tenant] or [app.client]
    done: list[dict[str, object]] = []
    told: list[str] = []
    try:
        with progress.bar("migrate", len(clients)) as advance:
            for client in clients:
                applied = client.acting_as(who()).migrate()
                found = client._store.applied()
                place = {"store": client.where, "version": found.version, "oldest": found.oldest}
                done.append({**place, "applied": applied})
                told.append(f"{client.where}: {client._store.outcome(applied)}")
                advance(len(done))
    finally:
        app.close()
        if options.json:
            output.as_json({"stores": done})
        else:
            for line in told:
                print(output.plain(line))
    return 0
