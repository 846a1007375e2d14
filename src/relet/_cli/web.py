"""`relet web`: the HTTP API and the dashboard, served alone."""

from __future__ import annotations

import argparse
import socket
import sys
from importlib.util import find_spec
from typing import Any

from ..errors import InvalidInput
from .load_app import Wrong, load_app


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "web",
        help="serve the dashboard and the HTTP API",
        description="Serve the dashboard and the HTTP API of an app.",
        epilog="A token is always needed. Set RELET_WEB_TOKEN (may change things) and RELET_WEB_READ_TOKEN "
        "(may only look) in the environment; without them one is made and printed once.",
    )
    parser.add_argument("app", metavar="APP", help="where the app is, as in shop:app")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default %(default)s)")
    parser.add_argument("--port", type=int, default=8470, help="port to listen at (default %(default)s)")
    parser.add_argument(
        "--host-name", action="append", default=[], metavar="NAME",
        help="name by which browsers reach it, beside localhost; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--proxy", action="append", default=[], metavar="ADDRESS",
        help="address or network of a proxy in front, whose X-Forwarded-For and X-Forwarded-Proto are believed; may be "
        "given several times (default: none is believed)",
    )  # fmt: skip
    parser.add_argument("--open-health", action="store_true", help="/health answers without a token")
    parser.add_argument("--tenant", metavar="NAME", help="whose jobs are meant")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise InvalidInput("the web needs some more packages: pip install 'relet[web]'")
    import uvicorn

    from .._web import create_app
    from .._web.connections import MOST, Connections, Proxies, guarded_by
    from .._web.security import LOCAL

    proxies = Proxies(options.proxy)
    app = load_app(options.app)
    (app.client if options.tenant is None else app.client.tenant(options.tenant)).count(most=1)  # or say why not
    with _listening(options.host, options.port) as door:
        print(f"relet web: http://{_shown(options.host)}:{options.port}/", file=sys.stderr)
        web = create_app(
            app,
            hosts=[*LOCAL, options.host, *options.host_name],
            open_health=options.open_health,
            tenant=options.tenant,
        )
        config = uvicorn.Config(
            web, log_level="warning", server_header=False, access_log=False, timeout_graceful_shutdown=3,
            http=guarded_by(Connections(proxies)), ws="none", limit_concurrency=2 * MOST,
            proxy_headers=bool(proxies.given), forwarded_allow_ips=proxies.given,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[door])
    return 0


def _listening(host: str, port: int) -> socket.socket:
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
    except (OSError, OverflowError) as error:
        door.close()
        raise Wrong(f"nobody can listen at {_shown(host)}:{port} ({error}); choose another --host or --port") from None
    return door


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
