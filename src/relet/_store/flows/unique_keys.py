"""Unique keys: taking them, and finding out who has them.

A key that somebody else holds is looked at, never locked: a caller whose transaction stays open must not keep the
holder's owner from settling. Waiting remains only where it is inherent: for whoever is taking the same key just now.
Keys are taken in their order, each to its end, so that whoever waits for one holds only smaller ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from ..._core.job import Draft
from ..query import Flow, as_json, pairs, write

MOST = 2000  # keys sent in one statement

Wanted = tuple[str, list[Draft[Any]]]  # a key, and who wants it


def take(drafts: Sequence[Draft[Any]], heirs: Mapping[str, str] | None = None) -> Flow[dict[str, tuple[str, str]]]:
    """Take the drafts' keys. Returns, for each draft that could not, its key and the id of the job that holds it.

    Of several drafts with one key the first takes it. `heirs` names, for a draft, the job whose key it may inherit.
    """
    heirs = heirs or {}
    lost: dict[str, tuple[str, str]] = {}
    for wanted in _parts(drafts):
        holders = yield from _take([some[0] for _, some in wanted], heirs)
        # Of several who want a key that one of them may inherit, that one has it, wherever it stands.
        late = [draft for key, some in wanted for draft in some if heirs.get(draft.id) == holders[key]]
        holders |= yield from _take(late, heirs)
        lost |= {d.id: (key, holders[key]) for key, some in wanted for d in some if d.id != holders[key]}
    return lost


def take_directly(drafts: Sequence[Draft[Any]]) -> Flow[dict[str, tuple[str, str]]]:
    """The same on a connection of ours, where a deadlock is no more than a reason to try again: first all keys that are
    free, by one statement, then the others one by one."""
    wanted = {draft.unique: draft.id for draft in reversed(drafts) if draft.unique and draft.unique_for is None}
    taken: set[str] = set()
    ordered = sorted(wanted.items())
    for start in range(0, len(ordered), MOST):
        some = dict(ordered[start : start + MOST])
        free = yield write("enqueue/take_free_keys", keys=list(some), jobs=list(some.values()))
        taken |= {wanted[key] for (key,) in free}
    return (yield from take([draft for draft in drafts if draft.id not in taken]))


def _parts(drafts: Iterable[Draft[Any]]) -> Iterator[list[Wanted]]:
    """What one statement can ask for of all that is wanted, in the order of the keys: that of their code points."""
    groups = groupby(sorted((d for d in drafts if d.unique), key=_key), key=_key)
    while part := [(key, list(some)) for key, some in islice(groups, MOST)]:
        yield part


def _key(draft: Draft[Any]) -> str:
    return draft.unique or ""


def _take(drafts: Sequence[Draft[Any]], heirs: Mapping[str, str]) -> Flow[dict[str, str]]:
    if not drafts:
        return {}
    batch = [
        {"key": draft.unique, "job": draft.id, "heir_of": heirs.get(draft.id), "window": draft.unique_for}
        for draft in drafts
    ]
    return pairs((yield write("enqueue/take_keys", batch=as_json(batch))))


def give_back(drafts: Sequence[Draft[Any]]) -> Flow[None]:
    """Free the keys that were taken for drafts which will not be stored: the caller may go on with its transaction."""
    for part in _parts(drafts):
        batch = [{"key": key, "job": draft.id} for key, some in part for draft in some]
        yield write("enqueue/drop_keys", batch=as_json(batch))
