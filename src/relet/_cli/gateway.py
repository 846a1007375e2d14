"""`relet gateway`: serve the worker protocol, for workers that do not reach the database."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import sys
import time
import tomllib
from typing import TYPE_CHECKING, Any

from .. import logs
from ..app import App
from ..errors import StoreBusy, StoreUnavailable
from .extras import imports_of
from .load_app import CommandError, load_app
from .web import listening, url_host

if TYPE_CHECKING:
    from .._gateway.server import Gateway
    from .._web.auth import TokenAuth

TOKEN = "RELET_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable
MAX_CONNECTIONS = 10_000
KEEP_ALIVE = 75  # seconds
RETRY_EVERY = 0.5  # seconds

EPILOG = f"""\
Workers need a token. Set {TOKEN} in the environment to a token for all queues, or pass --tokens FILE, a TOML file
with a table for each token:

  [acme]
  token = "at least 16 random characters"
  queues = ["billing", "mail"]   # leave it out for all queues

Without either, relet makes a token and prints it once. docs/gateway.md describes the protocol."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "gateway",
        help="serve workers that do not reach the database",
        description="Serve the worker protocol over HTTP, for workers that must not, or cannot, talk to the database.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("app", metavar="APP", help="the app as module:attribute, such as shop:app, or the URL of its database")
    add("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    add("--port", type=int, default=8480, help="port to listen on (default %(default)s)")
    add("--tokens", metavar="FILE", help="the tokens of workers, and the queues that they are for")
    add("--schema", metavar="NAME", help="with a URL: the schema of the tables (default relet)")
    add("--tenant", metavar="NAME", help="serve the store of this tenant")
    add(
        "--proxy", action="append", default=[], metavar="ADDRESS",
        help="address or network of a proxy whose X-Forwarded-For is trusted; repeatable (default none)",
    )  # fmt: skip
    add("--certificate", metavar="FILE", help="serve HTTPS with this certificate")
    add("--key", metavar="FILE", help="the key of the certificate")
    add("--log-level", choices=["debug", "info", "warning", "error"], default="info", help="default info")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal stops the process."""
    with imports_of("gateway", "gateway"):
        import uvicorn

        from .._gateway.server import Gateway
        from .._web.connections import Connections, Proxies, guarded_by

    logs.configure(options.log_level, as_json=False)
    proxies = Proxies(options.proxy)
    auth = _auth(options.tokens)
    gateway = Gateway(_app(options), auth, options.tenant)
    _prepare(gateway)

    class Server(uvicorn.Server):
        """Starts the maintenance once the port is open, and answers workers that wait before it closes."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            gateway.start()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            gateway.stop()
            await super().shutdown(sockets)

    scheme = "https" if options.certificate else "http"
    with listening(options.host, options.port) as listener:
        print(f"relet gateway: {scheme}://{url_host(options.host)}:{options.port}", file=sys.stderr, flush=True)
        connections = Connections(proxies, limit=MAX_CONNECTIONS, per_address=MAX_CONNECTIONS)
        config = uvicorn.Config(
            gateway, log_config=None, server_header=False, access_log=False, timeout_graceful_shutdown=3,
            http=guarded_by(connections), ws="none", timeout_keep_alive=KEEP_ALIVE, lifespan="off",
            proxy_headers=bool(proxies.addresses), forwarded_allow_ips=proxies.addresses,
            ssl_certfile=options.certificate, ssl_keyfile=options.key,
        )  # fmt: skip
        try:
            Server(config).run(sockets=[listener])
        finally:
            gateway.close()
    return 0


def _app(options: argparse.Namespace) -> App:
    if "://" not in options.app:
        return load_app(options.app)
    return App(options.app) if options.schema is None else App(options.app, schema=options.schema)


def _prepare(gateway: Gateway) -> None:
    """Wait until the database can be reached. Errors that do not pass are raised, such as a wrong password."""
    was_reached = False
    while not was_reached:
        try:
            gateway.prepare()
            was_reached = True
        except (StoreUnavailable, StoreBusy) as error:
            print(f"relet gateway: cannot reach the database, waiting for it: {error}", file=sys.stderr, flush=True)
            time.sleep(RETRY_EVERY)


def _auth(path: str | None) -> TokenAuth:
    from .._gateway.server import workers_auth

    tokens, queues = ({}, {}) if path is None else _read(path)
    token = os.environ.get(TOKEN)
    if not token and not tokens:
        token = secrets.token_urlsafe(32)
        print(f"relet gateway: the token of this start is {token}", file=sys.stderr, flush=True)
    if token:
        tokens["worker"] = token
    return workers_auth(tokens, queues)


def _read(path: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The tokens of a file, and their queues. Errors name the table, and never show its token."""
    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError:
        raise CommandError(f"{path} is not TOML; see relet gateway --help for an example") from None
    tokens, queues = {}, {}
    for name, table in tables.items():
        if not isinstance(table, dict) or not isinstance(table.get("token"), str):
            raise CommandError(f"{path}: [{name}] has no token; see relet gateway --help for an example")
        tokens[name] = table["token"]
        if "queues" in table:
            names = table["queues"]
            if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
                raise CommandError(f"{path}: [{name}]: queues must be a list of names")
            queues[name] = names
    return tokens, queues
