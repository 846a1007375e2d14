"""A TCP proxy in threads of this process: it delays every byte, and counts round trips.

Threads, because the timers of asyncio have a resolution of a millisecond, which is the delay to be made.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

CHUNK = 65536


class Proxy:
    """Listens on `port` and forwards to `target`, `delay` seconds later in each direction.

    A round trip is a burst of bytes from the client: data that it sends after the server has answered.
    """

    def __init__(self, target: tuple[str, int], delay: float = 0.0) -> None:
        self._target, self._delay = target, delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.round_trips = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                connection = _Connection(self, client, server)
                self._sockets += [client, server]
                connection.start(self._delay)

    def count(self) -> None:
        with self._lock:
            self.round_trips += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class _Connection:
    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._client_speaks = False

    def start(self, delay: float) -> None:
        for source, sink, is_client in ((self._client, self._server, True), (self._server, self._client, False)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            threading.Thread(target=self._receive, args=(source, late, delay, is_client), daemon=True).start()
            threading.Thread(target=_send, args=(sink, late), daemon=True).start()

    def _receive(
        self, source: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]], delay: float, is_client: bool
    ) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                if is_client and not self._client_speaks:
                    self._proxy.count()
                self._client_speaks = is_client
                late.put((time.monotonic() + delay, data))
        late.put((0.0, b""))


def _send(sink: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
    with suppress(OSError):
        while True:
            due, data = late.get()
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            if (left := due - time.monotonic()) > 0:
                time.sleep(left)
            sink.sendall(data)
