"""Attribute names and values of the semantic conventions for messaging. Our own names begin with `relet.`"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.util.types import AttributeValue

from ..._attempts.attempt import Attempt
from ..._core.job import Draft, Outcome, Raised, Released, Snoozed, Succeeded

Attributes = dict[str, AttributeValue]

SYSTEM = "messaging.system"
OPERATION = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
QUEUE = "messaging.destination.name"
MESSAGE = "messaging.message.id"
CONVERSATION = "messaging.message.conversation_id"
BATCH = "messaging.batch.message_count"
CLIENT = "messaging.client.id"
ERROR = "error.type"

TASK = "relet.task"
ATTEMPT = "relet.attempt"
OUTCOME = "relet.outcome"
REASON = "relet.reason"
STATE = "relet.state"
TENANT = "relet.tenant"
TARGET = "relet.target"
DELAY = "relet.delay"
EXISTING = "relet.existing"

#: The text of an exception from another process: its class comes first, its traceback below.
_EXCEPTION_TEXT = re.compile(r"(?P<kind>[\w.]+)(?::|\n|$)")


def server(where: str) -> Attributes:
    """Host and port of the database, if it has them."""
    try:
        url = urlsplit(where)
        host, port = url.hostname, url.port
    except ValueError:  # several hosts
        return {}
    if url.scheme == "sqlite" or not host:
        return {}
    return {"server.address": host} | ({"server.port": port} if port else {})


def operation(name: str, kind: str) -> Attributes:
    """An operation: its name in relet, and its type in the conventions."""
    return {SYSTEM: "relet", OPERATION: name, OPERATION_TYPE: kind}


def of_draft(draft: Draft[Any]) -> Attributes:
    """Span attributes of a job that is not stored yet."""
    found: Attributes = {QUEUE: draft.queue, MESSAGE: draft.id, TASK: draft.task}
    return found if draft.target is None else found | {TARGET: draft.target}


def of_batch(drafts: Sequence[Draft[Any]]) -> Attributes:
    """Span attributes of several drafts."""
    queues = {draft.queue for draft in drafts}
    return {BATCH: len(drafts)} | ({QUEUE: queues.pop()} if len(queues) == 1 else {})


def of_attempt(attempt: Attempt) -> Attributes:
    """Span attributes of an attempt."""
    job = attempt.job
    required: Attributes = {QUEUE: job.queue, MESSAGE: job.id, CONVERSATION: job.chain, TASK: job.task}
    optional: Attributes = {ATTEMPT: job.attempt, CLIENT: attempt.worker, TARGET: job.target, TENANT: attempt.tenant}
    return required | {name: value for name, value in optional.items() if value}


def outcome_of(attempt: Attempt, outcome: Outcome) -> str:
    """The outcome of an attempt, as its record names it. A request that arrives later may change the recorded one."""
    match attempt.aborted:
        case "lease_lost" | "completed" | "deleted":
            return "lost"
        case "cancelled" | "paused" as request:
            return request
        case "shutdown" | "in_doubt":
            return "released"
        case "timeout":
            outcome = Raised("")
    match outcome:
        case Succeeded():
            return "succeeded"
        case Snoozed():
            return "snoozed"
        case Released():
            return "released"
        case Raised():
            return "failed" if outcome.fatal or attempt.job.attempt >= attempt.job.policy.max_attempts else "retried"


def error_of(attempt: Attempt, outcome: Outcome) -> tuple[str, str] | None:
    """The type and the first line of a failed attempt's error. Types have few values, because metrics use them."""
    if attempt.aborted is not None:
        return ("timeout", f"timed out after {attempt.job.policy.timeout} s") if attempt.aborted == "timeout" else None
    if not isinstance(outcome, Raised):
        return None
    line = outcome.error.partition("\n")[0]
    if attempt._error is not None:
        return kind_of(attempt._error), line
    if line.startswith("worker lost"):
        return "worker_lost", line
    found = _EXCEPTION_TEXT.match(outcome.error) if "Traceback (most recent call last)" in outcome.error else None
    return found["kind"] if found else "_OTHER", line


def kind_of(error: BaseException) -> str:
    """The class of an error, as tracebacks name it."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
