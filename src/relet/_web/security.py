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
from collections.abc import Callable, Iterable
from typing import Protocol
from urllib.parse import parse_qs, quote

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InvalidInput
from .auth import COOKIE, SESSION_SECONDS, Principal, TokenAuth
from .pages import STYLE, refused, sign_in
from .problems import KINDS, Refusal, problem

log = logging.getLogger("relet.web")

LOCAL = ("localhost", "127.0.0.1", "[::1]")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LARGEST_BODY = 1024 * 1024
LONGEST_QUERY = 8192
MAX_FIELDS = 5000
BODY_WITHIN = 30.0  # seconds: a slow body occupies a connection that other requests wait for
LARGEST_SIGN_IN = 4096  # bytes: the body of a sign-in is read before the sender is authenticated
SIGN_IN_WITHIN = 5.0  # seconds, for the same reason
MAX_FAILURES = 20  # different wrong tokens of one address within a minute
WRONG_TOKEN_DELAY = 1.0  # seconds by which the response to a wrong token is delayed after that
MAX_ADDRESSES = 10_000  # whose failures are kept
FAILURES_WITHIN = 60.0  # seconds after which a failure no longer counts

CLOSE = {"connection": "close"}  # the rest of the request is not read
PATH_SAFE = "/:@!$&'()*+,;=~"  # characters that need no quoting in a path

