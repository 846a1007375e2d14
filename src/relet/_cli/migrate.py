"""`relet migrate shop:app`: update the schema of the store."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from .._client.client import Client
from .._core.variants import Variant
from ..app import App
from ..errors import StoreError
from . import output, progress
from .load_app import CommandError, load_app, who


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "migrate", help="update the schema of the store", description="Create or update the tables of the store."
    )
    add = parser.add_argument
    add("app", metavar="APP", help="the app as module:attribute, such as shop:app")
    add("--tenant", action="append", default=[], metavar="NAME", help="migrate the store of this tenant; repeatable")
    add(
        "--all-tenants",
        action="store_true",
        help="migrate the app's own store and those of all its tenants that have been migrated before",
    )
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
    if options.all_tenants and (options.tenant or options.sql):
        raise CommandError("--all-tenants goes with neither --tenant nor --sql")
    app = load_app(options.app)
    if options.sql:
        for client in _clients(app, options):  # needs no database
            print(client.migration_sql(since=options.since, variant=options.variant), end="")
        return 0
    return _migrate(app, options)


def _clients(app: App, options: argparse.Namespace) -> list[Client]:
    if options.all_tenants:
        return [app.client, *map(app.client.tenant, app.client.tenants())]
    return [app.client.tenant(name) for name in options.tenant] or [app.client]


def _migrate(app: App, options: argparse.Namespace) -> int:
    """Migrate one store after the other. After an error or Ctrl-C, the same command does those that are left."""
    done: list[dict[str, object]] = []
    failures: list[StoreError] = []
    try:
        clients = _clients(app, options)
        with progress.bar("migrate", len(clients)) as advance:
            for client in clients:
                name = client.where if client._tenant is None else f"tenant {client._tenant} of {client.where}"
                try:
                    document, line = _migrate_one(client, options)
                except StoreError as error:
                    if len(clients) == 1:
                        raise
                    failures.append(error)
                    document, line = {"error": str(error)}, str(error)
                done.append({"store": client.where, "tenant": client._tenant, **document})
                if not options.json:
                    print(output.plain(f"{name}: {line}"), flush=True)  # now, so that an operator sees how far it is
                advance(len(done))
    finally:
        app.close()
        if options.json:
            output.as_json({"stores": done})
    if failures:
        raise CommandError(f"{len(failures)} of {len(done)} stores were not migrated: repeat the command for them")
    return 0


def _migrate_one(client: Client, options: argparse.Namespace) -> tuple[dict[str, object], str]:
    """Migrate one store. Returns what it did, as a document and as a line."""
    store = client._store
    try:
        applied = client.acting_as(who()).migrate(variant=options.variant)
        found = store.applied()
        return {"version": found.version, "oldest": found.oldest, "applied": applied}, store.outcome(applied)
    finally:
        if store.dialect == "sqlite":  # hundreds of tenants are hundreds of open files; PostgreSQL shares connections
            store.close()
