"""The web application: which paths there are, who may ask for each, and what answers."""

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
from .auth import Keys, Role, Tokens
from .endpoints import Parameters, Site
from .problems import Refusal
from .security import LOCAL, Receive, Scope, SecurityMiddleware, Send, root_of

Handler = Callable[[Request], Awaitable[Response]]
Look = Callable[..., str]


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
    """The HTTP API and the dashboard of an app, as an ASGI application: to be served alone, or mounted in another.

    `operate`, `read`: tokens of those who may change things, and of those who may only look: one, or several with the
    names of their owners, which the audit trail then tells. Without any, they are taken from the environment
    (`RELET_WEB_TOKEN`, `RELET_WEB_READ_TOKEN`), or one is made and printed. `hosts`: names by which browsers
    may reach this. `redact`: keys whose values in payloads and results are not shown; by default those of the app.
    `open_health`: `/health` answers without a token, for load balancers. `tenant`: whose jobs are meant.
    """
    keys = Keys(operate=operate, read=read) if operate or read else _given_or_made()
    site = Site(app, tenant, redact, keys)
    threading.Thread(target=pages.warm_up, name="relet-web-warm-up", daemon=True).start()
    open_paths = ["/health"] if open_health else []
    return SecurityMiddleware(Paths(site), keys, hosts=hosts, open_paths=open_paths, sessions=site)


def _given_or_made() -> Keys:
    operate, read = os.environ.get("RELET_WEB_TOKEN"), os.environ.get("RELET_WEB_READ_TOKEN")
    if not (operate or read):
        operate = secrets.token_urlsafe(32)
        print(f"relet web: the token of this start is {operate}", file=sys.stderr)
    return Keys(operate=operate, read=read)


class Paths:
    """The table of paths. What can be looked at can also be looked at live."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._looks: list[tuple[Route, Look]] = []
        self.routes = [
            _route("/health", site.health),
            _route("/metrics", site.metrics),
            _route("/live", partial(site.live, self.find)),
            _route("/static/{name}", site.static),
            _route("/act/{action}", site.act, "POST", "operate"),
            *[self._page(site, path, function) for path, function in pages.PAGES],
        ]
        self._router = Router(self.routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request that has come through the doors."""
        if scope["type"] == "http":
            path = api.still_encoded(scope["path"], root_of(scope), scope.get("raw_path"))
            found = _endpoint(path, scope["method"])
            if found is not None:
                await self._api(found, scope, receive, send)
                return
        try:
            await self._router({**scope, "app": self}, receive, send)
        except HTTPException as error:
            kind, detail = _WRONG[error.status_code]
            raise Refusal(kind, detail, headers=error.headers) from None

    def find(self, path: str) -> tuple[Look, Parameters]:
        """What can be looked at under a path, which is quoted as in an address."""
        if path.startswith("/api/"):
            found = api.find(api.ENDPOINTS, "GET", path.removeprefix("/api"))
            return partial(self._site.look_up, found.endpoint), found.path
        for route, look in self._looks:
            match, scope = route.matches({"type": "http", "method": "GET", "path": unquote(path)})
            if match is Match.FULL:
                return look, scope["path_params"]
        raise Refusal("not-found", f"there is nothing to look at under {path[:200]!r}")

    async def _api(self, found: api.Found, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request({**scope, "path_params": found.path}, receive, send)
        response = await _guarded(partial(self._site.answer, found.endpoint), found.endpoint.role, request)
        await response(scope, receive, send)

    def _page(self, site: Site, path: str, function: Callable[..., pages.Page]) -> Route:
        role: Role = "operate" if path.startswith("/confirm/") else "read"
        route = _route(path, partial(site.page, function), "GET", role)
        if role == "read":
            self._looks.append((route, partial(site.look_at, function)))
        return route


_WRONG = {
    404: ("not-found", "there is nothing under this path; /api/openapi.json lists what there is"),
    405: ("method-not-allowed", "this path is there, but not for this method; see Allow"),
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
    """What is asked for, if whoever asks may; and how long it took."""
    caller = request.scope["relet.caller"]
    if role == "operate" and caller.role != "operate":
        raise Refusal("forbidden", "this changes something: use a token of the role operate")
    began = time.perf_counter()
    response = await handler(request)
    response.headers["server-timing"] = f"total;dur={1000 * (time.perf_counter() - began):.1f}"
    return response
