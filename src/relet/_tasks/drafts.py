"""Checks and traces drafts around the flow that stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from .._core.job import Draft, Job
from ..errors import InvalidInput
from .telemetry import Telemetry

R = TypeVar("R")


def check_drafts(drafts: Iterable[Draft[R]]) -> list[Draft[R]]:
    """Raise InvalidInput for anything but drafts."""
    if isinstance(drafts, Draft):
        raise InvalidInput("enqueue_many takes drafts in a list, enqueue takes one")
    checked = list(drafts)
    for draft in checked:
        if not isinstance(draft, Draft):
            raise InvalidInput(f"enqueue takes drafts (task.draft(...)), not {type(draft).__name__}")
    return checked


class Batch(Struct, Generic[R]):
    """Drafts that are being stored, and then their jobs, which the caller sets."""

    drafts: list[Draft[R]]
    jobs: list[Job[R]] = field(default_factory=list)


@contextmanager
def storing(telemetry: Telemetry | None, drafts: Iterable[Draft[R]]) -> Iterator[Batch[R]]:
    """Wraps the flow that stores drafts: checks them before it, traces it, and marks them as used after it."""
    batch = Batch(check_drafts(drafts))
    try:
        if telemetry is None or not batch.drafts:
            yield batch
        else:
            with telemetry.sending(batch.drafts) as stored:
                yield batch
                stored(batch.jobs)
    finally:
        mark_used(batch.drafts)


def mark_used(drafts: Sequence[Draft[Any]]) -> None:
    """Drafts are fresh only once: if one is enqueued again, the store may already have its job."""
    for draft in drafts:
        force_setattr(draft, "fresh", False)
