"""Between a client and PostgreSQL: a proxy that cuts connections on demand, and a server that refuses all clients."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit


def accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """The clients that connect, until the listener is closed."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        yield client


def server_socket(dsn: str) -> socket.socket:
    """A connection to the server that a URL names."""
    parts = urlsplit(dsn)
    (folder,) = parse_qs(parts.query).get("host", [""])
    if folder.startswith("/"):
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(f"{folder}/.s.PGSQL.{parts.port or 5432}")
        return raw
    return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 5432))


@dataclass
class Proxy:
    """Passes bytes on in both directions. What it was told to cut at is cut once, and counted."""

    dsn: str  # of the server
    url: str = ""  # of the proxy
    cuts: int = 0
    _cut_at: bytes | None = None
    _answered: bool = False
    _then: Callable[[], None] = lambda: None
    _deaf: tuple[socket.socket, socket.socket] | None = None  # to whom nothing is passed on any more
    _ready: threading.Event = field(default_factory=threading.Event)
    _pairs: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _hung: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)
    _vanished: bool = False
    _over: threading.Event = field(default_factory=threading.Event)

    def hang(self) -> None:
        """Nothing passes on the connections there are, which stay open. New ones work."""
        with self._lock:
            self._hung += self._pairs

    def vanish(self) -> None:
        """Nothing passes any more, on no connection, and new ones are not answered."""
        self._vanished = True
        self.hang()

    def cut_after(self, words: bytes, then: Callable[[], None] = lambda: None) -> None:
        """The next time that the client sends these words: pass them on, wait for the answer, and cut before giving it.

        `then` is done before the client can notice.
        """
        self._cut_at, self._answered, self._then = words, True, then

    def cut_before(self, words: bytes) -> None:
        """The next time that the client sends these words: cut instead of passing them on."""
        self._cut_at, self._answered = words, False

    def cut_all(self) -> None:
        """Cut every connection there is."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            self._close(pair)

    def serve(self, listener: socket.socket) -> None:
        for client in accepted(listener):
            if self._vanished:
                with self._lock:
                    self._pairs.append((client, client))
                continue
            try:
                pair = (client, server_socket(self.dsn))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append(pair)
            threading.Thread(target=self._upwards, args=(pair,), daemon=True).start()
            threading.Thread(target=self._downwards, args=(pair,), daemon=True).start()

    def _upwards(self, pair: tuple[socket.socket, socket.socket]) -> None:
        client, server = pair
        with suppress(OSError):
            while data := client.recv(65536):
                self._stop_if_hung(pair)
                if self._cut_at is not None and self._cut_at in data:
                    self._cut_at = None
                    if self._answered:
                        self._swallow_answer(pair, data)
                    self.cuts += 1
                    break
                server.sendall(data)
        self._close(pair)

    def _swallow_answer(self, pair: tuple[socket.socket, socket.socket], data: bytes) -> None:
        """Once the server says that it is ready for the next query, what was sent is done."""
        self._ready.clear()
        self._deaf = pair
        pair[1].sendall(data)
        assert self._ready.wait(10)
        self._then()

    def _downwards(self, pair: tuple[socket.socket, socket.socket]) -> None:
        client, server = pair
        tail = b""
        with suppress(OSError):
            while data := server.recv(65536):
                self._stop_if_hung(pair)
                if self._deaf is pair:
                    tail = (tail + data)[-6:]
                    if tail[:5] == b"Z\0\0\0\5":  # ReadyForQuery
                        self._ready.set()
                    continue
                client.sendall(data)
        self._close(pair)

    def _stop_if_hung(self, pair: tuple[socket.socket, socket.socket]) -> None:
        if pair in self._hung:
            self._over.wait()
            raise ConnectionError("hung until the end")

    def _close(self, pair: tuple[socket.socket, socket.socket]) -> None:
        for end in pair:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def proxy_to(dsn: str) -> Iterator[Proxy]:
    with listening() as (listener, port):
        parts = urlsplit(dsn)
        proxy = Proxy(dsn, f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}")
        threading.Thread(target=proxy.serve, args=(listener,), daemon=True).start()
        try:
            yield proxy
        finally:
            proxy._over.set()
            proxy.cut_all()


@contextmanager
def listening() -> Iterator[tuple[socket.socket, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        yield listener, listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        listener.close()


@contextmanager
def refusing(message: str, sqlstate: str = "28P01") -> Iterator[int]:
    """A server that refuses a password in these words, with `{password}` filled in. Yields its port."""

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client, suppress(OSError):
                _refuse(client, message, sqlstate)

    with listening() as (listener, port):
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield port


def _refuse(client: socket.socket, message: str, sqlstate: str) -> None:
    while True:
        (size,) = struct.unpack("!i", client.recv(4))
        start = client.recv(size - 4)
        if start[:4] in (struct.pack("!i", 80877103), struct.pack("!i", 80877104)):  # SSL? GSS?
            client.sendall(b"N")
            continue
        break
    client.sendall(b"R" + struct.pack("!ii", 8, 3))  # a password, in clear
    kind, size = client.recv(1), struct.unpack("!i", client.recv(4))[0]
    assert kind == b"p"
    password = client.recv(size - 4).rstrip(b"\0").decode()
    said = message.format(password=password)
    fields = (
        b"".join(key + text.encode() + b"\0" for key, text in ((b"S", "FATAL"), (b"C", sqlstate), (b"M", said))) + b"\0"
    )
    client.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)
    client.shutdown(socket.SHUT_WR)
    client.recv(1)
