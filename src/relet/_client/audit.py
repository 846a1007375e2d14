"""Changes that a client makes: once each, however often they are tried, and recorded where it acts for an operator."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct, field, structs

from .._store.flows import audit, operations
from .._store.flows.audit import Note
from .._store.flows.operations import Operation
from .._store.query import Flow
from .._store.store import Store
from .._tasks.task import new_id

P = ParamSpec("P")
R = TypeVar("R")


class AuditAction(Struct, frozen=True):
    """A change as the audit trail records it."""

    verb: str
    subject: str
    details: Mapping[str, Any] = field(default_factory=dict)


class IdempotencyKey(Struct, frozen=True):
    """A caller's key for one call, and the fingerprint of its request."""

    key: str
    request: str | None = None
    _changes: Iterator[int] = field(default_factory=itertools.count)

    def operation_id(self) -> str:
        """The id of the call's next transaction: a repeated call makes the same changes in the same order."""
        import hashlib  # imported here: it loads OpenSSL, and few programs use idempotency keys

        digest = hashlib.sha256(f"{next(self._changes)}:{self.key}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=5))


class AuditedStore:
    """A store whose changes carry operation ids, and are recorded under `actor`, if there is one.

    The id is chosen before the first try. The audit trail gets its entry in the transaction of the change.
    """

    def __init__(self, store: Store, actor: str | None, key: IdempotencyKey | None = None) -> None:
        self._store = store
        self._actor = actor
        self._key = key

    def read(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return self._store.run(flow, *args, **kwargs)

    def change(self, action: AuditAction, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return self._change(self._operation(action), action, flow, *args, **kwargs)

    def insert(self, action: AuditAction, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow whose rows have ids that the caller chose, so that they need no operation id."""
        if self._key is not None:
            return self.change(action, flow, *args, **kwargs)
        noted: Callable[..., Flow[R]] = audit.noted
        return self._store.run(noted, self._note(action), flow, *args, **kwargs)

    def change_unless_made(
        self, verb: str, prepare: Callable[[], tuple[AuditAction, tuple[Any, ...]] | None], flow: Callable[..., Flow[R]]
    ) -> R | None:
        """Make the change that `prepare` finds (None: there is none), unless it was made before under this key."""
        operation = self._operation(AuditAction(verb, ""))
        made: R | None = None if self._key is None else self._store.run(operations.earlier, operation)
        if made is not None:
            return made
        found = prepare()
        if found is None:
            return None
        action, args = found
        return self._change(structs.replace(operation, subject=action.subject), action, flow, *args)

    def step(self, action: AuditAction, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one of many transactions that each go through many rows. `note` records the whole."""
        once: Callable[..., Flow[R]] = operations.once_long
        return self._store.run(once, self._operation(action), flow, *args, **kwargs)

    def note(self, action: AuditAction) -> None:
        """Record a change that takes many transactions."""
        if self._actor is not None:
            self.change(action, audit.nothing)

    def _change(
        self, operation: Operation, action: AuditAction, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any
    ) -> R:
        once: Callable[..., Flow[R]] = operations.once
        if self._actor is None:
            return self._store.run(once, operation, flow, *args, **kwargs)
        return self._store.run(once, operation, audit.noted, self._note(action), flow, *args, **kwargs)

    def _operation(self, action: AuditAction) -> Operation:
        if self._key is None:
            return Operation(new_id(), action.verb, action.subject)
        return Operation(self._key.operation_id(), action.verb, action.subject, self._key.request)

    def _note(self, action: AuditAction) -> Note:
        return Note(new_id(), self._actor or "", action.verb, action.subject, dict(action.details))
