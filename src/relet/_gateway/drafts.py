"""The next job of a chain, from the document of a worker. It is checked as a draft that a program makes."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from .._core import payload, validate
from .._core.ids import parse_id
from .._core.job import Draft, Policy
from .._remote.wire import NULL, DraftDoc, policy_of
from .._system import SYSTEM
from .._web.problems import Refusal

MAX_TAGS = 32
MAX_DEPENDENCIES = 1000


def json_text(value: Raw, where: str, limit: int) -> str:
    """The text of a JSON value that both stores accept. Raises InvalidInput for others."""
    text = bytes(value)
    if text == NULL:
        return "null"
    decoded = msgspec.json.decode(text)
    if payload.is_plain(decoded) and len(text) <= limit:
        return text.decode()
    return payload.encode(decoded, path=where, limit=limit)


def draft_of(doc: DraftDoc, limit: int) -> Draft[object]:
    """A checked draft. Raises InvalidInput."""
    policy = policy_of(doc.policy)
    _check_policy(policy)
    if len(doc.tags) > MAX_TAGS or len(doc.depends_on) > MAX_DEPENDENCIES:
        raise Refusal("invalid-input", f"continue_with: at most {MAX_TAGS} tags and {MAX_DEPENDENCIES} dependencies")
    depends_on = tuple(parse_id(one) for one in doc.depends_on)
    tags = tuple(validate.text("a tag", tag) for tag in doc.tags)
    return Draft(
        SYSTEM.new_id() if doc.id is None else parse_id(doc.id),
        validate.name("task", doc.task),
        json_text(doc.payload, "continue_with.payload", limit),
        validate.name("queue", doc.queue),
        validate.integer("priority", doc.priority, -100, 100),
        _moment("run_at", doc.run_at),
        _seconds("delay", doc.delay),
        _text("target", doc.target),
        _text("group", doc.group),
        _text("unique", doc.unique),
        _seconds("unique_for", doc.unique_for),
        doc.replace,
        depends_on,
        policy,
        doc.context,
        fresh=doc.id is None,
        start_by=_moment("start_by", doc.start_by),
        tags=tags,
    )


def _check_policy(policy: Policy) -> None:
    validate.integer("max_attempts", policy.max_attempts, 1, 10_000)
    for name in ("lease", "timeout"):
        _seconds(name, getattr(policy, name), minimum=0.001)
    if policy.follow_up is not None:
        validate.name("task", policy.follow_up.task)
        validate.name("queue", policy.follow_up.queue)
        validate.integer("priority", policy.follow_up.priority, -100, 100)
        _check_policy(policy.follow_up.policy)


def _text(kind: str, value: str | None) -> str | None:
    return None if value is None else validate.text(kind, value)


def _seconds(kind: str, value: float | None, minimum: float = 0.0) -> float | None:
    return None if value is None else validate.seconds(kind, value, minimum=minimum)


def _moment(kind: str, value: float | None) -> float | None:
    return None if value is None else validate.seconds(kind, value, maximum=validate.YEAR_2100)
