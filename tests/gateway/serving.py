"""A gateway in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from relet import App
from relet._gateway.server import Gateway, workers_auth

TOKEN = "gateway-token-for-tests"
SCOPED = "gateway-token-for-billing"


@contextmanager
def serving(app: App) -> Iterator[tuple[str, Gateway]]:
    """Its URL, and the gateway."""
    auth = workers_auth({"worker": TOKEN, "billing": SCOPED}, {"billing": ["billing"]})
    gateway = Gateway(app, auth)
    gateway.upkeep.allow_for(shortest=3.0, longest=3.0)  # so that no test waits long until leases are reaped
    gateway.prepare()

    class Server(uvicorn.Server):
        async def startup(self, sockets: object = None) -> None:
            await super().startup()
            gateway.start()

        async def shutdown(self, sockets: object = None) -> None:
            gateway.stop()
            await super().shutdown()

    config = uvicorn.Config(gateway, host="127.0.0.1", port=0, log_level="critical", ws="none", lifespan="off")
    server = Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", gateway
    finally:
        server.should_exit = True
        thread.join(10)
        gateway.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
