"""Changing things: at a store, and, where a client acts for somebody, with that name beside it in the audit trail."""

from __future__ import annotations

import hashlib
import itertools
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct, field, structs

from .._core.filters import Filter
from .._core.verbs import BulkVerb
from .._store.flows import audit, control, operations, search
from .._store.flows.audit import Note
from .._store.flows.operations import Operation
from .._store.query import Flow
from .._store.store import Store
from .._tasks.task import new_id

P = ParamSpec("P")
R = TypeVar("R")

AT_ONCE = 100  # jobs that are changed in one transaction


class AuditAction(Struct, frozen=True):
    """What is being done, and to whom."""

    what: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class BulkResult(Struct, frozen=True):
    """How many jobs something was done to, and how many no longer allowed it.

    `next`: it ended before all were come to; give this as `before` to go on.
    """

    done: int = 0
    refused: int = 0
    next: str | None = None


class IdempotencyKey(Struct, frozen=True):
    """A caller's own name for one call, and the fingerprint of what the call asks for."""

    key: str
    request: str | None = None
    _changes: Iterator[int] = field(default_factory=itertools.count)

    def operation_id(self) -> str:
        """The id of the call's next transaction: a call that is repeated makes the same changes in the same order."""
        digest = hashlib.sha256(f"{next(self._changes)}:{self.key}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=5))


class AuditedStore:
    """A store, and in whose name it is used. Each change carries an operation id, chosen before the first try."""

    def __init__(self, store: Store, who: str | None, key: IdempotencyKey | None = None) -> None:
        self._store = store
        self._who = who
        self._key = key

    def look(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that changes nothing."""
        return self._store.run(flow, *args, **kwargs)

    def change(self, said: AuditAction, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that changes something: once, however often it is tried.

        Where the change is made in a person's name, the audit trail gets its entry in the same transaction.
        """
        return self._carry_out(self._operation(said), said, flow, *args, **kwargs)

    def insert(self, said: AuditAction, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for a flow whose rows have ids that the caller chose: they need no operation id beside them."""
        if self._key is not None:
            return self.change(said, flow, *args, **kwargs)
        if self._who is None:
            return self._store.run(flow, *args, **kwargs)
        noted: Callable[..., Flow[R]] = audit.noted
        return self._store.run(noted, self._note(said), flow, *args, **kwargs)

    def change_unless_made(
        self, what: str, prepare: Callable[[], tuple[AuditAction, tuple[Any, ...]] | None], flow: Callable[..., Flow[R]]
    ) -> R | None:
        """Change what `prepare` finds (None: nothing), unless the change was made before under this key."""
        operation = self._operation(AuditAction(what, ""))
        made: R | None = None if self._key is None else self._store.run(operations.earlier, operation)
        if made is not None:
            return made
        found = prepare()
        if found is None:
            return None
        said, args = found
        return self._carry_out(structs.replace(operation, subject=said.subject), said, flow, *args)

    def step(self, said: AuditAction, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that is one step of many, and goes through many rows; the audit trail notes the whole."""
        once: Callable[..., Flow[R]] = operations.once_long
        return self._store.run(once, self._operation(said), flow, *args, **kwargs)

    def _carry_out(
        self, operation: Operation, said: AuditAction, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any
    ) -> R:
        once: Callable[..., Flow[R]] = operations.once
        if self._who is None:
            return self._store.run(once, operation, flow, *args, **kwargs)
        return self._store.run(once, operation, audit.noted, self._note(said), flow, *args, **kwargs)

    def _operation(self, said: AuditAction) -> Operation:
        if self._key is None:
            return Operation(new_id(), said.what, said.subject)
        return Operation(self._key.operation_id(), said.what, said.subject, self._key.request)

    def _note(self, said: AuditAction) -> Note:
        return Note(new_id(), self._who or "", said.what, said.subject, dict(said.detail))

    def note(self, said: AuditAction) -> None:
        """Note something that does not fit into one transaction."""
        if self._who is not None:
            self.change(said, audit.nothing)


def bulk(
    hand: AuditedStore,
    verb: BulkVerb,
    where: Filter,
    which: Mapping[str, Any],
    left: int | None,
    seconds: float | None,
    before: str | None,
    on_step: Callable[[BulkResult], object] | None,
) -> BulkResult:
    """Step by step, newest first: each job is come to once, whatever becomes of it."""
    total, end = BulkResult(), None if seconds is None else time.monotonic() + seconds
    said = {name: _plain(value) for name, value in which.items() if value is not None}
    following = before

    def step() -> tuple[AuditAction, tuple[Any, ...]] | None:
        nonlocal following
        page = hand.look(search.jobs, where, limit=AT_ONCE if left is None else min(AT_ONCE, left), before=before)
        following = page.next
        if not page.jobs:
            return None
        ids = [job.id for job in page.jobs]
        return AuditAction(f"bulk {verb}", ids[0], {"filter": said, "jobs": len(ids)}), (
            getattr(control, verb),
            ids,
            following,
        )

    while (left is None or left > 0) and (end is None or time.monotonic() < end):
        changed = hand.change_unless_made(f"bulk {verb}", step, control.bulk)
        if changed is not None:
            done, refused, following = changed
            total = BulkResult(total.done + done, total.refused + refused, following)
            left = None if left is None else left - done - refused
            if on_step is not None:
                on_step(total)
        before = following
        if before is None:
            return structs.replace(total, next=None)
    return structs.replace(total, next=before)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
