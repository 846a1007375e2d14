"""Changing things: at a store, and, where a client acts for somebody, with that name beside it in the audit trail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, ParamSpec, TypeVar

from .store.flows import audit, search, steer
from .store.flows.audit import Note
from .store.flows.search import Filter
from .store.query import Flow
from .store.store import Store
from .tasks import new_id

P = ParamSpec("P")
R = TypeVar("R")

Action = Literal["cancel", "pause", "resume", "run_now", "delete"]
BULK: dict[Action, Callable[..., Flow[Any]]] = {
    "cancel": steer.cancel,
    "pause": steer.pause,
    "resume": steer.resume,
    "run_now": steer.run_now,
    "delete": steer.delete,
}
AT_ONCE = 100  # jobs that are changed in one transaction


@dataclass(frozen=True, slots=True)
class Said:
    """What is being done, and to whom."""

    what: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BulkDone:
    """How many jobs something was done to, and how many no longer allowed it.

    `next`: it ended before all were come to; give this as `before` to go on.
    """

    done: int = 0
    refused: int = 0
    next: str | None = None


class Hand:
    """A store, and in whose name it is used."""

    def __init__(self, store: Store, who: str | None) -> None:
        self._store = store
        self._who = who

    def look(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that changes nothing."""
        return self._store.run(flow, *args, **kwargs)

    def change(self, said: Said, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that changes something; note it in the same transaction, if it is done in somebody's name."""
        if self._who is None:
            return self._store.run(flow, *args, **kwargs)
        note = Note(new_id(), self._who, said.what, said.subject, dict(said.detail))
        flows: Callable[..., Flow[R]] = audit.noted
        return self._store.run(flows, note, flow, *args, **kwargs)

    def note(self, said: Said) -> None:
        """Note something that does not fit into one transaction."""
        if self._who is not None:
            self.change(said, audit.nothing)


def bulk(
    hand: Hand,
    action: Action,
    where: Filter,
    which: Mapping[str, Any],
    left: int | None,
    seconds: float | None,
    before: str | None,
    on_step: Callable[[BulkDone], object] | None,
) -> BulkDone:
    """Step by step, newest first: each job is come to once, whatever becomes of it."""
    total, end = BulkDone(), None if seconds is None else time.monotonic() + seconds
    said = {name: _plain(value) for name, value in which.items() if value is not None}
    while (left is None or left > 0) and (end is None or time.monotonic() < end):
        page = hand.look(search.jobs, where, limit=AT_ONCE if left is None else min(AT_ONCE, left), before=before)
        if page.jobs:
            ids = [job.id for job in page.jobs]
            told = Said(f"bulk {action}", ids[0], {"filter": said, "jobs": len(ids)})
            done, refused = hand.change(told, steer.bulk, BULK[action], ids)
            total = BulkDone(total.done + done, total.refused + refused, page.next)
            left = None if left is None else left - len(ids)
            if on_step is not None:
                on_step(total)
        before = page.next
        if before is None:
            return replace(total, next=None)
    return replace(total, next=before)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
