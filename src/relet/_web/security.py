"""Security checks that every request passes before it is routed.

    Host -> size -> credentials -> origin -> form token -> application

A foreign page that is open in an operator's browser can send requests here. By DNS rebinding, they even look as if they
came from the same origin. Therefore the name in `Host` must be an allowed one, requests that change something must
come from our own pages, and a session counts only together with the CSRF token that our own forms contain.
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
from .auth import COOKIE, Principal, TokenAuth
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
MAX_FIELDS = 5000
BODY_WITHIN = 30.0  # seconds: a slow body occupies a connection that other requests wait for
LARGEST_SIGN_IN = 4096  # bytes: the body of a sign-in is read before the sender is authenticated
SIGN_IN_WITHIN = 5.0  # seconds, for the same reason
MAX_FAILURES = 20  # different wrong tokens of one address within a minute
SLOWED_BY = 1.0  # seconds by which the response to a wrong token is delayed after that
MAX_ADDRESSES = 10_000  # whose failures are kept
A_MINUTE = 60.0

CLOSE = {"connection": "close"}  # the rest of the request is not read

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with "no-referrer", browsers send our own forms with Origin: null
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
    """Stores which sessions were signed out before they expired."""

    async def end(self, principal: Principal) -> None:
        """Sign the session out."""

    async def is_ended(self, principal: Principal) -> bool:
        """True if the session was signed out."""


class SecurityMiddleware:
    """ASGI middleware: `inside` receives only authenticated requests, with the principal in `scope`."""

    def __init__(
        self,
        inside: ASGI,
        auth: TokenAuth,
        *,
        hosts: Iterable[str] = LOCAL,
        open_paths: Iterable[str] = (),
        sessions: Sessions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inside = inside
        self.auth = auth
        self._sessions = sessions
        self._hosts = tuple(_host(name) for name in hosts)
        if not self._hosts:
            raise InvalidInput("hosts must list the names by which browsers reach this server: ['queue.example.com'].")
        self._open = frozenset(open_paths)
        self._failures = Failures(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one HTTP request and pass it on. Closes websockets, passes lifespan events through."""
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
            principal = await self._principal(scope, headers) if path not in self._open else None
            if principal is None and path not in self._open:
                raise Refusal("unauthenticated", "Send a token: Authorization: Bearer <token>.")
            scope["relet.principal"] = principal  # from here on, the connection counts as authenticated
            if scope["method"] not in SAFE:
                _check_origin(headers)
            # For every method, so that the application never reads an unbounded body.
            body = await _body(receive, LARGEST_BODY, BODY_WITHIN)
            if scope["method"] not in SAFE:
                self._check_form(principal, headers, body)
            scope["relet.form_token"] = "" if principal is None else self.auth.form_token(principal)
            if path == "/logout" and scope["method"] == "POST":
                await self._log_out(scope, principal, secured)
                return
            await self.inside(scope, _replay(body, receive), secured)
        except Refusal as refusal:
            await self._refuse(scope, headers, refusal, secured)
        except Exception:
            number = secrets.token_hex(4)
            log.exception("Request to %r failed (%s)", path, number)
            if secured.started:
                raise
            detail = f"Internal error. The server's log has the details under {number}."
            await self._refuse(scope, headers, Refusal("internal", detail), secured)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inside(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    def _check_host(self, headers: Mapping[str, str]) -> None:
        host = _host(headers.get("host", ""))
        if not any(allowed in ("*", host) or _is_below(host, allowed) for allowed in self._hosts):
            known = ", ".join(self._hosts)
            detail = f"Host {host!r} is not allowed, only {known}. Add the name with hosts= (--host-name)."
            raise Refusal("misdirected", detail)

    async def _principal(self, scope: Scope, headers: Mapping[str, str]) -> Principal | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return await self._by_token(scope, token.strip())
        session = _cookies(headers).get(COOKIE)
        principal = None if session is None else self.auth.by_session(session)
        return None if principal is None or await self._is_ended(scope, principal) else principal

    async def _is_ended(self, scope: Scope, principal: Principal) -> bool:
        """True if the session was signed out.

        Static files are exempt: they contain nothing secret, and the page that reports an unreachable database needs
        them while this check is impossible.
        """
        if self._sessions is None or path_of(scope).startswith("/static/"):
            return False
        return await self._sessions.is_ended(principal)

    async def _by_token(self, scope: Scope, token: str) -> Principal | None:
        """The owner of a token, or None.

        A valid token is accepted however many wrong ones came from its address, because users may share the address.
        Only responses to wrong tokens are delayed.
        """
        principal = self.auth.by_token(token)
        if principal is not None:
            return principal
        address = network_of(str((scope.get("client") or ("",))[0]))
        if self._failures.too_many(address):
            await asyncio.sleep(SLOWED_BY)
            detail = "Invalid token, and too many wrong tokens from this address. Wait a minute and try again."
            raise Refusal("too-many-requests", detail, headers={"retry-after": "60"})
        self._failures.add(address, token)
        return None

    def _check_form(self, principal: Principal | None, headers: Mapping[str, str], body: bytes) -> None:
        """Require the CSRF token of a session, which browsers attach to foreign requests as well.

        A bearer token needs no such proof: a foreign page cannot know it.
        """
        if principal is None or principal.session is None:
            return
        form_token = headers.get("x-csrf-token") or _form(headers, body).get("csrf", [""])[0]
        if not self.auth.is_form_of(principal, form_token):
            detail = "The form token is missing or belongs to another session. Reload the page and try again."
            raise Refusal("forbidden", detail)

    async def _log_in(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        _check_origin(headers)
        form = _form(headers, await _body(receive, LARGEST_SIGN_IN, SIGN_IN_WITHIN))
        to = form.get("next", ["/"])[0]
        local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
        scope["relet.next"] = to if local else "/"
        principal = await self._by_token(scope, form.get("token", [""])[0].strip())
        if principal is None:
            raise Refusal("unauthenticated", "Invalid token.")
        await _redirect(send, root_of(scope) + _asked_for(scope), _cookie(scope, self.auth.open_session(principal)))

    async def _log_out(self, scope: Scope, principal: Principal | None, send: Send) -> None:
        """Sign the session out in the database before the response, so that a copied cookie is worthless afterwards."""
        if self._sessions is not None and principal is not None and principal.session is not None:
            await self._sessions.end(principal)
        await _redirect(send, root_of(scope) + "/", _cookie(scope, "", 0))

    async def _refuse(self, scope: Scope, headers: Mapping[str, str], refusal: Refusal, send: Send) -> None:
        who = {"www-authenticate": 'Bearer realm="relet"'} if refusal.kind == "unauthenticated" else {}
        if "text/html" in headers.get("accept", "") and not path_of(scope).startswith("/api/"):
            await self._show(scope, refusal, who, send)
            return
        instance = (root_of(scope) + path_of(scope))[:500]
        reply = problem(refusal.kind, refusal.detail, instance=instance, headers={**who, **refusal.headers})
        await _answer(send, reply.status, reply.body, reply.media_type, reply.headers)

    async def _show(self, scope: Scope, refusal: Refusal, who: Mapping[str, str], send: Send) -> None:
        """Send a refusal as a page: the sign-in form, or a page with the reason."""
        kind, root = KINDS[refusal.kind], root_of(scope)
        if who:
            failed = refusal.detail if scope["method"] == "POST" else ""
            page, more = sign_in(root, _asked_for(scope), failed), {"content-security-policy": LOGIN_POLICY}
        else:
            page, more = refused(root, kind.title, refusal.detail, status=kind.status), {}
        all_headers = {**who, **more, **refusal.headers}
        await _answer(send, kind.status, page.encode(), "text/html; charset=utf-8", all_headers)


class Failures:
    """Wrong tokens of the last minute, by address.

    Repeats of one wrong token count once, so a client with a stale token does not slow down others at its address.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, dict[bytes, float]] = {}  # both dicts are ordered by last failure

    def add(self, address: str, token: str) -> None:
        """Count one failure."""
        now = self._clock()
        guesses = self._seen.pop(address, {})
        guess = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        guesses.pop(guess, None)
        guesses[guess] = now
        if len(guesses) > MAX_FAILURES:
            del guesses[next(iter(guesses))]
        self._seen[address] = guesses
        while len(self._seen) > MAX_ADDRESSES or max(next(iter(self._seen.values())).values()) <= now - A_MINUTE:
            del self._seen[next(iter(self._seen))]

    def too_many(self, address: str) -> bool:
        """True if this address has reached the limit of failures."""
        guesses = self._seen.get(address, {})
        return len(guesses) == MAX_FAILURES and min(guesses.values()) > self._clock() - A_MINUTE


def network_of(address: str) -> str:
    """The address, or its /64 network for IPv6: one host can use every address of its network."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address) and known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return address if known.version == 4 else str(ipaddress.ip_network((int(known), 64), strict=False))


def _check_size(scope: Scope, headers: Mapping[str, str], limit: int) -> None:
    if len(scope.get("query_string", b"")) > LONGEST_QUERY:
        raise Refusal("too-large", f"The query string is longer than {LONGEST_QUERY} bytes.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:12]) > limit:
        raise _too_large(limit)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal("unsupported-media-type", "Send the request body uncompressed.")


def _check_origin(headers: Mapping[str, str]) -> None:
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    ours = origin is None or origin.partition("://")[2] == headers.get("host")
    if not ours or site not in (None, "same-origin", "none"):
        raise Refusal("forbidden", "Cross-origin request. Only this server's own pages may make changes.")


async def _body(receive: Receive, limit: int, seconds: float) -> bytes:
    try:
        async with asyncio.timeout(seconds):
            return await _whole(receive, limit)
    except TimeoutError:
        detail = f"The request body did not arrive within {seconds:g} s."
        raise Refusal("malformed", detail, headers=CLOSE) from None


async def _whole(receive: Receive, limit: int) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal("malformed", "The client disconnected before the request body was complete.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large(limit: int) -> Refusal:
    return Refusal("too-large", f"The request body is larger than {limit} bytes. Send less at once.", headers=CLOSE)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body, which has already been read, once more."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class _Secured:
    """Wraps `send`: adds the security headers that a response does not set itself."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._http1 = str(scope.get("http_version", "1.1")).startswith("1")  # HTTP/2 has no Connection header
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            sent = [pair for pair in message.get("headers", ()) if self._http1 or pair[0].lower() != b"connection"]
            names = {name.lower() for name, _ in sent}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in names]
            message = {**message, "headers": [*sent, *more]}
        await self._send(message)


async def _answer(send: Send, status: int, body: bytes, media_type: str, headers: Mapping[str, str]) -> None:
    all_headers = {"content-type": media_type, "content-length": str(len(body)), **headers}
    listed = [(name.encode(), value.encode("latin-1", "replace")) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, to: str, cookie: str) -> None:
    location = quote(to, safe="/?&=%+:,;@!$'()*~.-_")
    await _answer(send, 303, b"", "text/plain", {"location": location, "set-cookie": cookie})


def _cookie(scope: Scope, value: str, seconds: int = 12 * 3600) -> str:
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    return f"{COOKIE}={value}; Path={root_of(scope) or '/'}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _asked_for(scope: Scope) -> str:
    """The path to return to after signing in. It survives failed attempts to sign in."""
    if "relet.next" in scope:
        return str(scope["relet.next"])
    query = scope.get("query_string", b"").decode("latin-1")
    path = path_of(scope)
    return "/" if path in ("/login", "/logout") else path + (f"?{query}" if query else "")


def _headers(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]):
        # HTTP/2 may split cookies into several headers. Of any other repeated header, the last one counts.
        found[name] = f"{found[name]}; {value}" if name == "cookie" and name in found else value
    return found


def _cookies(headers: Mapping[str, str]) -> dict[str, str]:
    """The first cookie of each name. Browsers send the longest path first, so ours precedes another app's "/"."""
    pairs = (part.strip().partition("=") for part in reversed(headers.get("cookie", "").split(";")))
    return {name: value for name, _, value in pairs}


def _form(headers: Mapping[str, str], body: bytes) -> dict[str, list[str]]:
    if headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        return {}
    try:
        return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Refusal("too-large", f"The form has more than {MAX_FIELDS} fields.") from None


def root_of(scope: Scope) -> str:
    """The path at which this app is mounted, without a trailing slash."""
    return str(scope.get("root_path", "")).rstrip("/")


def path_of(scope: Scope) -> str:
    """The request path below the mount point."""
    path, root = str(scope["path"]), root_of(scope)
    return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path


def _host(name: str) -> str:
    """A host name without its port, in lower case, as browsers compare it."""
    name = name.strip().lower().rstrip(".")
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _is_below(name: str, allowed: str) -> bool:
    return allowed.startswith("*.") and name.endswith(allowed[1:])
