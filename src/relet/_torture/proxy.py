"""Stands between one process and PostgreSQL, or a gateway, and disturbs its connections. It passes bytes on without
reading them, so that connections may be encrypted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

T = TypeVar("T")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CHUNK = 65536
CONNECT_WITHIN = 2  # seconds


class Proxies:
    """An event loop in a thread, on which all proxies of a run work, and where the server is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._address = _primary(url)
        self._proxies: list[Proxy] = []
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="torture-proxies", daemon=True)
        self._thread.start()

    def add(self, url: str | None = None) -> Proxy:
        """A proxy of the database, or of a gateway with this URL."""
        proxy = self.call(Proxy(self, url).listen())
        self._proxies.append(proxy)
        return proxy

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10.0)

    async def connect(self) -> Streams:
        try:
            return await _open(*self._address)
        except OSError:
            try:
                self._address = await asyncio.to_thread(_primary, self.url)
            except Exception as error:
                raise ConnectionError("no server") from error
            return await _open(*self._address)

    def close(self) -> None:
        self.call(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5.0)
        self.loop.close()

    async def _end(self) -> None:
        """End all connections."""
        for proxy in self._proxies:
            proxy.server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Proxy:
    """One listening port. `url`: the URL of the database behind it."""

    server: asyncio.Server

    def __init__(self, proxies: Proxies, gateway: str | None = None) -> None:
        self._proxies, self._gateway = proxies, gateway
        self._connections: set[_Connection] = set()
        self.url = ""
        self.passes = asyncio.Event()
        self.passes.set()
        self.latency = 0.0
        self._hangs = 0

    async def listen(self) -> Proxy:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        parts = urlsplit(self._gateway or self._proxies.url)
        account, at, _ = parts.netloc.rpartition("@")
        query = "&".join(one for one in parts.query.split("&") if one and not one.startswith(("host=", "port=")))
        self.url = urlunsplit(parts._replace(netloc=f"{account}{at}127.0.0.1:{port}", query=query))
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await self._connect()
        except OSError:
            writer.close()
            return
        connection = _Connection(self, (reader, writer), server)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    async def _connect(self) -> Streams:
        if self._gateway is None:
            return await self._proxies.connect()
        parts = urlsplit(self._gateway)
        return await asyncio.open_connection(parts.hostname, parts.port)

    async def cut(self) -> None:
        """Close all connections."""
        for connection in list(self._connections):
            connection.close()

    async def lose_requests(self) -> None:
        """On each connection, drop the next message of the client, and close."""
        for connection in list(self._connections):
            connection.fate = "lose request"

    async def lose_answers(self) -> None:
        """On each connection, pass on the next message of the client, drop the answer, and close."""
        for connection in list(self._connections):
            connection.fate = "lose answer"

    async def lose_server(self) -> None:
        """On each connection, close the way to the server. The client does not learn of it."""
        for connection in list(self._connections):
            connection.lose_server()

    async def hang(self, seconds: float) -> None:
        """Pass nothing on for so long. Connections stay open."""
        self.passes.clear()
        self._hangs += 1
        asyncio.get_running_loop().call_later(seconds, self._end_hang)

    async def delay(self, seconds: float, latency: float) -> None:
        """Pass everything on later."""
        self.latency = latency
        asyncio.get_running_loop().call_later(seconds, self._no_latency)

    def _end_hang(self) -> None:
        self._hangs -= 1
        if not self._hangs:
            self.passes.set()

    def _no_latency(self) -> None:
        self.latency = 0.0


class _Connection:
    def __init__(self, proxy: Proxy, client: Streams, server: Streams) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self.fate = ""  # the fate of the next message

    async def run(self) -> None:
        up = asyncio.ensure_future(self._pass(self._client[0], self._server[1], self._on_request))
        down = asyncio.ensure_future(self._pass(self._server[0], self._client[1], self._on_answer))
        await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
        if self.fate == "lose server":
            await up
        self.close()
        await asyncio.gather(up, down, return_exceptions=True)

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_last: Callable[[], bool]
    ) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK):
                await self._proxy.passes.wait()
                if self._proxy.latency:
                    await asyncio.sleep(self._proxy.latency)
                if is_last():
                    return
                if self.fate == "lose server":
                    continue  # the client sends on, until it gives up
                sink.write(data)
                await sink.drain()

    def lose_server(self) -> None:
        self.fate = "lose server"
        self._server[1].transport.abort()

    def _on_request(self) -> bool:
        if self.fate == "lose answer":
            self.fate = "lose this answer"
        return self.fate == "lose request"

    def _on_answer(self) -> bool:
        return self.fate == "lose this answer"

    def close(self) -> None:
        for _, writer in (self._client, self._server):
            with suppress(OSError, RuntimeError):
                writer.transport.abort()


def _primary(url: str) -> tuple[str, int]:
    """Where the server is that a URL leads to. A URL with several hosts leads to another one after a failover."""
    import psycopg

    with psycopg.connect(url, connect_timeout=CONNECT_WITHIN, target_session_attrs="read-write") as connection:
        return connection.info.host, connection.info.port


def _open(host: str, port: int) -> Awaitable[Streams]:
    if host.startswith("/"):
        return asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
    return asyncio.open_connection(host, port)
