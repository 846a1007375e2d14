"""enqueue where jobs depend on what the store holds: known ids, unique keys, replacement, dependencies, successors.

The steps of a batch: find the ids that exist, find the chains that drafts wait for, refuse circles, take unique keys,
insert, and load the jobs that stand in for drafts which were not stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct, field, structs

from ..._core.job import Draft, Job, is_immediate, utc
from ...errors import InvalidInput, JobNotFound, KeyTaken, ReletError, StoreBusy
from ..query import BEGIN, Flow, Notify, Row, as_json, pairs, read, write
from . import inspect, mapping, replace, unique_keys

Batch = Sequence[Draft[Any]]

#: Stores drafts that wait for nothing, in one statement. The second argument: ids that others of the batch wait for.
InsertImmediate = Callable[[Batch, Container[str]], Flow[list[Job[Any]]]]

MAX_BATCH = 2000  # drafts, keys or ids sent in one statement
MAX_LINKS = 10_000  # dependencies sent in one statement
TRIES = 20  # to take unique keys that other transactions take or free at the same time
MAX_DOUBTS = 3  # tries to replace one holder of a key

T = TypeVar("T")


class Successor(Struct, frozen=True):
    """A draft that continues a chain."""

    draft: Draft[Any]
    chain: str
    position: int
    watched: bool


class _Keys(Struct):
    """The drafts of a batch that did not get their unique key, and what happens to them.

    `holders`: by the id of a draft that is not stored, the job that has its key: an existing one, or one of the batch.
    `existing`: the holders that were stored before. `followers`: by the id of a draft that takes the key over from a
    running job, the draft as it is stored: it waits for that job, the last one in its `depends_on`.
    """

    holders: dict[str, str] = field(default_factory=dict)
    existing: dict[str, Job[Any]] = field(default_factory=dict)
    followers: dict[str, Draft[Any]] = field(default_factory=dict)

    def chains(self) -> dict[str, str]:
        """The chain to wait for, by the id of a draft that is not stored, or of a job that a follower waits for."""
        chains = {id: self._chain_of(holder) for id, holder in self.holders.items()}
        for draft in self.followers.values():
            followed = draft.depends_on[-1]
            chains[followed] = self.existing[followed].chain
        return chains

    def _chain_of(self, holder: str) -> str:
        return self.existing[holder].chain if holder in self.existing else holder


class _Insertion(Struct, frozen=True):
    """Facts that the inserts of a batch need.

    `chains`: the chain of each id that a draft waits for. `doubtful`: ids that may exist already. `certain`: ids that
    become new jobs in this transaction. `insert_immediate`: for drafts that wait for nothing; None: insert all alike.
    """

    chains: dict[str, str]
    doubtful: set[str] = field(default_factory=set)
    certain: set[str] = field(default_factory=set)
    insert_immediate: InsertImmediate | None = None


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slices of at most `MAX_BATCH` items, which one statement can carry."""
    return (items[start : start + MAX_BATCH] for start in range(0, len(items), MAX_BATCH))


def enqueue(
    drafts: Batch, tried: frozenset[str], insert_immediate: InsertImmediate | None = None
) -> Flow[list[Job[Any]]]:
    """Store the drafts. Returns their jobs in the same order: the existing job where an id or a key was known.

    `tried`: ids of fresh drafts that an earlier try may have stored. `insert_immediate` is passed on a connection of
    the store only: there an id that exists already may end the transaction, and the flow is repeated.
    """
    drafts = replace.newest(drafts)
    may_circle = _refuse_duplicate_ids(drafts)
    doubtful = {draft.id for draft in drafts if not draft.fresh} | tried
    if doubtful or len(drafts) > MAX_BATCH or any(draft.unique or draft.depends_on for draft in drafts):
        yield BEGIN  # a plain enqueue is one statement
    found = yield from _find_stored(drafts, doubtful, tried)
    missing = [draft for draft in drafts if draft.id not in found] if found else drafts
    if may_circle:
        _refuse_circles_within(missing)
    chains = yield from _find_dependencies(missing)
    keys = yield from _take_keys(missing, directly=insert_immediate is not None)
    chains |= keys.chains()
    certain = {draft.id for draft in drafts} - found.keys() - keys.holders.keys() - doubtful
    if keys.followers or (insert_immediate is not None and not _immediate_come_first(drafts)):
        insert_immediate = None
    insertion = _Insertion(chains, doubtful, certain, insert_immediate)
    return (yield from _insert_all(drafts, found, keys, insertion))


