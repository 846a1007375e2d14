"""`leasehold migrate shop:app`: bring the store's schema up to date."""

from __future__ import annotations

import argparse
from typing import Any

from .load import load_app


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "migrate", help="bring the store's schema up to date", description="Bring the store's schema up to date."
    )
    parser.add_argument("app", help="where the app is, as in shop:app")
    parser.add_argument("--tenant", action="append", default=[], metavar="NAME", help="that tenant's store; repeatable")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Safe when many do it at once."""
    app = load_app(options.app)
    for client in [app.client.tenant(name) for name in options.tenant] or [app.client]:
        applied = client.migrate()
        done = f"applied {', '.join(map(str, applied))}" if applied else "is up to date"
        print(f"{client.store.where}: {done}")
    return 0
