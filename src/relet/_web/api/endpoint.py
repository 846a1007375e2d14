"""Endpoints of the HTTP API, independent of any server: a `Call` goes in, a `Reply` comes out."""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import cleandoc
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ..._client.client import Client
from ..._core import validate
from ..._core.ids import parse_id
from ..._core.redact import Redact
from ...app import App
from ...errors import InvalidInput, ReletError, StoreError
from ..problems import Fault, Refusal, invalid, problem, refusal_of
from .parsing import read_body, read_query
from .requests import MAX_SCANNED
from .responses import Reply

Role = Literal["read", "operate"]
Pairs = Iterable[tuple[str, str]]

log = logging.getLogger("relet.web")

IDEMPOTENCY_KEY = "Idempotency-Key"

_encoder = msgspec.json.Encoder(uuid_format="canonical")
_PARAMETER = re.compile(r"{(?P<name>\w+)(?P<kind>:path)?}")
_CHECKS: dict[str, Callable[[str], str]] = {
    "id": parse_id,
    "queue": lambda value: validate.name("a queue", value),
    "target": lambda value: validate.text("a target", value),
    "name": lambda value: validate.text("the name of a schedule", value),
}


@dataclass(frozen=True)
class Limits:
    """How much one request may cost.

    `page_scan`, `count_scan`: jobs that a page or a count reads by default; `max_scan`: the most that a request may ask
    for. `bulk_seconds`: how long a bulk action may take.
    """

    page_scan: int = 10_000
    count_scan: int = 50_000
    bulk_seconds: float = 10.0
    max_scan: int = MAX_SCANNED["operate"]


@dataclass(frozen=True)
class Call:
    """A request to an endpoint.

    `client` records changes under the name of the requester. `path`: decoded path parameters. `query`: decoded names
    and values. `root`: where the web app is mounted ("" or "/ops"); the API is at `root + "/api"`. `caller`: the name
    of the token; each token has separate idempotency keys.
    """

    app: App
    client: Client
    caller: str = ""
    idempotency_key: str | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] | Pairs = ()
    body: bytes = b""
    content_type: str | None = None
    redact: Redact = str
    root: str = ""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Result:
    """A handler's return value with a status and headers. Handlers that need neither return the answer itself."""

    answer: object
    status: int
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Call, Any, Any], object]


@dataclass(frozen=True)
class Endpoint:
    """One operation of the API. `path` is in Starlette's style and relative to the API.

    Parameters that may contain a slash are marked `:path`; `ApiRoute` separates them from the rest of the path.
    `statuses` maps the statuses specific to this endpoint, of success and of failure, to their meaning.
    """

    method: str
    path: str
    role: Role
    summary: str
    description: str
    query: type[Struct] | None
    body: type[Struct] | None
    answer: Any
    statuses: dict[int, str]
    handler: Handler

    @property
    def name(self) -> str:
        """The handler's name, unique among the endpoints."""
        return self.handler.__name__

    @property
    def template(self) -> str:
        """The path as OpenAPI writes it."""
        return _PARAMETER.sub(lambda match: f"{{{match['name']}}}", self.path)

    @cached_property
    def parameters(self) -> list[str]:
        """The names of the path parameters."""
        return [match["name"] for match in _PARAMETER.finditer(self.path)]

    def url(self, root: str, path: Mapping[str, str]) -> str:
        """The endpoint's URL path for these parameters."""
        return base(root) + _PARAMETER.sub(
            lambda match: quote(path.get(match["name"], ""), safe="", errors="replace"), self.path
        )


def base(root: str) -> str:
    """The URL path of the API."""
    return quote(root, safe="/") + "/api"


def at(
    where: str,
    role: Role,
    answer: Any,
    statuses: dict[int, str],
    *,
    query: type[Struct] | None = None,
    body: type[Struct] | None = None,
) -> Callable[[Handler], Endpoint]:
    """Make a handler an endpoint: `@at("GET /jobs/{id}", "read", JobView, {200: "..."})`.

    Its docstring becomes the summary and description in the OpenAPI document.
    """
    method, _, path = where.partition(" ")

    def make(handler: Handler) -> Endpoint:
        summary, _, description = cleandoc(handler.__doc__ or "").partition("\n\n")
        words = " ".join(description.split())
        return Endpoint(method, path, role, summary.rstrip("."), words, query, body, answer, statuses, handler)

    return make


def answer(endpoint: Endpoint, call: Call) -> Reply:
    """Call an endpoint. Errors become problem documents; this function never raises."""
    try:
        return _reply_of(endpoint, call)
    except Refusal as refusal:
        return _refused(endpoint, call, refusal)
    except Exception as error:
        known = refusal_of(error) if isinstance(error, ReletError) else None
        if known is None:
            return _unforeseen(endpoint, call, error)
        if isinstance(error, StoreError):
            where = endpoint.url(call.root, call.path)
            log.warning("%s %s: %s: %s", endpoint.method, where, type(error).__name__, error)
        return _refused(endpoint, call, known)


def _reply_of(endpoint: Endpoint, call: Call) -> Reply:
    path = {name: _checked(name, value) for name, value in call.path.items()}
    query = read_query(endpoint.query, call.query)
    body = read_body(endpoint.body, call.body, call.content_type)
    result = endpoint.handler(replace(call, path=path, client=_client(endpoint, call)), query, body)
    if not isinstance(result, Result):
        result = Result(result, min(endpoint.statuses))
    text = b"" if result.status == 204 else _encoder.encode(result.answer)
    return Reply(result.status, text, headers={"Cache-Control": "no-store", **result.headers})


def _client(endpoint: Endpoint, call: Call) -> Client:
    """The client of the call. With an idempotency key, it applies each change of this request only once."""
    if call.idempotency_key is None or endpoint.method == "GET":
        return call.client
    try:
        key = validate.text("an idempotency key", call.idempotency_key)
    except InvalidInput as error:
        raise invalid([Fault(f"header.{IDEMPOTENCY_KEY}", str(error))]) from None
    request = repr((endpoint.name, sorted(call.path.items()), list(_pairs(call.query)))).encode() + call.body
    digest = hashlib.sha256(request).hexdigest()
    return call.client.idempotent(hashlib.sha256(f"{call.caller}\n{key}".encode()).hexdigest(), request=digest)


def _pairs(query: Mapping[str, str] | Pairs) -> Pairs:
    return query.items() if isinstance(query, Mapping) else query


def _checked(name: str, value: str) -> str:
    """A validated path parameter. An invalid name is reported as not found."""
    try:
        return _CHECKS[name](value)
    except InvalidInput as error:
        raise Refusal("not-found", str(error)) from None


def _refused(endpoint: Endpoint, call: Call, refusal: Refusal) -> Reply:
    url = endpoint.url(call.root, call.path)
    return problem(refusal.kind, refusal.detail, instance=url, faults=refusal.faults, headers=refusal.headers)


def _unforeseen(endpoint: Endpoint, call: Call, error: Exception) -> Reply:
    """A response without details, which may be confidential. The log has them under the response's id."""
    id, instance = uuid.uuid4().hex, endpoint.url(call.root, call.path)
    log.error("%s %s failed (%s)", endpoint.method, instance, id, exc_info=error)
    detail = "Internal error, not caused by your request. Ask the server's operator to look up this id in the log."
    return problem("internal", detail, instance=instance, id=id)