def _insert_all(
    drafts: Batch, found: Mapping[str, Job[Any]], keys: _Keys, insertion: _Insertion
) -> Flow[list[Job[Any]]]:
    """Insert the drafts that are neither `found` nor without their key. Returns a job for every draft."""
    jobs: list[Job[Any] | None] = []
    for some in batches(drafts):
        missing = [draft for draft in some if draft.id not in found and draft.id not in keys.holders]
        added = yield from _insert_batch([keys.followers.get(draft.id, draft) for draft in missing], insertion)
        jobs += [added.get(draft.id) or found.get(draft.id) for draft in some]
    return (yield from _load_missing(drafts, jobs, keys.holders))


def _insert_batch(drafts: Batch, insertion: _Insertion) -> Flow[dict[str, Job[Any]]]:
    """Insert a batch: first the drafts that wait for nothing, then the others. Returns the jobs that are new."""
    added: dict[str, Job[Any]] = {}
    if insertion.insert_immediate is not None:
        immediate = [draft for draft in drafts if is_immediate(draft)]
        jobs = (yield from insertion.insert_immediate(immediate, insertion.chains)) if immediate else []
        added = {job.id: job for job in jobs}
    rest = [draft for draft in drafts if draft.id not in added]
    return added | (yield from _insert(rest, insertion))


def _load_missing(drafts: Batch, jobs: Sequence[Job[Any] | None], holders: Mapping[str, str]) -> Flow[list[Job[Any]]]:
    """Replace each None in `jobs` by the job that has the draft's key, or its id, by now."""
    ids = [holders.get(draft.id, draft.id) for draft in drafts]
    others = yield from _load(id for id, job in zip(ids, jobs, strict=True) if job is None)
    return [job or others[id] for id, job in zip(ids, jobs, strict=True)]


def _immediate_come_first(drafts: Batch) -> bool:
    """Whether immediate drafts come before all others of their batch, so that inserting them first keeps the order."""
    immediate = [is_immediate(draft) for draft in drafts]
    return immediate == sorted(immediate, reverse=True)


def refuse_successors(drafts: dict[str, tuple[Draft[Any], str]]) -> Flow[dict[str, ReletError]]:
    """Check drafts that are to continue jobs, and take their unique keys.

    In: by the id of the job, the draft and the job's chain. Out: by the id of the job, the error that the draft would
    meet. Without this check, an insert that adds no row would end the chain without an error.
    """
    known = yield from _load(draft.id for draft, _ in drafts.values())
    named = yield from _find({id for draft, _ in drafts.values() for id in draft.depends_on})
    errors = _refuse_unknown(drafts, known, named)
    accepted = {job: draft for job, draft in drafts.items() if job not in errors}
    circling = yield from circles(_links(accepted, named))
    errors |= {job: InvalidInput(_CIRCLE) for job, (_, chain) in drafts.items() if chain in circling}
    predecessors = {draft.id: job for job, (draft, _) in drafts.items() if job not in errors}
    wanted = [draft for draft, _ in drafts.values() if draft.id in predecessors]
    taken = yield from unique_keys.take(wanted, predecessors)
    return errors | {predecessors[id]: KeyTaken(*holder) for id, holder in taken.items()}


def _refuse_unknown(
    drafts: dict[str, tuple[Draft[Any], str]], known: Container[str], named: Container[str]
) -> dict[str, ReletError]:
    """Errors by job: the draft's id exists (`known`, or twice here), or it waits for an id that is not in `named`."""
    errors: dict[str, ReletError] = {}
    ids: set[str] = set()
    for job, (draft, _) in drafts.items():
        unknown = [id for id in draft.depends_on if id not in named]
        if draft.id in known or draft.id in ids:
            errors[job] = InvalidInput(f"job {draft.id} exists already")
        elif unknown:
            errors[job] = JobNotFound(*unknown)
        else:
            ids.add(draft.id)
    return errors


