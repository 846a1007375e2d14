"""Unique keys: taking them, and finding the jobs that hold them.

A key that another job holds is read, never locked: a caller whose transaction stays open must not keep a worker from
settling that job. Only one wait is left: for a transaction that is taking the same key. Keys are taken in sorted order,
so a transaction that waits for a key has locked only smaller ones, and there is no deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from ..._core.job import Draft
from ...errors import StoreBusy
from ..query import Flow, as_json, write

MAX_BATCH = 2000  # keys sent in one statement
TRIES = 100  # to find a holder of a key that changes hands

Wanted = tuple[str, list[Draft[Any]]]  # a key, and the drafts that want it


def take(
    drafts: Sequence[Draft[Any]], predecessors: Mapping[str, str] | None = None
) -> Flow[dict[str, tuple[str, str]]]:
    """Take the drafts' keys. Returns, for each draft that could not, its key and the id of the job that holds it.

    Of several drafts with one key the first takes it. `predecessors`: by draft, the job whose key it may inherit.
    """
    predecessors = predecessors or {}
    lost: dict[str, tuple[str, str]] = {}
    for wanted in _parts(drafts):
        holders = yield from _take([some[0] for _, some in wanted], predecessors)
        # Of several drafts that want a key, the one that may inherit it gets it, wherever it is in the batch.
        late = [draft for key, some in wanted for draft in some if predecessors.get(draft.id) == holders[key]]
        holders |= yield from _take(late, predecessors)
        lost |= {d.id: (key, holders[key]) for key, some in wanted for d in some if d.id != holders[key]}
    return lost


def take_directly(drafts: Sequence[Draft[Any]]) -> Flow[dict[str, tuple[str, str]]]:
    """The same on a connection of the store, where a deadlock only means another try: first all free keys in one
    statement, then the others one by one."""
    wanted = {draft.unique: draft.id for draft in reversed(drafts) if draft.unique and draft.unique_for is None}
    taken: set[str] = set()
    ordered = sorted(wanted.items())
    for start in range(0, len(ordered), MAX_BATCH):
        some = dict(ordered[start : start + MAX_BATCH])
        free = yield write("enqueue/take_free_keys", keys=list(some), jobs=list(some.values()))
        taken |= {wanted[key] for (key,) in free}
    return (yield from take([draft for draft in drafts if draft.id not in taken]))


def _parts(drafts: Iterable[Draft[Any]]) -> Iterator[list[Wanted]]:
    """Batches of wanted keys, each for one statement, in the order of the keys' code points."""
    groups = groupby(sorted((d for d in drafts if d.unique), key=_key), key=_key)
    while part := [(key, list(some)) for key, some in islice(groups, MAX_BATCH)]:
        yield part


def _key(draft: Draft[Any]) -> str:
    return draft.unique or ""


def _take(drafts: Sequence[Draft[Any]], predecessors: Mapping[str, str]) -> Flow[dict[str, str]]:
    """The holder of each key. One statement may return fewer than it was asked for, the first ones in their order."""
    holders: dict[str, str] = {}
    rest = list(drafts)
    for _ in range(len(drafts) + TRIES):
        if not rest:
            return holders
        batch = [
            {"key": draft.unique, "job": draft.id, "heir_of": predecessors.get(draft.id), "window": draft.unique_for}
            for draft in rest
        ]
        rows = yield write("enqueue/take_keys", batch=as_json(batch))
        holders |= {key: holder for key, holder in rows if holder is not None}
        rest = [draft for draft in rest if draft.unique not in holders]
    raise StoreBusy("unique keys change hands too often")


def give_back(drafts: Sequence[Draft[Any]]) -> Flow[None]:
    """Free the keys of drafts that will not be stored: the caller may continue its transaction."""
    for part in _parts(drafts):
        batch = [{"key": key, "job": draft.id} for key, some in part for draft in some]
        yield write("enqueue/drop_keys", batch=as_json(batch))
