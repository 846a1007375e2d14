"""Routes of the API. Names in paths may contain anything, slashes too: `a/b` is sent as `a%2Fb`.

Therefore a path is split before it is decoded. Some servers and proxies decode it on the way; if that leaves more parts
than the endpoint has, they are joined again where only one reading is possible.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote, unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from ..problems import Refusal
from .endpoint import Endpoint

MakeHandler = Callable[[Endpoint], Callable[[Request], Awaitable[Response]]]

_PARAMETER = re.compile(r"{(?P<name>\w+)(?P<kind>:path)?}")
_ENCODED = "relet.encoded_path"  # where the scope keeps the path for the next route


def api_routes(endpoints: Sequence[Endpoint], make_handler: MakeHandler, *, prefix: str = "/api") -> list[ApiRoute]:
    """The routes of these endpoints, in the order in which a path is compared with them.

    Paths without parameters come first: /jobs/count is not the job "count". Paths whose parts must be joined are last.
    """
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    paths = sorted(by_path, key=lambda path: "{" in path)
    joined = [endpoint for endpoint in endpoints if ":path" in endpoint.path]
    exact_routes = [ApiRoute(by_path[path], make_handler, prefix, joins=False) for path in paths]
    return [*exact_routes, ApiRoute(joined, make_handler, prefix, joins=True)]


class ApiRoute(BaseRoute):
    """Endpoints that share a path, or with `joins` all those whose parameters may span several parts of it.

    It matches whatever the method is: a path must not mean something else because its method is not supported.
    """

    def __init__(self, endpoints: Sequence[Endpoint], make_handler: MakeHandler, prefix: str, *, joins: bool) -> None:
        self._handlers = {one.name: make_handler(one) for one in endpoints}
        self._patterns = [(one, re.compile(_pattern(prefix + one.path, joins), re.DOTALL)) for one in endpoints]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Compare the encoded path. HEAD uses the endpoint of GET. A trailing slash is ignored."""
        if scope["type"] != "http":
            return Match.NONE, {}
        path = encoded_path(scope)
        path = path[:-1] if path.endswith("/") else path
        matching = [(one, match) for one, pattern in self._patterns if (match := pattern.fullmatch(path))]
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        for endpoint, match in matching:
            if endpoint.method == method:
                values = {name: _decode(value) for name, value in match.groupdict().items()}
                return Match.FULL, {"endpoint": endpoint, "path_params": values}
        allowed = sorted({endpoint.method for endpoint, _ in matching})
        return (Match.FULL, {"endpoint": None, "relet.allowed": allowed}) if matching else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request that matches."""
        response = await self._handlers[endpoint_of(scope).name](Request(scope, receive, send))
        await response(scope, receive, send)


def endpoint_of(scope: Scope) -> Endpoint:
    """The endpoint that a route has found. Raises `Refusal` if the path does not support the method."""
    endpoint: Endpoint | None = scope["endpoint"]
    if endpoint is None:
        allowed, method = ", ".join(scope["relet.allowed"]), str(scope["method"])[:20]
        detail = f"{encoded_path(scope)[:200]} does not support {method}. Use {allowed}."
        raise Refusal("method-not-allowed", detail, headers={"Allow": allowed})
    return endpoint


def encoded_path(scope: Scope) -> str:
    """The encoded path of a request below the mount point."""
    if _ENCODED not in scope:
        root = str(scope.get("root_path", "")).rstrip("/")
        scope[_ENCODED] = still_encoded(scope["path"], root, scope.get("raw_path"))
    return str(scope[_ENCODED])


def still_encoded(path: str, root: str, raw_path: bytes | None) -> str:
    """The encoded path below `root`, as the client sent it. Encodes the path anew if the server kept no raw path."""
    if raw_path is None or unquote_to_bytes(raw_path).decode("utf-8", "replace") != path:
        return quote(path.removeprefix(root), safe="/")
    sent = raw_path.decode("latin-1").partition("?")[0]
    return sent.removeprefix(quote(root, safe="/"))


def live_scope(path: str) -> Scope:
    """The scope of a GET request to a path, which is percent-encoded as in a URL."""
    decoded = unquote_to_bytes(path).decode("utf-8", "replace")
    return {"type": "http", "method": "GET", "path": decoded, _ENCODED: path}


def _pattern(template: str, joins: bool) -> str:
    literals, end = [], 0
    for match in _PARAMETER.finditer(template):
        literals += [re.escape(template[end : match.start()])]
        literals += [f"(?P<{match['name']}>{'.+' if joins and match['kind'] else '[^/]+'})"]
        end = match.end()
    return "".join([*literals, re.escape(template[end:])])


def _decode(part: str) -> str:
    try:
        return unquote_to_bytes(part.encode("latin-1")).decode()
    except UnicodeError:
        raise Refusal("not-found", f"{part[:200]} in the path is not percent-encoded UTF-8.") from None
