"""`relet migrate shop:app`: update the schema of the store."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from .._client.client import Client
from .._core.variants import Variant
from ..app import App
from . import output, progress
from .load_app import load_app, who


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "migrate", help="update the schema of the store", description="Create or update the tables of the store."
    )
    add = parser.add_argument
    add("app", metavar="APP", help="the app as module:attribute, such as shop:app")
    add("--tenant", action="append", default=[], metavar="NAME", help="migrate the store of this tenant; repeatable")
    add(
        "--variant",
        choices=get_args(Variant),
        help="of a new schema in PostgreSQL: rows for engines that spread it over machines (default: by what the "
        "server can do)",
    )
    add("--json", action="store_true", help="print one JSON document")
    add("--sql", action="store_true", help="print the statements as SQL, and change nothing")
    add(
        "--since", type=int, default=0, metavar="VERSION", help="with --sql: the version that the store has (default 0)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Migrate each store. Safe when several processes do it at once."""
    app = load_app(options.app)
    clients = [app.client.tenant(name) for name in options.tenant] or [app.client]
    if options.sql:
        for client in clients:  # needs no database
            print(client.migration_sql(since=options.since, variant=options.variant), end="")
        return 0
    return _migrate(app, clients, options)


def _migrate(app: App, clients: list[Client], options: argparse.Namespace) -> int:
    done: list[dict[str, object]] = []
    lines: list[str] = []
    try:
        with progress.bar("migrate", len(clients)) as advance:
            for client in clients:
                applied = client.acting_as(who()).migrate(variant=options.variant)
                found = client._store.applied()
                version = {"store": client.where, "version": found.version, "oldest": found.oldest}
                done.append({**version, "applied": applied})
                lines.append(f"{client.where}: {client._store.outcome(applied)}")
                advance(len(done))
    finally:
        app.close()
        if options.json:
            output.as_json({"stores": done})
        else:
            for line in lines:
                print(output.plain(line))
    return 0
