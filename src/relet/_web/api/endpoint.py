"""What an endpoint is, and how one is answered. Nothing here knows of a server: bytes and words in, a `Reply` out."""

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
from .requests import MOST_SCANNED
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
    "target": lambda value: validate.key("a target", value),
    "name": lambda value: validate.key("the name of a schedule", value),
}


@dataclass(frozen=True)
class Limits:
    """How much one request may cost: jobs that a page or a count looks at, at the most where it is asked for more, and
    seconds that a bulk action takes."""

    page_scan: int = 10_000
    count_scan: int = 100_000
    bulk_seconds: float = 10.0
    most_scan: int = MOST_SCANNED["operate"]


@dataclass(frozen=True)
class Call:
    """A request, as far as an endpoint needs to know it.

    `client` acts in the name of who asks. `path`: the values in the path, decoded. `query`: names and values, decoded.
    `root`: where the web app is mounted ("" or "/ops"); the API is at `root + "/api"`. `caller`: the name of the token,
    whose idempotency keys are apart from those of others.
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
    """What a handler answers, where that is more than the answer itself."""

    answer: object
    status: int
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Call, Any, Any], object]


@dataclass(frozen=True)
class Endpoint:
    """One thing that can be asked. `path` is in Starlette's style and relative to the API.

    Parameters that may contain a slash are marked `:path`; `find` tells them from the rest of the path exactly.
    `statuses` are those of its own, good and bad, with what they mean.
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
        """Unique among the endpoints."""
        return self.handler.__name__

    @property
    def template(self) -> str:
        """The path as OpenAPI writes it."""
        return _PARAMETER.sub(lambda match: f"{{{match['name']}}}", self.path)

    @cached_property
    def parameters(self) -> list[str]:
        """The names of what is variable in the path."""
        return [match["name"] for match in _PARAMETER.finditer(self.path)]

    def url(self, root: str, path: Mapping[str, str]) -> str:
        """Where it is, for these values."""
        return base(root) + _PARAMETER.sub(
            lambda match: quote(path.get(match["name"], ""), safe="", errors="replace"), self.path
        )


def base(root: str) -> str:
    """Where the API is, as it stands in a URL."""
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
    """Make an endpoint of a handler: `@at("GET /jobs/{id}", "read", JobView, {200: "..."})`. Its docstring is shown."""
    method, _, path = where.partition(" ")

    def make(handler: Handler) -> Endpoint:
        summary, _, description = cleandoc(handler.__doc__ or "").partition("\n\n")
        words = " ".join(description.split())
        return Endpoint(method, path, role, summary.rstrip("."), words, query, body, answer, statuses, handler)

    return make


def answer(endpoint: Endpoint, call: Call) -> Reply:
    """Do what was asked. Whatever goes wrong becomes a problem document; nothing is raised."""
    instance = endpoint.url(call.root, call.path)
    try:
        return _answered(endpoint, call)
    except Refusal as refusal:
        return _refused(refusal, instance)
    except ReletError as error:
        known = refusal_of(error)
        if known is None:
            return _unforeseen(endpoint, instance, error)
        if isinstance(error, StoreError):
            log.warning("%s %s: %s: %s", endpoint.method, instance, type(error).__name__, error)
        return _refused(known, instance)
    except Exception as error:
        return _unforeseen(endpoint, instance, error)


def _answered(endpoint: Endpoint, call: Call) -> Reply:
    path = {name: _checked(name, value) for name, value in call.path.items()}
    query = read_query(endpoint.query, call.query)
    body = read_body(endpoint.body, call.body, call.content_type)
    said = endpoint.handler(replace(call, path=path, client=_client(endpoint, call)), query, body)
    if not isinstance(said, Result):
        said = Result(said, min(endpoint.statuses))
    text = b"" if said.status == 204 else _encoder.encode(said.answer)
    return Reply(said.status, text, headers={"Cache-Control": "no-store", **said.headers})


def _client(endpoint: Endpoint, call: Call) -> Client:
    """With an idempotency key, one that makes each change of this request once."""
    if call.idempotency_key is None or endpoint.method == "GET":
        return call.client
    try:
        key = validate.key("an idempotency key", call.idempotency_key)
    except InvalidInput as error:
        raise invalid([Fault(f"header.{IDEMPOTENCY_KEY}", str(error))]) from None
    request = repr((endpoint.name, sorted(call.path.items()), list(_pairs(call.query)))).encode() + call.body
    digest = hashlib.sha256(request).hexdigest()
    return call.client.idempotent(hashlib.sha256(f"{call.caller}\n{key}".encode()).hexdigest(), request=digest)


def _pairs(query: Mapping[str, str] | Pairs) -> Pairs:
    return query.items() if isinstance(query, Mapping) else query


def _checked(name: str, value: str) -> str:
    """A value of the path. What can be no name of anything is not found."""
    try:
        return _CHECKS[name](value)
    except InvalidInput as error:
        raise Refusal("not-found", str(error)) from None


def _refused(refusal: Refusal, instance: str) -> Reply:
    return problem(refusal.kind, refusal.detail, instance=instance, faults=refusal.faults, headers=refusal.headers)


def _unforeseen(endpoint: Endpoint, instance: str, error: Exception) -> Reply:
    """The details are for the log: they may tell of what is not for everybody."""
    id = uuid.uuid4().hex
    log.error("%s %s failed (%s)", endpoint.method, instance, id, exc_info=error)
    detail = "this is not your fault, and was logged under the id given here; tell whoever runs the server"
    return problem("internal", detail, instance=instance, id=id)
