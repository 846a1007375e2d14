"""Problem documents (RFC 9457). Every refused or failed request says what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from .. import errors
from .api.responses import Reply

MEDIA_TYPE = "application/problem+json"
URN = "urn:relet:problem:"
RETRY_AFTER = "1"  # seconds
MAX_FAULTS = 20  # keeps the response small, however many errors a request has
LONGEST_TEXT = 500
LONGEST_DETAIL = 2000


class Fault(Struct):
    """One error in a request: the field (`body.payload.cents`, for example), and what is wrong with it."""

    where: str
    what: str


class Problem(Struct, omit_defaults=True):
    """A problem document. `errors` lists the first errors of the request, `id` finds the entry in the server's log."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: Annotated[list[Fault], Meta(max_length=MAX_FAULTS)] | None = None
    id: str | None = None


class Kind(NamedTuple):
    """A kind of problem. Its name is the last part of `type`."""

    status: int
    title: str


KINDS: dict[str, Kind] = {
    "malformed": Kind(400, "Malformed request"),
    "unauthenticated": Kind(401, "Authentication required"),
    "forbidden": Kind(403, "Not allowed"),
    "not-found": Kind(404, "Not found"),
    "method-not-allowed": Kind(405, "Method not allowed"),
    "invalid-transition": Kind(409, "The state of the job does not allow this"),
    "key-taken": Kind(409, "Another job holds the unique key"),
    "has-dependents": Kind(409, "Other jobs wait for this"),
    "lease-lost": Kind(409, "The lease is no longer held"),
    "too-large": Kind(413, "The request is too large"),
    "unsupported-media-type": Kind(415, "Unsupported media type"),
    "misdirected": Kind(421, "Unknown host name"),
    "invalid-input": Kind(422, "Invalid input"),
    "unknown-task": Kind(422, "Unknown task"),
    "idempotency-conflict": Kind(422, "The idempotency key belongs to another request"),
    "too-many-requests": Kind(429, "Too many requests"),
    "internal": Kind(500, "Internal error"),
    "store-busy": Kind(503, "The store is busy"),
    "store-unavailable": Kind(503, "The store is unreachable"),
    "store-refused": Kind(503, "The store rejected the request"),
    "too-slow": Kind(504, "The request timed out"),
}

_STORE: dict[type[errors.StoreError], tuple[str, str]] = {
    errors.StoreBusy: ("store-busy", "A lock or connection could not be acquired in time. Try again."),
    errors.QueryTimeout: ("too-slow", "The query took too long, and the database cancelled it. Request less at once."),
    errors.StoreUnavailable: ("store-unavailable", "The store is unreachable. Try again later."),
}
_KNOWN: dict[type[errors.ReletError], str] = {
    errors.UnknownTask: "unknown-task",
    errors.InvalidInput: "invalid-input",
    errors.JobNotFound: "not-found",
    errors.ScheduleNotFound: "not-found",
    errors.InvalidTransition: "invalid-transition",
    errors.KeyTaken: "key-taken",
    errors.HasDependents: "has-dependents",
    errors.LeaseLost: "lease-lost",
    errors.IdempotencyConflict: "idempotency-conflict",
}


class Refusal(Exception):
    """Raised to refuse a request. `answer` turns it into a problem document."""

    def __init__(
        self, kind: str, detail: str, faults: Sequence[Fault] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.faults = faults
        self.headers = dict(headers or {})


def invalid(faults: Sequence[Fault]) -> Refusal:
    """A refusal that lists these faults; the first one becomes its detail."""
    first, *others = faults
    more = f" (and {len(others)} more)" if others else ""
    return Refusal("invalid-input", f"{_cut(first.where)}: {_cut(first.what)}{more}", faults)


def problem(
    kind: str,
    detail: str,
    *,
    instance: str | None = None,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
    id: str | None = None,
) -> Reply:
    """A problem document as a response."""
    status, title = KINDS[kind]
    listed = [Fault(_cut(one.where), _cut(one.what)) for one in faults[:MAX_FAULTS]]
    document = Problem(URN + kind, title, status, _cut(detail, LONGEST_DETAIL), instance, listed or None, id)
    more = {"Cache-Control": "no-store", **(headers or {})}
    if status == 503:
        more.setdefault("Retry-After", RETRY_AFTER)
    return Reply(status, msgspec.json.encode(document), MEDIA_TYPE, more)


def _cut(text: str, limit: int = LONGEST_TEXT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def refusal_of(error: errors.ReletError) -> Refusal | None:
    """The refusal that reports an error of the client; None if the error is not the requester's to know about."""
    for kind, (name, detail) in _STORE.items():
        if isinstance(error, kind):
            return Refusal(name, detail)
    if isinstance(error, errors.StoreError):
        # The database's own message goes to the log only: not every reader may see it.
        detail = "The store rejected this, or its schema does not fit this version of Relet. See the server's log."
        return Refusal("store-refused", detail)
    for known, name in _KNOWN.items():
        if isinstance(error, known):
            return Refusal(name, str(error))
    return None
