"""The web application: its routes, the role each one requires, and the handler of each."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial

from starlette.routing import BaseRoute, Match, Route, Router

from ..app import App
from . import api, pages
from .auth import Role, TokenAuth, Tokens
from .endpoints import Endpoints, Handler, Parameters, for_role
from .problems import Refusal
from .security import LOCAL, SecurityMiddleware


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
    # Compiles the templates in advance, so that the first request does not wait for it.
    threading.Thread(target=pages.environment, name="relet-web-warm-up", daemon=True).start()
    open_paths = ["/health"] if open_health else []
    router = Router(routes_of(endpoints), redirect_slashes=False)
    return SecurityMiddleware(router, auth, hosts=hosts, open_paths=open_paths, sessions=endpoints)


def _auth_from_environment() -> TokenAuth:
    operate, read = os.environ.get("RELET_WEB_TOKEN"), os.environ.get("RELET_WEB_READ_TOKEN")
    if not (operate or read):
        operate = secrets.token_urlsafe(32)
        print(f"relet web: the token of this start is {operate}", file=sys.stderr)
    return TokenAuth(operate=operate, read=read)


class PageRoute(Route):
    """A page of the dashboard. Those that readers may see can be live as well."""

    def __init__(self, path: str, function: Callable[..., pages.Page], endpoints: Endpoints) -> None:
        role: Role = "operate" if path.startswith("/confirm/") else "read"
        super().__init__(path, for_role(role, partial(endpoints.page, function)), methods=["GET"])
        self.live = partial(endpoints.render_main, function) if role == "read" else None


def routes_of(endpoints: Endpoints) -> list[BaseRoute]:
    """Every path that is served to authenticated users, in the order in which they are tried.

    `SecurityMiddleware` itself answers `POST /login` and `POST /logout`.
    """

    def route(path: str, handler: Handler, method: str = "GET", role: Role = "read") -> Route:
        return Route(path, for_role(role, handler), methods=[method])

    def api_handler(endpoint: api.Endpoint) -> Handler:
        return for_role(endpoint.role, partial(endpoints.answer, endpoint))

    dashboard = [PageRoute(path, function, endpoints) for path, function in pages.PAGES]
    api_routes = api.api_routes(api.ENDPOINTS, api_handler)
    return [
        route("/health", endpoints.health),
        route("/metrics", endpoints.metrics),
        route("/live", partial(endpoints.live, partial(live_view, endpoints, [*dashboard, *api_routes]))),
        route("/static/{name}", endpoints.static),
        route("/act/{action}", endpoints.act, "POST", "operate"),
        *dashboard,
        *api_routes,
        *api.api_routes([api.RESUME_AT_TARGET], api_handler, prefix=""),
    ]


def live_view(
    endpoints: Endpoints, routes: Iterable[PageRoute | api.ApiRoute], path: str
) -> tuple[Callable[..., str], Parameters]:
    """The function that renders the page or the response at a path, and the values of the path's parameters."""
    scope = api.live_scope(path)
    for route in routes:
        match, found = route.matches(scope)
        if match is not Match.FULL:
            continue
        if isinstance(route, api.ApiRoute):
            return partial(endpoints.api_text, api.endpoint_of({**scope, **found})), found["path_params"]
        if route.live is not None:
            return route.live, found["path_params"]
    raise Refusal("not-found", f"There is no page at {path[:200]!r}.")
