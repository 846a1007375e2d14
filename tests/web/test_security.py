"""The security middleware: which requests pass, as which principal, and which are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette")

from relet import InvalidInput
from relet._core.redact import HIDDEN, redactor, without_passwords
from relet._web import security
from relet._web.auth import SESSION_SECONDS, TokenAuth
from relet._web.security import (
    HEADERS,
    LARGEST_BODY,
    LARGEST_SIGN_IN,
    LOCAL,
    MAX_FAILURES,
    WRONG_TOKEN_DELAY,
    SecurityMiddleware,
)

OPERATE, READ = "o" * 32, "r" * 32
PAGE = {"accept": "text/html"}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def inside(scope: Any, receive: Any, send: Any) -> None:
    """Responds with the principal and the length of the body."""
    if scope["path"].endswith("/breaks"):
        raise ValueError("a secret detail")
    body = b"" if scope["method"] == "GET" else (await receive())["body"]
    text = f"{scope['relet.principal']} {scope['relet.form_token']} {len(body)}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text})


class Visitor:
    """An HTTP client of the middleware."""

    def __init__(self, *, hosts: Iterable[str] = LOCAL, open_paths: Iterable[str] = (), root: str = "") -> None:
        self.clock = Clock()
        self.auth = TokenAuth(operate={"ada": OPERATE}, read=READ, clock=self.clock)
        self.middleware = SecurityMiddleware(inside, self.auth, hosts=hosts, open_paths=open_paths, clock=self.clock)
        self.root = root

    def ask(self, method: str = "GET", path: str = "/", **options: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.middleware, root_path=self.root)
            base = options.pop("base", "http://localhost:8470")
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, self.root + path, **options)

        return asyncio.run(asked())

    def come_in(self, token: str = OPERATE) -> tuple[dict[str, str], str]:
        """The cookie of a session, and the token of its forms."""
        answer = self.ask("POST", "/login", data={"token": token})
        assert answer.status_code == 303
        cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
        return cookie, self.ask(headers=cookie).text.split()[-2]


@pytest.fixture
def visitor() -> Visitor:
    return Visitor()


def bearer(token: str = OPERATE) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_who_has_no_token_stays_outside(visitor: Visitor) -> None:
    for headers in ({}, bearer("wrong"), {"authorization": "Basic YTpi"}, {"cookie": "relet_session=x"}):
        answer = visitor.ask(headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "Principal(name='ada', role='operate'" in visitor.ask(headers=bearer()).text
    assert "Principal(name='read', role='read'" in visitor.ask(headers=bearer(READ)).text


def test_a_browser_without_a_session_is_asked_for_a_token(visitor: Visitor) -> None:
    answer = visitor.ask(path="/jobs?state=failed&x=%22%3E%3Cscript%3E", headers=PAGE)
    assert answer.status_code == 401
    assert 'action="/login"' in answer.text
    assert "<script>" not in answer.text
    assert "style-src 'sha256-" in answer.headers["content-security-policy"]


def test_a_session_lasts_for_hours_and_not_longer(visitor: Visitor) -> None:
    answer = visitor.ask("POST", "/login", data={"token": OPERATE, "next": "/jobs?state=failed"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?state=failed")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/;"))
    assert "Secure" not in cookie
    secure = visitor.ask("POST", "/login", data={"token": OPERATE}, base="https://localhost")
    assert "; Secure" in secure.headers["set-cookie"]
    headers = {"cookie": cookie.partition(";")[0]}
    assert visitor.ask(headers=headers).status_code == 200
    visitor.clock.now += SESSION_SECONDS + 1
    assert visitor.ask(headers=headers).status_code == 401


def test_a_session_that_was_tampered_with_is_none(visitor: Visitor) -> None:
    cookie, _ = visitor.come_in(READ)
    value = cookie["cookie"].partition("=")[2]
    expires, nonce, name, signature = value.split(".")
    operator = visitor.auth.open_session(visitor.auth.by_token(OPERATE))  # type: ignore[arg-type]
    forged = [
        f"{int(expires) + 1}.{nonce}.{name}.{signature}",
        f"{expires}.{nonce}.{operator.split('.')[2]}.{signature}",
        f"{expires}.{nonce}.{name}.{signature[:-1]}",
        f"{expires}.{nonce}.!.{signature}",
        "...",
        "9" * 4000,
        "ä.b.c.d",
    ]
    for one in forged:
        assert visitor.auth.by_session(one) is None
    another = TokenAuth(operate={"ada": "n" * 32}, read=READ, clock=visitor.clock)
    assert another.by_session(operator) is None, "a token that is changed takes its sessions with it"
    assert another.by_session(value) is not None


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/x"]
)
def test_signing_in_leads_nowhere_else(visitor: Visitor, to: str) -> None:
    answer = visitor.ask("POST", "/login", data={"token": OPERATE, "next": to})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.long
def test_a_wrong_token_is_reported_and_too_many_have_to_wait(visitor: Visitor) -> None:
    for number in range(MAX_FAILURES):
        answer = visitor.ask("POST", "/login", data={"token": f"wrong {number}"}, headers=PAGE)
        assert (answer.status_code, "Invalid token" in answer.text) == (401, True)
    for answer in (visitor.ask("POST", "/login", data={"token": "wrong"}), visitor.ask(headers=bearer("wrong"))):
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    visitor.clock.now += 61
    assert visitor.ask(headers=bearer("wrong")).status_code == 401


def test_wrong_tokens_are_slowed_down_and_a_right_one_of_the_same_address_is_let_in_at_once(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for number in range(3 * MAX_FAILURES):
        visitor.ask(headers=bearer(f"a guess {number}"))
    assert slept == [WRONG_TOKEN_DELAY] * (2 * MAX_FAILURES)
    assert visitor.ask(headers=bearer()).status_code == 200
    assert visitor.ask("POST", "/login", data={"token": READ}).status_code == 303
    assert len(slept) == 2 * MAX_FAILURES


def test_a_program_that_goes_on_with_an_old_token_slows_down_no_mistake_of_others(visitor: Visitor) -> None:
    """Behind a proxy all users may share one address. Repeats of one wrong token count once."""
    for _ in range(3 * MAX_FAILURES):
        assert visitor.ask(headers=bearer("an-old-token-of-a-scraper")).status_code == 401
    for number in range(MAX_FAILURES - 1):
        assert visitor.ask(headers=bearer(f"a guess {number}")).status_code == 401
    assert visitor.ask(headers=bearer("one more guess")).status_code == 429


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "[::2]", "evil.example:8470"]
)
def test_a_name_that_is_not_ours_is_refused_even_with_a_token(visitor: Visitor, host: str) -> None:
    """Rebinding: a page of evil.example, whose name now leads here."""
    answer = visitor.ask(headers={**bearer(), "host": host})
    assert answer.status_code == 421
    assert "hosts=" in answer.json()["detail"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8470", "127.0.0.1:1", "[::1]:8470", "localhost."])
def test_names_that_are_ours_come_in_on_any_port(visitor: Visitor, host: str) -> None:
    assert visitor.ask(headers={**bearer(), "host": host}).status_code == 200


def test_names_can_be_added() -> None:
    visitor = Visitor(hosts=["queue.example.com", "*.internal"])
    for host, status in {"queue.example.com": 200, "a.internal": 200, "internal": 421, "localhost": 421}.items():
        assert visitor.ask(headers={**bearer(), "host": host}).status_code == status
    with pytest.raises(InvalidInput, match="hosts"):
        Visitor(hosts=[])


ELSEWHERE = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost:9999"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_a_request_from_elsewhere_changes_nothing_not_even_with_a_token(
    visitor: Visitor, headers: dict[str, str]
) -> None:
    cookie, token = visitor.come_in()
    for more in (bearer(), {**cookie, "x-csrf-token": token}):
        assert visitor.ask("POST", headers={**more, **headers}).status_code == 403
    assert visitor.ask("POST", "/login", data={"token": OPERATE}, headers=headers).status_code == 403


def test_a_session_needs_the_token_that_its_forms_contain(visitor: Visitor) -> None:
    cookie, token = visitor.come_in()
    _, of_another = visitor.come_in()
    ours = {**cookie, "origin": "http://localhost:8470", "sec-fetch-site": "same-origin"}
    assert visitor.ask("POST", headers=ours).status_code == 403
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert visitor.ask(method, headers={**ours, "x-csrf-token": of_another}).status_code == 403
        assert visitor.ask(method, headers={**ours, "x-csrf-token": token}).status_code == 200
    assert visitor.ask("POST", headers=ours, data={"csrf": token}).status_code == 200
    assert visitor.ask("POST", headers=ours, data={"csrf": of_another}).status_code == 403
    assert (
        visitor.ask("POST", headers={**ours, "content-type": "text/plain"}, content=f"csrf={token}").status_code == 403
    )
    assert visitor.ask("POST", headers=bearer()).status_code == 200, "no page can make up a token in a header"


def test_signing_out_ends_the_session_in_the_browser(visitor: Visitor) -> None:
    cookie, token = visitor.come_in()
    answer = visitor.ask("POST", "/logout", headers=cookie, data={"csrf": token})
    assert (answer.status_code, "Max-Age=0" in answer.headers["set-cookie"]) == (303, True)


def test_a_sign_in_is_small_and_comes_at_once_or_is_refused(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    async def chunks() -> Any:
        for _ in range(5):
            yield b"x" * (LARGEST_SIGN_IN // 4)

    async def drip() -> Any:
        yield b"token="
        await asyncio.sleep(30)
        yield OPERATE.encode()

    form = {"content-type": "application/x-www-form-urlencoded"}
    for content in (b"x" * (LARGEST_SIGN_IN + 1), chunks()):
        answer = visitor.ask("POST", "/login", content=content, headers=form)
        assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    monkeypatch.setattr(security, "SIGN_IN_WITHIN", 0.05)
    answer = visitor.ask("POST", "/login", content=drip(), headers=form)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    assert "within 0.05 s" in answer.json()["detail"]


def test_a_body_that_is_too_large_is_not_read(visitor: Visitor) -> None:
    async def chunks() -> Any:
        for _ in range(5):
            yield b"x" * (LARGEST_BODY // 4)

    assert visitor.ask("POST", headers=bearer(), content=b"x" * (LARGEST_BODY + 1)).status_code == 413
    assert visitor.ask("POST", headers=bearer(), content=chunks()).status_code == 413
    assert visitor.ask("POST", headers=bearer(), content=b"x" * LARGEST_BODY).status_code == 200
    assert visitor.ask(path="/?q=" + "x" * 9000, headers=bearer()).status_code == 413
    assert visitor.ask("POST", headers={**bearer(), "content-encoding": "gzip"}, content=b"x").status_code == 415
    assert visitor.ask("POST", headers={**bearer(), "content-length": "-1"}, content=b"x").status_code == 413


def test_every_answer_keeps_browsers_from_mischief(visitor: Visitor) -> None:
    answers = [
        visitor.ask(headers=bearer()),
        visitor.ask(),
        visitor.ask(headers={"host": "evil.example"}),
        visitor.ask(path="/breaks", headers=bearer()),
        visitor.ask("POST", "/login", data={"token": OPERATE}),
    ]
    assert [answer.status_code for answer in answers] == [200, 401, 421, 500, 303]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


def test_internal_errors_go_to_the_log_and_not_to_the_response(
    visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    answer = visitor.ask(path="/breaks", headers=bearer())
    assert "secret" not in answer.text
    number = answer.json()["detail"].split()[-1].rstrip(".")
    assert number in caplog.text
    assert "a secret detail" in caplog.text


def test_mounted_elsewhere_everything_stays_below_the_mount_point() -> None:
    visitor = Visitor(root="/queue")
    answer = visitor.ask(path="/jobs", headers=PAGE)
    assert 'action="/queue/login"' in answer.text
    answer = visitor.ask("POST", "/login", data={"token": OPERATE, "next": "/jobs"})
    assert (answer.headers["location"], "Path=/queue;" in answer.headers["set-cookie"]) == ("/queue/jobs", True)


@pytest.mark.parametrize(("root", "path"), [("/日本", "/%E6%97%A5%E6%9C%AC"), ("/a;b", "/a%3Bb")])
def test_the_path_of_a_cookie_is_quoted(root: str, path: str) -> None:
    answer = Visitor(root=root).ask("POST", "/login", data={"token": OPERATE})
    assert answer.status_code == 303
    assert f"; Path={path};" in answer.headers["set-cookie"]


def test_an_open_path_is_open_and_the_others_are_not() -> None:
    visitor = Visitor(open_paths=["/health"])
    assert visitor.ask(path="/health").status_code == 200
    assert visitor.ask(path="/health/").status_code == 401
    assert visitor.ask(path="/metrics").status_code == 401


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ({}, "A token is required"),
        ({"operate": "short"}, "too short"),
        ({"operate": {"": "x" * 20}}, "A token's name"),
        ({"operate": OPERATE, "read": OPERATE}, "Token names and tokens must be unique"),
        ({"operate": {"ada": OPERATE}, "read": {"ada": READ}}, "Token names and tokens must be unique"),
    ],
)
def test_tokens_that_protect_nothing_are_refused(tokens: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TokenAuth(**tokens)


def test_values_of_secret_keys_are_hidden_wherever_they_stand() -> None:
    redact = redactor()
    text = '{"user": "ada", "dbPassword": "x", "headers": [{"X-Api-Key": {"deep": 1}}], "n": 12345678901234567890123}'
    assert redact(text) == (
        f'{{"user": "ada", "dbPassword": "{HIDDEN}", "headers": [{{"X-Api-Key": "{HIDDEN}"}}], '
        '"n": 12345678901234567890123}'
    )
    plain = '{"a": 1.0, "b":[1e400]}'
    assert redact(plain) == plain, "what has nothing to hide stays as it was stored"
    assert redact('{"password": ' + "[" * 5000) == HIDDEN
    assert redactor(["salary"])('{"salary": 1, "password": 2}') == f'{{"salary": "{HIDDEN}", "password": 2}}'
    assert redactor([])('{"password": 2}') == '{"password": 2}'
    assert without_passwords("no way to postgresql://ada:canary@db/x") == "no way to postgresql://ada:[hidden]@db/x"
