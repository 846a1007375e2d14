"""Unique keys: taking them, and finding out who has them.

A key that somebody else holds is looked at, never locked: a caller whose transaction stays open must not keep the
holder's owner from settling. Waiting remains only where it is inherent: for whoever is taking the same key just now.
Keys are taken in their order, each to its end, so that whoever waits for one holds only smaller ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.job import Draft
from ..query import Flow, as_json, pairs, write


def take(
    drafts: Sequence[Draft[Any]], now: float | None, heirs: Mapping[str, str] | None = None
) -> Flow[dict[str, tuple[str, str]]]:
    """Take the drafts' keys. Returns, for each draft that could not, its key and the id of the job that holds it.

    Of several drafts with one key the first takes it. `heirs` names, for a draft, the job whose key it may inherit.
    """
    heirs = heirs or {}
    holders = yield from _take([draft for draft in drafts if draft.unique], heirs, now)
    # Of several who want a key that one of them may inherit, that one has it, wherever it stands.
    late = [d for d in drafts if d.unique and heirs.get(d.id) == holders[d.unique]]
    holders |= yield from _take(late, heirs, now)
    return {d.id: (d.unique, holders[d.unique]) for d in drafts if d.unique and holders[d.unique] != d.id}


def _take(drafts: Sequence[Draft[Any]], heirs: Mapping[str, str], now: float | None) -> Flow[dict[str, str]]:
    wanted: dict[str | None, Draft[Any]] = {}
    for draft in drafts:
        wanted.setdefault(draft.unique, draft)
    if not wanted:
        return {}
    batch = [
        {"key": draft.unique, "job": draft.id, "heir_of": heirs.get(draft.id), "window": draft.unique_for}
        for draft in wanted.values()
    ]
    return pairs((yield write("take_keys", batch=as_json(batch), now=now)))


def give_back(drafts: Sequence[Draft[Any]]) -> Flow[None]:
    """Free the keys that were taken for drafts which will not be stored: the caller may go on with its transaction."""
    batch = [{"key": draft.unique, "job": draft.id} for draft in drafts if draft.unique]
    yield write("drop_keys", batch=as_json(batch))