def _links(drafts: dict[str, tuple[Draft[Any], str]], chains: Mapping[str, str]) -> dict[str, set[str]]:
    """By chain, the chains that it will wait for once the drafts continue it."""
    return {chain: set(_chains_of(draft, chains)) for draft, chain in drafts.values() if draft.depends_on}


_CIRCLE = "the draft waits for its own chain, or for one that waits for it: they would wait for ever"


def circles(waiting: dict[str, set[str]]) -> Flow[set[str]]:
    """The chains that would wait for themselves, directly or through others.

    In: by chain, the chains that it is to wait for. If several chains close a circle only together, the last of them is
    returned.
    """
    reached: dict[str, set[str]] = {}
    circling: set[str] = set()
    sought = as_json(sorted(waiting))
    for chain, dependencies in waiting.items():
        # A chain that no job waits for is in no circle, unless another one of this batch is to wait for it.
        if len(waiting) == 1 and chain not in dependencies and not (yield from _is_awaited([chain])):
            continue
        rows = yield read("enqueue/reachable_chains", chains=as_json(sorted(dependencies)), sought=sought)
        seen = _reachable([row[0] for row in rows], reached)
        if chain in seen:
            circling.add(chain)
        else:
            reached[chain] = seen
    return circling


def _reachable(ahead: list[str], links: Mapping[str, set[str]]) -> set[str]:
    """The chains in `ahead`, and all that `links` lead to from there."""
    seen: set[str] = set()
    while ahead:
        chain = ahead.pop()
        if chain not in seen:
            seen.add(chain)
            ahead += links.get(chain, ())
    return seen


def _is_awaited(chains: Sequence[str]) -> Flow[bool]:
    """Whether a job waits for one of these chains."""
    for some in batches(chains):
        batch = as_json([{"key": chain} for chain in some])
        if (yield read("promote/dependencies_on_chains", batch=batch, limit=1)):
            return True
    return False


def add_successors(successors: Sequence[Successor]) -> Flow[None]:
    """Store drafts that continue chains, once `refuse_successors` has accepted them."""
    chains = yield from _find({id for one in successors for id in one.draft.depends_on})
    positions = {one.draft.id: (one.chain, one.position, one.watched) for one in successors}
    for some in batches(successors):
        added = yield from _insert([one.draft for one in some], _Insertion(chains), positions)
        for one in some:
            if one.draft.id not in added:
                raise InvalidInput(f"continue_with: job {one.draft.id} exists already")


def _refuse_duplicate_ids(drafts: Batch) -> bool:
    """Refuse two drafts with the same id. Returns whether a draft waits for a later one: only then can they circle."""
    seen: set[str] = set()
    ahead: set[str] = set()
    for draft in drafts:
        ahead.update(id for id in draft.depends_on if id not in seen)
        seen.add(draft.id)
    if len(seen) < len(drafts):
        raise InvalidInput("one batch holds two drafts with the same id")
    return not ahead.isdisjoint(seen)


def _find_stored(drafts: Batch, ids: Iterable[str], tried: frozenset[str]) -> Flow[dict[str, Job[Any]]]:
    """Those of the ids that are jobs. A job that an earlier try of this enqueue stored does not count as existing.

    Nor is such a job made again if it was deleted since: the caller gets it as it was enqueued.
    """
    found = yield from _load(ids)
    stored = {id: structs.replace(found[id], existing=False) for id in tried & found.keys()}
    deleted: dict[str, float] = {}
    for some in batches(sorted(tried - found.keys())):
        deleted |= pairs((yield read("enqueue/find_deleted", ids=as_json(some))))
    gone = {one.id: mapping.new_plain_job(one, utc(deleted[one.id])) for one in drafts if one.id in deleted}
    return found | stored | gone


def _load(ids: Iterable[str]) -> Flow[dict[str, Job[Any]]]:
    found: dict[str, Job[Any]] = {}
    for some in batches(sorted(set(ids))):
        for row in (yield read("inspect/get", ids=as_json(some))):
            found[row[0]] = mapping.job(row, existing=True)
    return found


