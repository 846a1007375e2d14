"""The doors: whatever is asked comes through here, before anything else looks at it.

    Host -> size -> credentials -> origin -> form token -> inside

A page of somebody else's that an operator's browser has open can send requests here, and by rebinding its name even
from what looks like the same place. So the name in `Host` must be ours, unsafe requests must come from our own pages,
and a session is believed only together with a token that is written into our own forms.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Protocol
from urllib.parse import parse_qs, quote

from ..errors import InvalidInput
from .auth import COOKIE, Caller, Keys
from .pages import STYLE, refused, sign_in
from .problems import KINDS, Refusal, problem

log = logging.getLogger("relet.web")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = ("localhost", "127.0.0.1", "[::1]")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LARGEST_BODY = 1024 * 1024
LONGEST_QUERY = 8192
MOST_FIELDS = 5000
BODY_WITHIN = 30.0  # seconds: a body that drips in holds a place that others wait for
LARGEST_SIGN_IN = 4096  # bytes, and seconds: it is read before anything is known of who sends it
SIGN_IN_WITHIN = 5.0
MOST_FAILURES = 20  # of one address, within a minute
SLOWED_BY = 1.0  # seconds that the answer to a wrong token takes after so many
MOST_ADDRESSES = 10_000  # that are remembered
A_MINUTE = 60.0

CLOSE = {"connection": "close"}  # what else comes of that request is not read

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # nothing to others; with "no-referrer" our own forms would come from "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
LOGIN_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class Sessions(Protocol):
    """Where it is kept which sessions were signed out before they were over."""

    async def end(self, caller: Caller) -> None:
        """This session is over."""

    async def is_ended(self, caller: Caller) -> bool:
        """Whether it is."""


class SecurityMiddleware:
    """An ASGI app around another: `inside` sees only what may come in, and finds who it is in the scope."""

    def __init__(
        self,
        inside: ASGI,
        keys: Keys,
        *,
        hosts: Iterable[str] = LOCAL,
        open_paths: Iterable[str] = (),
        sessions: Sessions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inside = inside
        self.keys = keys
        self._sessions = sessions
        self._hosts = tuple(_host(name) for name in hosts)
        if not self._hosts:
            raise InvalidInput("hosts must be the names by which browsers reach this, as in ['queue.example.com']")
        self._open = frozenset(open_paths)
        self._failures = Failures(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. What is no HTTP is not for us."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        secured = _Secured(scope, send)
        path, headers = path_of(scope), _headers(scope)
        try:
            self._check_host(headers)
            signs_in = path == "/login" and scope["method"] == "POST"
            _check_size(scope, headers, LARGEST_SIGN_IN if signs_in else LARGEST_BODY)
            if signs_in:
                await self._log_in(scope, headers, receive, secured)
                return
            caller = await self._caller(scope, headers) if path not in self._open else None
            if caller is None and path not in self._open:
                raise Refusal("unauthenticated", "send a token: Authorization: Bearer ...")
            scope["relet.caller"] = caller  # from here on the connection is not one of a stranger
            if scope["method"] not in SAFE:
                _check_origin(headers)
            # Of every method: what reads it inside finds it within its bounds.
            body = await _body(receive, LARGEST_BODY, BODY_WITHIN)
            if scope["method"] not in SAFE:
                self._check_form(caller, headers, body)
            scope["relet.form_token"] = "" if caller is None else self.keys.form_token(caller)
            if path == "/logout" and scope["method"] == "POST":
                await self._log_out(scope, caller, secured)
                return
            await self.inside(scope, _replay(body, receive), secured)
        except Refusal as refusal:
            await self._refuse(scope, headers, refusal, secured)
        except Exception:
            number = secrets.token_hex(4)
            log.exception("a request to %r failed (%s)", path, number)
            if secured.started:
                raise
            detail = f"something went wrong that should not; the log of the server tells more under {number}"
            await self._refuse(scope, headers, Refusal("internal", detail), secured)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inside(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    def _check_host(self, headers: Mapping[str, str]) -> None:
        given = _host(headers.get("host", ""))
        if not any(allowed in ("*", given) or _is_below(given, allowed) for allowed in self._hosts):
            known = ", ".join(self._hosts)
            detail = f"this server is not known as {given!r}, only as {known}; add the name to hosts= (--host-name)"
            raise Refusal("misdirected", detail)

    async def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Caller | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return await self._by_token(scope, token.strip())
        session = _cookies(headers).get(COOKIE)
        caller = None if session is None else self.keys.by_session(session)
        return None if caller is None or await self._is_ended(scope, caller) else caller

    async def _is_ended(self, scope: Scope, caller: Caller) -> bool:
        """Whether the session was signed out. Stylesheet and script hold nothing to protect, and are shown along with
        the page that says that the store is away."""
        if self._sessions is None or path_of(scope).startswith("/static/"):
            return False
        return await self._sessions.is_ended(caller)

    async def _by_token(self, scope: Scope, token: str) -> Caller | None:
        """A right token is let in, however many wrong ones came from the same address: others may share it. Wrong ones
        are slowed down."""
        caller = self.keys.by_token(token)
        if caller is not None:
            return caller
        address = network_of(str((scope.get("client") or ("",))[0]))
        if self._failures.too_many(address):
            await asyncio.sleep(SLOWED_BY)
            detail = "that is none of the tokens of this server, and there were too many wrong ones: wait a minute"
            raise Refusal("too-many-requests", detail, headers={"retry-after": "60"})
        self._failures.add(address, token)
        return None

    def _check_form(self, caller: Caller | None, headers: Mapping[str, str], body: bytes) -> None:
        """A session alone is no proof that its owner wants this. A token in a header is: no page can make it up."""
        if caller is None or caller.session is None:
            return
        shown = headers.get("x-csrf-token") or _form(headers, body).get("csrf", [""])[0]
        if not self.keys.is_form_of(caller, shown):
            detail = "the form's token is missing or of another session: reload the page and try again"
            raise Refusal("forbidden", detail)

    async def _log_in(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        _check_origin(headers)
        form = _form(headers, await _body(receive, LARGEST_SIGN_IN, SIGN_IN_WITHIN))
        to = form.get("next", ["/"])[0]
        local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
        scope["relet.next"] = to if local else "/"
        caller = await self._by_token(scope, form.get("token", [""])[0].strip())
        if caller is None:
            raise Refusal("unauthenticated", "that is none of the tokens of this server")
        await _redirect(send, root_of(scope) + _asked_for(scope), _cookie(scope, self.keys.open_session(caller)))

    async def _log_out(self, scope: Scope, caller: Caller | None, send: Send) -> None:
        """The session is over before the browser is told so: a copy of its cookie is worth nothing afterwards."""
        if self._sessions is not None and caller is not None and caller.session is not None:
            await self._sessions.end(caller)
        await _redirect(send, root_of(scope) + "/", _cookie(scope, "", 0))

    async def _refuse(self, scope: Scope, headers: Mapping[str, str], refusal: Refusal, send: Send) -> None:
        who = {"www-authenticate": 'Bearer realm="relet"'} if refusal.kind == "unauthenticated" else {}
        if "text/html" in headers.get("accept", "") and not path_of(scope).startswith("/api/"):
            await self._show(scope, refusal, who, send)
            return
        place = (root_of(scope) + path_of(scope))[:500]
        reply = problem(refusal.kind, refusal.detail, instance=place, headers={**who, **refusal.headers})
        await _answer(send, reply.status, reply.body, reply.media_type, reply.headers)

    async def _show(self, scope: Scope, refusal: Refusal, who: Mapping[str, str], send: Send) -> None:
        """A refusal as a page: the one that asks for a token, or one that says why."""
        kind, root = KINDS[refusal.kind], root_of(scope)
        if who:
            failed = refusal.detail if scope["method"] == "POST" else ""
            page, more = sign_in(root, _asked_for(scope), failed), {"content-security-policy": LOGIN_POLICY}
        else:
            page, more = refused(root, kind.title, refusal.detail, status=kind.status), {}
        said = {**who, **more, **refusal.headers}
        await _answer(send, kind.status, page.encode(), "text/html; charset=utf-8", said)


class Failures:
    """Wrong tokens of late, by address. The same one again is no new guess: a program with an old token may go on with
    it for ever, and does not slow down who makes a mistake at the same address."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, dict[bytes, float]] = {}  # the one that failed last stands last, within and without

    def add(self, address: str, token: str) -> None:
        """One more."""
        now = self._clock()
        guesses = self._seen.pop(address, {})
        guess = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        guesses.pop(guess, None)
        guesses[guess] = now
        if len(guesses) > MOST_FAILURES:
            del guesses[next(iter(guesses))]
        self._seen[address] = guesses
        while len(self._seen) > MOST_ADDRESSES or max(next(iter(self._seen.values())).values()) <= now - A_MINUTE:
            del self._seen[next(iter(self._seen))]

    def too_many(self, address: str) -> bool:
        """Whether this address has to wait."""
        guesses = self._seen.get(address, {})
        return len(guesses) == MOST_FAILURES and min(guesses.values()) > self._clock() - A_MINUTE


