"""The OpenAPI document, generated from the table of endpoints and their request and response types."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .api import requests
from .api.responses import JSON
from .auth import COOKIE
from .problems import KINDS, MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from .api.endpoint import Endpoint

REF = "#/components/schemas/{name}"

_PATH_TYPES: dict[str, Any] = {
    "id": requests.Id,
    "queue": requests.Name,
    "target": requests.Text,
    "name": requests.Text,
}
_OF_BODIES = (400, 413, 415, 422)
_OF_ALL = (401, 403, 421, 429, 500, 503, 504)
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A request repeated with the same key within a day has no further effect, and the same response.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[ -~]+$"},
}
_ABOUT = """\
Jobs, queues, targets, schedules and workers of one store.

Errors are problem documents (RFC 9457): `detail` says what happened and what to do, and `errors` names the wrong
fields. Names in paths are percent-encoded, slashes too: the queue `a/b` is paused at `/queues/a%2Fb/pause`.
Timestamps follow RFC 3339, durations are in seconds. Changes are recorded in the audit trail (`/audit`)."""


def openapi(endpoints: Sequence[Endpoint], *, root: str, version: str, tasks: Iterable[str] = ()) -> dict[str, Any]:
    """An OpenAPI 3.1 document. `root`: where the web app is mounted. `tasks`: the names of all tasks."""
    schemas, components = _schemas(endpoints)
    _name_tasks(components, sorted(tasks))
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Relet", "version": version, "description": _ABOUT},
        "servers": [{"url": f"{root}/api"}],
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": _problems(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A token with the role read or operate"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "A browser session"},
            },
        },
    }


class _Schemas:
    """The schema of each type, by the type."""

    def __init__(self, kinds: list[Any]) -> None:
        schemas, self.components = msgspec.json.schema_components(kinds, ref_template=REF)
        self._by_kind = list(zip(kinds, schemas, strict=True))

    def __getitem__(self, kind: Any) -> Any:
        return next(schema for known, schema in self._by_kind if known == kind)


def _schemas(endpoints: Sequence[Endpoint]) -> tuple[_Schemas, dict[str, Any]]:
    kinds: list[Any] = [Problem, *_PATH_TYPES.values()]
    for endpoint in endpoints:
        kinds += [kind for kind in (endpoint.body, endpoint.answer) if kind is not None]
        kinds += [field.type for field in _fields(endpoint)]
    schemas = _Schemas(kinds)
    for component in schemas.components.values():
        for name, schema in component.get("properties", {}).items():
            if name == "at" or name.endswith("_at"):
                _mark_moments(schema)
    return schemas, schemas.components


def _mark_moments(schema: dict[str, Any]) -> None:
    """Set the date-time format, which msgspec omits for datetimes without a required time zone. Ours all have one."""
    for part in (schema, *schema.get("anyOf", ())):
        if part.get("type") == "string":
            part["format"] = "date-time"


def _name_tasks(components: dict[str, Any], tasks: list[str]) -> None:
    for name in ("JobIn", "ScheduleIn"):
        if tasks and name in components:
            components[name]["properties"]["task"] = {"type": "string", "enum": tasks}


def _fields(endpoint: Endpoint) -> tuple[msgspec.structs.FieldInfo, ...]:
    return () if endpoint.query is None else msgspec.structs.fields(endpoint.query)


def _operation(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"{endpoint.description} Needs the role {endpoint.role}.".strip(),
        "tags": [endpoint.path.split("/")[1]],
        "responses": _responses(endpoint, schemas),
    }
    parameters = [_in_path(name, schemas) for name in endpoint.parameters]
    parameters += [_in_query(field, schemas) for field in _fields(endpoint)]
    if endpoint.method != "GET":
        parameters.append(_IDEMPOTENCY_KEY)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        needed = any(field.required for field in msgspec.structs.fields(endpoint.body))
        operation["requestBody"] = {"required": needed, "content": {JSON: {"schema": schemas[endpoint.body]}}}
    return operation


def _in_path(name: str, schemas: _Schemas) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schemas[_PATH_TYPES[name]]}


def _in_query(field: msgspec.structs.FieldInfo, schemas: _Schemas) -> dict[str, Any]:
    schema = dict(schemas[field.type])
    if field.default is not msgspec.NODEFAULT and field.default is not msgspec.UNSET:
        schema["default"] = field.default
    parameter = {"name": field.encode_name, "in": "query", "required": field.required, "schema": schema}
    if typing.get_origin(field.type) is not None and schema.get("type") == "array":
        parameter |= {"style": "form", "explode": True}
    return parameter


def _responses(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, meaning in endpoint.statuses.items():
        if status >= 400:
            content = {MEDIA_TYPE: {"schema": schemas[Problem]}}
            responses[str(status)] = {"description": meaning, "content": content}
        elif endpoint.answer is None:
            responses[str(status)] = {"description": meaning}
        else:
            content = {JSON: {"schema": schemas[endpoint.answer]}}
            responses[str(status)] = {"description": meaning, "content": content}
    others = _OF_ALL + (_OF_BODIES if endpoint.body is not None else (400, 413, 422))
    for status in others:
        responses.setdefault(str(status), {"$ref": f"#/components/responses/{status}"})
    return dict(sorted(responses.items()))


def _problems() -> dict[str, Any]:
    """The error responses that every endpoint may give."""
    titles: dict[int, list[str]] = {}
    for kind in KINDS.values():
        titles.setdefault(kind.status, []).append(kind.title)
    problem = {"schema": {"$ref": REF.format(name="Problem")}}
    responses: dict[str, Any] = {
        str(status): {"description": "; ".join(words), "content": {MEDIA_TYPE: problem}}
        for status, words in sorted(titles.items())
        if status in (*_OF_BODIES, *_OF_ALL)
    }
    seconds = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 0}}}
    for status in ("429", "503"):
        responses[status]["headers"] = seconds
    return responses
