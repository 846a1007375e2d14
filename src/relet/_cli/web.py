"""`relet web`: serve the HTTP API and the dashboard."""

from __future__ import annotations

import argparse
import socket
import sys
from typing import Any

from .extras import imports_of
from .load_app import CommandError, load_app


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "web",
        help="serve the dashboard and the HTTP API",
        description="Serve the dashboard and the HTTP API of an app.",
        epilog="Requests need a token. Set RELET_WEB_TOKEN (read and write) and RELET_WEB_READ_TOKEN (read only) in "
        "the environment; without them relet makes a token and prints it once.",
    )
    parser.add_argument("app", metavar="APP", help="the app as module:attribute, such as shop:app")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=8470, help="port to listen on (default %(default)s)")
    parser.add_argument(
        "--host-name", action="append", default=[], metavar="NAME",
        help="host name that browsers use, in addition to localhost; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--proxy", action="append", default=[], metavar="ADDRESS",
        help="address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are trusted; repeatable "
        "(default none)",
    )  # fmt: skip
    parser.add_argument("--open-health", action="store_true", help="serve /health without a token")
    parser.add_argument(
        "--replica", metavar="URL",
        help="read lists and figures from this streaming standby of the database (default RELET_REPLICA_URL)",
    )  # fmt: skip
    parser.add_argument("--tenant", metavar="NAME", help="use the store of this tenant")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal stops the process."""
    with imports_of("web", "web"):
        import uvicorn

        from .._web import create_app
        from .._web.connections import MAX_CONNECTIONS, Connections, Proxies, guarded_by
        from .._web.security import LOCAL

    proxies = Proxies(options.proxy)
    app = load_app(options.app)
    if options.replica is not None:
        app._use_replica(options.replica)
    (app.client if options.tenant is None else app.client.tenant(options.tenant)).count(
        limit=1
    )  # fail now if the store cannot be read
    with listening(options.host, options.port) as listener:
        print(f"relet web: http://{url_host(options.host)}:{options.port}/", file=sys.stderr)
        web = create_app(
            app,
            hosts=[*LOCAL, options.host, *options.host_name],
            open_health=options.open_health,
            tenant=options.tenant,
        )
        config = uvicorn.Config(
            web, log_level="warning", server_header=False, access_log=False, timeout_graceful_shutdown=3,
            http=guarded_by(Connections(proxies)), ws="none", limit_concurrency=2 * MAX_CONNECTIONS,
            proxy_headers=bool(proxies.addresses), forwarded_allow_ips=proxies.addresses,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def listening(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise CommandError(
            f"Cannot listen on {url_host(host)}:{port} ({error}). Choose another --host or --port."
        ) from None
    return listener


def url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
