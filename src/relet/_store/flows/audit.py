"""The audit trail: who did what. An entry is written in the transaction that makes the change, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ..._core.job import utc
from ..._core.views import AuditEntry, AuditPage
from ..query import BEGIN, Flow, as_json, read, read_only, repeat_of, repeated_by, write

R = TypeVar("R")


class Note(Struct, frozen=True):
    """An entry to write. Its id is made before the first try, so that repeated tries write it once."""

    id: str
    who: str
    what: str
    subject: str
    detail: dict[str, Any]


def noted_again(note: Note, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> Flow[R]:
    """`noted` when an earlier try may have been committed: the entry has an id and is written once."""
    return noted(note, repeat_of(flow), *args, **kwargs)


@repeated_by(noted_again)
def noted(note: Note, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> Flow[R]:
    """Run a flow and write the entry in the same transaction. If the flow returns False, nothing changed and no entry
    is written."""
    yield BEGIN
    result = yield from flow(*args, **kwargs)
    if result is False:
        return result
    detail = as_json(note.detail) if note.detail else None
    yield write("audit/insert", id=note.id, who=note.who, what=note.what, subject=note.subject, detail=detail)
    return result


def nothing() -> Flow[None]:
    """A flow that changes nothing, for entries without a change."""
    yield BEGIN


@read_only
def actions(*, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    """A page of audit entries, the latest first."""
    found = yield read("audit/page", cursor=cursor, limit=limit + 1)
    entries = [
        AuditEntry(id, utc(at), who, what, subject, msgspec.json.decode(detail) if detail else {})
        for id, at, who, what, subject, detail in found
    ]
    return AuditPage(entries[:limit], entries[limit - 1].id if len(entries) > limit else None)
