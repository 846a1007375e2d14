"""Problem documents (RFC 9457): whatever is refused, or goes wrong, says what happened, where, and what to do."""

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
MOST_FAULTS = 20  # an answer is small, however much is wrong with a request
LONGEST_TEXT = 500
LONGEST_DETAIL = 2000


class Fault(Struct):
    """One thing that is wrong with a request: where it stands (`body.payload.cents`, say), and what is wrong."""

    where: str
    what: str


class Problem(Struct, omit_defaults=True):
    """What a problem document says. `errors`: the first of what is wrong. `id` finds the entry in the server's log."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: Annotated[list[Fault], Meta(max_length=MOST_FAULTS)] | None = None
    id: str | None = None


class Kind(NamedTuple):
    """A kind of problem; its name stands in `type`."""

    status: int
    title: str


KINDS: dict[str, Kind] = {
    "malformed": Kind(400, "The request cannot be read"),
    "unauthenticated": Kind(401, "Credentials are needed"),
    "forbidden": Kind(403, "Not allowed"),
    "not-found": Kind(404, "There is no such thing"),
    "method-not-allowed": Kind(405, "The method is not allowed here"),
    "invalid-transition": Kind(409, "The state of the job does not allow this"),
    "key-taken": Kind(409, "Another job holds the unique key"),
    "has-dependents": Kind(409, "Other jobs wait for this"),
    "lease-lost": Kind(409, "The lease is no longer held"),
    "too-large": Kind(413, "The request is too large"),
    "unsupported-media-type": Kind(415, "The body is of the wrong type"),
    "misdirected": Kind(421, "This host is not served here"),
    "invalid-input": Kind(422, "Something in the request is wrong"),
    "unknown-task": Kind(422, "There is no such task"),
    "idempotency-conflict": Kind(422, "The idempotency key belongs to another request"),
    "too-many-requests": Kind(429, "Too many requests"),
    "internal": Kind(500, "Something went wrong here"),
    "store-busy": Kind(503, "The store is busy"),
    "store-unavailable": Kind(503, "The store cannot be reached"),
    "store-refused": Kind(503, "The store does not take this"),
    "too-slow": Kind(504, "It took too long"),
}

_STORE: dict[type[errors.StoreError], tuple[str, str]] = {
    errors.StoreBusy: ("store-busy", "a lock or connection of the store was not to be had in time; try again"),
    errors.QueryTimeout: ("too-slow", "reading this took too long, and the store has ended it; ask for less at once"),
    errors.StoreUnavailable: ("store-unavailable", "the store cannot be reached just now; try again"),
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
    """Raised where a request is refused; `answer` makes a problem document of it."""

    def __init__(
        self, kind: str, detail: str, faults: Sequence[Fault] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.faults = faults
        self.headers = dict(headers or {})


def invalid(faults: Sequence[Fault]) -> Refusal:
    """The refusal of a request with these faults."""
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
    """A problem document as an answer."""
    status, title = KINDS[kind]
    told = [Fault(_cut(one.where), _cut(one.what)) for one in faults[:MOST_FAULTS]]
    document = Problem(URN + kind, title, status, _cut(detail, LONGEST_DETAIL), instance, told or None, id)
    more = {"Cache-Control": "no-store", **(headers or {})}
    if status == 503:
        more.setdefault("Retry-After", RETRY_AFTER)
    return Reply(status, msgspec.json.encode(document), MEDIA_TYPE, more)


def _cut(text: str, most: int = LONGEST_TEXT) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def refusal_of(error: errors.ReletError) -> Refusal | None:
    """What an error of the client means to who asked; None: nothing that they could have foreseen."""
    for kind, (name, detail) in _STORE.items():
        if isinstance(error, kind):
            return Refusal(name, detail)
    if isinstance(error, errors.StoreError):
        # What the database says is for the log, not for everybody who may look.
        return Refusal("store-refused", "the store refused this, or is not set up for this version; see the log")
    for known, name in _KNOWN.items():
        if isinstance(error, known):
            return Refusal(name, str(error))
    return None