def network_of(address: str) -> str:
    """Who has one address of IPv6 has all of its network."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address) and known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return address if known.version == 4 else str(ipaddress.ip_network((int(known), 64), strict=False))


def _check_size(scope: Scope, headers: Mapping[str, str], most: int) -> None:
    if len(scope.get("query_string", b"")) > LONGEST_QUERY:
        raise Refusal("too-large", f"the parameters of a URL are at most {LONGEST_QUERY} bytes")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:12]) > most:
        raise _too_large(most)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal("unsupported-media-type", "send the request uncompressed")


def _check_origin(headers: Mapping[str, str]) -> None:
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    ours = origin is None or origin.partition("://")[2] == headers.get("host")
    if not ours or site not in (None, "same-origin", "none"):
        raise Refusal("forbidden", "requests that change something come from this server's own pages only")


async def _body(receive: Receive, most: int, seconds: float) -> bytes:
    try:
        async with asyncio.timeout(seconds):
            return await _whole(receive, most)
    except TimeoutError:
        detail = f"the body of the request did not come within {seconds:g} s"
        raise Refusal("malformed", detail, headers=CLOSE) from None


async def _whole(receive: Receive, most: int) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal("malformed", "the request ended before its body did")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large(most: int) -> Refusal:
    return Refusal("too-large", f"a request is at most {most} bytes here; send less at once", headers=CLOSE)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read, for whoever reads it next."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class _Secured:
    """Sends answers. Each has the headers that keep browsers from mischief, unless it says otherwise."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._http1 = str(scope.get("http_version", "1.1")).startswith("1")  # later ones have no such header
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            given = [pair for pair in message.get("headers", ()) if self._http1 or pair[0].lower() != b"connection"]
            there = {name.lower() for name, _ in given}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in there]
            message = {**message, "headers": [*given, *more]}
        await self._send(message)