def _find(ids: set[str]) -> Flow[dict[str, str]]:
    """The chains of those jobs that exist. Finished ones cannot be pruned until this transaction ends."""
    found: dict[str, str] = {}
    for some in batches(sorted(ids)):
        yield write("enqueue/lock_finished", ids=as_json(some))  # before reading: rows found then cannot vanish
        found |= yield from inspect.chains_of(some)
    return found


def _find_dependencies(drafts: Batch) -> Flow[dict[str, str]]:
    """The chain of each job named in `depends_on`; an error if one is unknown, or if a draft would wait for itself."""
    chains = yield from _chains_named(drafts)
    # A job may still wait for a deleted job with a draft's id. It will wait for the new job of that id.
    if chains and (yield from _is_awaited([draft.id for draft in drafts if not draft.fresh])):
        links = {draft.id: set(_chains_of(draft, chains)) for draft in drafts if draft.depends_on}
        if (yield from circles(links)):
            raise InvalidInput(_CIRCLE)
    return chains


def _chains_named(drafts: Batch) -> Flow[dict[str, str]]:
    """The chain of each job named in `depends_on`. A draft of this batch is its own chain; an unknown id is refused."""
    named = {id for draft in drafts for id in draft.depends_on}
    if not named:
        return {}
    chains = {draft.id: draft.id for draft in drafts if draft.id in named}
    chains |= yield from _find(named - chains.keys())
    unknown = sorted(named - chains.keys())
    if unknown:
        raise JobNotFound(*unknown)
    return chains


def _refuse_circles_within(drafts: Batch) -> None:
    """Drafts of one batch may wait for each other, but not in a circle: they would wait for ever."""
    ids = {draft.id for draft in drafts}
    try:
        links = {draft.id: ids.intersection(draft.depends_on) for draft in drafts if draft.depends_on}
        TopologicalSorter(links).prepare()
    except CycleError as error:
        raise InvalidInput(f"drafts wait for each other in a circle: {' -> '.join(error.args[1])}") from None


def _take_keys(drafts: Batch, *, directly: bool) -> Flow[_Keys]:
    """Take the drafts' unique keys. A draft with `replace` replaces the holder of its key, or follows it if it runs."""
    firsts, sharing = replace.firsts(drafts)
    keys = _Keys()
    # A holder that still has the key after MAX_DOUBTS tries is protected by its unique_for window.
    doubts: Counter[tuple[str, str]] = Counter()
    for _ in range(TRIES):
        keys.holders, found = yield from _try_to_take_keys(firsts, directly)
        keys.existing |= found
        replacing = [draft for draft in firsts if draft.replace and keys.holders.get(draft.id) in found]
        replacing = [draft for draft in replacing if doubts[draft.id, keys.holders[draft.id]] < MAX_DOUBTS]
        again = bool(replacing) and (yield from _replace_or_follow(replacing, keys, found, doubts))
        if not again:
            keys.holders |= {id: keys.holders.get(first, first) for id, first in sharing.items()}
            return keys
    raise StoreBusy("unique keys change hands too often")


def _replace_or_follow(
    drafts: Batch, keys: _Keys, found: Mapping[str, Job[Any]], doubts: Counter[tuple[str, str]]
) -> Flow[bool]:
    """Replace the holders of the drafts' keys, or follow them; add the followers to `keys`. True: take keys again.

    Counts in `doubts` how often a holder that waits was to be replaced. One that runs or is over is tried only once.
    """
    followers, again = yield from replace.replace_or_follow(drafts, keys.holders, found)
    for draft in drafts:
        holder = keys.holders[draft.id]
        doubts[draft.id, holder] += 1 if found[holder].state in replace.WAITING else MAX_DOUBTS
    keys.followers |= followers
    keys.holders = {id: holder for id, holder in keys.holders.items() if id not in followers}
    return again


