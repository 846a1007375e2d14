"""Limits on connections to `relet web`: how many may be open, and how long one may take to send its headers.

A connection is unauthenticated until a request on it has passed authentication. When too many are open, of one address
or in total, the oldest unauthenticated one is closed. Idle connections and slow sign-ins therefore cannot lock out
users with a token.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from ipaddress import ip_address, ip_network
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ..errors import InvalidInput
from .security import network_of

log = logging.getLogger("relet.web")

MAX_CONNECTIONS = 500
MAX_PER_ADDRESS = 300
MAX_UNAUTHENTICATED_PER_ADDRESS = 50  # counted after TIME_TO_AUTHENTICATE
TIME_TO_AUTHENTICATE = 1.0  # seconds: a client with a token may open many connections at once
HEADERS_WITHIN = 10.0  # seconds

_BODY = b"too many connections\n"
TOO_MANY_CONNECTIONS = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-type: text/plain\r\ncontent-length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY
)


class Proxies:
    """Trusted proxies: addresses whose X-Forwarded-For header is believed."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        self.addresses = list(addresses)
        try:
            self._networks = [ip_network(one) for one in self.addresses]
        except ValueError as error:
            detail = f"--proxy must be an address or a network, such as 10.0.0.5 or 10.0.0.0/8: {error}"
            raise InvalidInput(detail) from None

    def __contains__(self, address: str) -> bool:
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return any(known in network for network in self._networks)


class Connections:
    """The open connections of one server, oldest first."""

    def __init__(
        self,
        proxies: Proxies | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        limit: int = MAX_CONNECTIONS,
        per_address: int = MAX_PER_ADDRESS,
    ) -> None:
        self.proxies = proxies or Proxies()
        self._clock = clock
        self._limit, self._limit_per_address = limit, per_address
        self._by_address: dict[str, dict[Guarded, None]] = {}  # dictionaries keep the order
        self._all: dict[Guarded, None] = {}

    def admit(self, new: Guarded) -> bool:
        """Count a new connection, closing an unauthenticated one if necessary. False if the limit is reached.

        The limits per address do not apply to proxies, whose connections belong to many clients.
        """
        same_address = self._by_address.get(new.address, {})
        if new.peer not in self.proxies:
            unauthenticated = [one for one in same_address if one.is_unauthenticated]
            late = self._clock() - TIME_TO_AUTHENTICATE
            if unauthenticated and len(same_address) >= self._limit_per_address:
                self._close(unauthenticated[0])
            elif len(same_address) >= self._limit_per_address:
                return False
            elif sum(one.since <= late for one in unauthenticated) >= MAX_UNAUTHENTICATED_PER_ADDRESS:
                self._close(unauthenticated[0])
        if len(self._all) >= self._limit:
            oldest = next((one for one in self._all if one.is_unauthenticated), None)
            if oldest is None:
                return False
            self._close(oldest)
        new.since = self._clock()
        self._by_address.setdefault(new.address, {})[new] = None
        self._all[new] = None
        return True

    def forget(self, gone: Guarded) -> None:
        """Stop counting a closed connection."""
        self._all.pop(gone, None)
        same_address = self._by_address.get(gone.address, {})
        same_address.pop(gone, None)
        if not same_address:
            self._by_address.pop(gone.address, None)

    def _close(self, one: Guarded) -> None:
        self.forget(one)
        one.transport.abort()


class Guarded(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's HTTP protocol with connection limits. `guarded_by` makes the class that a server uses."""

    open_connections: Connections  # uvicorn has an attribute `connections`
    cycle: Any
    transport: asyncio.Transport
    peer = ""
    address = ""  # of the peer, or its network
    since = 0.0
    _authenticated = False
    _deadline: asyncio.TimerHandle | None = None
    _latest: Any = None  # the request in progress when we last waited for headers

    @property
    def is_unauthenticated(self) -> bool:
        """True until a request on this connection has been authenticated."""
        if self.cycle is not None and self.cycle.scope.get("relet.principal") is not None:
            self._authenticated = True
        return not self._authenticated

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count the connection, or refuse it with status 503."""
        super().connection_made(transport)
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        self.address = network_of(self.peer)
        if not self.open_connections.admit(self):
            log.warning("Refused a connection from %s: too many are open", self.address)
            transport.write(TOO_MANY_CONNECTIONS)
            transport.close()
            return
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request. Every request on the connection has `HEADERS_WITHIN` seconds for its headers."""
        self._authenticated = not self.is_unauthenticated  # read it before the next request replaces `cycle`
        super().data_received(data)
        if self.cycle is not self._latest:
            self._latest = self.cycle
            self._stop_waiting()
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer and the count of a closed connection."""
        self._stop_waiting()
        self.open_connections.forget(self)
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(HEADERS_WITHIN, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def guarded_by(connections: Connections) -> type[asyncio.Protocol]:
    """A protocol class for a server whose connections are counted by `connections`."""
    return type("GuardedProtocol", (Guarded,), {"open_connections": connections})
