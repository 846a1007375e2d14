"""enqueue: drafts become rows. In a caller's transaction this inserts new rows and touches nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ...core.errors import InvalidInput, JobNotFound, KeyTaken
from ...core.job import Draft, Job
from ..query import BEGIN, Flow, Row, Wake, as_json, pairs, read, write
from . import rows

Batch = Sequence[Draft[Any]]

MOST = 2000  # drafts sent in one statement


def enqueue(drafts: Batch, *, now: float | None = None, again: bool = False) -> Flow[list[Job[Any]]]:
    """Store the drafts; return their jobs in the same order, existing ones where an id or a key was known.

    `again` says that an earlier try may have been committed: then no id counts as fresh.
    """
    _refuse_twins(drafts)
    doubtful = {draft.id for draft in drafts if again or not draft.fresh}
    if doubtful or len(drafts) > MOST or any(draft.unique or draft.after for draft in drafts):
        yield BEGIN  # a plain enqueue is one statement
    found = yield from _load(doubtful)
    todo = [draft for draft in drafts if draft.id not in found]
    blockers = yield from _blockers(todo)
    holders = yield from _take_keys(todo, now)
    found |= yield from _insert([draft for draft in todo if draft.id not in holders], blockers, now, doubtful)
    others = yield from _load(holders.get(draft.id, draft.id) for draft in drafts if draft.id not in found)
    return [found.get(draft.id) or others[holders.get(draft.id, draft.id)] for draft in drafts]


def successors(pairs: Sequence[tuple[Draft[Any], str, int, bool]], *, now: float | None = None) -> Flow[None]:
    """Store drafts that continue a chain: (draft, chain, position, watched). Their keys have been taken already."""
    drafts = [draft for draft, *_ in pairs]
    blockers = yield from _blockers(drafts)
    places = {draft.id: (chain, position, watched) for draft, chain, position, watched in pairs}
    yield from _insert(drafts, blockers, now, set(), places)


def take_keys(drafts: Iterable[Draft[Any]], now: float | None) -> Flow[dict[str, tuple[str, str]]]:
    """Take the drafts' unique keys. Returns, for each draft that could not, the key and the id of its holder."""
    wanted = sorted((draft for draft in drafts if draft.unique), key=lambda draft: draft.unique or "")
    if not wanted:
        return {}
    batch = [{"key": draft.unique, "job": draft.id, "window": draft.unique_for} for draft in _first_of_key(wanted)]
    got = pairs((yield write("take_keys", batch=as_json(batch), now=now)))
    rest = sorted({draft.unique for draft in wanted if draft.unique} - got.keys())
    if rest:
        got |= pairs((yield read("key_holders", keys=as_json(rest), now=now)))
    return {d.id: (d.unique, got[d.unique]) for d in wanted if d.unique and got.get(d.unique, d.id) != d.id}


def _refuse_twins(drafts: Batch) -> None:
    if len({draft.id for draft in drafts}) < len(drafts):
        raise InvalidInput("one batch holds two drafts with the same id")


def _load(ids: Iterable[str]) -> Flow[dict[str, Job[Any]]]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    return {row[0]: rows.job(row, existing=True) for row in (yield read("get", ids=as_json(wanted)))}


def _blockers(drafts: Batch) -> Flow[dict[str, str]]:
    """The chain of each job named in `after`. Drafts of this batch are their own chains; unknown ids are refused."""
    named = {id for draft in drafts for id in draft.after}
    if not named:
        return {}
    _refuse_cycles(drafts)
    chains = {draft.id: draft.id for draft in drafts if draft.id in named}
    outside = sorted(named - chains.keys())
    if outside:
        chains |= pairs((yield read("find_chains", ids=as_json(outside))))
    unknown = sorted(named - chains.keys())
    if unknown:
        raise JobNotFound(*unknown)
    return chains


def _refuse_cycles(drafts: Batch) -> None:
    """Drafts of one batch may wait for each other, but not in a circle: they would wait for ever."""
    try:
        TopologicalSorter({draft.id: draft.after for draft in drafts}).prepare()
    except CycleError as error:
        raise InvalidInput(f"drafts wait for each other in a circle: {' -> '.join(error.args[1])}") from None


def _take_keys(drafts: Batch, now: float | None) -> Flow[dict[str, str]]:
    """For each draft whose key another job holds: that job's id. An error if only its window is left."""
    lost = yield from take_keys(drafts, now)
    ids = {draft.id for draft in drafts}
    known = ids | (yield from _load(holder for _, holder in lost.values())).keys()
    for key, holder in lost.values():
        if holder not in known:
            yield write("drop_keys", ids=as_json(sorted(ids)))  # the caller may go on with its transaction
            raise KeyTaken(key, holder)
    return {id: holder for id, (_, holder) in lost.items()}


def _first_of_key(drafts: Batch) -> list[Draft[Any]]:
    """Of drafts with one key the first; the others will find it as the holder."""
    return list({draft.unique: draft for draft in reversed(drafts)}.values())[::-1]


def _insert(
    drafts: Batch,
    blockers: dict[str, str],
    now: float | None,
    doubtful: set[str],
    places: dict[str, tuple[str, int, bool]] | None = None,
) -> Flow[dict[str, Job[Any]]]:
    added: dict[str, Row] = {}
    edges = {draft.id: list(dict.fromkeys(blockers[id] for id in draft.after)) for draft in drafts if draft.after}
    place = {draft.id: (places or {}).get(draft.id, (draft.id, 0, False)) for draft in drafts}
    for start in range(0, len(drafts), MOST):
        batch = []
        for draft in drafts[start : start + MOST]:
            chain, position, watched = place[draft.id]
            batch.append(rows.draft_row(draft, chain, position, len(edges.get(draft.id, ())), watched))
        added |= {row[0]: row for row in (yield write("enqueue", batch=as_json(batch), now=now))}
    links = [
        {"job": id, "blocker": blocker, "position": position}
        for id, chain_ids in edges.items()
        if id in added
        for position, blocker in enumerate(chain_ids)
    ]
    if links:
        yield write("add_edges", batch=as_json(links))
    if doubtful & added.keys():
        for (id,) in (yield write("drop_revived", ids=as_json(sorted(doubtful & added.keys())))):
            del added[id]
    if any(row[5] for row in added.values()):
        yield Wake("jobs")
    return {
        draft.id: rows.new_job(draft, place[draft.id][0], place[draft.id][1], added[draft.id])
        for draft in drafts
        if draft.id in added
    }
