"""Connections to `relet web`: how many there may be, and how long one may take to say what it wants.

A connection is a stranger's until a request on it has shown a token. Strangers make room: where there are too many, of
one address or in all, the oldest of them is closed. So connections that say nothing, or whose sign-in drips in, do not
keep out who has a token.
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

MOST = 500
MOST_OF_ADDRESS = 300
MOST_STRANGERS_OF_ADDRESS = 50  # that had time to show a token
TIME_TO_SHOW = 1.0  # seconds: who opens many connections at once may have one
HEADERS_WITHIN = 10.0  # seconds

_BODY = b"too many connections\n"
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-type: text/plain\r\ncontent-length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY
)


class Proxies:
    """Addresses whose word on where a request comes from is believed."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        self.given = list(given)
        try:
            self._networks = [ip_network(one) for one in self.given]
        except ValueError as error:
            raise InvalidInput(f"--proxy is an address or a network, as in 10.0.0.5 or 10.0.0.0/8: {error}") from None

    def __contains__(self, address: str) -> bool:
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return any(known in network for network in self._networks)


class Connections:
    """All connections of one server, the oldest first."""

    def __init__(self, proxies: Proxies | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.proxies = proxies or Proxies()
        self._clock = clock
        self._of: dict[str, dict[Guarded, None]] = {}  # by address; dictionaries keep the order
        self._all: dict[Guarded, None] = {}

    def admit(self, new: Guarded) -> bool:
        """Make room for a connection; False if there is none. What is behind a proxy cannot be told apart here."""
        there = self._of.get(new.address, {})
        if new.peer not in self.proxies:
            strangers = [one for one in there if one.is_strangers]
            late = self._clock() - TIME_TO_SHOW
            if strangers and len(there) >= MOST_OF_ADDRESS:
                self._close(strangers[0])
            elif len(there) >= MOST_OF_ADDRESS:
                return False
            elif sum(one.since <= late for one in strangers) >= MOST_STRANGERS_OF_ADDRESS:
                self._close(strangers[0])
        if len(self._all) >= MOST:
            oldest = next((one for one in self._all if one.is_strangers), None)
            if oldest is None:
                return False
            self._close(oldest)
        new.since = self._clock()
        self._of.setdefault(new.address, {})[new] = None
        self._all[new] = None
        return True

    def forget(self, gone: Guarded) -> None:
        """It is closed."""
        self._all.pop(gone, None)
        there = self._of.get(gone.address, {})
        there.pop(gone, None)
        if not there:
            self._of.pop(gone.address, None)

    def _close(self, one: Guarded) -> None:
        self.forget(one)
        one.transport.abort()


class Guarded(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol, with bounds. `guarded_by` makes the class that a server uses."""

    among: Connections
    cycle: Any
    transport: asyncio.Transport
    peer = ""
    address = ""  # the peer's, or its network
    since = 0.0
    _proven = False
    _deadline: asyncio.TimerHandle | None = None
    _latest: Any = None  # the request that was under way when headers were last waited for

    @property
    def is_strangers(self) -> bool:
        """No request on it has shown a token."""
        if self.cycle is not None and self.cycle.scope.get("relet.caller") is not None:
            self._proven = True
        return not self._proven

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count it, or turn it away."""
        super().connection_made(transport)
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        self.address = network_of(self.peer)
        if not self.among.admit(self):
            log.warning("turned a connection of %s away: there are too many", self.address)
            transport.write(FULL)
            transport.close()
            return
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """A part of a request. The next one on the same connection has as long for its headers as the first."""
        self._proven = not self.is_strangers  # the next request takes the place of the one that showed it
        super().data_received(data)
        if self.cycle is not self._latest:
            self._latest = self.cycle
            self._stop_waiting()
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop_waiting()
        self.among.forget(self)
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(HEADERS_WITHIN, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def guarded_by(connections: Connections) -> type[asyncio.Protocol]:
    """The protocol of a server whose connections are counted there."""
    return type("GuardedProtocol", (Guarded,), {"among": connections})
