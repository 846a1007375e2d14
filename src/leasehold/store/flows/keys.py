"""Unique keys: taking them, and finding out who has them.

A key that somebody else holds is looked at, never locked: a caller whose transaction stays open must not keep the
holder's owner from settling. Waiting remains only where it is inherent: for whoever is taking the same key just now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import StoreBusy
from ...core.job import Draft
from ..query import Flow, as_json, read, write

ROUNDS = 20


def take(
    drafts: Sequence[Draft[Any]], now: float | None, heirs: Mapping[str, str] | None = None
) -> Flow[dict[str, tuple[str, str]]]:
    """Take the drafts' keys. Returns, for each draft that could not, its key and the id of the job that holds it.

    Of several drafts with one key the first takes it. `heirs` names, for a draft, the job whose key it may inherit.
    """
    wanted: dict[str, Draft[Any]] = {}
    for draft in drafts:
        if draft.unique:
            wanted.setdefault(draft.unique, draft)
    holders: dict[str, str] = {}
    for _ in range(ROUNDS):
        missing = sorted(wanted.keys() - holders.keys())
        if not missing:
            return {d.id: (d.unique, holders[d.unique]) for d in drafts if d.unique and holders[d.unique] != d.id}
        yield from _round([wanted[key] for key in missing], holders, heirs or {}, now)
    raise StoreBusy(f"unique key {missing[0]!r} changes hands too often")


def give_back(drafts: Sequence[Draft[Any]]) -> Flow[None]:
    """Free the keys that were taken for drafts which will not be stored: the caller may go on with its transaction."""
    yield write("drop_keys", ids=as_json(sorted(draft.id for draft in drafts)))


def _round(
    drafts: list[Draft[Any]], holders: dict[str, str], heirs: Mapping[str, str], now: float | None
) -> Flow[None]:
    """Take what is free; note who has the rest; take over what is over, or inherited. What changes stays open."""
    rows = [{"key": d.unique, "job": d.id, "window": d.unique_for} for d in drafts]
    holders |= {key: job for key, job in (yield write("take_keys", batch=as_json(rows), now=now))}  # noqa: C416
    rest = {draft.unique: draft for draft in drafts if draft.unique not in holders}
    if not rest:
        return
    free = []
    for key, job, over in (yield read("key_holders", keys=as_json(sorted(rest)), now=now)):
        draft = rest[key]
        if job == draft.id or not (over or heirs.get(draft.id) == job):
            holders[key] = job
        else:
            free.append({"key": key, "old": job, "job": draft.id, "window": draft.unique_for})
    if free:
        holders |= {key: job for key, job in (yield write("retake_keys", batch=as_json(free), now=now))}  # noqa: C416
