"""enqueue: drafts become rows. In a caller's transaction this inserts new rows and touches nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from msgspec import structs

from ...core.errors import InvalidInput, JobNotFound, KeyTaken, LeaseholdError
from ...core.job import Draft, Job
from ..query import BEGIN, Flow, Row, Wake, as_json, pairs, read, write
from . import keys, rows

Batch = Sequence[Draft[Any]]

Places = dict[str, tuple[str, int, bool]]  # chain, position in it, and whether somebody waits for it

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
    ours = [draft.id for draft in drafts if again and draft.fresh and draft.id in found]
    found |= {id: structs.replace(found[id], existing=False) for id in ours}
    todo = [draft for draft in drafts if draft.id not in found]
    chains = yield from _chains_named(todo)
    holders, existing = yield from _take_keys(todo, now)
    # Whoever waits for a draft whose key is taken waits for the job that has it.
    chains |= {id: existing[holder].chain if holder in existing else holder for id, holder in holders.items()}
    found |= yield from _insert([draft for draft in todo if draft.id not in holders], chains, now, doubtful)
    others = yield from _load(holders.get(draft.id, draft.id) for draft in drafts if draft.id not in found)
    return [found.get(draft.id) or others[holders.get(draft.id, draft.id)] for draft in drafts]


@dataclass(frozen=True, slots=True)
class Successor:
    """A draft that goes on with a chain."""

    draft: Draft[Any]
    chain: str
    position: int
    watched: bool


def refuse_successors(given: dict[str, tuple[Draft[Any], str]], now: float | None) -> Flow[dict[str, LeaseholdError]]:
    """What stands against drafts continuing a job, by the job's id: (draft, chain) in, an error out. Takes their keys.

    An insert that came to nothing would end the chain in silence.
    """
    known = yield from _load(draft.id for draft, _ in given.values())
    named = yield from _find({id for draft, _ in given.values() for id in draft.after})
    errors: dict[str, LeaseholdError] = {}
    for job, (draft, chain) in given.items():
        unknown = [id for id in draft.after if id not in named]
        if draft.id in known:
            errors[job] = InvalidInput(f"job {draft.id} exists already")
        elif unknown:
            errors[job] = JobNotFound(*unknown)
        elif chain in (named[id] for id in draft.after):
            errors[job] = InvalidInput("the draft waits for its own chain")
    heirs = {draft.id: job for job, (draft, _) in given.items() if job not in errors}
    taken = yield from keys.take([draft for draft, _ in given.values() if draft.id in heirs], now, heirs)
    return errors | {heirs[id]: KeyTaken(*holder) for id, holder in taken.items()}


def add_successors(given: Sequence[Successor], *, now: float | None = None) -> Flow[None]:
    """Store drafts that continue chains, once nothing stands against them."""
    chains = yield from _find({id for one in given for id in one.draft.after})
    places = {one.draft.id: (one.chain, one.position, one.watched) for one in given}
    added = yield from _insert([one.draft for one in given], chains, now, set(), places)
    for one in given:
        if one.draft.id not in added:
            raise InvalidInput(f"continue_with: job {one.draft.id} exists already")


def _refuse_twins(drafts: Batch) -> None:
    if len({draft.id for draft in drafts}) < len(drafts):
        raise InvalidInput("one batch holds two drafts with the same id")


def _load(ids: Iterable[str]) -> Flow[dict[str, Job[Any]]]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    return {row[0]: rows.job(row, existing=True) for row in (yield read("get", ids=as_json(wanted)))}


def _find(ids: set[str]) -> Flow[dict[str, str]]:
    """The chains of those jobs that exist."""
    return pairs((yield read("find_chains", ids=as_json(sorted(ids))))) if ids else {}


def _chains_named(drafts: Batch) -> Flow[dict[str, str]]:
    """The chain of each job named in `after`. Drafts of this batch are their own chains; unknown ids are refused."""
    named = {id for draft in drafts for id in draft.after}
    if not named:
        return {}
    _refuse_cycles(drafts)
    chains = {draft.id: draft.id for draft in drafts if draft.id in named}
    chains |= yield from _find(named - chains.keys())
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


def _take_keys(drafts: Batch, now: float | None) -> Flow[tuple[dict[str, str], dict[str, Job[Any]]]]:
    """For each draft whose key another job holds, that job's id; and those jobs. An error if only a window is left."""
    lost = yield from keys.take(drafts, now)
    ids = {draft.id for draft in drafts}
    existing = yield from _load(holder for _, holder in lost.values() if holder not in ids)
    for key, holder in lost.values():
        if holder not in existing and holder not in ids:
            yield from keys.give_back(drafts)
            raise KeyTaken(key, holder)
    return {id: holder for id, (_, holder) in lost.items()}, existing


def _insert(
    drafts: Batch,
    chains: dict[str, str],
    now: float | None,
    doubtful: set[str],
    places: Places | None = None,
) -> Flow[dict[str, Job[Any]]]:
    added: dict[str, Row] = {}
    edges = {draft.id: list(dict.fromkeys(chains[id] for id in draft.after)) for draft in drafts if draft.after}
    places = places or {}
    for start in range(0, len(drafts), MOST):
        batch = [
            rows.draft_row(draft, places.get(draft.id), len(edges.get(draft.id, ())))
            for draft in drafts[start : start + MOST]
        ]
        for row in (yield write("enqueue", batch=as_json(batch), now=now)):
            added[row[0]] = row
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
        draft.id: rows.new_job(draft, places.get(draft.id), added[draft.id]) for draft in drafts if draft.id in added
    }
