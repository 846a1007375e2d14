"""Drafts on their way into a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import force_setattr

from ..errors import InvalidInput
from .job import Draft

R = TypeVar("R")


def check_drafts(drafts: Iterable[Draft[R]]) -> list[Draft[R]]:
    """Drafts and nothing else."""
    if isinstance(drafts, Draft):
        raise InvalidInput("enqueue_many takes drafts in a list, enqueue takes one")
    given = list(drafts)
    for draft in given:
        if not isinstance(draft, Draft):
            raise InvalidInput(f"enqueue takes drafts (task.draft(...)), not {type(draft).__name__}")
    return given


def spend(drafts: Sequence[Draft[Any]]) -> None:
    """A draft is fresh once: whoever enqueues it again may find its job there, or finished."""
    for draft in drafts:
        force_setattr(draft, "fresh", False)
