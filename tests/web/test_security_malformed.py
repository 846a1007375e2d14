"""The security middleware against unauthenticated, slow and malformed requests."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

import pytest

pytest.importorskip("starlette")

from relet._core.redact import HIDDEN, redactor
from relet._web import security
from relet._web.security import LARGEST_BODY, MAX_ADDRESSES, MAX_FAILURES, Failures
from tests.web.test_security import OPERATE, PAGE, Visitor, bearer

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def visitor() -> Visitor:
    return Visitor()


def test_a_body_that_cannot_be_read_is_refused_and_is_no_failure_of_the_server(
    visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert visitor.ask("POST", "/login", headers={"origin": "http://["}).status_code == 403
        assert visitor.ask("POST", "/login", headers=FORM, content=b"&a=1" * 6000).status_code == 413
    assert not caplog.records, "strangers could fill the log"


def test_a_body_is_bounded_whatever_the_method(visitor: Visitor) -> None:
    async def endless() -> Any:
        for _ in range(LARGEST_BODY // 65536 + 2):
            yield b"x" * 65536

    assert visitor.ask("GET", headers=bearer(), content=endless()).status_code == 413


def test_a_body_that_drips_in_is_refused(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "BODY_WITHIN", 0.05)

    began = time.monotonic()

    async def ask() -> list[Any]:
        sent: list[Any] = []

        async def receive() -> Any:
            await asyncio.sleep(0.02)
            return {"type": "http.request", "body": b"x", "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        pairs = {"host": "localhost", **bearer()}.items()
        headers = [(name.encode(), value.encode()) for name, value in pairs]
        await visitor.middleware({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive, send)
        return sent

    assert asyncio.run(ask())[0]["status"] == 400
    assert time.monotonic() - began < 5


def test_many_addresses_cost_no_more_than_few() -> None:
    failures = Failures(lambda: 1000.0)
    for number in range(3 * MAX_ADDRESSES):
        failures.add(f"address {number}", "wrong")
    assert len(failures._seen) == MAX_ADDRESSES
    for number in range(3 * MAX_FAILURES):
        failures.add("one", f"wrong {number}")
    assert len(failures._seen["one"]) == MAX_FAILURES
    assert failures.too_many("one")
    assert not failures.too_many(f"address {3 * MAX_ADDRESSES - 1}")


def test_addresses_are_forgotten_after_a_minute_and_networks_count_as_one() -> None:
    moment = [0.0]
    failures = Failures(lambda: moment[0])
    failures.add("one", "wrong")
    moment[0] = 61.0
    failures.add("another", "wrong")
    assert list(failures._seen) == ["another"]
    assert (
        security.network_of("2001:db8::1")
        == security.network_of("2001:db8::ffff:2")
        != security.network_of("2001:db8:0:1::1")
    )
    assert security.network_of("10.0.0.1") == security.network_of("::ffff:10.0.0.1") == "10.0.0.1"
    assert security.network_of("") == ""


def test_a_session_is_found_wherever_its_cookie_stands(visitor: Visitor) -> None:
    cookie, _ = visitor.come_in()
    there = cookie["cookie"]
    several: list[list[tuple[str, str]]] = [
        [("cookie", there), ("cookie", "theme=dark")],  # as HTTP/2 sends them
        [("cookie", "theme=dark"), ("cookie", there)],
        [("cookie", f"{there}; relet_session=of.another.server.here")],  # of a path that is further away
    ]
    for headers in several:
        assert visitor.ask(headers=headers).status_code == 200, headers


def test_a_path_that_only_begins_like_the_mount_point_is_outside_of_it() -> None:
    visitor = Visitor(root="/queue", open_paths=["/health"])
    scope = {"path": "/queue/health", "root_path": "/queue"}
    assert security.path_of(scope) == "/health"
    assert security.path_of(scope | {"path": "/queue"}) == ""
    assert security.path_of(scope | {"path": "/queues/health"}) == "/queues/health"
    assert visitor.ask(path="/health").status_code == 200
    assert visitor.ask(path="/", headers={**PAGE}).status_code == 401
    assert OPERATE not in visitor.ask(path="/").text


def test_a_secret_is_hidden_however_its_key_is_written() -> None:
    redact = redactor()
    assert redact(r'{"pass\u0077ord": "canary"}') == f'{{"password": "{HIDDEN}"}}'
    assert redact('{"db": "postgresql://ada:canary@db/x"}') == '{"db": "postgresql://ada:[hidden]@db/x"}'
    assert redact('{"pwd": "canary"}') == f'{{"pwd": "{HIDDEN}"}}'
    assert redact(r'{"a": "\ud800", "token": 1}') == HIDDEN
    assert redact('{"a": "caf\u00e9 :// @"}') == '{"a": "caf\u00e9 :// @"}'
    inner = r'{"body": "{\"user\": \"ada\", \"list\": [\"{\\\"api_key\\\": \\\"canary\\\"}\"], \"pwd\": \"canary\"}"}'
    redacted = redact(inner)
    assert "canary" not in redacted, "a text may be JSON itself"
    assert json.loads(json.loads(redacted)["body"]) == {
        "user": "ada",
        "list": [f'{{"api_key": "{HIDDEN}"}}'],
        "pwd": HIDDEN,
    }
    for text in ('{ "token" is no JSON', '["of a token", 1.50]'):
        assert json.loads(redact(json.dumps({"said": text})))["said"] == text, "what hides nothing stays as it is"
    own = redactor(["\u043f\u0430\u0440\u043e\u043b\u044c"])
    assert own('{"a": 1}') == '{"a": 1}', "a key in another script is a key, not any key"
    assert (
        own('{"\u041f\u0430\u0440\u043e\u043b\u044c": 1}') == f'{{"\u041f\u0430\u0440\u043e\u043b\u044c": "{HIDDEN}"}}'
    )


def test_redaction_of_a_long_text_is_quick() -> None:
    began = time.process_time()
    for text in ("a" * 250_000, "a://" * 60_000, "a://b:" + "c" * 250_000, "x:" * 100_000):
        redactor()(f'{{"text": "{text}"}}')
    assert time.process_time() - began < 5
