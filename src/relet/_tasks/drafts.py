"""Drafts on their way into a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from .._core.job import Draft
from ..errors import InvalidInput
from .telemetry import Stored, Telemetry, sending

R = TypeVar("R")


def check_drafts(drafts: Iterable[Draft[R]]) -> list[Draft[R]]:
    """Refuse anything but drafts."""
    if isinstance(drafts, Draft):
        raise InvalidInput("enqueue_many takes drafts in a list, enqueue takes one")
    checked = list(drafts)
    for draft in checked:
        if not isinstance(draft, Draft):
            raise InvalidInput(f"enqueue takes drafts (task.draft(...)), not {type(draft).__name__}")
    return checked


class Batch(Struct, Generic[R]):
    """Drafts that are being stored. `stored` must be called with their jobs."""

    drafts: list[Draft[R]]
    stored: Stored


@contextmanager
def storing(telemetry: Telemetry | None, drafts: Iterable[Draft[R]]) -> Iterator[Batch[R]]:
    """Around the flow that stores drafts: they are checked before it, traced, and marked as used after it."""
    checked = check_drafts(drafts)
    try:
        with sending(telemetry, checked) as stored:
            yield Batch(checked, stored)
    finally:
        mark_used(checked)


def mark_used(drafts: Sequence[Draft[Any]]) -> None:
    """A draft is fresh once: enqueued again, it may find its job in the store, live or finished."""
    for draft in drafts:
        force_setattr(draft, "fresh", False)
