"""The HTTP API: the table of endpoints, their routes, and `answer`, which calls one of them.

The rest of the web checks authentication, roles and request sizes.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ..._version import __version__
from ..openapi import openapi
from . import bulk, chains, jobs, monitoring, queues, schedules
from .endpoint import Call, Endpoint, Limits, answer, at
from .responses import Reply
from .routing import ApiRoute, api_routes, endpoint_of, live_scope

__all__ = [
    "ENDPOINTS",
    "RESUME_AT_TARGET",
    "ApiRoute",
    "Call",
    "Endpoint",
    "Limits",
    "Reply",
    "answer",
    "api_routes",
    "endpoint_of",
    "live_scope",
]


@at("GET /openapi.json", "read", dict[str, Any], {200: "An OpenAPI 3.1 document"})
def show_openapi(call: Call, _: None, __: None) -> dict[str, Any]:
    """The OpenAPI document of this API."""
    return openapi(ENDPOINTS, root=quote(call.root, safe="/"), version=__version__, tasks=call.app.tasks)


ENDPOINTS: list[Endpoint] = [
    *jobs.ENDPOINTS,
    *bulk.ENDPOINTS,
    *chains.ENDPOINTS,
    *queues.ENDPOINTS,
    *schedules.ENDPOINTS,
    *monitoring.ENDPOINTS,
    show_openapi,
]

#: Also served outside the API, at `POST /targets/{target}/jobs/{id}/resume/`.
RESUME_AT_TARGET: Endpoint = queues.resume_target_job