async def _answer(send: Send, status: int, body: bytes, media_type: str, headers: Mapping[str, str]) -> None:
    said = {"content-type": media_type, "content-length": str(len(body)), **headers}
    listed = [(name.encode(), value.encode("latin-1", "replace")) for name, value in said.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, to: str, cookie: str) -> None:
    place = quote(to, safe="/?&=%+:,;@!$'()*~.-_")
    await _answer(send, 303, b"", "text/plain", {"location": place, "set-cookie": cookie})


def _cookie(scope: Scope, value: str, seconds: int = 12 * 3600) -> str:
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    return f"{COOKIE}={value}; Path={root_of(scope) or '/'}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _asked_for(scope: Scope) -> str:
    """Where to go after signing in, also when that takes several tries."""
    if "relet.next" in scope:
        return str(scope["relet.next"])
    query = scope.get("query_string", b"").decode("latin-1")
    path = path_of(scope)
    return "/" if path in ("/login", "/logout") else path + (f"?{query}" if query else "")


def _headers(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]):
        # HTTP/2 sends cookies one by one. Of what should be there once only, the last counts.
        found[name] = f"{found[name]}; {value}" if name == "cookie" and name in found else value
    return found


def _cookies(headers: Mapping[str, str]) -> dict[str, str]:
    """The first of each name: browsers send that of the nearest path first, and another server's "/" is further."""
    pairs = (part.strip().partition("=") for part in reversed(headers.get("cookie", "").split(";")))
    return {name: value for name, _, value in pairs}


def _form(headers: Mapping[str, str], body: bytes) -> dict[str, list[str]]:
    if headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        return {}
    try:
        return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refusal("too-large", f"a form has at most {MOST_FIELDS} fields") from None


def root_of(scope: Scope) -> str:
    """Where we are mounted."""
    return str(scope.get("root_path", "")).rstrip("/")


def path_of(scope: Scope) -> str:
    """The path below the place where we are mounted."""
    path, root = str(scope["path"]), root_of(scope)
    return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path


def _host(name: str) -> str:
    """A name without its port, as browsers compare names."""
    name = name.strip().lower().rstrip(".")
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _is_below(name: str, allowed: str) -> bool:
    return allowed.startswith("*.") and name.endswith(allowed[1:])
