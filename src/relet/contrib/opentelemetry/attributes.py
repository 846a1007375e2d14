"""Names and attributes, after the semantic conventions for messaging. Those that are ours begin with `relet.`"""

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

#: An exception, as it is told in another process: its class first, and where it was raised below.
_TOLD = re.compile(r"(?P<kind>[\w.]+)(?::|\n|$)")


def server(where: str) -> Attributes:
    """The database's host, where it has one."""
    try:
        there = urlsplit(where)
        host, port = there.hostname, there.port
    except ValueError:  # several hosts
        return {}
    if there.scheme == "sqlite" or not host:
        return {}
    return {"server.address": host} | ({"server.port": port} if port else {})


def operation(name: str, kind: str) -> Attributes:
    """What is done, by its name here and by its kind anywhere."""
    return {SYSTEM: "relet", OPERATION: name, OPERATION_TYPE: kind}


def of_draft(draft: Draft[Any]) -> Attributes:
    """What a span says of a job that is not stored yet."""
    said: Attributes = {QUEUE: draft.queue, MESSAGE: draft.id, TASK: draft.task}
    return said if draft.target is None else said | {TARGET: draft.target}


def of_batch(drafts: Sequence[Draft[Any]]) -> Attributes:
    """What a span says of several."""
    queues = {draft.queue for draft in drafts}
    return {BATCH: len(drafts)} | ({QUEUE: queues.pop()} if len(queues) == 1 else {})


def of_attempt(attempt: Attempt) -> Attributes:
    """What a span says of an attempt."""
    job = attempt.job
    said: Attributes = {QUEUE: job.queue, MESSAGE: job.id, CONVERSATION: job.chain, TASK: job.task}
    more: Attributes = {ATTEMPT: job.attempt, CLIENT: attempt.worker, TARGET: job.target, TENANT: attempt.tenant}
    return said | {name: value for name, value in more.items() if value}


def verdict(attempt: Attempt, outcome: Outcome) -> str:
    """What came of an attempt, in the words of its record. A request that arrives later may decide otherwise."""
    match attempt.aborted:
        case "lease_lost" | "completed" | "deleted":
            return "lost"
        case "cancelled" | "paused" as asked:
            return asked
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
    """Of an attempt that failed: what kind of error it was, of which there are few, and its first line."""
    if attempt.aborted is not None:
        return ("timeout", f"timed out after {attempt.job.policy.timeout} s") if attempt.aborted == "timeout" else None
    if not isinstance(outcome, Raised):
        return None
    line = outcome.error.partition("\n")[0]
    if attempt._error is not None:
        return kind_of(attempt._error), line
    if line.startswith("worker lost"):
        return "worker_lost", line
    told = _TOLD.match(outcome.error) if "Traceback (most recent call last)" in outcome.error else None
    return told["kind"] if told else "_OTHER", line


def kind_of(error: BaseException) -> str:
    """The class of an error, as tracebacks have it."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
