"""Requests to the HTTP API."""

from __future__ import annotations

import http.client
from typing import Any
from urllib.parse import urlsplit

import msgspec

TOKEN = "torture-torture-torture"  # noqa: S105 - of a server that listens on this machine alone, for one run
TIMEOUT = 30.0  # seconds


class Refused(Exception):
    """The server refused the request: there is no such job, or its state does not allow it."""


def request(address: str, path: str, body: object, key: str) -> dict[str, Any]:
    """`key`: a repetition of the request with the same key has no further effect."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
    try:
        connection.request(
            "POST", f"/api/{path}", msgspec.json.encode(body) if body is not None else None,
            {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Idempotency-Key": key},
        )  # fmt: skip
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status in (404, 409, 422):
        raise Refused(content.decode(errors="replace"))
    if answer.status >= 400:
        raise http.client.HTTPException(f"status {answer.status}")
    found: dict[str, Any] = msgspec.json.decode(content)
    return found
