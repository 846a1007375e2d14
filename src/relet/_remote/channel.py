"""HTTP connections to gateways: kept open, given back after use, and moved to the next gateway when one fails."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

import msgspec
from msgspec import Struct

from .._core.redact import without_passwords
from .._store.retry import Transient
from .._system import SYSTEM
from ..errors import InvalidInput, LeaseLost, RowRejected, StoreBusy, StoreError, StoreRefused, StoreUnavailable
from .wire import PATH

T = TypeVar("T")

TIMEOUT = 15.0  # seconds without an answer after which a connection counts as dead
AFTER_WAIT = 5.0  # the same after the time that a request waits at the gateway
MAX_IDLE = 8  # connections
IDLE_FOR = 60.0  # seconds: shorter than gateways and most proxies keep idle connections

_encoder = msgspec.json.Encoder()
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


class Problem(Struct):
    """The part of a problem document that a worker reads."""

    type: str = ""
    detail: str = ""


class Address:
    """The URL of a gateway."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            hidden = without_passwords(url)
            raise InvalidInput(
                f"a gateway's URL is like https://jobs.example.com, without user and query, not {hidden!r}"
            )
        self.is_secure, self.host, self.port = parts.scheme == "https", parts.hostname, parts.port
        self.path = parts.path.rstrip("/") + PATH
        self.where = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


class Gateways:
    """The gateways that a worker may use, and which of them it uses now. All its connections move together."""

    def __init__(self, urls: Sequence[str], token: str) -> None:
        if not urls:
            raise InvalidInput("gateway= needs the URL of a gateway, or several")
        if not token or not token.isascii() or not token.isprintable():
            raise InvalidInput("a gateway needs a token: set RELET_GATEWAY_TOKEN, or pass gateway_token=")
        self.addresses = [Address(url) for url in urls]
        self.token = token
        self._now = 0
        self._channels: WeakSet[Channel] = WeakSet()
        self._context: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"<gateways {', '.join(one.where for one in self.addresses)}>"

    @property
    def current(self) -> Address:
        return self.addresses[self._now % len(self.addresses)]

    def failed(self, address: Address) -> None:
        """Use the next one, unless another thread has moved on already. What waits at this one moves, too."""
        if len(self.addresses) > 1 and self.current is address:
            self._now += 1
            for channel in list(self._channels):
                channel.cut(address)

    def connect(self, address: Address, timeout: float) -> http.client.HTTPConnection:
        if not address.is_secure:
            return http.client.HTTPConnection(address.host, address.port, timeout=timeout)
        self._context = self._context or ssl.create_default_context()
        return http.client.HTTPSConnection(address.host, address.port, timeout=timeout, context=self._context)


class Channel:
    """The connections of some threads of a worker."""

    def __init__(self, gateways: Gateways, timeout: float = TIMEOUT) -> None:
        self.gateways, self._timeout = gateways, timeout
        self._idle: deque[tuple[Address, http.client.HTTPConnection, float]] = deque()
        self._busy: dict[http.client.HTTPConnection, Address] = {}
        self._is_closed = False
        gateways._channels.add(self)

    def call(self, verb: str, asked: Struct, kind: type[T], wait: float = 0.0) -> T:
        """Send a request, and return the answer. Raises Transient if it may be repeated, else StoreError."""
        address = self.gateways.current
        status, body = self._exchange(address, verb, _encoder.encode(asked), wait)
        if status != 200:
            error = _error(address, status, body)
            if isinstance(error, Transient):
                self.gateways.failed(address)
            raise error
        try:
            return _decoder(kind).decode(body)
        except msgspec.DecodeError as error:
            what = f"{address.where} does not answer as a gateway does: {error}"
            raise Transient(StoreUnavailable(what), may_be_committed=True) from None

    def _exchange(self, address: Address, verb: str, body: bytes, wait: float) -> tuple[int, bytes]:
        connection = self._take(address)
        self._busy[connection] = address
        try:
            connection.timeout = wait + (min(self._timeout, AFTER_WAIT) if wait else self._timeout)
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            headers = {"Authorization": f"Bearer {self.gateways.token}", "Content-Type": "application/json"}
            connection.request("POST", address.path + verb, body, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self.gateways.failed(address)
            what = f"{address.where}: {str(error) or type(error).__name__}"
            raise Transient(StoreUnavailable(what), may_be_committed=True) from None
        except BaseException:
            connection.close()
            raise
        finally:
            self._busy.pop(connection, None)
        if answer.will_close:
            connection.close()
        else:
            self._give_back(address, connection)
        return answer.status, data

    def cut(self, address: Address) -> None:
        """End the requests that wait for an answer of this gateway."""
        for connection, used in list(self._busy.items()):
            if used is address and connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def _take(self, address: Address) -> http.client.HTTPConnection:
        while True:
            try:
                known, connection, since = self._idle.pop()
            except IndexError:
                return self.gateways.connect(address, self._timeout)
            if known is address and SYSTEM.monotonic() - since < IDLE_FOR:
                return connection
            connection.close()

    def _give_back(self, address: Address, connection: http.client.HTTPConnection) -> None:
        if len(self._idle) >= MAX_IDLE:
            connection.close()
        else:
            self._idle.append((address, connection, SYSTEM.monotonic()))
            if self._is_closed:
                self.close()

    def close(self) -> None:
        """Close the connections. Those in use are closed after their answers."""
        self._is_closed = True
        while True:
            try:
                self._idle.pop()[1].close()
            except IndexError:
                return


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    found = _decoders.get(kind)
    if found is None:
        found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def _error(address: Address, status: int, body: bytes) -> Exception:
    """The error that a problem document reports. A proxy may answer without one."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.DecodeError:
        problem = Problem()
    kind = problem.type.rpartition(":")[2]
    what = f"{address.where}: {problem.detail or f'status {status}'}"
    if kind == "store-busy":
        return Transient(StoreBusy(what), may_be_committed=False)
    if kind == "lease-lost":
        return LeaseLost("")
    if kind == "store-refused" or status in (401, 403):
        return StoreRefused(what)
    if status in (404, 405):
        return StoreRefused(f"{what}. Is this the URL of a gateway of this version?")
    if status in (400, 413, 422):
        return RowRejected(what)
    if status in (429, 500) or status > 500:
        return Transient(StoreUnavailable(what), may_be_committed=True)
    return StoreError(what)
