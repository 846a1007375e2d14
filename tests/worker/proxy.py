"""Between a worker and PostgreSQL: a proxy that reads along, and knows which statement a message is about.

Workers repeat their statements, which are soon prepared and go by a name; so the proxy remembers, for each connection,
what the names stand for. At a statement that it waits for it can let the server have it and keep the answer from the
client, or keep the statement itself for later, when the client has given it up.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from tests.store.proxy import accepted, listening, server_socket

TIMEOUT = 30.0
READY = b"Z\0\0\0\5"  # for the next query: what was sent is done, or has failed

#: Words by which the statements are known.
CLAIM = b"set state = 'running', attempt = j.attempt + 1"
RENEW = b"set expires_at ="
SUCCEED = b".succeed_plain("
COMPLETE = b"losses, token, 'succeeded', result"  # in the transaction of a handler
MINE = b"from mine j join given g on g.id = j.id and g.token = j.token"  # the first of a settle that takes several
COMMIT = b"commit"

Fate = Literal["lose answer", "delay"]


@dataclass
class Trap:
    """What to do to the next statement with these words, in a transaction that has seen `after`."""

    words: bytes
    fate: Fate
    after: bytes | None
    then: Callable[[], object] = lambda: None  # done before the client can notice
    sprung: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)  # the server has done what it says
    go: threading.Event = field(default_factory=threading.Event)  # the delayed one may go

    def wait(self) -> None:
        """Until a client has sent the statement."""
        assert self.sprung.wait(TIMEOUT), f"no client sent {self.words!r}"

    def deliver(self) -> None:
        """Send the delayed message to the server."""
        self.go.set()
        assert self.done.wait(TIMEOUT)


@dataclass
class Hold:
    """Statements with these words wait."""

    words: bytes
    reached: threading.Event = field(default_factory=threading.Event)  # a client waits
    over: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Passes messages on, and looks at those from the client."""

    def __init__(self, dsn: str, port: int) -> None:
        parts = urlsplit(dsn)
        self.dsn = dsn
        self.url = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        self._trap: Trap | None = None
        self._hold: Hold | None = None
        self._lock = threading.Lock()
        self._links: list[ProxiedConnection] = []

    def lose_answer(self, words: bytes, after: bytes | None = None, then: Callable[[], object] = lambda: None) -> Trap:
        """The next time that this is sent: have the server do it, then cut the connection before it can say so."""
        return self._set(Trap(words, "lose answer", after, then))

    def delay(self, words: bytes) -> Trap:
        """The next time that this is sent: cut the client off, and send it to the server when told to (`trap.go`)."""
        return self._set(Trap(words, "delay", None))

    def hold(self, words: bytes) -> Hold:
        """From now on this waits, until told to go on; returns once a client waits."""
        hold = self._hold = Hold(words)
        assert hold.reached.wait(TIMEOUT), f"no client sent {words!r}"
        return hold

    def _set(self, trap: Trap) -> Trap:
        with self._lock:
            self._trap = trap
        return trap

    def caught(self, statement: bytes, earlier: bytes) -> Trap | None:
        """The trap that a statement falls into, if it does; it springs once."""
        with self._lock:
            trap = self._trap
            if trap is None or trap.words not in statement or (trap.after and trap.after not in earlier):
                return None
            self._trap = None
            return trap

    def wait_if_held(self, statement: bytes) -> None:
        hold = self._hold
        if hold is not None and hold.words in statement:
            hold.reached.set()
            hold.over.wait(TIMEOUT)

    def serve(self, listener: socket.socket) -> None:
        for client in accepted(listener):
            try:
                link = ProxiedConnection(self, client, server_socket(self.dsn))
            except OSError:
                client.close()
                continue
            self._links.append(link)
            threading.Thread(target=link.upwards, daemon=True).start()
            threading.Thread(target=link.downwards, daemon=True).start()

    def close(self) -> None:
        for link in self._links:
            link.close()


class ProxiedConnection:
    """One connection of the client, and the one to the server that it stands for."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._names: dict[bytes, bytes] = {}  # the texts of prepared statements
        self._earlier = b""  # the statements of this transaction
        self._deaf = False  # the client gets no more answers
        self._ready = threading.Event()

    def upwards(self) -> None:
        with suppress(OSError):
            self._greet()
            while (message := self._message()) is not None:
                statement = self._statement(message)
                if statement is not None and self._is_over(statement, message):
                    break
                self._server.sendall(message)
        self.close()

    def downwards(self) -> None:
        tail = b""
        with suppress(OSError):
            while data := self._server.recv(65536):
                tail = (tail + data)[-6:]
                if self._deaf:
                    if tail[:5] == READY:
                        self._ready.set()
                else:
                    self._client.sendall(data)
        self.close()

    def close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _greet(self) -> None:
        """The first message has no type; requests for encryption come before it, one at a time."""
        while True:
            head = self._exactly(4)
            body = self._exactly(struct.unpack("!i", head)[0] - 4)
            self._server.sendall(head + body)
            if len(body) > 4:
                return

    def _message(self) -> bytes | None:
        kind = self._client.recv(1)
        if not kind:
            return None
        head = self._exactly(4)
        return kind + head + self._exactly(struct.unpack("!i", head)[0] - 4)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._client.recv(size - len(data))
            if not more:
                raise ConnectionError("gone")
            data += more
        return data

    def _statement(self, message: bytes) -> bytes | None:
        """What is about to be done, if this message does something: a query, or parameters for one."""
        kind, body = message[:1], message[5:]
        if kind == b"Q":
            return body.rstrip(b"\0")
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._names[name] = text
        if kind == b"B":
            return self._names[body.split(b"\0", 2)[1]]
        return None

    def _is_over(self, statement: bytes, message: bytes) -> bool:
        """Whether this is the end of the connection, because of a statement that falls into a trap."""
        if statement.startswith(b"begin"):
            self._earlier = b""
        self._proxy.wait_if_held(statement)
        trap = self._proxy.caught(statement, self._earlier)
        self._earlier += statement
        if trap is None:
            return False
        rest = self._rest(message)
        self._deaf = True
        if trap.fate == "delay":
            self._client.shutdown(socket.SHUT_RDWR)
            trap.sprung.set()
            assert trap.go.wait(TIMEOUT)
        self._ready.clear()
        self._server.sendall(message + rest)
        assert self._ready.wait(TIMEOUT)
        trap.then()
        trap.sprung.set()
        trap.done.set()
        return True

    def _rest(self, message: bytes) -> bytes:
        """Parameters are followed by messages that go with them, up to a Sync."""
        rest = b""
        while message[:1] not in (b"Q", b"S"):
            following = self._message()
            assert following is not None
            message = following
            rest += message
        return rest


@contextmanager
def proxy_to(dsn: str) -> Iterator[Proxy]:
    with listening() as (listener, port):
        proxy = Proxy(dsn, port)
        threading.Thread(target=proxy.serve, args=(listener,), daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.close()