ROUTING_ERRORS = {
    404: ("not-found", "There is no page or endpoint at this path. /api/openapi.json lists all endpoints."),
    405: ("method-not-allowed", "This path does not support the method. The Allow header lists those it supports."),
}

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
    """ASGI middleware: `application` receives only authenticated requests, with the principal in `scope`."""

    def __init__(
        self,
        application: ASGIApp,
        auth: TokenAuth,
        *,
        hosts: Iterable[str] = LOCAL,
        open_paths: Iterable[str] = (),
        sessions: Sessions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.application = application
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
            await self._forward_other_scope(scope, receive, send)
            return
        secured, request = _SecuredSend(scope, send), Request(scope, receive)
        try:
            response = await self._check_and_forward(request, receive, secured)
        except Exception as error:
            refusal = _refusal(request, error)
            if secured.started:
                raise
            response = self._refused(request, refusal)
        if response is not None:
            await response(scope, receive, secured)

    async def _check_and_forward(self, request: Request, receive: Receive, send: Send) -> Response | None:
        """Check a request and pass it on. Returns the response to a sign-in or sign-out, which are not passed on."""
        scope, path = request.scope, path_of(request.scope)
        self._check_host(request)
        is_sign_in = path == "/login" and request.method == "POST"
        _check_size(request, LARGEST_SIGN_IN if is_sign_in else LARGEST_BODY)
        if is_sign_in:
            return await self._log_in(request)
        principal = await self._principal(request) if path not in self._open else None
        if principal is None and path not in self._open:
            raise Refusal("unauthenticated", "Send a token: Authorization: Bearer <token>.")
        scope["relet.principal"] = principal  # from here on, the connection counts as authenticated
        if request.method not in SAFE:
            _check_origin(request)
        # For every method, so that the application never reads an unbounded body.
        body = await _body(request, LARGEST_BODY, BODY_WITHIN)
        if request.method not in SAFE:
            self._check_form(principal, request, body)
        scope["relet.form_token"] = "" if principal is None else self.auth.form_token(principal)
        if path == "/logout" and request.method == "POST":
            return await self._log_out(request, principal)
        await self.application({**scope, "app": self}, _replay(body, receive), send)
        return None

    async def _forward_other_scope(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    def _check_host(self, request: Request) -> None:
        host = _host(request.headers.get("host", ""))
        if not any(allowed in ("*", host) or _is_below(host, allowed) for allowed in self._hosts):
            known = ", ".join(self._hosts)
            detail = f"Host {host!r} is not allowed, only {known}. Add the name with hosts= (--host-name)."
            raise Refusal("misdirected", detail)

    async def _principal(self, request: Request) -> Principal | None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return await self._by_token(request, token.strip())
        session = _session(request)
        principal = None if session is None else self.auth.by_session(session)
        return None if principal is None or await self._is_ended(request.scope, principal) else principal

    async def _is_ended(self, scope: Scope, principal: Principal) -> bool:
        """True if the session was signed out.

        Static files are exempt: they contain nothing secret, and the page that reports an unreachable database needs
        them while this check is impossible.
        """
        if self._sessions is None or path_of(scope).startswith("/static/"):
            return False
        return await self._sessions.is_ended(principal)

    async def _by_token(self, request: Request, token: str) -> Principal | None:
        """The owner of a token, or None.

        A valid token is accepted however many wrong ones came from its address, because users may share the address.
        Only responses to wrong tokens are delayed.
        """
        principal = self.auth.by_token(token)
        if principal is not None:
            return principal
        address = network_of("" if request.client is None else str(request.client.host))
        if self._failures.too_many(address):
            await asyncio.sleep(WRONG_TOKEN_DELAY)
            detail = "Invalid token, and too many wrong tokens from this address. Wait a minute and try again."
            raise Refusal("too-many-requests", detail, headers={"retry-after": "60"})
        self._failures.add(address, token)
        return None

    def _check_form(self, principal: Principal | None, request: Request, body: bytes) -> None:
        """Require the CSRF token of a session, which browsers attach to foreign requests as well.

        A bearer token needs no such proof: a foreign page cannot know it.
        """
        if principal is None or principal.session is None:
            return
        form_token = request.headers.get("x-csrf-token") or _form(request, body).get("csrf", [""])[0]
        if not self.auth.is_form_of(principal, form_token):
            detail = "The form token is missing or belongs to another session. Reload the page and try again."
            raise Refusal("forbidden", detail)

    async def _log_in(self, request: Request) -> Response:
        _check_origin(request)
        form = _form(request, await _body(request, LARGEST_SIGN_IN, SIGN_IN_WITHIN))
        to = form.get("next", ["/"])[0]
        local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
        request.scope["relet.next"] = to if local else "/"
        principal = await self._by_token(request, form.get("token", [""])[0].strip())
        if principal is None:
            raise Refusal("unauthenticated", "Invalid token.")
        return _redirect(
            request, _path_after_sign_in(request.scope), self.auth.open_session(principal), int(SESSION_SECONDS)
        )

    async def _log_out(self, request: Request, principal: Principal | None) -> Response:
        """Sign the session out in the database before the response, so that a copied cookie is worthless afterwards."""
        if self._sessions is not None and principal is not None and principal.session is not None:
            await self._sessions.end(principal)
        return _redirect(request, "/", "", 0)

    def _refused(self, request: Request, refusal: Refusal) -> Response:
        challenge = {"www-authenticate": 'Bearer realm="relet"'} if refusal.kind == "unauthenticated" else {}
        path = path_of(request.scope)
        if "text/html" in request.headers.get("accept", "") and not path.startswith("/api/"):
            return self._refused_page(request, refusal, challenge)
        instance = (root_of(request.scope) + path)[:500]
        reply = problem(refusal.kind, refusal.detail, instance=instance, headers={**challenge, **refusal.headers})
        return Response(reply.body, reply.status, reply.headers, reply.media_type)

    def _refused_page(self, request: Request, refusal: Refusal, challenge: dict[str, str]) -> Response:
        """A refusal as a page: the sign-in form, or a page with the reason."""
        kind, root = KINDS[refusal.kind], root_of(request.scope)
        headers = {**challenge, **refusal.headers}
        if not challenge:
            return HTMLResponse(refused(root, kind.title, refusal.detail, kind.status), kind.status, headers)
        failed = refusal.detail if request.method == "POST" else ""
        page = sign_in(root, _path_after_sign_in(request.scope), failed)
        return HTMLResponse(page, kind.status, {"content-security-policy": LOGIN_POLICY, **headers})


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
        while len(self._seen) > MAX_ADDRESSES or max(next(iter(self._seen.values())).values()) <= now - FAILURES_WITHIN:
            del self._seen[next(iter(self._seen))]

    def too_many(self, address: str) -> bool:
        """True if this address has reached the limit of failures."""
        guesses = self._seen.get(address, {})
        return len(guesses) == MAX_FAILURES and min(guesses.values()) > self._clock() - FAILURES_WITHIN


def network_of(address: str) -> str:
    """The address, or its /64 network for IPv6: one host can use every address of its network."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address) and known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return address if known.version == 4 else str(ipaddress.ip_network((int(known), 64), strict=False))


def _refusal(request: Request, error: Exception) -> Refusal:
    """The refusal that reports an error. Its cause goes to the log unless the requester may know it."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException) and error.status_code in ROUTING_ERRORS:
        kind, detail = ROUTING_ERRORS[error.status_code]
        return Refusal(kind, detail, headers=error.headers)
    number = secrets.token_hex(4)
    log.exception("Request to %r failed (%s)", path_of(request.scope), number)
    return Refusal("internal", f"Internal error. The server's log has the details under {number}.")


def _check_size(request: Request, limit: int) -> None:
    headers = request.headers
    if len(request.scope.get("query_string", b"")) > LONGEST_QUERY:
        raise Refusal("too-large", f"The query string is longer than {LONGEST_QUERY} bytes.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:12]) > limit:
        raise _too_large(limit)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal("unsupported-media-type", "Send the request body uncompressed.")


def _check_origin(request: Request) -> None:
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    ours = origin is None or origin.partition("://")[2] == headers.get("host")
    if not ours or site not in (None, "same-origin", "none"):
        raise Refusal("forbidden", "Cross-origin request. Only this server's own pages may make changes.")


async def _body(request: Request, limit: int, seconds: float) -> bytes:
    """The body, of limited size and within a limited time, which `Request.body` does not limit."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
    except TimeoutError:
        detail = f"The request body did not arrive within {seconds:g} s."
        raise Refusal("malformed", detail, headers=CLOSE) from None
    except ClientDisconnect:
        raise Refusal("malformed", "The client disconnected before the request body was complete.") from None
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


class _SecuredSend:
    """Wraps `send`: adds the security headers that a response does not set itself."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._http1 = str(scope.get("http_version", "1.1")).startswith("1")  # HTTP/2 has no Connection header
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message.setdefault("headers", [])
            headers = MutableHeaders(scope=message)
            if not self._http1:
                del headers["connection"]
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


def _redirect(request: Request, to: str, session: str, seconds: int) -> Response:
    """A redirect that sets the cookie of the session, or with 0 seconds removes it."""
    response = RedirectResponse(root_of(request.scope) + to, 303)
    response.set_cookie(
        COOKIE,
        session,
        max_age=seconds,
        path=cookie_path(request.scope),
        httponly=True,
        samesite="strict",
        secure=is_https(request),
    )
    return response


def cookie_path(scope: Scope) -> str:
    """The path of our cookies, quoted as browsers compare it. A semicolon would end it."""
    return quote(root_of(scope), safe=PATH_SAFE.replace(";", "")) or "/"


def is_https(request: Request) -> bool:
    """True if browsers may send our cookies over HTTPS only. Unlike `Request.url`, this parses no Host header."""
    return request.scope.get("scheme") == "https"


def _path_after_sign_in(scope: Scope) -> str:
    """The path to return to after signing in. It survives failed attempts to sign in."""
    if "relet.next" in scope:
        return str(scope["relet.next"])
    query = scope.get("query_string", b"").decode("latin-1")
    path = path_of(scope)
    return "/" if path in ("/login", "/logout") else path + (f"?{query}" if query else "")


def _session(request: Request) -> str | None:
    """The first session cookie; `Request.cookies` has the last one of each name.

    Browsers send the cookie with the longest path first, so ours precedes one of another app at "/".
    """
    for header in request.headers.getlist("cookie"):  # HTTP/2 may split cookies into several headers
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == COOKIE:
                return value
    return None


def _form(request: Request, body: bytes) -> dict[str, list[str]]:
    """The fields of a form; `Request.form` does not limit their number, and needs another package."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
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
