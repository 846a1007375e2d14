"""Finds the endpoint of a path. Names in paths may contain anything, slashes too: `a/b` is sent as `a%2Fb`.

Therefore a path is split before it is decoded. Some servers and proxies decode it on the way; if that leaves more parts
than the endpoint has, they are joined again where only one reading is possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from ..problems import Refusal
from .endpoint import Endpoint

_PART = re.compile(r"{(?P<name>\w+)(?P<kind>:path)?}")


class Found(NamedTuple):
    """An endpoint, and the decoded values of its path parameters."""

    endpoint: Endpoint
    path: dict[str, str]


def find(endpoints: Sequence[Endpoint], method: str, raw_path: str | bytes) -> Found:
    """The endpoint of an encoded path below the API, such as `/queues/a%2Fb/pause`; raises `Refusal` if there is none.

    HEAD uses the endpoint of GET. A trailing slash is ignored.
    """
    path = (raw_path if isinstance(raw_path, str) else raw_path.decode("latin-1")).partition("?")[0]
    path = path[:-1] if path.endswith("/") and path != "/" else path
    matches = list(_exact(endpoints, path)) or list(_decoded(endpoints, path))
    wanted = "GET" if method == "HEAD" else method
    for found in matches:
        if found.endpoint.method == wanted:
            return found
    if not matches:
        raise Refusal("not-found", f"There is no endpoint at {path[:200]}. /openapi.json lists all endpoints.")
    allowed = ", ".join(sorted({found.endpoint.method for found in matches}))
    detail = f"{path[:200]} does not support {method[:20]}. Use {allowed}."
    raise Refusal("method-not-allowed", detail, headers={"Allow": allowed})


def still_encoded(path: str, root: str, raw_path: bytes | None) -> str:
    """The encoded path below `root`, as the client sent it. Encodes the path anew if the server kept no raw path."""
    if raw_path is None or unquote_to_bytes(raw_path).decode("utf-8", "replace") != path:
        return quote(path.removeprefix(root), safe="/")
    sent = raw_path.decode("latin-1").partition("?")[0]
    return sent.removeprefix(quote(root, safe="/"))


def _exact(endpoints: Sequence[Endpoint], path: str) -> Iterator[Found]:
    parts = path.split("/")
    literal: list[Found] = []
    variable: list[Found] = []
    for endpoint in endpoints:
        template = endpoint.path.split("/")
        values = _values(template, parts)
        if values is not None:
            (variable if values else literal).append(Found(endpoint, values))
    yield from literal or variable  # /jobs/count is not the job "count"


def _values(template: list[str], parts: list[str]) -> dict[str, str] | None:
    if len(template) != len(parts):
        return None
    values: dict[str, str] = {}
    for expected, part in zip(template, parts, strict=True):
        match = _PART.fullmatch(expected)
        if match is not None and part:
            values[match["name"]] = _decode(part)
        elif expected != part:
            return None
    return values


def _decoded(endpoints: Sequence[Endpoint], path: str) -> Iterator[Found]:
    for endpoint in endpoints:
        if ":path" in endpoint.path:
            match = re.fullmatch(_pattern(endpoint.path), path, re.S)
            if match is not None:
                yield Found(endpoint, {name: _decode(value) for name, value in match.groupdict().items()})


def _pattern(template: str) -> str:
    literals, end = [], 0
    for match in _PART.finditer(template):
        literals += [re.escape(template[end : match.start()])]
        literals += [f"(?P<{match['name']}>{'.+' if match['kind'] else '[^/]+'})"]
        end = match.end()
    return "".join([*literals, re.escape(template[end:])])


def _decode(part: str) -> str:
    try:
        return unquote_to_bytes(part.encode("latin-1")).decode()
    except UnicodeError:
        raise Refusal("not-found", f"{part[:200]} in the path is not percent-encoded UTF-8.") from None
