"""Unauthenticated connections to `relet web` do not lock out users with a token."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

pytest.importorskip("uvicorn")

from relet import InvalidInput
from relet._web import connections, security
from relet._web.connections import (
    MAX_CONNECTIONS,
    MAX_PER_ADDRESS,
    MAX_UNAUTHENTICATED_PER_ADDRESS,
    Connections,
    Proxies,
)
from tests.test_cli_web import answers, free_port, serving

CERTIFICATES = ssl.create_default_context()  # unused here, and httpx would read them anew for each request
TOKEN = "canary-token-of-the-environment"
SLOW_SIGN_IN = (
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 1000\r\n\r\ntoken="
)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    port = free_port()
    with serving(tmp_path, port, RELET_WEB_TOKEN=TOKEN):
        until(lambda: answers(port))
        yield port


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def status(port: int, **headers: str) -> int:
    """The response to a client with the token, on a new connection."""
    sent = {"authorization": f"Bearer {TOKEN}", "host": "localhost", **headers}
    return httpx.get(f"http://127.0.0.1:{port}/api/queues", headers=sent, timeout=60, verify=CERTIFICATES).status_code


def is_closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(10_000) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("data", [b"", b"GET / HT", SLOW_SIGN_IN])
def test_connections_that_show_no_token_do_not_keep_out_who_has_one(port: int, data: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS + 20):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            one.sendall(data)
        for _ in range(3):
            assert status(port) == 200


@pytest.mark.long
def test_the_oldest_stranger_makes_room_and_one_that_shows_a_token_stays(port: int) -> None:
    head = f"GET /live?page=/queues HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    with ExitStack() as stack:
        live = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        live.sendall(head)
        assert live.recv(100).startswith(b"HTTP/1.1 200")
        unauthenticated = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            for _ in range(MAX_UNAUTHENTICATED_PER_ADDRESS + 5)
        ]

        def first_five_are_closed() -> bool:
            """Each that comes once the others had their second closes one."""
            more = socket.create_connection(("127.0.0.1", port), timeout=30)
            unauthenticated.append(stack.enter_context(more))
            return all(is_closed(one) for one in unauthenticated[:5])

        until(first_five_are_closed)
        assert status(port) == 200
        assert not is_closed(unauthenticated[-1])
        assert not is_closed(live)


def test_headers_that_do_not_come_are_not_waited_for(port: int) -> None:
    """Also those of a second request on a connection whose first was answered."""
    with ExitStack() as stack:
        silent, second = (stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(2))
        second.sendall(b"GET /api/queues HTTP/1.1\r\nHost: localhost\r\n\r\n")
        second.settimeout(30)
        assert second.recv(12) == b"HTTP/1.1 401"
        second.sendall(b"GET /api/qu")
        until(lambda: is_closed(silent) and is_closed(second))


def test_the_forwarded_address_of_a_request_is_believed_of_proxies_only(tmp_path: Path) -> None:
    port = free_port()

    def guess(number: int, origin: str) -> int:
        headers = {"authorization": f"Bearer a wrong one {number}", "x-forwarded-for": origin}
        return httpx.get(
            f"http://127.0.0.1:{port}/api/queues", headers=headers, timeout=60, verify=CERTIFICATES
        ).status_code

    with serving(tmp_path, port, RELET_WEB_TOKEN=TOKEN):
        until(lambda: answers(port))
        guesses = [guess(number, f"203.0.113.{number}") for number in range(security.MAX_FAILURES + 1)]
        assert guesses == [401] * security.MAX_FAILURES + [429], "a header is no way round"
    port = free_port()
    with serving(tmp_path, port, "--proxy", "127.0.0.0/8", RELET_WEB_TOKEN=TOKEN):
        until(lambda: answers(port))
        assert {guess(number, f"203.0.113.{number}") for number in range(security.MAX_FAILURES + 1)} == {401}
    with serving(tmp_path, free_port(), "--proxy", "nonsense", RELET_WEB_TOKEN=TOKEN) as server:
        _, err = server.communicate(timeout=60)
        assert (server.returncode, "--proxy must be an address" in err) == (2, True)


class Known:
    """A connection, as far as counting goes."""

    def __init__(self, peer: str, *, unauthenticated: bool) -> None:
        self.peer = self.address = peer
        self.is_unauthenticated = unauthenticated
        self.since = 0.0
        self.transport = self
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_one_address_cannot_take_all_connections_but_a_proxy_may() -> None:
    there = Connections(Proxies(["10.0.0.1"]))
    of_one = [Known("192.0.2.1", unauthenticated=False) for _ in range(MAX_CONNECTIONS)]
    assert sum(there.admit(one) for one in of_one) == MAX_PER_ADDRESS  # type: ignore[arg-type]
    of_proxy = [Known("10.0.0.1", unauthenticated=False) for _ in range(MAX_CONNECTIONS)]
    assert sum(there.admit(one) for one in of_proxy) == MAX_CONNECTIONS - MAX_PER_ADDRESS  # type: ignore[arg-type]
    for one in [*of_one, *of_proxy]:
        there.forget(one)  # type: ignore[arg-type]
    of_proxy = [Known("10.0.0.1", unauthenticated=True) for _ in range(MAX_CONNECTIONS)]
    assert all(there.admit(one) for one in of_proxy)  # type: ignore[arg-type]
    assert there.admit(Known("192.0.2.1", unauthenticated=True))  # type: ignore[arg-type]
    assert [one.aborted for one in of_proxy] == [True] + [False] * (MAX_CONNECTIONS - 1)


def test_who_opens_many_connections_at_once_has_time_to_show_a_token() -> None:
    now = [1000.0]
    there = Connections(clock=lambda: now[0])
    burst = [Known("192.0.2.1", unauthenticated=True) for _ in range(MAX_PER_ADDRESS)]
    assert all(there.admit(one) for one in burst)  # type: ignore[arg-type]
    assert not any(one.aborted for one in burst)
    assert there.admit(Known("192.0.2.1", unauthenticated=True))  # type: ignore[arg-type]
    assert [one.aborted for one in burst] == [True] + [False] * (MAX_PER_ADDRESS - 1), "as many as one address may have"
    for one in burst[MAX_UNAUTHENTICATED_PER_ADDRESS + 1 :]:
        there.forget(one)  # type: ignore[arg-type]
    now[0] += 2
    assert there.admit(Known("192.0.2.1", unauthenticated=True))  # type: ignore[arg-type]
    assert [one.aborted for one in burst[:3]] == [True, True, False], "those that are left had their time"


def test_proxies_are_addresses_or_networks() -> None:
    proxies = Proxies(["10.0.0.5", "192.168.0.0/16", "2001:db8::/32"])
    assert all(one in proxies for one in ("10.0.0.5", "192.168.7.7", "2001:db8::1"))
    assert not any(one in proxies for one in ("10.0.0.6", "", "somewhere", "2001:db9::1"))
    with pytest.raises(InvalidInput, match="--proxy must be an address or a network"):
        Proxies(["proxy.example.com"])
    assert connections.HEADERS_WITHIN <= 10