def _try_to_take_keys(drafts: Batch, directly: bool) -> Flow[tuple[dict[str, str], dict[str, Job[Any]]]]:
    """For each draft whose key another job holds, that job's id; and those jobs.

    Raises KeyTaken if a key is kept only by the window of a job that is gone.
    """
    lost = yield from (unique_keys.take_directly if directly else unique_keys.take)(drafts)
    ids = {draft.id for draft in drafts} if lost else set[str]()
    existing = yield from _load(holder for _, holder in lost.values() if holder not in ids)
    for key, holder in lost.values():
        if holder not in existing and holder not in ids:
            yield from unique_keys.give_back(drafts)
            raise KeyTaken(key, holder)
    return {id: holder for id, (_, holder) in lost.items()}, existing


def _insert(
    drafts: Batch, insertion: _Insertion, positions: dict[str, mapping.ChainPosition] | None = None
) -> Flow[dict[str, Job[Any]]]:
    """Insert drafts that one statement can carry, and their dependencies. Returns the jobs that are new."""
    if not drafts:
        return {}
    chains = insertion.chains
    # A draft that others of its batch wait for is watched from the start: promote does not have to mark it.
    positions = positions or {draft.id: (draft.id, 0, draft.id in chains) for draft in drafts}
    dependencies = {draft.id: _chains_of(draft, chains) for draft in drafts if draft.depends_on}
    batch = [mapping.draft_row(draft, positions[draft.id], len(dependencies.get(draft.id, ()))) for draft in drafts]
    rows = yield write("enqueue/insert", batch=as_json(batch))
    added = {row[0]: row for row in rows}
    yield from _insert_dependencies(dependencies, added, insertion.certain)
    yield from _insert_details([draft for draft in drafts if draft.id in added])
    yield from _reconcile_doubtful(insertion.doubtful, added)
    if any(row[5] for row in added.values()):
        yield Notify("jobs", sent=True)
    return {
        draft.id: mapping.new_job(draft, positions[draft.id], added[draft.id]) for draft in drafts if draft.id in added
    }


def _insert_details(drafts: Batch) -> Flow[None]:
    """Insert the tags of new jobs, and the jobs that they rerun."""
    tags = [{"tag": tag, "job": draft.id} for draft in drafts if draft.tags for tag in draft.tags]
    if tags:
        yield write("enqueue/insert_tags", batch=as_json(tags))
    reruns = [{"job": draft.id, "rerun_of": draft.rerun_of} for draft in drafts if draft.rerun_of is not None]
    if reruns:
        yield write("enqueue/insert_reruns", batch=as_json(reruns))


def _chains_of(draft: Draft[Any], chains: Mapping[str, str]) -> list[str]:
    """The chains that a draft waits for, each once, in the order of `depends_on`."""
    return list(dict.fromkeys(chains[id] for id in draft.depends_on))


def _insert_dependencies(
    dependencies: Mapping[str, list[str]], added: Mapping[str, Row], certain: set[str]
) -> Flow[None]:
    """Insert the dependencies of the jobs that are new, and nudge the promoter where it must check them.

    A job that waits only for jobs of this transaction (`certain`) needs no nudge: those are watched from the start, so
    their end will be announced.
    """
    links = _dependency_rows(dependencies, added)
    while some := list(islice(links, MAX_LINKS)):
        yield write("enqueue/insert_dependencies", batch=as_json(some))
    to_decide = [id for id, chains in dependencies.items() if id in added and not certain.issuperset(chains)]
    if to_decide:
        nudges = [{"kind": "job", "key": id, "beyond": None} for id in to_decide]
        yield write("promote/insert_nudges", batch=as_json(nudges))


def _dependency_rows(dependencies: Mapping[str, list[str]], added: Mapping[str, Row]) -> Iterator[dict[str, Any]]:
    for id in dependencies.keys() & added.keys():
        for position, chain in enumerate(dependencies[id]):
            yield {"job": id, "depends_on": chain, "position": position}


def _reconcile_doubtful(doubtful: set[str], added: dict[str, Row]) -> Flow[None]:
    """Nudge jobs that wait for deleted jobs of these ids. Drop from `added` each job that was over before we inserted
    it: its row is deleted again."""
    if not doubtful & added.keys():
        return
    ids = as_json(sorted(doubtful & added.keys()))
    yield write("enqueue/nudge_dependents", ids=ids)
    for (id,) in (yield write("enqueue/delete_resurrected", ids=ids)):
        del added[id]
