"""The web application: its routes, the role each one requires, and the handler of each."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router

from ..app import App
from . import api, pages
from .auth import Role, TokenAuth, Tokens
from .endpoints import Endpoints, Parameters
from .problems import Refusal
from .security import LOCAL, Receive, Scope, SecurityMiddleware, Send, root_of

Handler = Callable[[Request], Awaitable[Response]]
LiveView = Callable[..., str]


def create_app(
    app: App,
    *,
    operate: Tokens | None = None,
    read: Tokens | None = None,
    hosts: Iterable[str] = LOCAL,
    redact: Iterable[str] | None = None,
    open_health: bool = False,
    tenant: str | None = None,
) -> SecurityMiddleware:
    """The HTTP API and the dashboard of an app as an ASGI application. Serve it alone, or mount it in another one.

    `operate`, `read`: tokens of operators, who may make changes, and of readers. Pass one token, or several by the
    names of their owners, which then appear in the audit trail. Without any, the tokens come from the environment
    (`RELET_WEB_TOKEN`, `RELET_WEB_READ_TOKEN`), or a new one is generated and printed. `hosts`: names by which
    browsers may reach this server. `redact`: keys whose values are hidden in payloads and results; by default those
    of the app. `open_health`: `/health` needs no token, for load balancers. `tenant`: the tenant whose jobs are
    served.
    """
    auth = TokenAuth(operate=operate, read=read) if operate or read else _auth_from_environment()
    endpoints = Endpoints(app, tenant, redact, auth)
    threading.Thread(target=pages.warm_up, name="relet-web-warm-up", daemon=True).start()
    open_paths = ["/health"] if open_health else []
    return SecurityMiddleware(Routes(endpoints), auth, hosts=hosts, open_paths=open_paths, sessions=endpoints)


def _auth_from_environment() -> TokenAuth:
    operate, read = os.environ.get("RELET_WEB_TOKEN"), os.environ.get("RELET_WEB_READ_TOKEN")
    if not (operate or read):
        operate = secrets.token_urlsafe(32)
        print(f"relet web: the token of this start is {operate}", file=sys.stderr)
    return TokenAuth(operate=operate, read=read)


class Routes:
    """The routing table. Every page and GET endpoint that readers may see is available live as well."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._live_views: list[tuple[Route, LiveView]] = []
        self.routes = [
            _route("/health", endpoints.health),
            _route("/metrics", endpoints.metrics),
            _route("/live", partial(endpoints.live, self.find)),
            _route("/static/{name}", endpoints.static),
            _route("/act/{action}", endpoints.act, "POST", "operate"),
            *[self._page(endpoints, path, function) for path, function in pages.PAGES],
        ]
        self._router = Router(self.routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route a request that has passed the security checks."""
        if scope["type"] == "http":
            path = api.still_encoded(scope["path"], root_of(scope), scope.get("raw_path"))
            found = _endpoint(path, scope["method"])
            if found is not None:
                await self._api(found, scope, receive, send)
                return
        try:
            await self._router({**scope, "app": self}, receive, send)
        except HTTPException as error:
            kind, detail = _ROUTING_ERRORS[error.status_code]
            raise Refusal(kind, detail, headers=error.headers) from None

    def find(self, path: str) -> tuple[LiveView, Parameters]:
        """The live view of a path, which is percent-encoded as in a URL."""
        if path.startswith("/api/"):
            found = api.find(api.ENDPOINTS, "GET", path.removeprefix("/api"))
            return partial(self._endpoints.api_text, found.endpoint), found.path
        for route, view in self._live_views:
            match, scope = route.matches({"type": "http", "method": "GET", "path": unquote(path)})
            if match is Match.FULL:
                return view, scope["path_params"]
        raise Refusal("not-found", f"There is no page at {path[:200]!r}.")

    async def _api(self, found: api.Found, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request({**scope, "path_params": found.path}, receive, send)
        response = await _guarded(partial(self._endpoints.answer, found.endpoint), found.endpoint.role, request)
        await response(scope, receive, send)

    def _page(self, endpoints: Endpoints, path: str, function: Callable[..., pages.Page]) -> Route:
        role: Role = "operate" if path.startswith("/confirm/") else "read"
        route = _route(path, partial(endpoints.page, function), "GET", role)
        if role == "read":
            self._live_views.append((route, partial(endpoints.render_main, function)))
        return route


_ROUTING_ERRORS = {
    404: ("not-found", "There is no page or endpoint at this path. /api/openapi.json lists all endpoints."),
    405: ("method-not-allowed", "This path does not support the method. The Allow header lists those it supports."),
}


def _endpoint(path: str, method: str) -> api.Found | None:
    if path.startswith("/api/"):
        return api.find(api.ENDPOINTS, method, path.removeprefix("/api"))
    if path.startswith("/targets/") and path.endswith("/resume/"):  # see `RESUME_AT_TARGET`
        return api.find([api.RESUME_AT_TARGET], method, path)
    return None


def _route(path: str, handler: Handler, method: str = "GET", role: Role = "read") -> Route:
    async def guarded(request: Request) -> Response:
        return await _guarded(handler, role, request)

    return Route(path, guarded, methods=[method])


async def _guarded(handler: Handler, role: Role, request: Request) -> Response:
    """Check the role, call the handler, and report its time in `Server-Timing`."""
    principal = request.scope["relet.principal"]
    if role == "operate" and principal.role != "operate":
        raise Refusal("forbidden", "This makes changes and needs an operator token.")
    began = time.perf_counter()
    response = await handler(request)
    response.headers["server-timing"] = f"total;dur={1000 * (time.perf_counter() - began):.1f}"
    return response
